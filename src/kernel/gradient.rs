//! Gradients of kernels, as numbers times a power of e: a kernel may be far outside the range of numbers.

use super::angular::max_abs;
use super::{ShiftInvariant, Spectrum};
use crate::SignedLog;

/// Replaces the difference δ, at which the kernel has this value, by a vector g for which the gradient of k is eˢ g. Returns s, or `None`
/// for a kernel that does not state its slope.
pub(super) fn at<K: ShiftInvariant + ?Sized>(kernel: &K, value: SignedLog, delta: &mut [f64]) -> Option<f64> {
    let value = if delta.iter().any(|v| v.is_nan()) { SignedLog::from(f64::NAN) } else { value };
    match kernel.spectrum() {
        Spectrum::Polar(_) => {
            let slope = log_slope(kernel, normalise(delta))?;
            delta.iter_mut().for_each(|v| *v *= slope);
        }
        Spectrum::Product(_) => {
            for v in delta.iter_mut() {
                *v = log_slope(kernel, v.abs())? * v.signum();
            }
        }
        Spectrum::Mixture(_) if value.sign.is_nan() => {}
        Spectrum::Mixture(mixture) => return Some(mixture.gradient(delta)),
    }
    match value.sign {
        0.0 => delta.fill(0.0),
        sign => delta.iter_mut().for_each(|v| *v *= sign),
    }
    Some(value.ln_abs)
}

/// The slope of ln |k| at any distance: 0 for equal points, where there may be a kink, and infinitely far away.
fn log_slope<K: ShiftInvariant + ?Sized>(kernel: &K, distance: f64) -> Option<f64> {
    if distance > 0.0 && distance.is_finite() {
        return kernel.log_slope(distance);
    }
    kernel.log_slope(1.0).map(|_| if distance.is_nan() { f64::NAN } else { 0.0 })
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

    /// Adds a vector of d numbers times a factor; nothing if one of them is 0.
    pub fn add(&mut self, vector: &[f64], factor: SignedLog) {
        let is_nothing = factor.sign == 0.0 || (vector.iter().all(|v| *v == 0.0) && !factor.ln_abs.is_nan());
        if is_nothing {
            return;
        }
        if factor.ln_abs > self.ln_scale {
            let shrink = (self.ln_scale - factor.ln_abs).exp();
            self.numbers.iter_mut().for_each(|v| *v *= shrink);
            self.ln_scale = factor.ln_abs;
        }
        // Equal logarithms may be infinite.
        let factor =
            if factor.ln_abs == self.ln_scale { factor.sign } else { factor.scaled(-self.ln_scale).value() };
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
