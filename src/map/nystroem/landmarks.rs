//! Choices of points as landmarks.

use ndarray::Array2;
use rand::RngExt;

use super::diagonal;
use super::values::valued;
use crate::data::clustering::{distinct_rows, drawn};
use crate::error::Result;
use crate::generator::Generator;
use crate::kernel::{Kernel, Lengthscale};
use crate::map::AnyKernel;
use crate::memory::check_memory;
use crate::numeric::{Isa, add_scaled, slice_of};
use crate::{progress, threads};

/// The number of candidates for each landmark that is spread out.
const CANDIDATES: usize = 16;
/// The number of points that are one piece of work.
const ROWS: usize = 1024;
/// The share of K(x, x) at which a residual is rounding.
const ROUNDING: f64 = 1e-14;

/// m of n indices, in the order in which they are drawn.
pub(super) fn uniform(n: usize, m: usize, rng: &mut Generator) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for i in 0..m {
        all.swap(i, rng.random_range(i..n));
    }
    all.truncate(m);
    all
}

/// Rows that are far from each other, by k-means++ on points divided by ℓ: m of them, or all that differ.
pub(super) fn spread(
    x: &Array2<f64>,
    lengthscale: &Lengthscale,
    m: usize,
    rng: &mut Generator,
) -> Result<Vec<usize>> {
    let candidates = uniform(x.nrows(), m.saturating_mul(CANDIDATES).min(x.nrows()), rng);
    let some = lengthscale.divide_rows(x.select(ndarray::Axis(0), &candidates));
    let chosen = distinct_rows(&some, m, rng)?;
    Ok(chosen.into_iter().map(|i| candidates[i]).collect())
}

/// Rows drawn with probabilities proportional to what is left of K(x, x).
pub(super) fn pivoted(
    kernel: &AnyKernel,
    x: &Array2<f64>,
    m: usize,
    rng: &mut Generator,
) -> Result<Vec<usize>> {
    pivots(&*valued(kernel, x.ncols())?, diagonal(kernel, x)?, x, m, |residuals| drawn(residuals, rng))
}

/// Rows at which most of K(x, x) is left; the first of several.
pub(super) fn greedy(kernel: &AnyKernel, x: &Array2<f64>, m: usize) -> Result<Vec<usize>> {
    pivots(&*valued(kernel, x.ncols())?, diagonal(kernel, x)?, x, m, |residuals| {
        let better = |best: usize, i: usize| if residuals[i] > residuals[best] { i } else { best };
        (0..residuals.len()).reduce(better).filter(|i| residuals[*i] > 0.0)
    })
}

/// The pivots of a Cholesky decomposition of the Gram matrix of x, whose diagonal is given, until nothing but rounding is left.
pub(super) fn pivots(
    kernel: &dyn Kernel<f64>,
    mut residuals: Vec<f64>,
    x: &Array2<f64>,
    m: usize,
    mut choose: impl FnMut(&[f64]) -> Option<usize>,
) -> Result<Vec<usize>> {
    check_memory("rows of a Cholesky factor", x.nrows(), m.saturating_mul(size_of::<f64>()))?;
    let d = x.ncols();
    let floors: Vec<f64> = residuals.iter().map(|start| ROUNDING * start).collect();
    let mut factors = vec![Factor::default(); residuals.len().div_ceil(ROWS)];
    let mut chosen = Vec::new();
    while let Some(pivot) = choose(&residuals).filter(|_| chosen.len() < m) {
        let column = Pivot {
            point: &slice_of(x)[pivot * d..][..d],
            row: factors[pivot / ROWS].row(pivot % ROWS),
            root: residuals[pivot].sqrt(),
        };
        let points = slice_of(x).chunks(ROWS * d).zip(floors.chunks(ROWS));
        let blocks = factors.iter_mut().zip(residuals.chunks_mut(ROWS)).zip(points);
        threads::for_each(blocks, |((factor, residuals), (x, floors))| {
            factor.extend(kernel, x, &column, residuals, floors);
        });
        residuals[pivot] = 0.0;
        chosen.push(pivot);
        progress::step("landmarks", chosen.len(), m)?;
    }
    Ok(chosen)
}

/// A pivot: the point, its row of the factor so far, and the root of its residual.
struct Pivot<'a> {
    point: &'a [f64],
    row: Vec<f64>,
    root: f64,
}

/// Some rows of a Cholesky factor.
#[derive(Clone, Default)]
struct Factor {
    columns: Vec<Vec<f64>>,
}

impl Factor {
    fn row(&self, i: usize) -> Vec<f64> {
        self.columns.iter().map(|column| column[i]).collect()
    }

    /// Appends the column of a pivot, and subtracts its squares from the residuals of these points.
    fn extend(
        &mut self,
        kernel: &dyn Kernel<f64>,
        x: &[f64],
        pivot: &Pivot<'_>,
        residuals: &mut [f64],
        floors: &[f64],
    ) {
        let points = x.chunks_exact(pivot.point.len());
        let mut next: Vec<f64> =
            points.map(|x| kernel.log_of_slices(x, pivot.point).value() / pivot.root).collect();
        for (column, factor) in self.columns.iter().zip(&pivot.row) {
            add_scaled(Isa::best(), &mut next, -factor / pivot.root, column);
        }
        for ((residual, next), floor) in residuals.iter_mut().zip(&next).zip(floors) {
            let left = *residual - next * next;
            *residual = if left > *floor { left } else { 0.0 };
        }
        self.columns.push(next);
    }
}
