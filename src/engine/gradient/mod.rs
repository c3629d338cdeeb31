//! Vector–Jacobian products: from cotangents of features to gradients with respect to points.

mod exponents;
mod parameters;
mod powers;

use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

use super::batch::Batch;
use super::conditioned::ConditionedPlan;
use super::fold::for_runs;
use super::input::Input;
use super::leaf::Leaf;
use super::pass::Pass;
use super::plan::{MapPlan, ranges};
use super::routed::Routed;
use super::sum::Sum;
use super::{Form, Lift, Program, Projection, Scratch, Side, TileShape};
use crate::Real;
use crate::error::Result;
use crate::numeric::{self, Isa};

pub(crate) use parameters::{ExponentSums, exponent_sums, sums_of_logarithms};

/// The number of rows whose gradients are computed together.
const ROWS: usize = 60;

/// Points and the cotangents of their features.
pub(crate) struct PulledRows<'a, T> {
    pub side: Side,
    /// Points, n × d.
    pub x: ArrayView2<'a, T>,
    /// Cotangents, n × D.
    pub cotangents: ArrayView2<'a, T>,
}

/// Writes to each row i of `out` the gradient of Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to xᵢ, with the scales s held
/// fixed; returns `false` if a map of the plan has no gradients. `out` is n × d, `cotangents` n × D.
///
/// # Errors
/// [`Cancelled`](crate::Error::Cancelled) if the watcher stops the work.
pub(crate) fn pull_back<T: Real>(
    program: &Program<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    out: ArrayViewMut2<'_, T>,
) -> Result<bool> {
    let work = cotangents.len().saturating_mul(x.ncols());
    let known = AtomicBool::new(true);
    for_runs(out, ROWS, work, Scratch::default, |scratch, run, mut out| {
        let rows = s![run, ..];
        let rows = PulledRows { side, x: x.slice(rows), cotangents: cotangents.slice(rows) };
        // Gradients of parts may overflow although their sum does not.
        let mut sum = Array2::zeros(out.dim());
        known.fetch_and(of_plan(program.plan(), rows, sum.view_mut(), scratch), Ordering::Relaxed);
        out.zip_mut_with(&sum, |out, sum| *out = T::narrow(*sum));
    })?;
    // The answer must be right for no rows, too.
    Ok(known.into_inner() && has_gradients(program.plan(), side))
}

/// Adds to each row i of `out` the gradient of Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} for a few points, on the calling thread.
pub(crate) fn pull_back_rows<T: Real>(
    program: &Program<T>,
    rows: PulledRows<'_, T>,
    out: ArrayViewMut2<'_, f64>,
    scratch: &mut Scratch<T>,
) {
    of_plan(program.plan(), rows, out, scratch);
}

/// Adds gradients from cotangents of the logarithms of features. These are the cotangents of features times the features, and
/// neither overflow nor vanish with a feature. A program that does not [take](takes_logarithms) them adds nothing.
pub(crate) fn pull_back_logarithms<T: Real>(
    program: &Program<T>,
    rows: PulledRows<'_, T>,
    out: ArrayViewMut2<'_, f64>,
) {
    debug_assert!(takes_logarithms(program), "a program that takes cotangents of logarithms");
    if let MapPlan::Leaf(leaf) = program.plan() {
        exponents::of_logarithms(leaf, rows, out);
    }
}

/// Whether a program takes cotangents of the logarithms of its features: a leaf of real exponentials of projected points.
pub(crate) fn takes_logarithms<T: Real>(program: &Program<T>) -> bool {
    let MapPlan::Leaf(leaf) = program.plan() else { return false };
    matches!((leaf.lift, &*leaf.input), (Lift::Exp | Lift::ExpPair, Input::Points))
}

