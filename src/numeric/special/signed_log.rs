//! [`SignedLog`]: a number as sign and logarithm.

use super::elementary::largest;

/// A real number as its sign and the natural logarithm of its magnitude.
///
/// ```
/// use random_features::SignedLog;
/// let big = SignedLog::positive(2e4);
/// assert_eq!((big.ln_abs, big.sign), (2e4, 1.0));
/// assert_eq!(SignedLog::from(-0.5).value(), -0.5);
/// ```
///
/// Kernels and their estimates overflow or underflow `f64` at norms of about 30; their logarithms do not.
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

    /// The number itself; ±∞ or 0 where `f64` overflows or underflows.
    pub fn value(self) -> f64 {
        self.sign * self.ln_abs.exp()
    }

    /// The sum of terms of any size; the rounding error is relative to the sum of magnitudes.
    pub fn sum(terms: impl Iterator<Item = Self> + Clone) -> Self {
        let top = largest(terms.clone().map(|term| term.ln_abs));
        if !top.is_finite() {
            // All terms are zero, or some are infinite or NaN, which decide the sum.
            let finite = |term: &Self| term.ln_abs < f64::INFINITY && !term.sign.is_nan();
            return SignedLog::from(terms.filter(|term| !finite(term)).map(SignedLog::value).sum::<f64>());
        }
        SignedLog::from(terms.map(|term| term.scaled(-top).value()).sum::<f64>()).scaled(top)
    }

    /// The product of two numbers; 0 if one of them is.
    pub(crate) fn times(self, other: Self) -> Self {
        if self.sign == 0.0 || other.sign == 0.0 {
            return SignedLog::from(0.0);
        }
        SignedLog { sign: self.sign * other.sign, ..self }.scaled(other.ln_abs)
    }

    /// The number times e^`ln`; NaN for 0 times ∞ and ∞ times 0.
    pub fn scaled(self, ln: f64) -> Self {
        let ln_abs = self.ln_abs + ln;
        let sign = match ln_abs {
            f64::NEG_INFINITY => 0.0,
            _ if ln_abs.is_nan() => f64::NAN,
            _ => self.sign,
        };
        SignedLog { ln_abs, sign }
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

    #[test]
    fn infinities_and_nan_stay_what_they_are() {
        let (infinite, zero) = (SignedLog::positive(f64::INFINITY), SignedLog::from(0.0));
        let minus = |ln| SignedLog { ln_abs: ln, sign: -1.0 };
        let sum = |terms: &[SignedLog]| SignedLog::sum(terms.iter().copied());
        // A finite number whose value overflows is not infinite.
        assert_eq!(sum(&[infinite, minus(1e4)]), infinite);
        assert_eq!(sum(&[minus(f64::INFINITY), SignedLog::positive(1e4)]), minus(f64::INFINITY));
        let none = [
            sum(&[infinite, minus(f64::INFINITY)]),
            sum(&[infinite, SignedLog::from(f64::NAN)]),
            sum(&[zero, SignedLog::from(f64::NAN)]),
            zero.scaled(f64::NAN),
            zero.scaled(f64::INFINITY),
            infinite.scaled(f64::NEG_INFINITY),
            SignedLog { ln_abs: f64::NAN, sign: 0.0 },
        ];
        for number in none {
            assert!(number.value().is_nan(), "{number:?}");
        }
        assert!(none[..6].iter().all(|number| number.sign.is_nan() && number.ln_abs.is_nan()), "{none:?}");
        assert_eq!(zero.scaled(1e4), zero);
        assert_eq!(zero.value(), 0.0);
        assert_eq!(SignedLog::positive(1.0).scaled(f64::NEG_INFINITY), zero);
    }
}
