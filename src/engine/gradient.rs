//! Vector–Jacobian products: from cotangents of features to gradients with respect to points.

use std::ops::AddAssign;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};
use num_complex::Complex64;

use super::batch::Batch;
use super::coordinates;
use super::input::{Input, Linear, Matrix};
use super::leaf::Leaf;
use super::logarithms::Logarithms;
use super::plan::{Pass, Plan};
use super::routed::Routed;
use super::sum::Sum;
use super::{Form, Lift, Program, Projection, Scratch, Side, function};
use crate::Real;
use crate::numeric::{self, Isa};

/// Rows whose gradients are computed together.
const ROWS: usize = 60;

/// Writes to each row i of `out` the gradient of Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to xᵢ, scales s held fixed;
/// `false` if a map of the plan has no gradients. `out` is n × d, `cotangents` n × D.
pub(crate) fn pull_back<T: Real>(
    program: &Program<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
) -> bool {
    use ndarray::parallel::prelude::*;
    out.fill(T::zero());
    let chunks = x
        .axis_chunks_iter(Axis(0), ROWS)
        .into_par_iter()
        .zip(cotangents.axis_chunks_iter(Axis(0), ROWS))
        .zip(out.axis_chunks_iter_mut(Axis(0), ROWS));
    let results: Vec<bool> = chunks
        .map_init(Scratch::default, |scratch, ((x, cotangents), out)| {
            of_plan(program.plan(), side, x, cotangents, out, scratch)
        })
        .collect();
    // Without rows it is still asked.
    results.into_iter().all(|known| known) && has_gradients(program.plan(), side)
}

fn has_gradients<T: Real>(plan: &Plan<T>, side: Side) -> bool {
    match plan {
        Plan::Leaf(_) => true,
        Plan::Sum(sum) => sum.parts().all(|part| has_gradients(part, side)),
        Plan::Routed(routed) => routed.plans().all(|plan| has_gradients(plan, side)),
        Plan::Foreign(map, facts) => {
            let (x, c) = (Array2::zeros((0, facts.input_dim)), Array2::zeros((0, facts.feature_dim())));
            let mut out = Array2::zeros((0, facts.input_dim));
            map.pull_back(side, x.view(), c.view(), out.view_mut())
        }
    }
}

/// Adds gradients to `out`.
fn of_plan<T: Real>(
    plan: &Plan<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
    scratch: &mut Scratch<T>,
) -> bool {
    match plan {
        Plan::Leaf(leaf) => {
            let gradient = of_leaf(leaf, side, x, cotangents, scratch);
            out.add_assign(&gradient);
            true
        }
        Plan::Sum(sum) => of_sum(sum, side, x, cotangents, out, scratch),
        Plan::Routed(routed) => of_routed(routed, side, x, cotangents, out, scratch),
        Plan::Foreign(map, _) => {
            let mut gradient = Array2::zeros(x.dim());
            let known = map.pull_back(side, x, cotangents, gradient.view_mut());
            out.add_assign(&gradient);
            known
        }
    }
}

fn of_sum<T: Real>(
    sum: &Sum<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
    scratch: &mut Scratch<T>,
) -> bool {
    let mut room = Batch::default();
    sum.fill_parts(Pass::new(side, Form::Values), x, &mut room, scratch);
    let mut of_parts = Array2::zeros((x.nrows(), sum.room().0));
    let cotangents = cotangents.as_standard_layout();
    for (i, mut of_parts) in of_parts.rows_mut().into_iter().enumerate() {
        if let (Some(c), Some(out)) = (cotangents.row(i).to_slice(), of_parts.as_slice_mut()) {
            sum.pull_back(side, room.row(i), c, out);
        }
    }
    sum.each_part().all(|(plan, columns, _)| {
        of_plan(plan, side, x, of_parts.slice(s![.., columns]), out.view_mut(), scratch)
    })
}

fn of_routed<T: Real>(
    routed: &Routed<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
    scratch: &mut Scratch<T>,
) -> bool {
    let x = x.as_standard_layout();
    let mut known = true;
    for i in 0..x.nrows() {
        let one = s![i..i + 1, ..];
        let cluster = routed.cluster(side, x.row(i));
        if cluster == routed.clusters(side) {
            out.row_mut(i).fill(T::nan());
            continue;
        }
        for (plan, columns, _) in routed.line(side, cluster) {
            let c = cotangents.slice(s![i..i + 1, columns]);
            known &= of_plan(plan, side, x.slice(one), c, out.slice_mut(one), scratch);
        }
    }
    known
}

