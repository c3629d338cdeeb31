//! [`ExponentSums`]: sums that give gradients with respect to frequencies and coefficients of a map.

use ndarray::{Array2, ArrayView2, Axis, s};
use num_complex::Complex64;

use super::exponents::{derivative, projections};
use super::features;
use crate::Real;
use crate::engine::function::{self, Factor};
use crate::engine::input::Input;
use crate::engine::leaf::Leaf;
use crate::engine::plan::MapPlan;
use crate::engine::{Lift, Program, Scratch, Side};
use crate::threads;

/// Derivatives of L = Σ c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to the exponents βtⱼ + aⱼ, by frequency. L is the real part of an
/// analytic function of β, ω and a.
pub(crate) struct ExponentSums {
    /// ∂/∂aⱼ: 0 for functions of projections, which have no aⱼ.
    pub weights: Vec<Complex64>,
    /// Σᵢ ∂/∂tᵢⱼ uᵢ with u = x/ℓ, m × d.
    pub slopes: Array2<Complex64>,
}

/// The number of rows of a run, whose sums are one term of those of all rows.
const ROWS: usize = 512;

impl ExponentSums {
    fn zeros(m: usize, d: usize) -> Self {
        ExponentSums { weights: vec![Complex64::ZERO; m], slopes: Array2::zeros((m, d)) }
    }

    /// Adds the sums over other points.
    pub fn add(&mut self, other: &ExponentSums) {
        self.weights.iter_mut().zip(&other.weights).for_each(|(own, other)| *own += other);
        self.slopes += &other.slopes;
    }
}

/// The sums over all points from cotangents of features; `None` unless points themselves are projected.
pub(crate) fn exponent_sums<T: Real>(
    program: &Program<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
) -> Option<ExponentSums> {
    let leaf = leaf_of_points(program)?;
    Some(sums_of_runs(leaf, x, cotangents, |x, cotangents| slopes_of_rows(leaf, side, x, cotangents)))
}

/// The sums over all points from cotangents of the logarithms of features, for a program that
/// [takes](super::takes_logarithms) them.
pub(crate) fn sums_of_logarithms<T: Real>(
    program: &Program<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
) -> Option<ExponentSums> {
    let leaf = leaf_of_points(program)?;
    Some(sums_of_runs(leaf, x, cotangents, |_, cotangents| {
        let (m, slope) = (leaf.projection.m(), leaf.slopes[side as usize].re);
        let wide = cotangents.mapv(Real::widen);
        let minus = matches!(leaf.lift, Lift::ExpPair).then(|| wide.slice(s![.., m..]));
        let plus = wide.slice(s![.., ..m]);
        let (sum, difference) = match minus {
            Some(minus) => (&plus + &minus, &plus - &minus),
            None => (plus.to_owned(), plus.to_owned()),
        };
        let weights = sum.sum_axis(Axis(0)).iter().map(|weight| (*weight).into()).collect();
        Slopes { weights, re: difference * slope, im: Array2::zeros(plus.dim()) }
    }))
}

fn leaf_of_points<T: Real>(program: &Program<T>) -> Option<&Leaf<T>> {
    let MapPlan::Leaf(leaf) = program.plan() else { return None };
    matches!(*leaf.input, Input::Points).then_some(leaf)
}

/// Derivatives with respect to the exponents of some rows: ∂/∂aⱼ over all, and ∂/∂tᵢⱼ, n × m.
struct Slopes {
    weights: Vec<Complex64>,
    re: Array2<f64>,
    im: Array2<f64>,
}

/// Sums over runs of rows, from the derivatives that `of_run` gives for each.
fn sums_of_runs<T: Real>(
    leaf: &Leaf<T>,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
    of_run: impl Fn(ArrayView2<'_, T>, ArrayView2<'_, T>) -> Slopes + Sync,
) -> ExponentSums {
    let runs = (0..x.nrows()).step_by(ROWS).map(|first| first..x.nrows().min(first + ROWS));
    let sums = |run: std::ops::Range<usize>| {
        let (x, cotangents) = (x.slice(s![run.clone(), ..]), cotangents.slice(s![run, ..]));
        let Slopes { weights, re, im } = of_run(x.view(), cotangents.view());
        let divided = |(i, k): (usize, usize)| x[[i, k]].widen() / leaf.lengthscale.at(k);
        let u = Array2::from_shape_fn(x.dim(), divided);
        let (re, im) = (re.t().dot(&u), im.t().dot(&u));
        let slopes = ndarray::Zip::from(&re).and(&im).map_collect(|re, im| Complex64::new(*re, *im));
        ExponentSums { weights, slopes }
    };
    let mut all = ExponentSums::zeros(leaf.projection.m(), x.ncols());
    threads::map(runs, sums).iter().for_each(|sums| all.add(sums));
    all
}

fn slopes_of_rows<T: Real>(
    leaf: &Leaf<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    cotangents: ArrayView2<'_, T>,
) -> Slopes {
    let (n, m, mut scratch) = (x.nrows(), leaf.projection.m(), Scratch::default());
    let features = features(leaf, side, x.view(), &mut scratch);
    let projected = match leaf.lift {
        Lift::Function { .. } => projections(&leaf.projection, x.view(), &mut scratch),
        _ => Array2::zeros((0, 0)),
    };
    let (mut slopes, mut weights) = (Vec::new(), vec![Complex64::ZERO; m]);
    let (mut re, mut im) = (Array2::<f64>::zeros((n, m)), Array2::<f64>::zeros((n, m)));
    for i in 0..n {
        let (row, c) = (features.row(i), cotangents.row(i));
        if let Lift::Function { activation, .. } = leaf.lift {
            let factor = Factor::of(leaf.constant - row.log_scales[0]);
            function::derive(activation, projected.row(i), &mut slopes);
            let terms = re.row_mut(i).into_iter().zip(c).zip(&slopes);
            terms.for_each(|((re, c), slope)| *re = c.widen() * function::slope(activation, *slope, factor));
            continue;
        }
        for (j, weight) in weights.iter_mut().enumerate() {
            let (slope, own) = derivative(leaf, side, c, row.values, j);
            *weight += own;
            (re[[i, j]], im[[i, j]]) = (slope.re, slope.im);
        }
    }
    Slopes { weights, re, im }
}
