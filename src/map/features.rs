//! [`Features`]: a batch of features with their scales.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, Slice, s};

use super::{FeatureMap, Side, tiles};
use crate::error::{Error, Result};
use crate::numeric::{Isa, exp_minus};
use crate::{Real, SignedLog};

/// Features of n points on one side of a map.
///
/// Feature f of point i, in block b, is exp(log_scales\[i, b\]) · values\[i, f\]. Values are at most 1 in magnitude for
/// the maps of this crate; scales are `f64` for every `T`. A scale of −∞ marks a block that is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Features<T> {
    values: Array2<T>,
    log_scales: Array2<f64>,
    blocks: Vec<usize>,
    origin: Origin,
}

/// What must fit when features are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    side: Side,
    symmetric: bool,
    fingerprint: u64,
}

impl Origin {
    fn pairs_with(self, other: Origin) -> bool {
        let same_map =
            self.fingerprint == 0 || other.fingerprint == 0 || self.fingerprint == other.fingerprint;
        same_map && (self.side != other.side || self.symmetric && other.symmetric)
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "side {:?} of map {:016x}", self.side, self.fingerprint)
    }
}

impl<T: Real> Features<T> {
    pub(super) fn new<M: FeatureMap<T> + ?Sized>(
        map: &M,
        side: Side,
        values: Array2<T>,
        log_scales: Array2<f64>,
    ) -> Self {
        let symmetric = map.properties().symmetric;
        let origin = Origin { side, symmetric, fingerprint: map.fingerprint() };
        Features { values, log_scales, blocks: map.blocks().to_vec(), origin }
    }

    /// n, the number of points.
    pub fn len(&self) -> usize {
        self.values.nrows()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The side of the kernel that the points stand on.
    pub fn side(&self) -> Side {
        self.origin.side
    }

    /// The values, n × D.
    pub fn values(&self) -> ArrayView2<'_, T> {
        self.values.view()
    }

    /// The logarithmic scales, n × blocks.
    pub fn log_scales(&self) -> ArrayView2<'_, f64> {
        self.log_scales.view()
    }

    /// The number of features in each block.
    pub fn blocks(&self) -> &[usize] {
        &self.blocks
    }

    /// The features themselves, scales multiplied in, n × D: what a linear model takes. Beyond the range of `T` (norms of about 13 in `f32`) they are 0 or ±∞.
    pub fn to_array(&self) -> Array2<T> {
        let mut out = self.values.clone();
        for (mut row, scales) in out.rows_mut().into_iter().zip(self.log_scales.rows()) {
            let scales = self.blocks.iter().zip(scales).flat_map(|(w, s)| std::iter::repeat_n(s, *w));
            row.iter_mut().zip(scales).for_each(|(v, s)| *v = T::narrow(scaled(v.widen(), *s)));
        }
        out
    }

    /// The estimates φ(xᵢ)·ψ(yⱼ) of the kernel for all pairs, n × l; ±∞ or 0 where they leave the range of `T`. Cost O(n l D).
    ///
    /// Accurate to rounding relative to exp of the summed scales: an estimate that is smaller than that by a factor
    /// beyond the range of `T` comes out as 0. [`FeatureMap::gram`] computes such entries again from exponents.
    ///
    /// # Errors
    /// [`Pairing`](Error::Pairing) if the features come from different maps, or from the same side of a map that is not
    /// symmetric.
    pub fn gram(&self, other: &Features<T>) -> Result<Array2<T>> {
        self.gram_or(other, |_, _| None)
    }

    /// As [`gram`](Features::gram); `exact(i, j)` gives what scaled features cannot resolve, if it can.
    pub(super) fn gram_or(
        &self,
        other: &Features<T>,
        exact: impl Fn(usize, usize) -> Option<T> + Sync,
    ) -> Result<Array2<T>> {
        if !self.origin.pairs_with(other.origin) || self.blocks != other.blocks {
            let (left, right) = (self.origin.to_string(), other.origin.to_string());
            return Err(Error::Pairing { left, right });
        }
        let mut out = Array2::zeros((self.len(), other.len()));
        let work = other.len() * self.values.ncols();
        tiles::fill_rows(out.view_mut(), work, |first, mut out| {
            let mut unresolved = Array2::zeros(out.dim());
            let mut column = 0;
            for (b, width) in self.blocks.iter().enumerate() {
                let columns = column..column + width;
                column = columns.end;
                let rows = first..first + out.nrows();
                let products = BlockProducts {
                    left: self.values.slice(s![rows.clone(), columns.clone()]),
                    right: other.values.slice_axis(Axis(1), Slice::from(columns)),
                    left_scales: self.log_scales.slice(s![rows, b]).to_vec(),
                    right_scales: other.log_scales.column(b).to_vec(),
                };
                products.add(&mut out, &mut unresolved);
            }
            for (((i, j), estimate), floor) in out.indexed_iter_mut().zip(&unresolved) {
                // Below the range of T anyway, nothing is lost.
                if *floor >= T::min_positive_value().widen() && estimate.widen() <= *floor {
                    *estimate = exact(first + i, j).unwrap_or(*estimate);
                }
            }
        });
        Ok(out)
    }
}

/// One block's contribution to a run of rows of a Gram matrix.
struct BlockProducts<'a, T> {
    left: ArrayView2<'a, T>,
    right: ArrayView2<'a, T>,
    left_scales: Vec<f64>,
    right_scales: Vec<f64>,
}

impl<T: Real> BlockProducts<'_, T> {
    /// Adds the scaled products to `out`, and to `unresolved` the size below which they have lost digits to underflow.
    fn add(&self, out: &mut ArrayViewMut2<'_, T>, unresolved: &mut Array2<f64>) {
        let mut products = Array2::zeros(out.dim());
        general_mat_mul(T::one(), &self.left, &self.right.t(), T::zero(), &mut products);
        // Each of D products may have lost one least normal number; relative to the sum that is rounding from here on.
        let floor = self.left.ncols() as f64 * T::min_positive_value().widen() / T::epsilon().widen();
        let mut scales = vec![0.0; self.right_scales.len()];
        for (i, left) in self.left_scales.iter().enumerate() {
            scales.copy_from_slice(&self.right_scales);
            exp_minus(Isa::best(), &mut scales, -left);
            for (j, scale) in scales.iter().enumerate() {
                let log = left + self.right_scales[j];
                let times = |v: f64| if scale.is_finite() { v * scale } else { scaled(v, log) };
                out[[i, j]] = T::narrow(out[[i, j]].widen() + times(products[[i, j]].widen()));
                unresolved[[i, j]] += times(floor);
            }
        }
    }
}

/// v · e^`log`, without an intermediate overflow.
fn scaled(v: f64, log: f64) -> f64 {
    SignedLog::from(v).scaled(log).value()
}