fn of_leaf<T: Real>(
    leaf: &Leaf<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    scratch: &mut Scratch<T>,
) -> Array2<T> {
    let mut batch = Batch::default();
    batch.resize(x.nrows(), (leaf.facts.feature_dim(), 1), Form::Values);
    leaf.fill(Pass::new(side, Form::Values), x, &mut batch.tile(), scratch);
    let mut out = Array2::zeros(x.dim());
    match (&*leaf.input, &leaf.projection) {
        (Input::Logarithms(logarithms), Some(projection)) => {
            let weights =
                Array2::from_shape_fn(cotangents.dim(), |(i, f)| cotangents[[i, f]] * batch.row(i).values[f]);
            let sums = projection.times_frequencies(weights.view());
            for i in 0..x.nrows() {
                let scale = batch.row(i).log_scales[0];
                let parts = (weights.row(i), sums.row(i), cotangents.row(i), scale);
                of_powers(leaf, logarithms, projection, side, x.row(i), parts, out.row_mut(i), scratch);
            }
        }
        (_, Some(projection)) => {
            of_exponents(leaf, projection, side, x, cotangents, &batch, &mut out, scratch)
        }
        (_, None) => {
            for (i, mut out) in out.rows_mut().into_iter().enumerate() {
                let scale = batch.row(i).log_scales[0];
                for (k, u) in coordinates::scaled(&leaf.lengthscale, x.row(i)).enumerate() {
                    let slope = (u.min(0.0) - scale).exp() / leaf.lengthscale.at(k);
                    out[k] = T::narrow(cotangents[[i, k]].widen() * slope);
                }
            }
        }
    }
    out
}

/// Gradients through exponents βt + a of linear projections t.
#[allow(clippy::too_many_arguments)]
fn of_exponents<T: Real>(
    leaf: &Leaf<T>,
    projection: &Projection<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    batch: &Batch<T>,
    out: &mut Array2<T>,
    scratch: &mut Scratch<T>,
) {
    let (rows, m) = (x.nrows(), projection.count());
    let projected = match leaf.lift {
        Lift::Function { .. } => projections(projection, x, scratch),
        _ => Array2::zeros((0, 0)),
    };
    // What one unit of each projection, real or imaginary, changes; and Σ of all features.
    let complex = leaf.lift.is_complex() && matches!(*leaf.input, Input::Linear(_));
    let (mut re, mut im) = (Array2::zeros((rows, m)), Array2::zeros((if complex { rows } else { 0 }, m)));
    let mut sums = vec![Complex64::ZERO; rows];
    for i in 0..rows {
        let row = batch.row(i);
        let c = cotangents.row(i);
        sums[i] = match leaf.lift {
            Lift::Function { activation, offset: _ } => {
                let scale = leaf.constant - row.log_scales[0];
                for j in 0..m {
                    let slope = function::slope(activation, projected[[i, j]].widen(), scale);
                    re[[i, j]] = T::narrow(c[j].widen() * slope);
                }
                Complex64::ZERO
            }
            _ => weigh(leaf, side, c, row.values, (re.row_mut(i), im.rows_mut().into_iter().nth(i))),
        };
    }
    let (re, im) = (projection.times_frequencies(re.view()), projection.times_frequencies(im.view()));
    for (i, out) in out.rows_mut().into_iter().enumerate() {
        match &*leaf.input {
            Input::Linear(linear) => {
                let im = (im.nrows() > i).then(|| im.row(i));
                through_matrix(linear, side, x.row(i), (re.row(i), im), sums[i], out);
            }
            _ => {
                for (k, out) in out.into_iter().enumerate() {
                    let scale = leaf.lengthscale.at(k);
                    let term = 2.0 * leaf.row * sums[i].re * (x[[i, k]].widen() / scale);
                    *out = T::narrow((re[[i, k]].widen() + term) / scale);
                }
            }
        }
    }
}

/// Writes what one unit of each projection changes, for features that are exponentials or waves; returns their weighted
/// sum.
fn weigh<T: Real>(
    leaf: &Leaf<T>,
    side: Side,
    c: ArrayView1<'_, T>,
    values: &[T],
    (mut re, mut im): (ArrayViewMut1<'_, T>, Option<ArrayViewMut1<'_, T>>),
) -> Complex64 {
    let m = re.len();
    let slope = leaf.slopes[side as usize];
    let half = values.len() / 2;
    let mut sum = Complex64::ZERO;
    let real = |f: usize| c[f].widen() * values[f].widen();
    for j in 0..m {
        match leaf.lift {
            Lift::Exp | Lift::Function { .. } => {
                re[j] = T::narrow(slope.re * real(j));
                sum += real(j);
            }
            Lift::ExpPair => {
                re[j] = T::narrow(slope.re * (real(j) - real(m + j)));
                sum += real(j) + real(m + j);
            }
            Lift::Polar => {
                let (cos, sin) = (values[j].widen(), values[m + j].widen());
                re[j] = T::narrow(c[m + j].widen() * cos - c[j].widen() * sin);
                sum += real(j) + real(m + j);
            }
            Lift::ExpPolar { .. } => {
                let sign = if side == Side::Y { -1.0 } else { 1.0 };
                let of = |j: usize| {
                    let z = Complex64::new(values[j].widen(), sign * values[half + j].widen());
                    Complex64::new(c[j].widen(), -sign * c[half + j].widen()) * z
                };
                let (plus, minus) = (of(j), if leaf.mirrored { of(m + j) } else { Complex64::ZERO });
                sum += plus + minus;
                let weight = slope * (plus - minus);
                re[j] = T::narrow(weight.re);
                if let Some(im) = &mut im {
                    im[j] = T::narrow(weight.im);
                }
            }
        }
    }
    sum
}

