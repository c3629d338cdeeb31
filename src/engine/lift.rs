//! [`Lift`]: turns exponents into features, in place.

use super::{Side, function};
use crate::Real;
use crate::kernel::Activation;
use crate::numeric::{self, Isa, Submatrix, pointwise};

/// The pointwise function that turns exponents into features.
///
/// A row that is lifted holds exponents p = u + iv at its beginning: m numbers u, or m numbers v where u is 0
/// ([`Polar`](Lift::Polar)), or first all u and then all v.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Lift {
    /// eᵘ: m features.
    Exp,
    /// (eᵘ, e⁻ᵘ): 2m features, the first m with plus.
    ExpPair,
    /// (cos v, sin v): 2m features, cosines first.
    Polar,
    /// (eᵘ cos v, eᵘ sin v): 2m features, cosines first. Products with conjugate features are the real parts of complex
    /// products.
    ExpPolar {
        /// Whether sines are negative.
        conjugate: bool,
    },
    /// f(u) + ε: m features.
    Function {
        /// The function f.
        activation: Activation,
        /// The offset ε.
        offset: f64,
    },
}

impl Lift {
    /// The number of features for each exponent.
    pub fn width(self) -> usize {
        match self {
            Lift::Exp | Lift::Function { .. } => 1,
            Lift::ExpPair | Lift::Polar | Lift::ExpPolar { .. } => 2,
        }
    }

    /// Whether rows hold imaginary parts behind the real ones.
    pub(crate) fn is_complex(self) -> bool {
        matches!(self, Lift::ExpPolar { .. })
    }

    /// Whether features are exponentials, which have logarithms.
    pub(crate) fn is_exponential(self) -> bool {
        match self {
            Lift::Exp | Lift::ExpPair | Lift::ExpPolar { .. } => true,
            Lift::Polar => false,
            Lift::Function { activation, offset } => activation == Activation::Exp && offset == 0.0,
        }
    }

    /// The function of a side: complex features are conjugate on side Y.
    #[inline]
    pub(crate) fn on(self, side: Side) -> Self {
        match self {
            Lift::ExpPolar { .. } => Lift::ExpPolar { conjugate: side == Side::Y },
            other => other,
        }
    }

    /// Lifts one row in place and returns its logarithmic scale s: features are eˢ times the new values of the row.
    ///
    /// The row holds exponents at its beginning and has room for all features. `bound` is not less than any |u|, or any |v| for
    /// [`Polar`](Lift::Polar). Values are at most 1 in magnitude. Exponentials are scaled by the bound if it is so small that no
    /// product of two features can underflow, else by the largest exponent, and become 0 where they would be denormal numbers.
    /// The choice depends on the row alone.
    pub fn apply<T: Real>(self, row: &mut [T], bound: f64) -> f64 {
        // Elements beyond a whole number of features are left unchanged.
        let (whole, mut scale) = (row.len() / self.width() * self.width(), [bound]);
        self.apply_to_rows(Submatrix::of_row(&mut row[..whole]), &mut scale);
        scale[0]
    }

    /// Lifts each row by [`apply`](Lift::apply); its bound becomes its logarithmic scale.
    pub(crate) fn apply_to_rows<T: Real>(self, mut rows: Submatrix<&mut [T]>, bounds: &mut [f64]) {
        let isa = Isa::best();
        // Loops without branches go through all rows at once where no bound is beyond the limit.
        let limit = match self {
            Lift::Exp | Lift::ExpPair => small_exponent::<T>(),
            Lift::Polar => numeric::COS_SIN_LIMIT,
            Lift::Function { activation: Activation::Sign, offset: 0.0 } => f64::INFINITY,
            // No bound is below NaN, so that rows are always lifted one by one.
            Lift::ExpPolar { .. } | Lift::Function { .. } => f64::NAN,
        };
        if !bounds.iter().all(|bound| *bound <= limit) {
            rows.rows().zip(bounds).for_each(|(row, bound)| *bound = self.apply_to_any(row, *bound));
            return;
        }
        let exponential = matches!(self, Lift::Exp | Lift::ExpPair);
        for bound in &mut *bounds {
            *bound = if exponential { T::narrow(*bound).widen() } else { 0.0 };
        }
        match self {
            Lift::Exp => numeric::small_exp_minus(isa, rows, bounds),
            Lift::ExpPair => numeric::small_exp_pair_minus(isa, rows, bounds),
            Lift::Polar => numeric::small_cos_sin(isa, rows),
            _ => pointwise::signs(isa, rows),
        }
    }

    /// Lifts one row with any bound, bit-identical to the faster loops where those may be used.
    fn apply_to_any<T: Real>(self, row: &mut [T], bound: f64) -> f64 {
        let isa = Isa::best();
        let count = row.len() / self.width();
        let (first, second) = row.split_at_mut(count);
        let small = bound <= small_exponent::<T>();
        let shift = |max: &dyn Fn() -> T| if small { T::narrow(bound) } else { max() };
        match self {
            Lift::Exp => {
                let shift = shift(&|| numeric::max(isa, first));
                numeric::exp_minus(isa, first, shift);
                shift.widen()
            }
            Lift::ExpPair => {
                let shift = shift(&|| numeric::max_abs(isa, first));
                numeric::exp_pair_minus(isa, first, second, shift);
                shift.widen()
            }
            Lift::Polar => {
                numeric::cos_sin(isa, first, second);
                0.0
            }
            Lift::ExpPolar { conjugate } => {
                let shift = shift(&|| numeric::max(isa, first));
                let sign = if conjugate { -T::one() } else { T::one() };
                numeric::exp_polar(isa, first, second, shift, sign);
                shift.widen()
            }
            Lift::Function { activation, offset } => function::apply(activation, offset, first, bound),
        }
    }

