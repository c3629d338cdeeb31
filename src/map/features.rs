//! [`Features`]: a batch of features with their scales.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis, CowArray, Ix2, s};

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

    /// The values, n × D, and the logarithmic scales, n × blocks: arrays that can be filled again by
    /// [`features_into`](FeatureMap::features_into).
    pub fn into_arrays(self) -> (Array2<T>, Array2<f64>) {
        (self.values, self.log_scales)
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

    /// A block of a run of rows, without the rows where it is absent.
    fn block(&self, b: usize, run: Range<usize>) -> Block<'_, T> {
        let columns = ranges(&self.blocks).nth(b).unwrap_or_default();
        let scales = self.log_scales.slice(s![run.clone(), b]).to_vec();
        let values = self.values.slice(s![run, columns]);
        if !scales.contains(&f64::NEG_INFINITY) {
            return Block { values: values.into(), scales, places: None };
        }
        let places: Vec<usize> = (0..scales.len()).filter(|i| scales[*i] != f64::NEG_INFINITY).collect();
        Block {
            values: values.select(Axis(0), &places).into(),
            scales: places.iter().map(|i| scales[*i]).collect(),
            places: Some(places),
        }
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
        let blocks: Vec<Block<'_, T>> =
            (0..self.blocks.len()).map(|b| other.block(b, 0..other.len())).collect();
        tiles::fill_rows(out.view_mut(), work, |first, mut out| {
            let rows = first..first + out.nrows();
            let products: Vec<Product<T>> = blocks
                .iter()
                .enumerate()
                .map(|(b, right)| Product::new(&self.block(b, rows.clone()), right))
                .collect();
            let mut sums = RowSums::new(other.len());
            let mut unresolved = Vec::new();
            for (i, out) in out.rows_mut().into_iter().enumerate() {
                let present =
                    || products.iter().zip(&blocks).filter_map(|(product, right)| product.row(i, right));
                sums.start(present());
                present().for_each(|terms| sums.add(&terms));
                sums.finish(out, |j| unresolved.push((first + i, j)));
            }
            if let Some(estimates) = (!unresolved.is_empty()).then(|| resolve(&unresolved)).flatten() {
                unresolved.iter().zip(estimates).for_each(|((i, j), v)| out[[i - first, *j]] = v);
            }
        });
        Ok(out)
    }
}

/// The rows of a run in which a block is present.
struct Block<'a, T> {
    values: CowArray<'a, T, Ix2>,
    scales: Vec<f64>,
    /// Which rows of the run they are; `None` if all.
    places: Option<Vec<usize>>,
}

/// The products of a block's rows on two sides.
struct Product<T> {
    values: Array2<T>,
    /// The scales on the left.
    scales: Vec<f64>,
    places: Option<Vec<usize>>,
}

impl<T: Real> Product<T> {
    fn new(left: &Block<'_, T>, right: &Block<'_, T>) -> Self {
        let values = left.values.dot(&right.values.t());
        Product { values, scales: left.scales.clone(), places: left.places.clone() }
    }

    /// Row `i` of the run, if the block is present there.
    fn row<'a>(&'a self, i: usize, right: &'a Block<'_, T>) -> Option<Terms<'a, T>> {
        let row = match &self.places {
            None => i,
            Some(places) => places.binary_search(&i).ok()?,
        };
        let (others, places, width) = (&right.scales[..], right.places.as_deref(), right.values.ncols());
        Some(Terms { products: self.values.row(row), scale: self.scales[row], others, places, width })
    }
}

/// What a block adds to a row of a Gram matrix.
struct Terms<'a, T> {
    products: ArrayView1<'a, T>,
    scale: f64,
    /// The scales on the right, and the entries that they are for.
    others: &'a [f64],
    places: Option<&'a [usize]>,
    width: usize,
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

    /// Begins a row with the blocks that are present in it.
    fn start<'a, T: Real>(&mut self, blocks: impl Iterator<Item = Terms<'a, T>>) {
        self.sum.fill(0.0);
        self.floor.fill(0.0);
        self.top.fill(f64::NEG_INFINITY);
        for Terms { scale, others, places, .. } in blocks {
            match places {
                None => {
                    let tops = self.top.iter_mut().zip(others);
                    tops.for_each(|(top, other)| *top = top.max(scale + other));
                }
                Some(places) => {
                    let each = places.iter().zip(others);
                    each.for_each(|(j, other)| self.top[*j] = self.top[*j].max(scale + other));
                }
            }
        }
    }

    /// Adds a block.
    fn add<T: Real>(&mut self, terms: &Terms<'_, T>) {
        match terms.places {
            None => self.add_at(terms, 0..terms.others.len()),
            Some(places) => self.add_at(terms, places.iter().copied()),
        }
    }

    /// Adds a block to the entries `places`.
    fn add_at<T: Real>(
        &mut self,
        terms: &Terms<'_, T>,
        places: impl ExactSizeIterator<Item = usize> + Clone,
    ) {
        // Each product may have lost one least normal number; relative to the sum that is rounding from here
        // on.
        let floor = terms.width as f64 * T::min_positive_value().widen() / T::epsilon().widen();
        let weight = &mut self.weight[..places.len()];
        for ((weight, other), j) in weight.iter_mut().zip(terms.others).zip(places.clone()) {
            *weight = terms.scale + other - self.top[j];
        }
        exp_minus(Isa::best(), weight, 0.0);
        for ((product, weight), j) in terms.products.iter().zip(weight).zip(places) {
            self.sum[j] += product.widen() * *weight;
            self.floor[j] += floor * *weight;
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
