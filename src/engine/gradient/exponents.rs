//! Gradients through exponents βt + a of linear projections t.

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};
use num_complex::Complex64;

use super::PulledRows;
use crate::Real;
use crate::engine::batch::Batch;
use crate::engine::function::{self, Factor};
use crate::engine::input::{ComplexMatrix, Input, Linear};
use crate::engine::leaf::Leaf;
use crate::engine::{Lift, Projection, Scratch, Side, Tile, TileShape};
use crate::numeric::{self, Isa, matrix_of};

pub(super) fn gradient<T: Real>(
    leaf: &Leaf<T>,
    projection: &Projection<T>,
    rows: PulledRows<'_, T>,
    features: &Batch<T>,
    scratch: &mut Scratch<T>,
) -> Array2<f64> {
    let PulledRows { side, x, cotangents } = rows;
    let (n, m) = (x.nrows(), projection.m());
    let projected = match leaf.lift {
        Lift::Function { .. } => projections(projection, x.view(), scratch),
        _ => Array2::zeros((0, 0)),
    };
    // The derivative of each row's sum with respect to each projection, real and imaginary; and Σ c φ.
    let complex = matches!(*leaf.input, Input::Linear(_));
    let (mut re, mut im) = (Array2::zeros((n, m)), Array2::zeros((if complex { n } else { 0 }, m)));
    let (mut sums, mut units) = (vec![Complex64::ZERO; n], vec![[1.0, 0.0]; n]);
    let (mut slopes, mut weights) = (Vec::new(), Vec::new());
    for i in 0..n {
        let (row, c) = (features.row(i), cotangents.row(i));
        sums[i] = match leaf.lift {
            Lift::Function { activation, .. } => {
                let scale = leaf.constant - row.log_scales[0];
                function::derive(activation, projected.row(i), &mut slopes);
                let weight = |j: usize, factor| c[j].widen() * function::slope(activation, slopes[j], factor);
                units[i] = write_in_units(re.row_mut(i), &mut weights, scale, weight);
                Complex64::ZERO
            }
            _ => weigh(leaf, side, c, row.values, re.row_mut(i), complex.then(|| im.row_mut(i))),
        };
    }
    let (re, im) = (projection.times_frequencies(re.view()), projection.times_frequencies(im.view()));
    let mut out = Array2::zeros(x.dim());
    for (i, out) in out.rows_mut().into_iter().enumerate() {
        match &*leaf.input {
            Input::Linear(linear) => {
                through_matrix(linear, side, x.row(i), re.row(i), im.row(i), sums[i], out);
            }
            _ => {
                for (k, out) in out.into_iter().enumerate() {
                    let scale = leaf.lengthscale.at(k);
                    let term = 2.0 * leaf.row * sums[i].re * (x[[i, k]].widen() / scale);
                    let [unit, log] = units[i];
                    let sum = re[[i, k]].widen() * unit;
                    // 0 stays 0 even if the factor is infinite.
                    let sum = if log == 0.0 || sum == 0.0 { sum } else { sum * log.exp() };
                    *out = (sum + term) / scale;
                }
            }
        }
    }
    out
}

/// Adds gradients from cotangents of the logarithms of features, exponentials e^(β⟨ωⱼ, x⟩ + c(x)) with slopes β ωⱼ + ∇c.
pub(super) fn of_logarithms<T: Real>(
    leaf: &Leaf<T>,
    PulledRows { side, x, cotangents }: PulledRows<'_, T>,
    mut out: ArrayViewMut2<'_, f64>,
) {
    let (projection, isa) = (&leaf.projection, Isa::best());
    let cotangents = cotangents.as_standard_layout();
    let along = match leaf.lift {
        Lift::ExpPair => {
            let (plus, minus) = cotangents.view().split_at(Axis(1), projection.m());
            projection.times_frequencies((&plus - &minus).view())
        }
        _ => projection.times_frequencies(cotangents.view()),
    };
    let slope = leaf.slopes[side as usize].re;
    let scales: Vec<f64> = (0..projection.dim()).map(|k| leaf.lengthscale.at(k)).collect();
    // Divisions by 1 change nothing, and take longer than all else.
    let is_unit = scales.iter().all(|scale| *scale == 1.0);
    let (x, along) = (x.as_standard_layout(), along.as_standard_layout());
    let rows = out.rows_mut().into_iter().zip(cotangents.rows()).zip(along.rows()).zip(x.rows());
    for (((mut out, c), along), x) in rows {
        let row = 2.0 * leaf.row * numeric::plain_sum(isa, numeric::slice_of(&c));
        if is_unit {
            let (along, x) = (numeric::slice_of(&along), numeric::slice_of(&x));
            numeric::add_two(isa, numeric::slice_of_mut(&mut out), slope, along, row, x);
        } else {
            let each = out.iter_mut().zip(along).zip(x).zip(&scales);
            each.for_each(|(((out, along), x), scale)| {
                *out += (slope * along.widen() + row * (x.widen() / scale)) / scale;
            });
        }
    }
}

