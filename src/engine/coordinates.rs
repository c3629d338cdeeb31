//! Features that are functions of single coordinates: elu(u) + 1.

use ndarray::{ArrayView1, ArrayView2};

use super::{Form, Tile};
use crate::Real;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa};

/// Writes elu(u) + 1 for all coordinates u = xₖ/ℓₖ, or its logarithm.
pub(super) fn fill<T: Real>(
    lengthscale: &Lengthscale,
    form: Form,
    x: ArrayView2<'_, T>,
    tile: &mut Tile<'_, T>,
) {
    for (i, x) in x.rows().into_iter().enumerate() {
        let norm: f64 = lengthscale.divide(x).map(|u| u * u).sum();
        if norm.is_finite() {
            let row = tile.row(i);
            row.log_scales[0] = match form {
                Form::Values => values(lengthscale, x, row.values),
                Form::Logarithms => logarithms(lengthscale, x, row.values),
            };
        } else {
            tile.poison(i);
        }
        tile.complete(i + 1);
    }
}

fn values<T: Real>(lengthscale: &Lengthscale, x: ArrayView1<'_, T>, values: &mut [T]) -> f64 {
    let scaled = || lengthscale.divide(x);
    let largest = scaled().fold(f64::NEG_INFINITY, f64::max);
    // Where all u are negative, e^shift is divided out; else the largest feature, 1 + u.
    let shift = T::saturated(largest.min(0.0));
    let divisor = 1.0 + largest.max(0.0);
    values.iter_mut().zip(scaled()).for_each(|(v, u)| *v = T::saturated(u.min(0.0)));
    numeric::exp_minus(Isa::best(), values, shift);
    for (v, u) in values.iter_mut().zip(scaled()) {
        *v = T::narrow((v.widen() + u.max(0.0)) / divisor);
    }
    shift.widen() + divisor.ln()
}

fn logarithms<T: Real>(lengthscale: &Lengthscale, x: ArrayView1<'_, T>, values: &mut [T]) -> f64 {
    let exponent = |u: f64| if u > 0.0 { u.ln_1p() } else { u };
    values.iter_mut().zip(lengthscale.divide(x)).for_each(|(v, u)| *v = T::saturated(exponent(u)));
    0.0
}
