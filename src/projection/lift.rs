//! [`Lift`]: from exponents to features, in place.

use crate::Real;
use crate::numeric::{self, Isa};

/// The pointwise function that turns m exponents into features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lift {
    /// eᵖ: m features.
    Exp,
    /// (eᵖ, e⁻ᵖ): 2m features, the first m with plus.
    ExpPair,
    /// (cos p, sin p): 2m features, cosines first.
    Polar,
}

impl Lift {
    /// Features for each exponent.
    pub fn width(self) -> usize {
        match self {
            Lift::Exp => 1,
            Lift::ExpPair | Lift::Polar => 2,
        }
    }

    /// Lifts one row in place and returns its logarithmic scale s: features are eˢ times what the row holds
    /// then.
    ///
    /// The row holds m exponents at its beginning and has room for all features. `bound` is not less than any
    /// exponent's magnitude. Values are at most 1 in magnitude. Exponentials are scaled by the bound where it
    /// is so small that no product of two features can underflow, else by the largest exponent; which of the
    /// two depends on the row alone.
    pub fn apply<T: Real>(self, row: &mut [T], bound: f64) -> f64 {
        let isa = Isa::best();
        let count = row.len() / self.width();
        let (first, second) = row.split_at_mut(count);
        match self {
            Lift::Exp => {
                let shift = shift(bound, || numeric::max(isa, first));
                numeric::exp_minus(isa, first, shift);
                shift.widen()
            }
            Lift::ExpPair => {
                let shift = shift(bound, || numeric::max_abs(isa, first));
                numeric::exp_pair_minus(isa, first, second, shift);
                shift.widen()
            }
            Lift::Polar => {
                numeric::cos_sin(isa, first, second);
                0.0
            }
        }
    }
}

/// The bound if e⁻⁴ᵇ, the least product of two scaled features, is a normal number with room to spare; else
/// the maximum.
fn shift<T: Real>(bound: f64, max: impl FnOnce() -> T) -> T {
    let small = T::max_value().widen().ln() / 5.0;
    if bound <= small { T::narrow(bound) } else { max() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_values_are_the_features() {
        for bound in [3.0f64, 1e9] {
            let p = [0.5f64, -3.0, 2.0];
            let mut row = p;
            let s = Lift::Exp.apply(&mut row, bound);
            assert!((0..3).all(|j| row[j] <= 1.0 && ((s + row[j].ln()) - p[j]).abs() < 1e-12));
            let mut row = [p[0], p[1], p[2], f64::NAN, f64::NAN, f64::NAN];
            let s = Lift::ExpPair.apply(&mut row, bound);
            assert!((0..3).all(|j| ((s + row[j].ln()) - p[j]).abs() < 1e-12));
            assert!((0..3).all(|j| ((s + row[3 + j].ln()) + p[j]).abs() < 1e-12));
            assert!(row.iter().all(|v| *v <= 1.0));
        }
        let mut row = [0.0f32, 1.0, f32::NAN, f32::NAN];
        assert_eq!(Lift::Polar.apply(&mut row, 1.0), 0.0);
        assert_eq!((row[0], row[2]), (1.0, 0.0));
        assert!((row[1] - 1f32.cos()).abs() < 1e-7 && (row[3] - 1f32.sin()).abs() < 1e-7);
    }
}
