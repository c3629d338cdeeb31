//! [`Lifted`]: features with one scale for each token.

use super::super::input::Lifted;
use crate::Real;
use crate::engine::{Form, MapPlan, Program, Scratch, Side};
use crate::numeric::special::largest;
use crate::numeric::{self, Isa, matrix_view};
use crate::reduce::{Precision, least};

/// Whether all features of a map are exponentials that this crate computes, none of them a user's.
fn is_own<T: Real>(program: &Program<T>) -> bool {
    let mut own = program.facts().logarithms;
    program.plan().each_leaf(&mut |leaf| own &= !matches!(leaf, MapPlan::Foreign(..)));
    own
}

/// Divides values by a power of two so that the largest lies between ½ and 1, unless it is already between ¼ and 1; returns the
/// logarithm of the divisor.
fn level<T: Real>(values: &mut [T]) -> f64 {
    let largest = numeric::max_abs(Isa::best(), values).widen();
    if largest == 0.0 || !largest.is_finite() || (0.25..=1.0).contains(&largest) {
        return 0.0;
    }
    let (_, exponent) = libm::frexp(largest);
    values.iter_mut().for_each(|v| *v = T::narrow(libm::ldexp(v.widen(), -exponent)));
    f64::from(exponent) * std::f64::consts::LN_2
}

impl<T: Real> Lifted<T> {
    /// Computes the features of `n` points.
    pub fn fill(
        &mut self,
        program: &Program<T>,
        side: Side,
        (n, points): (usize, &[T]),
        scratch: &mut Scratch<T>,
    ) {
        let points = matrix_view(n, program.facts().dim, points);
        self.features.fill(program, side, Form::Values, points.into(), scratch);
        self.precision.clear();
        let own = is_own(program);
        for i in 0..n {
            let precision = self.flatten(program, own, i);
            self.precision.push(precision);
        }
    }

    /// Gives row `i` one scale for all its blocks, and looks for features that are 0 or small. `own` says that features are
    /// [exponentials of this crate](is_own): at most 1, and not all far below it.
    fn flatten(&mut self, program: &Program<T>, own: bool, i: usize) -> Precision {
        let isa = Isa::best();
        let row = self.features.row_mut(i);
        let mut scale = largest(row.log_scales.iter().copied());
        let (mut is_representable, mut has_zeros, mut small) = (true, false, T::infinity());
        for (columns, own_scale) in program.blocks().iter().zip(&*row.log_scales) {
            let values = &mut row.values[columns.clone()];
            if *own_scale == f64::NEG_INFINITY {
                values.fill(T::zero());
                has_zeros |= !values.is_empty();
                continue;
            }
            if *own_scale < scale {
                let weight = (*own_scale - scale).exp();
                is_representable &= weight >= least::<T>(true);
                numeric::affine(isa, values, T::narrow(weight), &[]);
            }
            small = small.min(numeric::min_abs(isa, values));
        }
        if row.log_scales.iter().any(|scale| scale.is_nan()) {
            (scale, is_representable) = (f64::NAN, false);
        } else if own {
            is_representable &= small.widen() >= least::<T>(has_zeros);
        } else if scale > f64::NEG_INFINITY {
            scale += level(row.values);
            has_zeros |= small == T::zero();
            is_representable &=
                row.values.iter().all(|v| *v == T::zero() || v.widen().abs() >= least::<T>(true));
            // All features are 0.
            scale = if row.values.iter().all(|v| *v == T::zero()) { f64::NEG_INFINITY } else { scale };
        }
        Precision { scale, has_zeros, is_representable }
    }
}
