//! [`Features`]: a batch of features with their scales.

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, s};

use super::batch::ranges;
use super::{FeatureMap, Side, tiles};
use crate::error::{Error, Result};
use crate::numeric::{Isa, exp_minus};
use crate::{Real, SignedLog};

/// Features of n points on one side of a map.
///
/// Feature f of point i, in block b, is exp(log_scales\[i, b\]) · values\[i, f\]. Values are at most 1 in
/// magnitude for the maps of this crate; scales are `f64` for every `T`. A scale of −∞ marks a block that is
/// absent.
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

    /// The features themselves, scales multiplied in, n × D: what a linear model takes. Beyond the range of
    /// `T` (norms of about 13 in `f32`) they are 0 or ±∞.
    pub fn to_array(&self) -> Array2<T> {
        let mut out = self.values.clone();
        for (mut row, scales) in out.rows_mut().into_iter().zip(self.log_scales.rows()) {
            for (columns, scale) in ranges(&self.blocks).zip(scales) {
                let factor = scale.exp();
                let times = |v: f64| if factor.is_normal() { v * factor } else { scaled(v, *scale) };
                let absent = *scale == f64::NEG_INFINITY;
                let value = |v: T| if absent { T::zero() } else { T::narrow(times(v.widen())) };
                row.slice_mut(s![columns]).mapv_inplace(value);
            }
        }
        out
    }

    /// The estimates φ(xᵢ)·ψ(yⱼ) of the kernel for all pairs, n × l; ±∞ or 0 where they leave the range of
    /// `T`. Cost O(n l D).
    ///
    /// Accurate to rounding relative to exp of the summed scales: an estimate that is smaller than that by a
    /// factor beyond the range of `T` comes out as 0. [`FeatureMap::gram`] computes such entries again from
    /// exponents.
    ///
    /// # Errors
    /// [`Pairing`](Error::Pairing) if the features come from different maps, or from the same side of a map
    /// that is not symmetric.
    pub fn gram(&self, other: &Features<T>) -> Result<Array2<T>> {
        self.gram_or(other, |_| None)
    }

    /// As [`gram`](Features::gram); `resolve(pairs)` gives the estimates of pairs that scaled features cannot
    /// resolve, if it can.
    pub(super) fn gram_or(
        &self,
        other: &Features<T>,
        resolve: impl Fn(&[(usize, usize)]) -> Option<Vec<T>> + Sync,
    ) -> Result<Array2<T>> {
        if !self.origin.pairs_with(other.origin) || self.blocks != other.blocks {
            let (left, right) = (self.origin.to_string(), other.origin.to_string());
            return Err(Error::Pairing { left, right });
        }
        let mut out = Array2::zeros((self.len(), other.len()));
        let work = other.len() * self.values.ncols();
        let other_scales: Vec<Vec<f64>> =
            other.log_scales.columns().into_iter().map(|c| c.to_vec()).collect();
        tiles::fill_rows(out.view_mut(), work, |first, mut out| {
            let rows = first..first + out.nrows();
            let products: Vec<Array2<T>> = ranges(&self.blocks)
                .map(|columns| {
                    let left = self.values.slice(s![rows.clone(), columns.clone()]);
                    left.dot(&other.values.slice(s![.., columns]).t())
                })
                .collect();
            let mut sums = RowSums::new(other.len());
            let mut unresolved = Vec::new();
            for (i, out) in out.rows_mut().into_iter().enumerate() {
                sums.start(self.log_scales.row(first + i), &other_scales);
                for (b, width) in self.blocks.iter().enumerate() {
                    let scale = self.log_scales[[first + i, b]];
                    sums.add(products[b].row(i), scale, &other_scales[b], *width);
                }
                sums.finish(out, |j| unresolved.push((first + i, j)));
            }
            if let Some(estimates) = (!unresolved.is_empty()).then(|| resolve(&unresolved)).flatten() {
                unresolved.iter().zip(estimates).for_each(|((i, j), v)| out[[i - first, *j]] = v);
            }
        });
        Ok(out)
    }
}

/// One row of a Gram matrix under construction: for each entry, a sum over blocks relative to its largest
/// scale.
struct RowSums {
    /// ln of the largest scale of the entry's blocks.
    top: Vec<f64>,
    sum: Vec<f64>,
    /// The size below which the sum has lost digits to underflow.
    floor: Vec<f64>,
    /// e^(a block's scale − top), then e^top.
    weight: Vec<f64>,
}

impl RowSums {
    fn new(len: usize) -> Self {
        let zeros = || vec![0.0; len];
        RowSums { top: zeros(), sum: zeros(), floor: zeros(), weight: zeros() }
    }

    /// Begins a row with these scales, one for each block, against the other side's.
    fn start(&mut self, scales: ArrayView1<'_, f64>, others: &[Vec<f64>]) {
        self.sum.fill(0.0);
        self.floor.fill(0.0);
        self.top.fill(f64::NEG_INFINITY);
        for (scale, others) in scales.iter().zip(others) {
            self.top.iter_mut().zip(others).for_each(|(top, other)| *top = top.max(scale + other));
        }
    }

    /// Adds a block of `width` features.
    fn add<T: Real>(&mut self, products: ArrayView1<'_, T>, scale: f64, others: &[f64], width: usize) {
        // Each product may have lost one least normal number; relative to the sum that is rounding from here
        // on.
        let floor = width as f64 * T::min_positive_value().widen() / T::epsilon().widen();
        let relative = others.iter().zip(&self.top).map(|(other, top)| scale + other - top);
        self.weight.iter_mut().zip(relative).for_each(|(weight, log)| *weight = log);
        exp_minus(Isa::best(), &mut self.weight, 0.0);
        for (j, product) in products.iter().enumerate() {
            // An absent block is not read.
            if scale + others[j] != f64::NEG_INFINITY {
                self.sum[j] += product.widen() * self.weight[j];
                self.floor[j] += floor * self.weight[j];
            }
        }
    }

    /// Writes the row and names the entries that are not resolved.
    fn finish<T: Real>(&mut self, out: ArrayViewMut1<'_, T>, mut unresolved: impl FnMut(usize)) {
        self.weight.copy_from_slice(&self.top);
        exp_minus(Isa::best(), &mut self.weight, 0.0);
        for (j, out) in out.into_iter().enumerate() {
            let weight = self.weight[j];
            let times =
                |v: f64| if weight > 0.0 && weight.is_finite() { v * weight } else { scaled(v, self.top[j]) };
            *out = T::narrow(times(self.sum[j]));
            // Below the range of T anyway, nothing is lost.
            if self.sum[j].abs() <= self.floor[j] && times(self.floor[j]) >= T::min_positive_value().widen() {
                unresolved(j);
            }
        }
    }
}

/// v · e^`log`, without an intermediate overflow.
fn scaled(v: f64, log: f64) -> f64 {
    SignedLog::from(v).scaled(log).value()
}
