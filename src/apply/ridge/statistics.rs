//! [`RidgeStatistics`]: the sums over training points that determine a ridge regression.

use std::ops::Range;

use super::{RidgeWarning, Standardisation};
use crate::error::{Error, Result, check_positive};
use crate::map::Map;
use crate::once::once;
use crate::reduce::{GramIntake, GramSums, ROWS};
use crate::{Points, Real, Targets};

/// Reads training points in batches, on one machine or several, and gives their ridge regression for any λ. Approximate: the
/// kernel is the map's estimate.
///
/// ```
/// use random_features::ndarray::{Array2, s};
/// use random_features::apply::RidgeStatistics;
/// use random_features::extend::Coupling;
/// use random_features::frequency::Orthogonal;
/// use random_features::Trigonometric;
/// let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0);
/// let y = x.mapv(|x| (2.0 * x).sin());
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 0.5)?;
/// let mut left = RidgeStatistics::new(map.clone(), 1)?;
/// left.update(&x.slice(s![..250, ..]), &y.slice(s![..250, ..]))?;
/// // On another machine.
/// let mut right = RidgeStatistics::new(map, 1)?.with_first_row(250)?;
/// right.update(&x.slice(s![250.., ..]), &y.slice(s![250.., ..]))?;
/// left.merge(&right)?;
/// let model = left.solve(1e-6)?;
/// let error = model.predict(&x)? - &y;
/// assert!(error.iter().all(|e| e.abs() < 1e-2));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Σ w, Σ w φ, Σ w φ φᵀ (the lower triangle), and for each target Σ w y, Σ w y φ and Σ w y², over rows with points x,
/// features φ = φ(x) and targets y, and the range of each target. w is how often a row counts (its
/// [weight](Targets::with_weights), 1 by default) times its [precision](Targets::with_precisions) p (1 by default). The sum of counts
/// and Σ ln p over as many rows travel beside, since a precision is no row. [`solve`](RidgeStatistics::solve)
/// gives the regression for one λ, [`spectrum`](RidgeStatistics::spectrum) the regressions for all. The map, the centring and
/// scaling of inputs, and whether there is an intercept are part of the statistics and of the model. Between machines the
/// sums travel without the map: [`GramSums`].
///
/// # Rows
/// Rows are numbered over the whole data set: statistics begin at row 0, or where
/// [`with_first_row`](RidgeStatistics::with_first_row) says, and each update adds the next rows. They record
/// [which rows they hold](RidgeStatistics::row_ranges): counting a row twice is an error, and so is removing one that is absent.
///
/// Rows are summed in chunks, from one multiple of [`CHUNK`](RidgeStatistics::CHUNK) to the next. Sums of chunks do not depend on their
/// order: where updates and statistics are cut at such multiples, the result has the same bits for any number of threads,
/// machines and parts, and any order of merging, up to 16 million chunks. Other cuts agree to rounding, of 512 ε in the worst
/// case and about 20 ε typically, relative to the largest Σ w φ². Removing rows with the cuts with which they were
/// added restores the bits, unless the removed rows are larger than the remaining ones by 2³⁰ or more. Whatever the
/// cuts, after a removal rounding errors are taken for those of all rows that were added or removed: the least λ grows with them.
///
/// # Precision
/// Products are computed in the scalar type and summed in it over at most 512 rows, scaled by a power of two against
/// overflow; sums of these are `f64`. Sums with targets have twice the digits of `f64`, so that targets may have any mean: with
/// an intercept, noise, cross-validation and evidence of y + h are those of y, up to the rounding of y + h itself.
///
/// Features are plain values, φ = e^(log scale) · value, which suits maps of the Gaussian kernel. Features of the softmax
/// kernel grow like e^(½‖x‖²), so that the rows of the largest norm outweigh all others: a Gaussian target is the better
/// model. Sums beyond 1e288 are an error, never an infinity.
///
/// # Cost
/// O(n D² + n m d) time and O(D²) memory for any n: about 8 D² (f32) or 12 D² (f64) bytes, and during an update the features
/// of a chunk ([`bytes`](RidgeStatistics::bytes) has all peaks). An update of a single row costs as much as one of some
/// fifty: [`buffered`](RidgeStatistics::buffered) collects single rows.
///
/// # References
/// A. Rahimi, B. Recht, *Random Features for Large-Scale Kernel Machines*, NIPS 2007; J. Demmel, H. D. Nguyen, *Parallel
/// Reproducible Summation*, IEEE Transactions on Computers 64, 2015.
#[doc(alias = "recursive least squares")]
#[doc(alias = "normal equations")]
#[derive(Clone, Debug)]
pub struct RidgeStatistics<T: Real> {
    /// The sums, of at least one target, with their map.
    pub(in crate::apply) intake: GramIntake<T>,
    pub(super) intercept: bool,
}

