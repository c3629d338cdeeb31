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
/// The statistics hold Σ w, Σ w φ and Σ w φ φᵀ (the lower triangle), where φ = φ(x) are the features of a row's point x. For each
/// target y they hold Σ w y, Σ w y φ, Σ w y² and the range. The factor of a row is w = a p, with its
/// [weight](Targets::with_weights) a, which says how often the row counts, and its [precision](Targets::with_precisions) p; both
/// are 1 by default. A precision changes the influence of a row, but not how often it counts. The evidence also needs Σ a and Σ a ln p, which are held too.
///
/// [`solve`](RidgeStatistics::solve) gives the regression for one λ, and [`spectrum`](RidgeStatistics::spectrum) the regressions
/// for all λ. The map, the centring and scaling of inputs, and whether there is an intercept are part of the statistics and of
/// the model. [`GramSums`] are the sums without the map, to be sent to other machines.
///
/// # Rows
/// Rows are numbered over the whole data set. Statistics begin at row 0, or at the row that
/// [`with_first_row`](RidgeStatistics::with_first_row) sets, and each update adds the next rows. Statistics record [which rows
/// they hold](RidgeStatistics::row_ranges). It is an error to add a row twice, or to remove a row that was not added.
///
/// Rows are summed in chunks, from one multiple of [`CHUNK`](RidgeStatistics::CHUNK) to the next, and sums of chunks do not
/// depend on their order. If updates and statistics begin at such multiples, the result has the same bits for any number of
/// threads, machines and parts. The order of merging does not matter either, for up to 16 million chunks. With updates that begin
/// elsewhere, results agree to rounding: typically to 20 ε and at worst to 512 ε, relative to the largest Σ w φ².
///
/// Rows that are removed in the same batches in which they were added leave the same bits as if they had never been added. The
/// exception is a removed row that is larger than the remaining ones by a factor of 2³⁰ or more. After a removal, rounding errors
/// are estimated from all rows that were ever added or removed, so that the least λ grows with them.
///
/// # Precision
/// Products are computed in the scalar type and summed in it over at most 512 rows, scaled by a power of two against overflow.
/// The sums of these runs are in `f64`. Sums with targets have twice the digits of `f64`, so that targets may have any mean. With
/// an intercept, the noise, cross-validation errors and evidence do not change if a constant h is added to the targets, up to the
/// rounding of y + h itself.
///
/// Features are plain values, φ = e^(log scale) · mantissa, which suits maps of the Gaussian kernel. Features of the softmax
/// kernel grow like e^(½‖x‖²), so that the rows of the largest norm outweigh all others: take the Gaussian kernel for a
/// regression. Sums beyond 1e288 are an error, never an infinity. Products of weights and features that are all below 1e-271 lose
/// digits in sums: models for a λ as small, and criteria, are an error then, never a number from what is left.
///
/// # Cost
/// The time is O(n D² + n m d). The memory is O(D²) for any n: about 8 D² (f32) or 12 D² (f64) bytes, and during an update the
/// features of a chunk. [`bytes`](RidgeStatistics::bytes) returns all peaks. An update of a single row costs as much as an update
/// of about fifty rows; [`buffered`](RidgeStatistics::buffered) collects single rows.
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
    /// The number of rows of a chunk. Statistics whose updates begin at multiples of it have the same bits in any order of
    /// merging.
    pub const CHUNK: u64 = ROWS;

    /// Empty statistics for `targets` targets at each point; for labels, `targets` is the number of classes. The regression will
    /// have an intercept.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric, since sums over one side estimate another kernel than the
    /// two sides do ([`KernelRidge`](super::KernelRidge) takes a Gram matrix instead); [`Parameter`](Error::Parameter) if
    /// `targets` is 0 or the sums are too large to be addressed, [`Memory`](Error::Memory) if there is no memory for them.
    #[inline(never)]
    pub fn new(map: Map<T>, targets: usize) -> Result<Self> {
        check_positive("the number of targets", targets)?;
        Self::of_intake(GramIntake::new(map, targets)?)
    }

    /// Statistics from stored or received sums and their map. The regression will have an intercept, and the next update begins
    /// after the last row. The standardisation is that of the sums.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if the sums are of another map, [`Parameter`](Error::Parameter) if they have no targets,
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric.
    pub fn of_sums(map: Map<T>, sums: GramSums<T>) -> Result<Self> {
        Self::of_intake(GramIntake::of_sums(map, sums)?)
    }

    pub(super) fn of_intake(intake: GramIntake<T>) -> Result<Self> {
        check_positive("the number of targets", intake.sums().targets())?;
        Ok(RidgeStatistics { intake, intercept: true })
    }

    /// Sets how inputs are centred and scaled before the map is applied; `None` leaves them as they are.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `inputs` is for points of another dimension, [`Parameter`](Error::Parameter) if rows have been
    /// added already.
    pub fn with_standardisation(self, inputs: impl Into<Option<Standardisation>>) -> Result<Self> {
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

    /// The sums over the rows, without the map and the intercept, which can be sent to other machines.
    pub fn sums(&self) -> &GramSums<T> {
        self.intake.sums()
    }

    /// Returns the sums, with their standardisation, and drops the map and the intercept.
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

    /// The number of rows that are held.
    pub fn rows(&self) -> u64 {
        self.sums().rows()
    }

    /// The numbers of the rows that are held, as ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.sums().row_ranges()
    }

    /// The reasons why inputs suit the regression badly, none of which needs the targets; empty if there are none.
    ///
    /// - Inputs that are not standardised are badly scaled for the map's kernel: one coordinate has more than 100 times the range of
    ///   another, or all ranges are below 0.01 or above 1000 lengthscales.
    /// - Coordinates vary, but the standardisation treats them as constant
    ///   ([`ConstantInputs`](RidgeWarning::ConstantInputs)).
    /// - The range of a coordinate is few spacings of its scalar type ([`FewSpacings`](RidgeWarning::FewSpacings)).
    ///
    /// A range is max − min over all rows that were added; removing rows does not narrow it. The lengthscale is known for plain
    /// maps, such as those of the Gaussian kernel. For hybrids and user-defined maps, ranges are only compared with each other.
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
    /// let warnings = statistics.input_warnings();
    /// assert!(warnings[0].to_string().contains("standardise the inputs"));
    /// let standardised = RidgeStatistics::new(map, 1)?
    ///     .with_standardisation(Standardisation::of(&x)?)?;
    /// assert!(standardised.input_warnings().is_empty());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn input_warnings(&self) -> Vec<RidgeWarning> {
        self.intake.input_warnings()
    }

    /// Adds the next rows: points `x`, n × d, with their [targets](Targets), numbers or labels. The weight of a row says how
    /// often it counts: a row of weight 2 is the row given twice, and a row of weight 0 is absent.
    /// [`rows`](RidgeStatistics::rows) counts each row once, whatever its weight.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number is not finite or a point has
    /// no finite features, [`Entry`](Error::Entry) with the row of a label that is too large, [`Row`](Error::Row) if a row is
    /// counted already or its number would be 2⁶⁴ − 1 or more, [`Parameter`](Error::Parameter) if a sum would exceed 1e288,
    /// [`Memory`](Error::Memory) if there is no memory for the features of a chunk. The statistics are unchanged then.
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[doc(alias = "partial_fit")]
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.intake.take_in(x.into().view(), &targets.into().rows(self.targets())?)
    }

    /// Adds rows by their numbers, in any order: `x` and the targets have a row for each number. Data whose rows are divided, such
    /// as into folds or by a condition, keep the numbers of the whole data set. The next update begins after the largest number.
    ///
    /// The sums are changed once for each [`CHUNK`](RidgeStatistics::CHUNK) that has new rows, however many these are. Parts whose
    /// updates hold all their rows of a chunk at once merge to the same bits.
    ///
    /// ```
    /// use random_features::ndarray::{Array2, s};
    /// use random_features::Trigonometric;
    /// use random_features::apply::RidgeStatistics;
    /// use random_features::frequency::Orthogonal;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 8, 1)?, 1.0)?;
    /// let x = Array2::from_shape_fn((100, 1), |(i, _)| i as f64 / 25.0);
    /// let y = x.mapv(f64::sin);
    /// let mut parts = Vec::new();
    /// for part in 0..2 {
    ///     let numbers: Vec<u64> = (part..100).step_by(2).collect();
    ///     let rows = s![part as usize..;2, ..];
    ///     let mut statistics = RidgeStatistics::new(map.clone(), 1)?;
    ///     statistics.update_rows(&numbers, x.slice(rows), y.slice(rows))?;
    ///     parts.push(statistics);
    /// }
    /// let (mut all, odd) = (parts[0].clone(), &parts[1]);
    /// all.merge(odd)?;
    /// assert_eq!(all.row_ranges(), [0..100]);
    /// assert!(all.merge(odd).is_err()); // These rows are counted already.
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`update`](RidgeStatistics::update); [`Row`](Error::Row) if a number is listed twice.
    pub fn update_rows<'a, 't>(
        &mut self,
        numbers: &[u64],
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.intake.take_in_listed(numbers, &x.into(), &targets.into().rows(self.targets())?)
    }

    /// Removes rows that were added. `first` is the number of the first row, and the data must be the ones that were added.
    ///
    /// The data are not checked: other data leave sums that belong to no data set. If no row of positive weight remains,
    /// statistics are as before the first row. Otherwise the ranges of inputs and targets stay as wide as they were. Rows that
    /// were added in one update and are removed in several leave rounding errors. A regression is refused if these errors hide
    /// the remaining targets. That happens if removed values were about 10¹⁰ times as large as the deviations of the remaining
    /// ones.
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

    /// Removes rows by their numbers, in any order, with the data that were added: `x` and the targets have a row for each
    /// number. The sums are changed once for each [`CHUNK`](RidgeStatistics::CHUNK) that has removed rows, however many these
    /// are.
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

    /// Adds the rows of other statistics, which have an equal map and equal options, to these. The next update begins after the
    /// last row of both.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if maps, standardisations, intercepts or numbers of targets differ,
    /// [`Row`](Error::Row) if a row is in both, [`Memory`](Error::Memory) if there is no memory for a copy of the other sums.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.intercept != other.intercept {
            return Err(Error::Merge { reason: "only one of them has an intercept" });
        }
        self.merge_sums(other.sums())
    }

    /// Adds the rows of stored or received sums, which come without their map.
    ///
    /// # Errors
    /// The errors of [`GramSums::merge`].
    pub fn merge_sums(&mut self, sums: &GramSums<T>) -> Result<()> {
        self.intake.merge_sums(sums)
    }
}

once!(RidgeStatistics::<T>::new, RidgeStatistics::<T>::merge, RidgeStatistics::<T>::input_warnings,);
