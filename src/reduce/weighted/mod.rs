//! [`WeightedSums`]: sums of features over points and of features times targets, which merge and do not overflow.
//!
//! Points are added in three ways: one by one from the logarithms of their features ([`LogRow`]); in runs relative to one
//! reference ([`RunSums`], from matrix products in `T`); or in runs relative to a reference for each feature (`replace`).
//!
//! Sums are applied to points in two ways. Queries of attention are values, so that no exponential is taken for them. Sums are
//! brought to one reference in `T` (`ready`). The few queries for which this may be inaccurate are computed from logarithms in
//! `f64` (`query`). Points of a regression are logarithms, to which the references are added (`prepared`). This is accurate at
//! any norm, and takes an exponential for each feature.

mod log_row;
mod merge;
mod precision;
mod prefixes;
mod prepared;
mod read;
mod ready;
mod relative;

use std::ops::Range;

use crate::Real;
use crate::error::Result;
use crate::memory::check_memory;
use crate::numeric::{self, panel_width};

pub(crate) use log_row::LogRow;
pub(crate) use precision::{Precision, Span, least, limit};
pub(crate) use prepared::{Applied, Prepared};
pub(crate) use read::RunBuffers;
pub(crate) use ready::RunSums;
pub(crate) use relative::{block_scales, exponentiate};

/// Σᵢ φ_f(xᵢ) \[yᵢ, 1\] for every feature f and target, each e^reference\[f\] times what is stored, in `f64`.
///
/// A reference is the largest logarithm of its feature so far, or the largest of a run of points. No sum thus underflows or
/// overflows, whatever the norms of points are. A feature that was 0 in all points so far has the reference −∞.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound = ""))]
pub(crate) struct WeightedSums<T> {
    targets: usize,
    /// The number of targets whose sums of a feature lie side by side: a panel of products in `T`, or 1.
    lanes: usize,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    reference: Vec<f64>,
    /// Whether all references are the same.
    #[cfg_attr(feature = "serde", serde(rename = "even"))]
    one_reference: bool,
    /// Whether sums may overflow `T`; set only by runs of attention.
    #[cfg_attr(feature = "serde", serde(rename = "huge"))]
    may_overflow: bool,
    /// Whether a point was seen, even one whose features are all 0.
    seen: bool,
    /// Whether a feature of a point was 0; set only by runs of attention.
    #[cfg_attr(feature = "serde", serde(rename = "gaps"))]
    has_zeros: bool,
    /// Σᵢ φ_f(xᵢ).
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    weights: Vec<f64>,
    /// Σᵢ φ_f(xᵢ) yᵢ, `[panel][f][lane]`: in the order of a packed matrix of targets × features, or row by row.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    sums: Vec<f64>,
    #[cfg_attr(feature = "serde", serde(skip))]
    scalar: std::marker::PhantomData<T>,
}

impl<T: Real> WeightedSums<T> {
    /// Empty sums, in panels.
    pub fn new(features: usize, targets: usize) -> Self {
        Self::of(panel_width::<T>(), features, targets, vec![0.0; Self::lanes(targets) * features])
    }

    /// Empty sums, targets × features in rows.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if they do not fit in memory.
    pub fn in_rows(features: usize, targets: usize) -> Result<Self> {
        check_memory("bytes of sums over points", Self::size(features, targets), 1)?;
        let (sums, _) = numeric::zeros((targets, features)).into_raw_vec_and_offset();
        Ok(Self::of(1, features, targets, sums))
    }

    fn of(lanes: usize, features: usize, targets: usize, sums: Vec<f64>) -> Self {
        let (reference, weights) = (vec![f64::NEG_INFINITY; features], vec![0.0; features]);
        WeightedSums {
            targets,
            lanes,
            reference,
            one_reference: true,
            may_overflow: false,
            seen: false,
            has_zeros: false,
            weights,
            sums,
            scalar: Default::default(),
        }
    }

    /// The bytes of sums in rows.
    pub fn size(features: usize, targets: usize) -> usize {
        targets.saturating_add(1).saturating_mul(features).saturating_mul(size_of::<f64>())
    }

    /// The number of sums of a feature in panels: one for each target, in whole panels.
    pub fn lanes(targets: usize) -> usize {
        targets.div_ceil(panel_width::<T>()).saturating_mul(panel_width::<T>())
    }

    /// The bytes of sums in panels.
    pub fn bytes_of(features: usize, targets: usize) -> usize {
        Self::lanes(targets).saturating_add(2).saturating_mul(size_of::<f64>()).saturating_mul(features)
    }

    /// The bytes of these sums.
    pub fn bytes(&self) -> usize {
        [&self.reference, &self.weights, &self.sums].iter().map(|part| size_of_val(&part[..])).sum()
    }

    /// Makes the sums empty.
    pub fn clear(&mut self) {
        self.reference.fill(f64::NEG_INFINITY);
        self.weights.fill(0.0);
        self.sums.fill(0.0);
        (self.one_reference, self.may_overflow, self.seen, self.has_zeros) = (true, false, false, false);
    }

    /// Whether these are sums in panels of so many features and targets, with consistent references and flags.
    #[cfg(feature = "serde")]
    pub fn fits(&self, features: usize, targets: usize) -> bool {
        self.are_of(panel_width::<T>(), features, targets)
    }

    /// Whether these are sums in rows of so many features and targets, all finite, with consistent references and flags.
    #[cfg(feature = "serde")]
    pub fn fits_rows(&self, features: usize, targets: usize) -> bool {
        let finite = |sums: &[f64]| sums.iter().all(|sum| sum.is_finite());
        self.are_of(1, features, targets) && finite(&self.weights) && finite(&self.sums)
    }

    #[cfg(feature = "serde")]
    fn are_of(&self, lanes: usize, features: usize, targets: usize) -> bool {
        let sums = targets.checked_next_multiple_of(lanes).and_then(|sums| sums.checked_mul(features));
        let level = |r: &f64| *r < f64::INFINITY;
        (self.lanes, self.targets) == (lanes, targets)
            && self.reference.len() == features
            && self.weights.len() == features
            && Some(self.sums.len()) == sums
            && self.reference.iter().all(level)
            && (!self.one_reference || self.reference.iter().all(|r| *r == self.reference[0]))
    }

    /// The sums of a target, one for each feature, of sums in rows.
    #[cfg(feature = "regression")]
    pub fn row(&self, target: usize) -> &[f64] {
        let width = self.features();
        &self.sums[target * width..(target + 1) * width]
    }

    /// D, the number of features.
    pub fn features(&self) -> usize {
        self.reference.len()
    }

    /// Whether a point was seen, even one whose features are all 0.
    pub fn has_seen(&self) -> bool {
        self.seen
    }

    /// Notes that a point was seen.
    pub fn see(&mut self) {
        self.seen = true;
    }

    /// The places of the sums of consecutive features, panel by panel.
    fn places(&self, features: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (lanes, panel) = (self.lanes, (self.lanes * self.weights.len()).max(1));
        let (start, end) = (features.start * lanes, features.end * lanes);
        (0..self.sums.len()).step_by(panel).map(move |first| first + start..first + end)
    }
}
