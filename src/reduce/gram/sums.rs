//! [`GramSums`]: sums of products of features, without the map that made them.

use std::marker::PhantomData;
use std::ops::Range;

use super::Standardisation;
use super::counts::RowCounts;
use super::normal::NormalSums;
use super::ranges::Ranges;
use crate::Real;
use crate::digest::Identity;
use crate::error::{Error, MAPS_DIFFER, Result, STANDARDISATIONS_DIFFER, check_alike, check_size};
use crate::map::Map;
use crate::reduce::check_targets;
use crate::rows::RowRanges;

/// Sums of products of features over rows of data, without the map that made the features. Machines that share a ridge regression
/// or a PCA exchange them. Approximate: the kernel is the map's estimate.
///
/// ```
/// use random_features::ndarray::{Array2, s};
/// use random_features::apply::RidgeStatistics;
/// use random_features::frequency::Orthogonal;
/// use random_features::reduce::GramSums;
/// use random_features::{Map, Result, Trigonometric};
/// let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0);
/// let y = x.mapv(|x| (2.0 * x).sin());
/// let map: Map<f64> =
///     Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 0.5)?;
///
/// // Two machines have the map and some of the rows each.
/// let machine = |first: usize, end: usize| -> Result<GramSums<f64>> {
///     let mut statistics = RidgeStatistics::new(map.clone(), 1)?
///         .with_first_row(first as u64)?;
///     statistics.update(
///         &x.slice(s![first..end, ..]),
///         &y.slice(s![first..end, ..]),
///     )?;
///     Ok(statistics.into_sums())
/// };
/// let (left, right) = (machine(0, 250)?, machine(250, 400)?);
///
/// // A coordinator has no map, and takes what arrives in any order.
/// let mut all = right;
/// all.merge(&left)?;
/// assert_eq!((all.rows(), all.identity()), (400, map.identity()));
/// assert!(all.merge(&left).is_err()); //  no row counts twice
///
/// // Whoever has the map solves.
/// let model = RidgeStatistics::of_sums(map, all)?.solve(1e-6)?;
/// assert!((model.predict(&x)? - &y).iter().all(|e| e.abs() < 1e-2));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// The sums are Σ w, Σ w φ and Σ w φ φᵀ (the lower triangle), and for each target y the sums Σ w y, Σ w y φ and Σ w y². They are
/// over rows with features φ and factors w = a p. The weight a of a row says how often it counts, and p is its precision; Σ a and
/// Σ a ln p are held too. The sums are stored with the numbers of the [rows](GramSums::row_ranges) and the
/// [identity](GramSums::identity) of the map. The [centring and scaling](GramSums::standardisation) of inputs, and the ranges of
/// inputs and targets, are also stored.
///
/// [`RidgeStatistics`](crate::apply::RidgeStatistics) and [`PcaStatistics`](crate::apply::pca::PcaStatistics) make sums with a
/// map, and take them back. [`sums`](crate::apply::RidgeStatistics::sums) returns the sums over a machine's rows,
/// [`merge_sums`](crate::apply::RidgeStatistics::merge_sums) adds sums to statistics, and
/// [`of_sums`](crate::apply::RidgeStatistics::of_sums) makes statistics from sums. Sums of a user-defined
/// [`FeatureMap`](crate::extend::FeatureMap) can be merged only in the process that made them, with clones of its `Map`.
///
/// # Cost
/// Sums take about 8 D² (f32) or 12 D² (f64) [bytes](GramSums::bytes), in memory and in a binary format. Merging copies the other
/// sums once.
#[derive(Clone, Debug)]
pub struct GramSums<T: Real> {
    pub(super) map: MapIdentity,
    pub(super) inputs: Option<Standardisation>,
    pub(super) totals: NormalSums,
    pub(super) rows: RowRanges,
    /// The ranges of the inputs as they are given, over all rows of positive weight that were added.
    pub(super) ranges: Ranges,
    /// The ranges of the targets, over all rows of positive weight that were added.
    pub(super) target_ranges: Ranges,
    /// The number of rows of positive weight, which bounds the rank, and for each target the number of values that are not 0.
    pub(super) present: RowCounts,
    /// The scalar type in which products are rounded.
    pub(super) scalar: PhantomData<T>,
}