/// From gradients with respect to the image z = Mu to those with respect to x.
fn through_matrix<T: Real>(
    linear: &Linear,
    side: Side,
    x: ArrayView1<'_, T>,
    (re, im): (ArrayView1<'_, T>, Option<ArrayView1<'_, T>>),
    sum: Complex64,
    out: ArrayViewMut1<'_, T>,
) {
    let d = x.len();
    let (mut u, mut image) = (vec![0.0; d], vec![Complex64::ZERO; d]);
    linear.divide(x, &mut u);
    let matrix: &Matrix = &linear.matrices[side as usize];
    matrix.times(&u, |k, z| {
        let im = im.as_ref().map_or(0.0, |im| im[k].widen());
        image[k] = Complex64::new(re[k].widen(), im) + 2.0 * linear.inner * sum * z;
    });
    let mut gradient = vec![0.0; d];
    matrix.transposed_times(&image, &mut gradient);
    for (k, out) in out.into_iter().enumerate() {
        let outer = 2.0 * linear.outer * sum.re * u[k];
        *out = T::narrow((gradient[k] + outer) / linear.lengthscale.at(k));
    }
}

/// The gradient of a row of powers, from c·φ, Σⱼ cⱼ φⱼ ωⱼ, c and the scale.
#[allow(clippy::too_many_arguments)]
fn of_powers<T: Real>(
    leaf: &Leaf<T>,
    logarithms: &Logarithms,
    projection: &Projection<T>,
    side: Side,
    x: ArrayView1<'_, T>,
    (weights, sums, c, scale): (ArrayView1<'_, T>, ArrayView1<'_, T>, ArrayView1<'_, T>, f64),
    mut out: ArrayViewMut1<'_, T>,
    scratch: &mut Scratch<T>,
) {
    let sum: f64 = weights.iter().map(|v| v.widen()).sum();
    for l in 0..x.len() {
        let scaled = logarithms.scaled(l, x[l]);
        let clamped = logarithms.shift.as_ref().is_some_and(|shift| shift.inside(l, scaled).is_none());
        let u = logarithms.moved(l, scaled);
        let moved = if clamped {
            0.0
        } else if u == 0.0 {
            single_powers(leaf, logarithms, projection, side, x, l, (c, scale), scratch)
        } else {
            sums[l].widen() / u - u * sum
        };
        let gradient = 2.0 * logarithms.unshifted * scaled * sum + moved;
        out[l] = T::narrow(gradient / logarithms.lengthscale.at(l));
    }
}

/// The derivative where uₗ = 0: only features with the first power of uₗ have one, the product of their other factors.
#[allow(clippy::too_many_arguments)]
fn single_powers<T: Real>(
    leaf: &Leaf<T>,
    logarithms: &Logarithms,
    projection: &Projection<T>,
    side: Side,
    x: ArrayView1<'_, T>,
    l: usize,
    (c, scale): (ArrayView1<'_, T>, f64),
    scratch: &mut Scratch<T>,
) -> f64 {
    let divisor = logarithms.divisors[l];
    let mut point = x.to_owned().insert_axis(Axis(0));
    // The point with uₗ = rₗ, where the first power is 1.
    point[[0, l]] = T::narrow(divisor * logarithms.lengthscale.at(l));
    let mut batch = Batch::default();
    batch.resize(1, (leaf.facts.feature_dim(), 1), Form::Values);
    leaf.fill(Pass::new(side, Form::Values), point.view(), &mut batch.tile(), scratch);
    let row = batch.row(0);
    let factor = (logarithms.unshifted - 0.5) * divisor * divisor;
    let frequencies = projection.frequencies();
    let counts = frequencies.rows();
    let first = (0..c.len()).filter(|j| counts[[*j, l]] == 1.0);
    let sum: f64 = first.map(|j| c[j].widen() * row.values[j].widen()).sum();
    sum * (row.log_scales[0] - scale - factor).exp() / divisor
}

fn projections<T: Real>(
    projection: &Projection<T>,
    x: ArrayView2<'_, T>,
    scratch: &mut Scratch<T>,
) -> Array2<T> {
    let (mut values, mut norms) = (vec![T::zero(); x.nrows() * projection.count()], vec![0.0; x.nrows()]);
    let shape = (x.nrows(), projection.count(), 1);
    projection.project(x, &mut super::Tile::new(&mut values, &mut [], &mut norms, shape), scratch, None);
    Array2::from_shape_vec((x.nrows(), projection.count()), values).unwrap_or_default()
}

impl<T: Real> Projection<T> {
    /// Σⱼ wᵢⱼ ωⱼ for each row of weights, n × m: n × d. Before the lengthscale divides it.
    fn times_frequencies(&self, weights: ArrayView2<'_, T>) -> Array2<T> {
        let mut out = Array2::zeros((weights.nrows(), self.input_dim()));
        let (weights, d) = (weights.as_standard_layout(), self.input_dim());
        if let (Some(weights), Some(out)) = (weights.as_slice(), out.as_slice_mut()) {
            numeric::product(Isa::best(), weights, self.count(), self.transposed().all(), out, d);
        }
        out
    }
}
