//! Gradients of kernels, as numbers times a power of e: a kernel may be far outside the range of numbers.

use super::angular::max_abs;
use super::{ShiftInvariant, Spectrum};
use crate::SignedLog;

/// Replaces the difference δ by a vector g for which the gradient of k at δ is eˢ g, and returns s; `None` for a kernel that does not
/// state its slope.
pub(super) fn at<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &mut [f64]) -> Option<f64> {
    let unknown = delta.iter().any(|v| v.is_nan());
    match kernel.spectrum() {
        Spectrum::Polar(_) => radial(kernel, delta),
        Spectrum::Product(_) if unknown => {
            delta.fill(f64::NAN);
            slope_at(kernel, f64::NAN).map(|slope| slope.ln_abs)
        }
        Spectrum::Product(_) => product(kernel, delta),
        Spectrum::Mixture(_) if unknown => {
            delta.fill(f64::NAN);
            Some(f64::NAN)
        }
        Spectrum::Mixture(mixture) => Some(mixture.gradient(delta)),
    }
}

/// The slope of a kernel at any distance: 0 for equal points, where there may be a kink, and infinitely far away.
fn slope_at<K: ShiftInvariant + ?Sized>(kernel: &K, distance: f64) -> Option<SignedLog> {
    if distance > 0.0 && distance.is_finite() {
        return kernel.slope(distance);
    }
    kernel.slope(1.0).map(|_| SignedLog::from(if distance.is_nan() { f64::NAN } else { 0.0 }))
}

/// The slope times the direction of δ.
fn radial<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &mut [f64]) -> Option<f64> {
    let slope = slope_at(kernel, normalise(delta))?;
    delta.iter_mut().for_each(|v| *v *= slope.sign);
    Some(slope.ln_abs)
}

/// Divides a vector by its norm, which is returned; a norm of 0, ∞ or NaN leaves the vector 0.
fn normalise(v: &mut [f64]) -> f64 {
    let largest = max_abs(v.iter().copied());
    if largest == 0.0 || !largest.is_finite() {
        v.fill(0.0);
        return largest;
    }
    // Neither squares nor their sum leave the range.
    v.iter_mut().for_each(|v| *v /= largest);
    let rest = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    v.iter_mut().for_each(|v| *v /= rest);
    largest * rest
}

/// The slope of each factor times all other factors, none of which is divided by: a factor may be 0.
fn product<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &mut [f64]) -> Option<f64> {
    let factors: Vec<SignedLog> = delta.iter().map(|v| kernel.of_square(v * v)).collect();
    let mut behind = vec![SignedLog::from(1.0); delta.len() + 1];
    for (l, factor) in factors.iter().enumerate().rev() {
        behind[l] = behind[l + 1].times(*factor);
    }
    let mut before = SignedLog::from(1.0);
    let mut entries = Vec::with_capacity(delta.len());
    for (l, (v, factor)) in delta.iter().zip(&factors).enumerate() {
        let slope = slope_at(kernel, v.abs())?.times(SignedLog::from(v.signum()));
        entries.push(slope.times(before).times(behind[l + 1]));
        before = before.times(*factor);
    }
    let ln_scale = entries.iter().map(|entry| entry.ln_abs).fold(f64::NEG_INFINITY, f64::max);
    let relative = |entry: &SignedLog| if entry.sign == 0.0 { 0.0 } else { entry.scaled(-ln_scale).value() };
    delta.iter_mut().zip(&entries).for_each(|(v, entry)| *v = relative(entry));
    Some(ln_scale)
}

/// A sum of vectors of any size.
#[derive(Debug)]
pub(crate) struct ScaledSum {
    /// The sum over e^`ln_scale`, d numbers.
    pub numbers: Vec<f64>,
    /// ln of the largest factor; −∞ for no vector.
    pub ln_scale: f64,
}

impl ScaledSum {
    pub fn new(d: usize) -> Self {
        ScaledSum { numbers: vec![0.0; d], ln_scale: f64::NEG_INFINITY }
    }

    /// Adds a vector of d numbers times a factor; nothing if the factor is 0.
    pub fn add(&mut self, vector: &[f64], factor: SignedLog) {
        if factor.sign == 0.0 {
            return;
        }
        if factor.ln_abs > self.ln_scale {
            let shrink = (self.ln_scale - factor.ln_abs).exp();
            self.numbers.iter_mut().for_each(|v| *v *= shrink);
            self.ln_scale = factor.ln_abs;
        }
        let factor = factor.scaled(-self.ln_scale).value();
        self.numbers.iter_mut().zip(vector).for_each(|(sum, v)| *sum += factor * v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_have_any_size() {
        for size in [5e-324, 1e-200, 1.0, 1e200] {
            let mut v = [0.0, -size, 0.0];
            assert_eq!((normalise(&mut v), v), (size, [0.0, -1.0, 0.0]));
        }
        let mut v = [3e200, 4e200];
        assert!((normalise(&mut v) / 5e200 - 1.0).abs() < 1e-15 && (v[0] - 0.6).abs() < 1e-15);
        for (bad, norm) in [([0.0, 0.0], 0.0), ([1.0, f64::INFINITY], f64::INFINITY)] {
            let mut v = bad;
            assert_eq!((normalise(&mut v), v), (norm, [0.0; 2]));
        }
        assert!(normalise(&mut [f64::NAN, 1.0]).is_nan() && normalise(&mut [1.0, f64::NAN]).is_nan());
    }

    #[test]
    fn sums_of_vectors_of_any_size() {
        let mut sum = ScaledSum::new(2);
        let minus = |ln| SignedLog { ln_abs: ln, sign: -1.0 };
        sum.add(&[1.0, 2.0], SignedLog::positive(-2000.0));
        sum.add(&[1.0, 1.0], SignedLog::from(0.0));
        sum.add(&[1.0, 0.5], minus(-2000.0));
        assert_eq!((sum.numbers.as_slice(), sum.ln_scale), ([0.0, 1.5].as_slice(), -2000.0));
        sum.add(&[3.0, 0.0], SignedLog::positive(1000.0));
        assert_eq!((sum.numbers.as_slice(), sum.ln_scale), ([3.0, 0.0].as_slice(), 1000.0));
        sum.add(&[1.0, 0.0], SignedLog::from(f64::NAN));
        assert!(sum.numbers[0].is_nan());
    }
}
