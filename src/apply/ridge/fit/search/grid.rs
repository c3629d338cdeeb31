//! [`RidgeGrid`]: regressions with several maps, from one pass over the data, and the choice of one.

use super::super::{Criterion, RidgeStatistics, Standardisation};
use super::errors::LambdaSharing;
use super::trial::{NONE, RidgeFit, Tried, check_grid};
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::Map;
use crate::once::once;
use crate::targets::TargetRows;
use crate::{Points, Real, Targets, progress, threads};

/// Searches for the best of several maps and for λ in one pass over the data, which come in batches, on any number of machines.
/// Approximate: kernels are the maps' estimates.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::apply::{Criterion, RidgeGrid};
/// use random_features::frequency::Orthogonal;
/// use random_features::{Map, Trigonometric};
/// let omega = Orthogonal.draw(1, 100, 1)?;
/// let map = |ell| Trigonometric.gaussian(omega.clone(), ell);
/// let maps: [Map<f64>; 4] = [map(0.1)?, map(0.3)?, map(1.0)?, map(3.0)?];
/// let mut grid = RidgeGrid::new(maps, 1)?;
/// for batch in 0..4 {
///     let at = |i: usize| (4 * i + batch) as f64 / 100.0;
///     let x = Array2::from_shape_fn((100, 1), |(i, _)| at(i));
///     grid.update(&x, &x.mapv(|x| (3.0 * x).sin() + 0.1 * (1e4 * x).sin()))?;
/// }
/// let fit = grid.choose(&Criterion::GeneralisedCrossValidation, None)?;
/// assert_eq!(fit.best().lengthscale, Some(1.0.into()));
/// // The noise has variance ½ · 0.01.
/// assert!((fit.error() / 0.005 - 1.0).abs() < 0.2);
/// let model = fit.model();
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// The maps differ in whatever is searched over: lengthscales, numbers of features, mechanisms. For data in memory,
/// [`RidgeSearch`](super::super::RidgeSearch) makes the maps.
///
/// # Cost
/// Each map costs the time and memory of its [`RidgeStatistics`]. An update holds the features of a chunk or a copy of the sums
/// for each map. The choice takes an eigendecomposition for each map, in parallel over maps.
#[derive(Clone, Debug)]
pub struct RidgeGrid<T: Real> {
    pub(in super::super) candidates: Vec<RidgeStatistics<T>>,
}

impl<T: Real> RidgeGrid<T> {
    /// Empty statistics of `targets` targets for each of the maps.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::new`]; [`Parameter`](crate::Error::Parameter) if there is no map.
    pub fn new(maps: impl IntoIterator<Item = Map<T>>, targets: usize) -> Result<Self> {
        let candidates = maps.into_iter().map(|map| RidgeStatistics::new(map, targets));
        let candidates = candidates.collect::<Result<Vec<_>>>()?;
        check_positive("the number of maps", candidates.len())?;
        Ok(RidgeGrid { candidates })
    }

    /// Sets how inputs are centred and scaled before the maps are applied; `None` leaves them as they are.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::with_standardisation`].
    pub fn with_standardisation(self, inputs: impl Into<Option<Standardisation>>) -> Result<Self> {
        self.standardised(inputs.into())
    }

    #[inline(never)]
    fn standardised(self, inputs: Option<Standardisation>) -> Result<Self> {
        self.each(|statistics| statistics.with_standardisation(inputs.clone()))
    }

    /// Leaves out the intercept.
    #[inline(never)]
    #[must_use]
    pub fn without_intercept(self) -> Self {
        let candidates = self.candidates.into_iter().map(RidgeStatistics::without_intercept).collect();
        RidgeGrid { candidates }
    }