/// The identity of the map of features, and its dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct MapIdentity {
    pub identity: Identity,
    /// d, the dimension of points.
    pub input_dim: usize,
    /// D, the number of features.
    pub feature_dim: usize,
}

impl MapIdentity {
    pub fn of<T: Real>(map: &Map<T>) -> Self {
        let (input_dim, feature_dim) = (map.dim(), map.feature_dim());
        MapIdentity { identity: map.identity(), input_dim, feature_dim }
    }
}

impl<T: Real> GramSums<T> {
    /// Sums of 0 for the features of a map and t targets.
    ///
    /// # Errors
    /// The errors of [`check`](GramSums::check); [`Memory`](Error::Memory) if the sums do not fit in memory.
    pub(super) fn new(map: MapIdentity, targets: usize) -> Result<Self> {
        Self::check(map.feature_dim, targets)?;
        Ok(GramSums {
            map,
            inputs: None,
            totals: NormalSums::new::<T>(targets, map.feature_dim)?,
            rows: RowRanges::default(),
            ranges: Ranges::default(),
            target_ranges: Ranges::default(),
            present: RowCounts::new(targets),
            scalar: PhantomData,
        })
    }

    /// Rejects numbers of features and targets whose sums cannot be addressed.
    pub(super) fn check(width: usize, targets: usize) -> Result<()> {
        check_targets(targets.max(1), width.saturating_add(1))?;
        NormalSums::check_width(width)
    }

    /// The bytes of sums of this size.
    pub(crate) fn bytes_of(width: usize, targets: usize) -> usize {
        NormalSums::bytes::<T>(targets, width)
    }

    /// Sets whether and how inputs are centred and scaled; the sums must be empty.
    pub(super) fn with_standardisation(self, inputs: Option<Standardisation>) -> Result<Self> {
        let dim = inputs.as_ref().map_or(self.map.input_dim, |inputs| inputs.centre().len());
        check_size("the dimension of the standardisation", self.map.input_dim, dim)?;
        if self.rows() > 0 {
            let (name, value) = ("the number of rows before a standardisation", self.rows() as f64);
            let domain = "0, because all rows are standardised alike";
            return Err(Error::Parameter { name, value, domain });
        }
        Ok(GramSums { inputs, ..self })
    }

    /// Adds the rows of other sums to these. The map, the centring and scaling of inputs and the number of targets must
    /// be equal. The rows must have different numbers, which
    /// [`with_first_row`](crate::apply::RidgeStatistics::with_first_row) gives them before they are added. The bits do
    /// not depend on the order of merging, up to 16 million updates of a few rows each. Beyond, results agree to
    /// rounding.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if maps, standardisations or numbers of targets differ, [`Row`](Error::Row) if a row is in both,
    /// [`Memory`](Error::Memory) if a copy of the other sums does not fit in memory. The sums are unchanged then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_map(&other.map)?;
        check_alike([
            (self.inputs != other.inputs, STANDARDISATIONS_DIFFER),
            (self.targets() != other.targets(), "their numbers of targets differ"),
        ])?;
        self.rows.check_apart(&other.rows)?;
        NormalSums::check_room::<T>(self.targets(), self.map.feature_dim)?;
        self.totals.merge(other.totals.clone());
        self.ranges.join(&other.ranges);
        self.target_ranges.join(&other.target_ranges);
        self.present = self.present.with(&other.present);
        self.rows.join(&other.rows);
        Ok(())
    }

    /// Rejects any map other than the map of these sums.
    pub(super) fn check_map(&self, map: &MapIdentity) -> Result<()> {
        check_alike([(self.map != *map, MAPS_DIFFER)])
    }

    /// The [identity](Map::identity) of the map.
    pub fn identity(&self) -> Identity {
        self.map.identity
    }

    /// The centring and scaling of inputs before the map, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.inputs.as_ref()
    }

    /// D, the number of features.
    pub fn feature_dim(&self) -> usize {
        self.map.feature_dim
    }

    /// The number of targets; 0 for sums of a PCA.
    pub fn targets(&self) -> usize {
        self.totals.cross.len() - 1
    }

    /// The number of rows that are held.
    pub fn rows(&self) -> u64 {
        self.rows.len()
    }

    /// The numbers of the rows that are held, as ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.rows.ranges()
    }

    /// The memory that the sums take, in bytes.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.feature_dim(), self.targets())
    }
}
