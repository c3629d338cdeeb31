//! [`Features`]: a batch of features with their scales.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};

use super::arrays::times;
use super::gram::{GramRows, RowFeatures, gram};
use super::pairing::Pairing;
use super::{Map, Side};
use crate::Real;
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric::special::largest;
use crate::once::once;

/// Features of n points on one side of a map.
///
/// Feature f of point i, in block b, is exp(log_scales\[i, b\]) · values\[i, f\]. For the maps of this crate values are
/// at most 1 in magnitude. Scales are `f64` for every `T`. A scale of −∞ marks an absent block.
#[derive(Clone, Debug)]
pub struct Features<T: Real> {
    values: Array2<T>,
    log_scales: Array2<f64>,
    map: Map<T>,
    side: Side,
}

impl<T: Real> Features<T> {
    /// Features from arrays in standard layout.
    pub(super) fn new(map: Map<T>, side: Side, values: Array2<T>, log_scales: Array2<f64>) -> Self {
        Features { values, log_scales, map, side }
    }

    /// n, the number of points.
    pub fn len(&self) -> usize {
        self.values.nrows()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The side of the kernel, x or y, that the points are on.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The values, n × D.
    pub fn mantissas(&self) -> ArrayView2<'_, T> {
        self.values.view()
    }

    /// The logarithmic scales, n × blocks.
    pub fn log_scales(&self) -> ArrayView2<'_, f64> {
        self.log_scales.view()
    }

    /// The number of features in each block.
    pub fn blocks(&self) -> &[usize] {
        self.map.blocks()
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The values, n × D, and the logarithmic scales, n × blocks, for example to reuse them with
    /// [`features_into`](Map::features_into).
    pub fn into_parts(self) -> (Array2<T>, Array2<f64>) {
        (self.values, self.log_scales)
    }

    /// The features with their scales multiplied in, n × D, as input of a linear model. If `T` overflows or
    /// underflows (norms of about 13 in `f32`) they are ±∞ or 0: [`lost_rows`](Features::lost_rows) counts such rows. For
    /// kernels of x − y, centre the points first.
    pub fn to_array(&self) -> Array2<T> {
        self.clone().into_array()
    }

    /// The features with their scales multiplied in, n × D, in the memory of the mantissas. [`Map::transform`] computes them at once.
    #[inline(never)]
    pub fn into_array(self) -> Array2<T> {
        let mut out = self.values;
        for (mut row, scales) in out.rows_mut().into_iter().zip(self.log_scales.rows()) {
            for (columns, scale) in self.map.program().blocks().iter().zip(scales) {
                let times = times(*scale);
                row.slice_mut(s![columns.clone()]).mapv_inplace(|v| T::narrow(times(v.widen())));
            }
        }
        out
    }

    /// The number of rows whose largest feature is denormal, 0 or infinite in [`to_array`](Features::to_array). Rows whose
    /// features are all exactly 0 do not count.
    #[inline(never)]
    pub fn lost_rows(&self) -> usize {
        let least = T::min_positive_value().widen().ln();
        let most = T::max_value().widen().ln();
        let size = |i: usize| {
            let of_block = |(columns, scale): (&Range<usize>, &f64)| {
                let values = self.values.slice(s![i, columns.clone()]);
                let top = values.iter().fold(0.0, |top: f64, v| top.max(v.widen().abs()));
                if *scale == f64::NEG_INFINITY { f64::NEG_INFINITY } else { top.ln() + scale }
            };
            let blocks = self.map.program().blocks().iter().zip(self.log_scales.row(i));
            largest(blocks.map(of_block))
        };
        let lost = |size: f64| size > f64::NEG_INFINITY && (size < least || size > most);
        (0..self.len()).filter(|i| lost(size(*i))).count()
    }

    /// All rows.
    pub(super) fn rows(&self) -> RowFeatures<'_, T> {
        RowFeatures::new(&self.values, &self.log_scales, self.map.program().blocks())
    }

    /// The estimates φ(xᵢ)·ψ(yⱼ) of the kernel for all pairs, n × l; ±∞ or 0 where `T` overflows or underflows. Cost
    /// O(n l D).
    ///
    /// The rounding error is relative to exp of the sum of both scales: a much smaller estimate may underflow to 0.
    /// [`Map::gram`] recomputes such entries from logarithms.
    ///
    /// # Errors
    /// [`Pairing`](Error::Pairing) if the features come from different maps, or from the same side of a map
    /// that is not symmetric; [`Memory`](Error::Memory) if the result does not fit in memory,
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn gram(&self, other: &Features<T>) -> Result<Array2<T>> {
        let sides = self.side != other.side || self.map.facts().symmetric;
        if !self.map.same(&other.map) || !sides {
            return Err(self.not_paired(other));
        }
        check_memory("rows of a Gram matrix", self.len(), other.len().saturating_mul(size_of::<T>()))?;
        let blocks = Pairing::of_blocks(self.blocks());
        gram(GramRows::Features(self.rows()), other.rows(), &blocks, |_| None)
    }

    /// The error that these features and others do not belong together.
    fn not_paired(&self, other: &Features<T>) -> Error {
        let (left, right) = (self.origin(), other.origin());
        if left != right || self.map.same(&other.map) {
            return Error::Pairing { left, right };
        }
        // If the maps have equal descriptions, their frequencies differ.
        let of = |origin: String, map: &Map<T>| format!("{origin}, identity {}", map.identity());
        Error::Pairing { left: of(left, &self.map), right: of(right, &other.map) }
    }

    fn origin(&self) -> String {
        format!("side {:?} of the map {}", self.side, self.map)
    }
}

impl<T: Real> PartialEq for Features<T> {
    #[inline(never)]
    fn eq(&self, other: &Self) -> bool {
        self.side == other.side
            && self.values == other.values
            && self.log_scales == other.log_scales
            && self.map.same(&other.map)
    }
}

once!(
    Features::<T>::gram,
    Features::<T>::into_array,
    Features::<T>::lost_rows,
    <Features<T> as PartialEq>::eq,
);