impl<T: Real> RidgeStatistics<T> {
    /// Statistics and updates that are cut at multiples of this many rows merge to the same bits.
    pub const CHUNK: u64 = ROWS;

    /// Empty statistics, for points with `targets` numbers each (for labels: the number of classes). The regression will
    /// have an intercept.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric: the sums would belong to another kernel than
    /// the one that its two sides estimate ([`KernelRidge`](super::KernelRidge) takes a Gram matrix instead);
    /// [`Parameter`](Error::Parameter) if `targets` is 0 or the sums are too large to be addressed,
    /// [`Memory`](Error::Memory) if there is no memory for them.
    #[inline(never)]
    pub fn new(map: Map<T>, targets: usize) -> Result<Self> {
        check_positive("the number of targets", targets)?;
        Self::of_intake(GramIntake::new(map, targets)?)
    }

    /// Statistics of sums that have travelled, with their map. The regression will have an intercept, and the next update
    /// begins after the last row.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if the sums are of another map, [`Parameter`](Error::Parameter) if they are without targets,
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric.
    pub fn of_sums(map: Map<T>, sums: GramSums<T>) -> Result<Self> {
        Self::of_intake(GramIntake::of_sums(map, sums)?)
    }

    pub(super) fn of_intake(intake: GramIntake<T>) -> Result<Self> {
        check_positive("the number of targets", intake.sums().targets())?;
        Ok(RidgeStatistics { intake, intercept: true })
    }

    /// Sets how inputs are centred and scaled before the map is applied.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `inputs` is for points of another dimension, [`Parameter`](Error::Parameter) if rows have been
    /// added already.
    #[inline(never)]
    pub fn with_standardisation(self, inputs: Standardisation) -> Result<Self> {
        Ok(RidgeStatistics { intake: self.intake.with_standardisation(inputs)?, ..self })
    }

    /// Leaves out the intercept: predictions are β·φ(x).
    #[must_use]
    pub fn without_intercept(mut self) -> Self {
        self.intercept = false;
        self
    }

