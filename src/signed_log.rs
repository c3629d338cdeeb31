//! [`SignedLog`]: a number as sign and logarithm.

/// A real number as its sign and the natural logarithm of its magnitude.
///
/// Kernels and their estimates leave the range of `f64` at norms of about 30; their logarithms do not.
///
/// ```
/// use random_features::SignedLog;
/// let big = SignedLog::positive(2e4);
/// assert_eq!((big.ln_abs, big.sign), (2e4, 1.0));
/// assert_eq!(SignedLog::from(-0.5).value(), -0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedLog {
    /// ln |v|; −∞ for zero.
    pub ln_abs: f64,
    /// 1 or −1; 0 for zero; NaN for NaN.
    pub sign: f64,
}

impl SignedLog {
    /// The positive number e^`ln`.
    pub fn positive(ln: f64) -> Self {
        SignedLog { ln_abs: ln, sign: if ln.is_nan() { f64::NAN } else { f64::from(ln > f64::NEG_INFINITY) } }
    }

    /// The number itself; ±∞ or 0 where it leaves the range of `f64`.
    pub fn value(self) -> f64 {
        if self.sign == 0.0 { 0.0 } else { self.sign * self.ln_abs.exp() }
    }

    /// The sum, accurate to rounding relative to the sum of magnitudes, whatever the terms' sizes.
    pub fn sum(terms: impl Iterator<Item = Self> + Clone) -> Self {
        let top = terms.clone().map(|term| term.ln_abs).fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            // All zero, or one infinite: nothing to relate the others to.
            return SignedLog::from(terms.map(SignedLog::value).sum::<f64>());
        }
        SignedLog::from(terms.map(|term| term.scaled(-top).value()).sum::<f64>()).scaled(top)
    }

    /// The number times e^`ln`.
    pub fn scaled(self, ln: f64) -> Self {
        let ln_abs = self.ln_abs + ln;
        SignedLog { ln_abs, sign: if ln_abs == f64::NEG_INFINITY { 0.0 } else { self.sign } }
    }
}

impl From<f64> for SignedLog {
    fn from(v: f64) -> Self {
        let sign = if v == 0.0 { 0.0 } else { v.signum() };
        SignedLog { ln_abs: v.abs().ln(), sign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_size() {
        let log = |ln| SignedLog::positive(ln);
        let minus = |ln| SignedLog { ln_abs: ln, sign: -1.0 };
        let sum = |terms: &[SignedLog]| SignedLog::sum(terms.iter().copied());
        assert_eq!(sum(&[]).value(), 0.0);
        assert_eq!(sum(&[log(f64::NEG_INFINITY), SignedLog::from(0.0)]).ln_abs, f64::NEG_INFINITY);
        assert_eq!(sum(&[log(1e4), log(-1e4)]), log(1e4));
        assert_eq!(sum(&[log(1e4), minus(1e4)]).value(), 0.0);
        let three = sum(&[log(800.0), log(800.0), log(800.0)]);
        assert!((three.ln_abs - 800.0 - 3f64.ln()).abs() < 1e-12);
        assert_eq!(sum(&[minus(2.0), log(1.0)]).sign, -1.0);
        assert!(sum(&[log(f64::NAN), log(1.0)]).ln_abs.is_nan());
        assert!(sum(&[log(f64::NAN)]).value().is_nan());
        assert_eq!(sum(&[log(f64::INFINITY), log(1.0)]).value(), f64::INFINITY);
    }
}
