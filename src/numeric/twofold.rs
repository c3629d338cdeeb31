//! [`Twofold`]: sums with twice the digits of `f64`.

/// A sum as two numbers, of which the second is at most half a place of the first: some 106 bits.
///
/// T. J. Dekker, *A Floating-Point Technique for Extending the Available Precision*, Numerische Mathematik 18, 1971.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twofold {
    /// The sum, rounded.
    pub high: f64,
    /// The remainder of the rounding.
    pub low: f64,
}

impl Twofold {
    /// The sum plus a number.
    pub fn add(self, value: f64) -> Self {
        let sum = self.high + value;
        let part = sum - self.high;
        let left = (self.high - (sum - part)) + (value - part);
        let low = left + self.low;
        let high = sum + low;
        Twofold { high, low: low - (high - sum) }
    }

    /// The sum plus a · b.
    pub fn add_product(self, a: f64, b: f64) -> Self {
        let product = a * b;
        self.add(a.mul_add(b, -product)).add(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_number_loses_two_keep() {
        let third = 1.0 / 3.0;
        let sum =
            Twofold::default().add_product(third, third).add(1e16).add_product(-third, third).add(-1e16);
        assert_eq!(sum, Twofold::default());
        let sum = Twofold::default().add(1e16).add(1e-16);
        assert_eq!((sum.high, sum.low), (1e16, 1e-16));
        // (10⁹ + 10⁻⁶)² − 10¹⁸ − 2000 = 10⁻¹², but for the rounding of the sum.
        let y = 1e9 + 1e-6;
        let square = Twofold::default().add_product(y, y).add_product(-1e9, 1e9);
        let expected = (y - 1e9) * (y - 1e9) + 2e9 * (y - 1e9);
        assert!((square.high / expected - 1.0).abs() < 1e-15, "{square:?} {expected}");
        assert!(Twofold::default().add_product(1e300, 1e300).high.is_nan());
    }
}