    /// Sets the row of the whole data set at which the next update begins.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row is counted already.
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        Ok(RidgeStatistics { intake: self.intake.with_first_row(row)?, ..self })
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        self.intake.map()
    }

    /// The sums, without the map and the intercept: what other machines need of these rows.
    pub fn sums(&self) -> &GramSums<T> {
        self.intake.sums()
    }

    /// The sums alone.
    pub fn into_sums(self) -> GramSums<T> {
        self.intake.into_sums()
    }

    /// The centring and scaling of inputs, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.sums().standardisation()
    }

    /// The number of targets.
    pub fn targets(&self) -> usize {
        self.sums().targets()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.sums().rows()
    }

    /// The rows of the whole data set that are held: ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.sums().row_ranges()
    }

    /// The warning that inputs are badly scaled for the map's kernel, by the ranges of their coordinates: some ranges are a hundred
    /// times others, or all are far from its lengthscale. `None` if they are not, or are standardised.
    ///
    /// Ranges are those of all rows that were added; removing rows does not narrow them. The lengthscale is known for plain
    /// maps, such as those of the Gaussian kernel; for hybrids and user-defined maps ranges are only compared with each other.
    ///
    /// ```
    /// use random_features::apply::{RidgeStatistics, Standardisation};
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::arr2;
    /// use random_features::{Map, Trigonometric};
    /// // Metres and kilograms, of which one lengthscale sees only the kilograms.
    /// let x = arr2(&[[1.61, 2100.0], [1.75, 900.0], [1.92, 1500.0]]);
    /// let map: Map<f64> =
    ///     Trigonometric.gaussian(Orthogonal.draw(2, 64, 1)?, 2.0)?;
    /// let mut statistics = RidgeStatistics::new(map.clone(), 1)?;
    /// statistics.update(&x, &arr2(&[[1.0], [2.0], [3.0]]))?;
    /// assert!(
    ///     statistics
    ///         .scale_warning()
    ///         .unwrap()
    ///         .to_string()
    ///         .contains("standardise the inputs")
    /// );
    /// let standardised = RidgeStatistics::new(map, 1)?
    ///     .with_standardisation(Standardisation::of(&x)?)?;
    /// assert_eq!(standardised.scale_warning(), None);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn scale_warning(&self) -> Option<RidgeWarning> {
        self.intake.scale_warning()
    }

    /// Adds the next rows: points `x`, n × d, with their [targets](Targets), numbers or labels. A weight of a row says how often it
    /// counts: a row of weight 2 is the row given twice, and a row of weight 0 is absent; [`rows`](RidgeStatistics::rows) counts
    /// either once.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number is not finite or a point
    /// has no finite features, [`Entry`](Error::Entry) with the row of a label that is too large, [`Row`](Error::Row) if a row is
    /// counted already or its number would be 2⁶⁴ − 1 or more, [`Parameter`](Error::Parameter) if a sum would exceed 1e288,
    /// [`Memory`](Error::Memory) if there is no memory for the features of a chunk. The statistics are unchanged then.
    #[doc(alias = "partial_fit")]
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.intake.take_in(x.into().view(), &targets.into().rows(self.targets())?)
    }

    /// Removes rows that were added: `first` is the number of the first row, and the data must be those that were added.
    ///
    /// That is not checked: with other data the sums belong to no data set. If no row of positive weight remains, statistics are
    /// as before the first one. Otherwise ranges of inputs and targets stay as wide as they were. Rows that were added in one update
    /// and are removed in several leave rounding errors. A regression is refused where they hide the remaining targets:
    /// where removed values were some 10¹⁰ times as large as the deviations of those that remain.
    ///
    /// # Errors
    /// The errors of [`update`](RidgeStatistics::update); [`Row`](Error::Row) if a row is not held.
    pub fn downdate<'a, 't>(
        &mut self,
        first: u64,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.intake.take_out(first, x.into().view(), &targets.into().rows(self.targets())?)
    }

    /// Removes rows by their numbers, in any order, with the data that were added: `x` and the targets have a row for each number. It is
    /// one edit of the sums for each [`CHUNK`](RidgeStatistics::CHUNK) of numbers, however many there are.
    ///
    /// ```
    /// use random_features::ndarray::{Array2, Axis};
    /// use random_features::Trigonometric;
    /// use random_features::apply::RidgeStatistics;
    /// use random_features::frequency::Orthogonal;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 8, 1)?, 1.0)?;
    /// let mut statistics = RidgeStatistics::new(map, 1)?;
    /// let x = Array2::from_shape_fn((100, 1), |(i, _)| i as f64 / 25.0);
    /// statistics.update(&x, &x.mapv(f64::sin))?;
    /// let old = x.select(Axis(0), &[7, 40, 2]);
    /// statistics.downdate_rows(&[7, 40, 2], &old, &old.mapv(f64::sin))?;
    /// assert_eq!((statistics.rows(), statistics.row_ranges().len()), (97, 4));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`downdate`](RidgeStatistics::downdate); [`Row`](Error::Row) if a number is listed twice.
    pub fn downdate_rows<'a, 't>(
        &mut self,
        numbers: &[u64],
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.intake.take_out_listed(numbers, &x.into(), &targets.into().rows(self.targets())?)
    }

    /// Merges the rows of other statistics, for an equal map and with equal options, into these. The next update begins after
    /// the last row of both.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if maps, standardisations, intercepts or numbers of targets differ,
    /// [`Row`](Error::Row) if a row is in both, [`Memory`](Error::Memory) if there is no memory for a copy of the other sums.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.intercept != other.intercept {
            return Err(Error::Merge { reason: "one has an intercept" });
        }
        self.merge_sums(other.sums())
    }

    /// Merges the rows of sums that have travelled without their map.
    ///
    /// # Errors
    /// The errors of [`GramSums::merge`].
    pub fn merge_sums(&mut self, sums: &GramSums<T>) -> Result<()> {
        self.intake.merge_sums(sums)
    }
}

once!(
    RidgeStatistics::<T>::new,
    RidgeStatistics::<T>::merge,
    RidgeStatistics::<T>::scale_warning,
    RidgeStatistics::<T>::with_standardisation,
);
