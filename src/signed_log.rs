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

    /// The number times e^`ln`.
    pub fn scaled(self, ln: f64) -> Self {
        SignedLog { ln_abs: self.ln_abs + ln, ..self }
    }
}

impl From<f64> for SignedLog {
    fn from(v: f64) -> Self {
        let sign = if v == 0.0 { 0.0 } else { v.signum() };
        SignedLog { ln_abs: v.abs().ln(), sign }
    }
}
