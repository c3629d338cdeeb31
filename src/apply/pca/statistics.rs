//! [`PcaStatistics`]: the sums over points that determine their principal components.

use std::ops::Range;

use ndarray::{Array2, ArrayRef1};

use super::KernelPca;
use crate::apply::ridge::symmetric_products;
use crate::apply::{RidgeStatistics, RidgeWarning, Standardisation};
use crate::error::{Error, Result};
use crate::map::Map;
use crate::once::once;
use crate::reduce::{GramIntake, GramSums};
use crate::targets::TargetRows;
use crate::{Points, Real};

/// Reads points in batches, on one machine or several, and gives their kernel principal components. Approximate: the kernel is
/// the map's estimate.
///
/// ```
/// use random_features::ndarray::{Array2, s};
/// use random_features::apply::pca::PcaStatistics;
/// use random_features::frequency::Orthogonal;
/// use random_features::{Map, Trigonometric};
/// let x = Array2::from_shape_fn((500, 3), |(i, k)| ((i * (k + 2)) as f32).sin());
/// let map: Map<f32> = Trigonometric.gaussian(Orthogonal.draw(3, 64, 1)?, 1.0)?;
/// let mut left = PcaStatistics::new(map.clone())?;
/// left.update(&x.slice(s![..300, ..]))?;
/// // On another machine.
/// let mut right = PcaStatistics::new(map)?.with_first_row(300)?;
/// right.update(&x.slice(s![300.., ..]))?;
/// left.merge(&right)?;
/// let pca = left.components(2)?;
/// let z = pca.transform(&x)?;
/// let variance = z.column(0).mapv(|z| f64::from(z).powi(2)).mean().unwrap();
/// assert!((variance / pca.explained_variance()[0] - 1.0).abs() < 1e-4);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// The statistics hold Σ w, Σ w φ and Σ w φ φᵀ over rows with features φ = φ(x) and weights w. Rows are numbered and summed as in
/// [`RidgeStatistics`], and each row is counted once. Results have the same bits for any number of threads, machines and parts
/// that begin at multiples of [`CHUNK`](RidgeStatistics::CHUNK). [`GramSums`] are the sums without the map, to be sent to other
/// machines.
///
/// # Cost
/// The time is O(n D² + n m d), and the memory O(D²) for any n. [`RidgeStatistics::bytes`] for 0 targets returns the memory in
/// bytes.
#[doc(alias = "kernel PCA")]
#[doc(alias = "IncrementalPCA")]
#[derive(Clone, Debug)]
pub struct PcaStatistics<T: Real> {
    /// The sums, without targets, and their map.
    pub(super) intake: GramIntake<T>,
}

impl<T: Real> PcaStatistics<T> {
    /// Empty statistics for the features of a map.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric, [`Parameter`](Error::Parameter) if the sums
    /// are too large to be addressed, [`Memory`](Error::Memory) if there is no memory for them.
    #[inline(never)]
    pub fn new(map: Map<T>) -> Result<Self> {
        Self::of_intake(GramIntake::new(map, 0)?)
    }

    /// Statistics from stored or received sums and their map. The next update begins after the last row.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if the sums are of another map or have targets ([`RidgeStatistics`] take sums of a regression, and
    /// have [components](RidgeStatistics::pca) too), [`Unsupported`](Error::Unsupported) if the map is not symmetric.
    pub fn of_sums(map: Map<T>, sums: GramSums<T>) -> Result<Self> {
        Self::of_intake(GramIntake::of_sums(map, sums)?)
    }

    pub(super) fn of_intake(intake: GramIntake<T>) -> Result<Self> {
        match intake.sums().targets() {
            0 => Ok(PcaStatistics { intake }),
            _ => Err(Error::Merge { reason: "their numbers of targets differ" }),
        }
    }

    /// Sets how inputs are centred and scaled before the map is applied; `None` leaves them as they are.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `inputs` is for points of another dimension, [`Parameter`](Error::Parameter) if rows have been
    /// added already.
    pub fn with_standardisation(self, inputs: impl Into<Option<Standardisation>>) -> Result<Self> {
        Ok(PcaStatistics { intake: self.intake.with_standardisation(inputs)? })
    }

