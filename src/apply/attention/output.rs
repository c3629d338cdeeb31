//! [`Sums`]: an output before it is divided.

use crate::Real;
use crate::numeric::{self, Isa};

/// An output before it is divided: e^scale · (normaliser, sums).
pub(super) struct Sums<'a, T> {
    /// −∞ if no key was seen.
    pub scale: f64,
    pub normaliser: f64,
    pub sums: &'a mut [T],
}

impl<U: Real> Sums<'_, U> {
    /// Writes an output; whether its normaliser is positive, or nothing can be said of it, or nothing was seen.
    pub fn write<'a, T: Real>(self, normalised: bool, out: impl Iterator<Item = &'a mut T>) -> bool {
        let Sums { scale, normaliser, sums } = self;
        let factor = match normalised {
            _ if normaliser.is_nan() => f64::NAN,
            _ if scale == f64::NEG_INFINITY => 0.0,
            false => scale.exp(),
            true if normaliser > 0.0 => normaliser.recip(),
            true => 0.0,
        };
        let in_range = T::narrow(factor).is_normal();
        if in_range {
            numeric::affine(Isa::best(), sums, U::narrow(factor), &[]);
            out.zip(sums).for_each(|(out, sum)| *out = T::narrow(sum.widen()));
        } else if factor == 0.0 {
            out.for_each(|out| *out = T::zero());
        } else {
            out.zip(sums).for_each(|(out, sum)| *out = T::narrow(sum.widen() * factor));
        }
        normaliser > 0.0 || normaliser.is_nan() || scale == f64::NEG_INFINITY
    }
}