/// Whether all maps of a plan have gradients.
pub(crate) fn has_gradients<T: Real>(plan: &MapPlan<T>, side: Side) -> bool {
    match plan {
        MapPlan::Leaf(_) => true,
        MapPlan::Sum(sum) => sum.parts().all(|part| has_gradients(part, side)),
        MapPlan::Routed(routed) => routed.plans().all(|plan| has_gradients(plan, side)),
        MapPlan::Conditioned(conditioned) => has_gradients(conditioned.base(), side),
        MapPlan::Foreign(map, facts) => {
            let (x, c) = (Array2::zeros((0, facts.dim)), Array2::zeros((0, facts.feature_dim())));
            let mut out = Array2::zeros((0, facts.dim));
            map.pull_back(side, x.view(), c.view(), out.view_mut())
        }
    }
}

/// Adds gradients to `out`.
fn of_plan<T: Real>(
    plan: &MapPlan<T>,
    rows: PulledRows<'_, T>,
    mut out: ArrayViewMut2<'_, f64>,
    scratch: &mut Scratch<T>,
) -> bool {
    match plan {
        MapPlan::Leaf(leaf) => {
            out.add_assign(&of_leaf(leaf, rows, scratch));
            true
        }
        MapPlan::Sum(sum) => of_sum(sum, rows, out, scratch),
        MapPlan::Routed(routed) => of_routed(routed, rows, out, scratch),
        MapPlan::Conditioned(conditioned) => of_conditioned(plan, conditioned, rows, out, scratch),
        MapPlan::Foreign(map, _) => {
            let mut gradient = Array2::zeros(rows.x.dim());
            let known = map.pull_back(rows.side, rows.x, rows.cotangents, gradient.view_mut());
            out.zip_mut_with(&gradient, |out, gradient| *out += gradient.widen());
            known
        }
    }
}

/// Adds gradients through a sum of products: from the products to the parts.
fn of_sum<T: Real>(
    sum: &Sum<T>,
    rows: PulledRows<'_, T>,
    mut out: ArrayViewMut2<'_, f64>,
    scratch: &mut Scratch<T>,
) -> bool {
    let PulledRows { side, x, cotangents } = rows;
    let mut parts = Batch::default();
    sum.fill_parts(Pass::new(side, Form::Values), x.view().into(), &mut parts, scratch);
    let mut of_parts = Array2::zeros((x.nrows(), sum.part_columns()));
    let cotangents = cotangents.as_standard_layout();
    for (i, mut of_parts) in of_parts.rows_mut().into_iter().enumerate() {
        let (c, out) = (cotangents.row(i), numeric::slice_of_mut(&mut of_parts));
        sum.pull_back(side, parts.row(i), numeric::slice_of(&c), out);
    }
    sum.each_part().all(|(plan, columns)| {
        let cotangents = of_parts.slice(s![.., columns]);
        of_plan(plan, PulledRows { side, x: x.view(), cotangents }, out.view_mut(), scratch)
    })
}

/// Adds gradients through routed maps: each row through the maps of its cluster.
fn of_routed<T: Real>(
    routed: &Routed<T>,
    rows: PulledRows<'_, T>,
    mut out: ArrayViewMut2<'_, f64>,
    scratch: &mut Scratch<T>,
) -> bool {
    let x = rows.x.as_standard_layout();
    let mut known = true;
    for i in 0..x.nrows() {
        let one = s![i..i + 1, ..];
        let cluster = routed.cluster(rows.side, x.row(i));
        if cluster == routed.clusters(rows.side) {
            out.row_mut(i).fill(f64::NAN);
            continue;
        }
        for (plan, columns, _) in routed.line(rows.side, cluster) {
            let cotangents = rows.cotangents.slice(s![i..i + 1, columns]);
            let row = PulledRows { side: rows.side, x: x.slice(one), cotangents };
            known &= of_plan(plan, row, out.slice_mut(one), scratch);
        }
    }
    known
}