    /// Sets the row of the whole data set at which the next update begins.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row is counted already.
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        Ok(PcaStatistics { intake: self.intake.with_first_row(row)? })
    }

    /// Adds the next rows: points `x`, n × d.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::update`]; the statistics are unchanged then.
    #[doc(alias = "partial_fit")]
    pub fn update<'a>(&mut self, x: impl Into<Points<'a, T>>) -> Result<()> {
        let x = x.into();
        self.intake.take_in(x.view(), &TargetRows::none(x.nrows(), None))
    }

    /// Adds the next rows: points `x`, n × d, with n weights, which say how often each row counts.
    ///
    /// # Errors
    /// The errors of [`update`](PcaStatistics::update); [`Entry`](Error::Entry) if a weight is negative or not finite.
    pub fn update_weighted<'a>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        weights: &ArrayRef1<f64>,
    ) -> Result<()> {
        let x = x.into();
        self.intake.take_in(x.view(), &TargetRows::none(x.nrows(), Some(weights)))
    }

    /// Adds rows by their numbers, in any order: `x` and the weights have a row for each number. The next update begins after the
    /// largest number.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::update_rows`].
    pub fn update_rows<'a>(
        &mut self,
        numbers: &[u64],
        x: impl Into<Points<'a, T>>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<()> {
        let x = x.into();
        self.intake.take_in_listed(numbers, &x, &TargetRows::none(x.nrows(), weights))
    }

    /// Removes rows that were added. `first` is the number of the first row, and the points and weights must be the ones that
    /// were added.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::downdate`].
    pub fn downdate<'a>(
        &mut self,
        first: u64,
        x: impl Into<Points<'a, T>>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<()> {
        let x = x.into();
        self.intake.take_out(first, x.view(), &TargetRows::none(x.nrows(), weights))
    }

    /// Removes rows by their numbers, in any order, with the points and weights that were added.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::downdate_rows`].
    pub fn downdate_rows<'a>(
        &mut self,
        numbers: &[u64],
        x: impl Into<Points<'a, T>>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<()> {
        let x = x.into();
        self.intake.take_out_listed(numbers, &x, &TargetRows::none(x.nrows(), weights))
    }

    /// Adds the rows of other statistics, which have an equal map and equal options, to these.
    ///
    /// # Errors
    /// The errors of [`GramSums::merge`].
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.merge_sums(other.sums())
    }

    /// Adds the rows of stored or received sums, which come without their map.
    ///
    /// # Errors
    /// The errors of [`GramSums::merge`].
    pub fn merge_sums(&mut self, sums: &GramSums<T>) -> Result<()> {
        self.intake.merge_sums(sums)
    }

    /// The first k principal components. The cost is O(D³), or O(D²) for each step of the method of Lanczos, which is used for
    /// few components of many features ([`KernelPca`]).
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::pca`].
    pub fn components(&self, k: usize) -> Result<KernelPca<T>> {
        KernelPca::of(&self.intake, k)
    }

    /// Σ w φ φᵀ over all rows, D × D and symmetric, not centred.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::products`].
    pub fn products(&self) -> Result<Array2<f64>> {
        symmetric_products(self.sums())
    }

    /// The reasons why inputs suit the map badly, by the [ranges](RidgeStatistics::input_warnings) of coordinates; empty if there
    /// are none.
    pub fn input_warnings(&self) -> Vec<RidgeWarning> {
        self.intake.input_warnings()
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        self.intake.map()
    }

    /// The sums over the rows, without the map, which can be sent to other machines.
    pub fn sums(&self) -> &GramSums<T> {
        self.intake.sums()
    }

    /// Returns the sums and drops the map.
    pub fn into_sums(self) -> GramSums<T> {
        self.intake.into_sums()
    }

    /// The centring and scaling of inputs, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.sums().standardisation()
    }

    /// The number of rows that are held.
    pub fn rows(&self) -> u64 {
        self.sums().rows()
    }

    /// The numbers of the rows that are held, as ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.sums().row_ranges()
    }
}

impl<T: Real> RidgeStatistics<T> {
    /// The first `components` principal components of the features, from the sums that are held. The cost is O(D³), or less for
    /// few components of many features ([`KernelPca`]).
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Parameter`](Error::Parameter) if `components` is 0 or
    /// above D or if all Σ w φ² are below 1e-271, which sums do not hold, [`Factorisation`](Error::Factorisation) if the iteration
    /// does not converge. [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn pca(&self, components: usize) -> Result<KernelPca<T>> {
        KernelPca::of(&self.intake, components)
    }
}

once!(PcaStatistics::<T>::new);
