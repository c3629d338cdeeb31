//! [`Bias`]: the part of each exponent that depends only on the frequency.

use std::f64::consts::TAU;

use num_complex::Complex64;

use crate::Real;
use crate::numeric::special::largest;
use crate::numeric::{self, Isa};

/// The logarithmic weights aⱼ of frequencies: exponents are βtⱼ + aⱼ for projections t.
#[derive(Debug)]
pub(crate) struct Bias<T> {
    /// Re aⱼ, less the largest of them.
    pub sizes: Vec<T>,
    /// Im aⱼ, modulo 2π.
    phases: Vec<T>,
    /// The largest magnitude of `sizes`.
    pub spread: f64,
    /// The largest Re aⱼ.
    pub top: f64,
}

impl<T: Real> Bias<T> {
    pub fn new(weights: &[Complex64]) -> Self {
        let top = largest(weights.iter().map(|a| a.re));
        Bias {
            sizes: weights.iter().map(|a| T::saturated(a.re - top)).collect(),
            phases: weights.iter().map(|a| T::narrow(a.im.rem_euclid(TAU))).collect(),
            spread: weights.iter().fold(0.0, |spread, a| (top - a.re).max(spread)),
            top,
        }
    }

    /// The weights aⱼ.
    pub fn weights(&self) -> impl Iterator<Item = Complex64> {
        let weight = |(size, phase): (&T, &T)| Complex64::new(self.top + size.widen(), phase.widen());
        self.sizes.iter().zip(&self.phases).map(weight)
    }

    /// Turns projections t into exponents βt + a, in place: all real parts and, if there is room, all imaginary parts.
    /// They saturate where they might overflow `T`; `bound` bounds every magnitude.
    pub fn apply(&self, slope: Complex64, values: &mut [T], bound: f64) {
        let isa = Isa::best();
        let (first, second) = values.split_at_mut(self.sizes.len());
        if !second.is_empty() {
            second.copy_from_slice(first);
            numeric::affine(isa, second, T::saturated(slope.im), &self.phases);
        }
        numeric::affine(isa, first, T::saturated(slope.re), &self.sizes);
        let limit = T::max_value() / T::narrow(4.0);
        if bound > limit.widen() {
            values.iter_mut().for_each(|v| *v = v.max(-limit).min(limit));
        }
    }
}