/// Adds gradients through a conditioned map: through the images of points and through their factors.
fn of_conditioned<T: Real>(
    plan: &MapPlan<T>,
    conditioned: &ConditionedPlan<T>,
    rows: PulledRows<'_, T>,
    out: ArrayViewMut2<'_, f64>,
    scratch: &mut Scratch<T>,
) -> bool {
    let PulledRows { side, x, cotangents } = rows;
    let images = conditioned.images(side, x.view());
    let factors = conditioned.log_factors(side, x.view(), images.view());
    let mut own = filled(plan, side, x.view(), scratch);
    let mut base = filled(conditioned.base(), side, images.view(), scratch);
    // Cotangents relative to the base's scales, and Σ c φ.
    let (blocks, mut cotangents) = (ranges(&plan.facts().blocks), cotangents.to_owned());
    let mut sums = vec![0.0; x.nrows()];
    for (i, (sum, mut c)) in sums.iter_mut().zip(cotangents.rows_mut()).enumerate() {
        let (own, base) = (own.row_mut(i).log_scales, base.row_mut(i));
        let scales = own.iter().zip(&*base.log_scales);
        for (columns, (own, inner)) in blocks.clone().zip(scales) {
            let present = *inner != f64::NEG_INFINITY;
            let factor = if present { (inner + factors[i] - own).exp() } else { 0.0 };
            for f in columns.filter(|_| present) {
                c[f] = T::narrow(c[f].widen() * factor);
                *sum += c[f].widen() * base.values[f].widen();
            }
        }
    }
    let mut gradients = Array2::<f64>::zeros(images.dim());
    let of_base = PulledRows { side, x: images.view(), cotangents: cotangents.view() };
    let known = of_plan(conditioned.base(), of_base, gradients.view_mut(), scratch);
    conditioned.pull_back(side, x, images.view(), gradients.view(), &sums, out);
    known
}

fn of_leaf<T: Real>(leaf: &Leaf<T>, rows: PulledRows<'_, T>, scratch: &mut Scratch<T>) -> Array2<f64> {
    let projection = &leaf.projection;
    let features = features(leaf, rows.side, rows.x.view(), scratch);
    match &*leaf.input {
        Input::Logarithms(logarithms) => {
            powers::gradient(leaf, logarithms, projection, rows, &features, scratch)
        }
        _ => exponents::gradient(leaf, projection, rows, &features, scratch),
    }
}

/// The features of a plan.
fn filled<T: Real>(
    plan: &MapPlan<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    scratch: &mut Scratch<T>,
) -> Batch<T> {
    let (facts, mut batch) = (plan.facts(), Batch::default());
    let shape = TileShape { rows: x.nrows(), width: facts.feature_dim(), blocks: facts.blocks.len() };
    batch.resize(shape, Form::Values);
    plan.fill_dense(Pass::new(side, Form::Values), x, &mut batch.tile(), scratch);
    batch
}

fn features<T: Real>(leaf: &Leaf<T>, side: Side, x: ArrayView2<'_, T>, scratch: &mut Scratch<T>) -> Batch<T> {
    let mut batch = Batch::default();
    let shape = TileShape { rows: x.nrows(), width: leaf.facts.feature_dim(), blocks: 1 };
    batch.resize(shape, Form::Values);
    leaf.fill(Pass::new(side, Form::Values), x, &mut batch.tile(), scratch);
    batch
}

impl<T: Real> Projection<T> {
    /// Σⱼ wᵢⱼ ωⱼ, n × d, for each row of weights, n × m; not yet divided by the lengthscale.
    fn times_frequencies(&self, weights: ArrayView2<'_, T>) -> Array2<T> {
        let mut out = Array2::zeros((weights.nrows(), self.dim()));
        let (weights, d) = (weights.as_standard_layout(), self.dim());
        let (weights, elements) = (numeric::slice_of(&weights), numeric::slice_of_mut(&mut out));
        numeric::product(Isa::best(), weights, self.m(), self.transposed().all(), elements, d);
        out
    }
}
