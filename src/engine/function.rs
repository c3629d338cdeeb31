//! Values of functions f(u) + ε, for rows of any magnitude.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

use ndarray::ArrayView1;

use super::Lift;
use crate::Real;
use crate::kernel::Activation;
use crate::numeric::{self, Isa, pointwise};

/// Replaces projections, at most `bound` in magnitude, by values of f + ε, scaled to at most 1 in magnitude; returns their
/// logarithmic scale.
pub(super) fn apply<T: Real>(f: Activation, offset: f64, values: &mut [T], bound: f64) -> f64 {
    let mut scale = activate(f, values, bound);
    if offset != 0.0 {
        // ε is added relative to the values of f, and must not underflow if all of them are 0.
        scale += halve_until_one(values);
        scale = add_offset(f, offset, values, scale);
    }
    scale += halve_until_one(values);
    // A row of zeros may have any scale.
    if scale == f64::NEG_INFINITY { 0.0 } else { scale }
}

/// Adds ε to values with the log scale `scale`, −∞ if all are 0; returns the log scale of the sums, which are at most 2.
fn add_offset<T: Real>(f: Activation, offset: f64, values: &mut [T], scale: f64) -> f64 {
    // The lower limit keeps e^(−top) finite.
    let top = scale.max(offset.abs().ln()).max(-700.0);
    let constant = T::narrow(offset * (-top).exp());
    // Rounding must not make a feature negative if f + ε never is.
    let least = if f.lower_bound() + offset >= 0.0 { T::zero() } else { T::neg_infinity() };
    pointwise::affine(Isa::best(), values, T::narrow((scale - top).exp()), constant, least);
    top
}

/// Replaces projections, at most `bound` in magnitude, by their f, scaled to at most 1; returns the log scale.
fn activate<T: Real>(f: Activation, values: &mut [T], bound: f64) -> f64 {
    let isa = Isa::best();
    match f {
        Activation::Exp => return Lift::Exp.apply(values, bound),
        // f(cu) = cf(u) or c²f(u) for c > 0, so scaling first avoids overflow.
        Activation::Identity => return halve_until_one(values),
        Activation::Relu | Activation::Abs => {
            let scale = halve_until_one(values);
            if f == Activation::Abs {
                pointwise::abs(isa, values)
            } else {
                pointwise::relu(isa, values)
            }
            return scale;
        }
        Activation::Square | Activation::ReluSquared => {
            let scale = halve_until_one(values);
            if f == Activation::ReluSquared {
                pointwise::relu(isa, values);
            }
            pointwise::square(isa, values);
            return 2.0 * scale;
        }
        Activation::Gelu => {
            pointwise::gelu(isa, values);
            return halve_until_one(values);
        }
        Activation::Cos => pointwise::cos(isa, values),
        Activation::Sin => pointwise::sin(isa, values),
        Activation::Sign => pointwise::sign(isa, values),
        Activation::Step => pointwise::step(isa, values),
        Activation::Sigmoid => pointwise::sigmoid(isa, values),
        Activation::Erf => pointwise::erf(values),
        Activation::Tanh => pointwise::tanh(isa, values),
    }
    0.0
}

/// Multiplies a row by the power of two that puts its largest magnitude between ½ and 1, or by the nearest one that `T` holds;
/// returns the log scale, −∞ for a row of zeros.
fn halve_until_one<T: Real>(values: &mut [T]) -> f64 {
    let isa = Isa::best();
    let largest = numeric::max_abs(isa, values).widen();
    if largest == 0.0 {
        return f64::NEG_INFINITY;
    }
    if !largest.is_finite() {
        return 0.0;
    }
    let (fraction, exponent) = libm::frexp(largest);
    // 1 stays as it is.
    let exponent = if fraction == 0.5 { exponent - 1 } else { exponent };
    let (_, limit) = libm::frexp(T::max_value().widen());
    let exponent = exponent.max(2 - limit);
    if exponent != 0 {
        pointwise::scale(isa, values, T::narrow(libm::ldexp(1.0, -exponent)));
    }
    f64::from(exponent) * LN_2
}

/// e^`log`, computed once for all slopes of a row.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    log: f64,
    value: f64,
}

impl Factor {
    /// e^`log`.
    pub fn of(log: f64) -> Self {
        Factor { log, value: log.exp() }
    }

    /// v e^`log`, also if the exponential alone is out of the range of `f64`.
    fn times(self, v: f64) -> f64 {
        if v == 0.0 {
            0.0
        } else if self.value.is_normal() {
            v * self.value
        } else {
            v.signum() * (v.abs().ln() + self.log).exp()
        }
    }
}

/// Writes the slopes f′(u) for a row of projections, and for the exponential their logarithms, which are u.
pub(super) fn derive<T: Real>(f: Activation, projected: ArrayView1<'_, T>, u: &mut Vec<f64>) {
    let isa = Isa::best();
    u.clear();
    u.extend(projected.iter().map(|u| u.widen()));
    match f {
        Activation::Exp => {}
        Activation::Identity => u.fill(1.0),
        Activation::Square => pointwise::scale(isa, u, 2.0),
        Activation::Cos => {
            pointwise::sin(isa, u);
            pointwise::scale(isa, u, -1.0);
        }
        Activation::Sin => pointwise::cos(isa, u),
        // The derivative of a step, 0 almost everywhere.
        Activation::Sign | Activation::Step => u.fill(0.0),
        Activation::Erf => {
            u.iter_mut().for_each(|u| *u *= -*u);
            numeric::exp_minus(isa, u, 0.0);
            pointwise::scale(isa, u, FRAC_2_SQRT_PI);
        }
        Activation::Relu => u.iter_mut().for_each(|u| *u = if *u > 0.0 { 1.0 } else { 0.0 }),
        Activation::ReluSquared => {
            pointwise::relu(isa, u);
            pointwise::scale(isa, u, 2.0);
        }
        Activation::Abs => u.iter_mut().for_each(|u| *u = if *u > 0.0 { 1.0 } else { -1.0 }),
        Activation::Gelu => pointwise::gelu_slope(isa, u),
        Activation::Sigmoid => pointwise::sigmoid_slope(isa, u),
        Activation::Tanh => pointwise::tanh_slope(isa, u),
    }
}

/// The slope that [`derive`] wrote for a projection, times a factor.
pub(super) fn slope(f: Activation, derived: f64, factor: Factor) -> f64 {
    // A row that is not finite has a NaN scale, also where f is flat.
    if factor.log.is_nan() {
        return factor.log;
    }
    if f == Activation::Exp { (derived + factor.log).exp() } else { factor.times(derived) }
}