    /// Replaces the exponents of a row by the logarithms of the features' magnitudes, and `signs` by their signs. Returns `false`
    /// and does nothing for lifts whose features are not exponentials.
    pub fn logarithms<T: Real>(self, row: &mut [T], signs: &mut [T]) -> bool {
        let count = row.len() / self.width();
        let (first, second) = row.split_at_mut(count);
        match self {
            Lift::Exp => {}
            Lift::Function { .. } => return self.is_exponential(),
            Lift::ExpPair => second.iter_mut().zip(first).for_each(|(minus, u)| *minus = -*u),
            Lift::Polar => return false,
            Lift::ExpPolar { conjugate } => {
                let (cosines, sines) = signs.split_at_mut(count.min(signs.len()));
                for (j, (u, v)) in first.iter_mut().zip(second).enumerate() {
                    let (sin, cos) = v.sin_cos();
                    let sin = if conjugate { -sin } else { sin };
                    (*u, *v) = (*u + cos.abs().ln(), *u + sin.abs().ln());
                    if let (Some(c), Some(s)) = (cosines.get_mut(j), sines.get_mut(j)) {
                        (*c, *s) = (cos.signum(), sin.signum());
                    }
                }
            }
        }
        true
    }
}

/// The largest bound of exponents b for which e⁻⁴ᵇ, the least product of two features that are scaled by the bound, is a
/// normal number with room to spare.
fn small_exponent<T: Real>() -> f64 {
    T::max_value().widen().ln() / 5.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are lifted together, of small and of large bounds, are what each of them is alone.
    #[test]
    fn rows_do_not_depend_on_their_neighbours() {
        let function = |activation| Lift::Function { activation, offset: 0.0 };
        let polar = Lift::ExpPolar { conjugate: true };
        let lifts = [
            Lift::Exp,
            Lift::ExpPair,
            Lift::Polar,
            polar,
            function(Activation::Sign),
            function(Activation::Cos),
        ];
        let all = [3.0, 1e6, 2.0, f64::NAN, 40.0];
        for (lift, bounds) in lifts.iter().flat_map(|lift| [(lift, &all[..]), (lift, &all[..1])]) {
            let (count, stride) = (5 * lift.width(), 13);
            let row = |bound: f64| (0..count).map(move |k| bound * ((k * 7 % 11) as f64 / 5.5 - 0.9));
            let mut rows: Vec<f32> = vec![9.0; bounds.len() * stride];
            for (row_of, bound) in rows.chunks_mut(stride).zip(bounds) {
                row_of.iter_mut().zip(row(*bound)).for_each(|(to, from)| *to = from as f32);
            }
            let (mut alone, mut scales) = (rows.clone(), bounds.to_vec());
            let submatrix = Submatrix { values: &mut rows[..], rows: bounds.len(), stride, width: count };
            lift.apply_to_rows(submatrix, &mut scales);
            for (row, (scale, bound)) in alone.chunks_mut(stride).zip(scales.iter().zip(bounds)) {
                let own = lift.apply_to_any(&mut row[..count], *bound);
                assert_eq!(own.to_bits(), scale.to_bits(), "{lift:?} {bound}");
            }
            let bits = |rows: &[f32]| rows.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&rows), bits(&alone), "{lift:?}");
        }
    }

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
            for conjugate in [false, true] {
                let (v, lift) = ([0.4f64, 2.9, -1e6], Lift::ExpPolar { conjugate });
                let exponents = [p[0], p[1], p[2], v[0], v[1], v[2]];
                let (mut row, mut logs, mut signs) = (exponents, exponents, [1.0; 6]);
                let s = lift.apply(&mut row, bound);
                assert!(lift.logarithms(&mut logs, &mut signs));
                for j in 0..3 {
                    let sine = if conjugate { -v[j].sin() } else { v[j].sin() };
                    for (k, expected) in [(j, p[j].exp() * v[j].cos()), (3 + j, p[j].exp() * sine)] {
                        assert!((s.exp() * row[k] - expected).abs() < 1e-12 && row[k].abs() <= 1.0);
                        assert!((signs[k] * logs[k].exp() - expected).abs() < 1e-12);
                    }
                }
            }
        }
        // Large arguments, beyond the limit of the fast loop, against f64.
        fn waves<T: Real>(count: usize) {
            let v = |k: usize| T::narrow((k as f64 / (count - 1) as f64 - 0.5) * 2e6);
            let mut row: Vec<T> = (0..2 * count).map(|k| v(k % count)).collect();
            assert_eq!(Lift::Polar.apply(&mut row, 1e6), 0.0);
            for k in 0..count {
                let (sin, cos) = v(k).widen().sin_cos();
                let error = (row[k].widen() - cos).abs().max((row[count + k].widen() - sin).abs());
                assert!(error <= 2.0 * T::epsilon().widen(), "{}: {error}", v(k));
            }
        }
        waves::<f32>(10_001);
        waves::<f64>(10_001);
        let mut row = [0.0f32, 1.0, f32::NAN, f32::NAN];
        assert_eq!(Lift::Polar.apply(&mut row, 1.0), 0.0);
        assert_eq!((row[0], row[2]), (1.0, 0.0));
        assert!((row[1] - 1f32.cos()).abs() < 1e-7 && (row[3] - 1f32.sin()).abs() < 1e-7);
        assert!(!Lift::Polar.logarithms(&mut row, &mut []));
    }
}