/// Writes `weight(j, e^scale)` for all j, divided by a unit and by a power of e, and returns [unit, log of the power]. Without
/// them the slopes of scaled features and their sum would overflow for points near 0. `weights` is room for a row.
fn write_in_units<T: Real>(
    mut out: ArrayViewMut1<'_, T>,
    weights: &mut Vec<f64>,
    scale: f64,
    weight: impl Fn(usize, Factor) -> f64,
) -> [f64; 2] {
    let (mut log, count) = (0.0, out.len());
    let mut weigh = |log: f64| {
        let factor = Factor::of(scale - log);
        weights.clear();
        weights.extend((0..count).map(|j| weight(j, factor)));
        weights.iter().fold(0.0, |largest: f64, weight| largest.max(weight.abs()))
    };
    let mut unit = weigh(log);
    while unit == f64::INFINITY && log < scale {
        log += 600.0;
        unit = weigh(log);
    }
    // Slopes of usual size need no unit.
    let unit = if unit <= T::max_value().widen().sqrt() { 1.0 } else { unit };
    out.iter_mut().zip(weights).for_each(|(out, weight)| *out = T::narrow(*weight / unit));
    [unit, log]
}

/// Writes the derivatives with respect to each projection, for features that are exponentials or waves; returns Σ c φ.
fn weigh<T: Real>(
    leaf: &Leaf<T>,
    side: Side,
    c: ArrayView1<'_, T>,
    values: &[T],
    mut re: ArrayViewMut1<'_, T>,
    mut im: Option<ArrayViewMut1<'_, T>>,
) -> Complex64 {
    let mut sum = Complex64::ZERO;
    for j in 0..re.len() {
        let (weight, own) = derivative(leaf, side, c, values, j);
        sum += own;
        re[j] = T::narrow(weight.re);
        if let Some(im) = &mut im {
            im[j] = T::narrow(weight.im);
        }
    }
    sum
}

/// The derivative of Σ c φ with respect to the projection on frequency `j`, and the part of its features in the sum, for
/// features that are exponentials or waves. For complex features the sum means its real part.
#[inline]
pub(super) fn derivative<T: Real>(
    leaf: &Leaf<T>,
    side: Side,
    c: ArrayView1<'_, T>,
    values: &[T],
    j: usize,
) -> (Complex64, Complex64) {
    let (m, half) = (leaf.projection.m(), values.len() / 2);
    let slope = leaf.slopes[side as usize];
    let real = |f: usize| c[f].widen() * values[f].widen();
    match leaf.lift {
        Lift::Exp | Lift::Function { .. } => ((slope.re * real(j)).into(), real(j).into()),
        Lift::ExpPair => {
            let (plus, minus) = (real(j), real(m + j));
            ((slope.re * (plus - minus)).into(), (plus + minus).into())
        }
        Lift::Polar => {
            let (cos, sin) = (values[j].widen(), values[m + j].widen());
            let weight = c[m + j].widen() * cos - c[j].widen() * sin;
            (weight.into(), (real(j) + real(m + j)).into())
        }
        Lift::ExpPolar { .. } => {
            let sign = if side == Side::Y { -1.0 } else { 1.0 };
            let of = |j: usize| {
                let z = Complex64::new(values[j].widen(), sign * values[half + j].widen());
                Complex64::new(c[j].widen(), -sign * c[half + j].widen()) * z
            };
            let (plus, minus) = (of(j), if leaf.mirrored { of(m + j) } else { Complex64::ZERO });
            (slope * (plus - minus), plus + minus)
        }
    }
}

/// The gradients with respect to x, from those with respect to the image z = Mu.
fn through_matrix<T: Real>(
    linear: &Linear,
    side: Side,
    x: ArrayView1<'_, T>,
    re: ArrayView1<'_, T>,
    im: ArrayView1<'_, T>,
    sum: Complex64,
    out: ArrayViewMut1<'_, f64>,
) {
    let d = x.len();
    let (mut u, mut image) = (vec![0.0; d], vec![Complex64::ZERO; d]);
    linear.divide(x, &mut u);
    let matrix: &ComplexMatrix = &linear.matrices[side as usize];
    matrix.times(&u, |k, z| {
        image[k] = Complex64::new(re[k].widen(), im[k].widen()) + 2.0 * linear.inner * sum * z;
    });
    let mut gradient = vec![0.0; d];
    matrix.transposed_times(&image, &mut gradient);
    for (k, out) in out.into_iter().enumerate() {
        let outer = 2.0 * linear.outer * sum.re * u[k];
        *out = (gradient[k] + outer) / linear.lengthscale.at(k);
    }
}

pub(super) fn projections<T: Real>(
    projection: &Projection<T>,
    x: ArrayView2<'_, T>,
    scratch: &mut Scratch<T>,
) -> Array2<T> {
    let (mut values, mut norms) = (vec![T::zero(); x.nrows() * projection.m()], vec![0.0; x.nrows()]);
    let shape = TileShape { rows: x.nrows(), width: projection.m(), blocks: 1 };
    projection.project(x.into(), &mut Tile::new(&mut values, &mut [], &mut norms, shape), scratch, None);
    matrix_of(x.nrows(), projection.m(), values)
}