    /// Sets the row of the whole data set at which the next update begins.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::with_first_row`].
    #[inline(never)]
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        self.each(|statistics| statistics.with_first_row(row))
    }

    /// The statistics of each map, in the order of the maps.
    pub fn statistics(&self) -> &[RidgeStatistics<T>] {
        &self.candidates
    }

    /// Adds the next rows to the statistics of all maps: points, n × d, with their [targets](Targets).
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::update`]; the grid is unchanged then.
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.take_in(&x.into(), &targets.into().rows(self.candidates[0].targets())?)
    }

    #[inline(never)]
    pub(super) fn take_in(&mut self, x: &Points<'_, T>, targets: &TargetRows<'_, T>) -> Result<()> {
        let change = |statistics: &RidgeStatistics<T>| statistics.intake.with(x.view(), targets);
        let changes = self.candidates.iter().map(change).collect::<Result<Vec<_>>>()?;
        self.candidates
            .iter_mut()
            .zip(changes)
            .for_each(|(statistics, change)| statistics.intake.put(change));
        Ok(())
    }

    /// Adds the rows of another grid, which has equal maps in equal order, to this one.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::merge`]; [`Shape`](crate::Error::Shape) if there are not as many maps.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        check_size("the number of maps", self.candidates.len(), other.candidates.len())?;
        let mut merged = self.candidates.clone();
        merged.iter_mut().zip(&other.candidates).try_for_each(|(own, their)| own.merge(their))?;
        self.candidates = merged;
        Ok(())
    }

    /// Chooses the map and λ with the least error by a criterion, and returns all errors. If some maps predict better
    /// than the mean of the targets by a margin, the best of these is chosen, even if another map has a smaller error
    /// ([`RidgeFit::best`]). Without given λ, the [default grid](super::super::RidgeSpectrum::lambdas) of each map is
    /// tried, and larger λ while the largest is the best. Given λ are tried only if they are above the rounding error
    /// of the map's sums.
    ///
    /// # Errors
    /// If no map can be fitted, the error of the first map, from [`RidgeStatistics::spectrum`] or
    /// [`RidgeSpectrum::errors`](super::super::RidgeSpectrum::errors). If at least one map can be fitted,
    /// [`RidgeWarning::Failed`](crate::apply::RidgeWarning::Failed) names the others instead. [`Parameter`](Error::Parameter) if
    /// the list of given λ is empty, or one is negative or not finite; [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops the choice.
    #[inline(never)]
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: Option<&[f64]>) -> Result<RidgeFit<T>> {
        self.choose_by(criterion, (lambdas, LambdaSharing::Common))
    }

    /// Chooses a λ for each target, and the map with the least Σ ln(error/variance of the target) over the targets or,
    /// with the evidence, the largest sum of log evidences.
    ///
    /// # Errors
    /// The errors of [`choose`](RidgeGrid::choose).
    #[inline(never)]
    pub fn choose_per_target(
        &self,
        criterion: &Criterion<'_, T>,
        lambdas: Option<&[f64]>,
    ) -> Result<RidgeFit<T>> {
        self.choose_by(criterion, (lambdas, LambdaSharing::PerTarget))
    }

    fn choose_by(
        &self,
        criterion: &Criterion<'_, T>,
        lambdas: (Option<&[f64]>, LambdaSharing),
    ) -> Result<RidgeFit<T>> {
        check_grid(lambdas.0)?;
        match best(&self.candidates, &|statistics| Tried::of(statistics, criterion, lambdas)) {
            Ok(tried) => tried.fit(criterion, lambdas),
            Err(errors) if errors.contains(&Error::Cancelled) => Err(Error::Cancelled),
            Err(errors) => Err(errors.into_iter().next().unwrap_or(NONE)),
        }
    }

    fn each(self, change: impl Fn(RidgeStatistics<T>) -> Result<RidgeStatistics<T>>) -> Result<Self> {
        let candidates = self.candidates.into_iter().map(change).collect::<Result<Vec<_>>>()?;
        Ok(RidgeGrid { candidates })
    }
}

/// The best of some maps, found by halves so that few spectra exist at a time; all errors if no map can be fitted.
fn best<'s, T: Real>(
    candidates: &'s [RidgeStatistics<T>],
    tried: &(impl Fn(&'s RidgeStatistics<T>) -> Result<Tried<'s, T>> + Sync),
) -> Result<Tried<'s, T>, Vec<Error>> {
    match candidates {
        [] => Err(Vec::new()),
        [one] => progress::check().and_then(|()| tried(one)).map_err(|error| vec![error]),
        _ => {
            let (left, right) = candidates.split_at(candidates.len() / 2);
            match threads::join(|| best(left, tried), || best(right, tried)) {
                (Ok(left), Ok(right)) => Ok(left.join(right)),
                (Ok(some), Err(errors)) | (Err(errors), Ok(some)) => Ok(some.beside(errors)),
                (Err(left), Err(right)) => Err([left, right].concat()),
            }
        }
    }
}

once!(
    RidgeGrid::<T>::standardised,
    RidgeGrid::<T>::without_intercept,
    RidgeGrid::<T>::with_first_row,
    RidgeGrid::<T>::take_in,
    RidgeGrid::<T>::merge,
    RidgeGrid::<T>::choose,
    RidgeGrid::<T>::choose_per_target,
);
