//! [`RidgeSearch`]: the search for a ridge regression of data in memory.

use std::sync::Arc;

use super::super::Criterion;
use crate::Real;
use crate::error::Result;
use crate::frequency::{Frequencies, Orthogonal};
use crate::kernel::Lengthscale;
use crate::map::{Map, Trigonometric};
use crate::once::once;

/// Fits a ridge regression to data in memory, and searches for its lengthscales, number of frequencies and λ. Approximate: kernels
/// are the maps' estimates.
///
/// ```
/// use random_features::apply::RidgeSearch;
/// use random_features::ndarray::Array2;
/// // The second coordinate is noise.
/// let x = Array2::from_shape_fn((600, 2), |(i, k)| match k {
///     0 => i as f64 * 0.5,
///     _ => ((i * i) as f64).sin(),
/// });
/// let y = x.column(0).mapv(|x| (x / 30.0).sin());
/// let search = RidgeSearch::gaussian(2, 64, 1)?;
/// let fit = search.fit(&x, &y)?;
/// println!("{fit}"); //  all errors, and the choice
/// let predicted = fit.model().predict_single(&x)?;
/// assert!((predicted - &y).iter().all(|error| error.abs() < 0.1));
/// // A lengthscale for each coordinate finds out that one is noise.
/// let search = search.with_lengthscale_per_dimension(3);
/// let own = search.fit(&x, &y)?;
/// assert!(own.best().error() < 0.5 * fit.best().error());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # What is done
/// 1. Inputs are standardised, unless they are sparse.
/// 2. On a [number of rows](RidgeSearch::with_rows), drawn at random, a regression is made for each lengthscale of a grid and
///    each number of frequencies, and its [criterion](Criterion) is computed for each λ of a grid. All lengthscales share
///    one draw of frequencies, whose leading whole blocks serve the smaller numbers, so that draws make no difference.
///    Maps that clearly predict better than the mean come before all others, whatever their errors are
///    ([`RidgeFit::best`](super::RidgeFit::best)).
/// 3. With [`with_lengthscale_per_dimension`](RidgeSearch::with_lengthscale_per_dimension), each coordinate gets a lengthscale of its own, starting from the
///    best of these.
/// 4. The best map is fitted to all rows, and λ is chosen again. Errors of left-out rows and groups are then taken at those of the
///    search, each for the regression on all others. With folds, blocks or a share of rows that is held out, λ stays. Rows of your own
///    that are [held out](Criterion::held_out) are no part of the model: add them to its statistics if they should be.
///
/// The defaults are as follows. Lengthscales are the [median](crate::data::lengthscale::median) distance times 2^(k/2), k = −4
/// … 4; λ are those of [`RidgeSpectrum::lambdas`](super::super::RidgeSpectrum::lambdas); rows are the larger of 4096 and 4 D.
/// Where the best of these lengthscales or λ lies at an end, more are tried beyond it. Where no lengthscale predicts better
/// than the mean, shorter ones are tried. They reach k = ±20. No longer ones are tried where only rounding keeps λ of the longest
/// from being smaller ([`RidgeWarning::Rounding`](crate::apply::RidgeWarning::Rounding)). Grids that are given are not extended; [`RidgeFit::warnings`](crate::apply::RidgeFit::warnings)
/// says where more should be tried.
///
/// [`progress::watch`](crate::progress::watch) shows each map that was tried, and can stop a search.
///
/// # Cost
/// O(r D² + D³) for each map with r rows of the search, in parallel over maps, and O(n D²) at the end. Each thread holds a
/// map, its sums and its spectrum ([`RidgeStatistics::bytes`](crate::apply::RidgeStatistics::bytes)). A map holds its own copy of the
/// frequencies, divided by its lengthscale and rounded to `T`; the draw itself exists once for each number of frequencies.
///
/// # What fails
/// A map of the grid that cannot be fitted, for example because sums overflow, does not end a search while another can be
/// fitted: [`RidgeWarning::Failed`](crate::apply::RidgeWarning::Failed) names it. Lengthscales beyond the default ones that fail are
/// left out, and so are steps of a sweep over the coordinates.
#[doc(alias = "KernelRidge")]
#[doc(alias = "GridSearchCV")]
#[doc(alias = "RidgeCV")]
pub struct RidgeSearch<'a, T: Real> {
    pub(super) maps: Maps<'a, T>,
    /// The numbers of frequencies to try; `None` for all frequencies.
    pub(super) frequencies: Option<Vec<usize>>,
    pub(super) lengthscales: Option<Vec<Lengthscale>>,
    pub(super) lambdas: Option<Vec<f64>>,
    pub(super) criterion: Criterion<'a, T>,
    pub(super) rows: Option<usize>,
    pub(super) seed: u64,
    pub(super) sweeps: usize,
    pub(super) standardise: bool,
    pub(super) intercept: bool,
}

/// What makes the maps of a search.
pub(super) enum Maps<'a, T: Real> {
    /// A function of a lengthscale alone.
    Of(Box<dyn Fn(Lengthscale) -> Result<Map<T>> + Send + Sync + 'a>),
    /// A draw, and a function of its leading frequencies and a lengthscale.
    On(Arc<Frequencies>, MakeMap<'a, T>),
}

/// Makes the map of frequencies and a lengthscale.
type MakeMap<'a, T> = Box<dyn Fn(Arc<Frequencies>, Lengthscale) -> Result<Map<T>> + Send + Sync + 'a>;

impl<T: Real> std::fmt::Debug for RidgeSearch<'_, T> {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut search = f.debug_struct("RidgeSearch");
        search.field("frequencies", &self.frequencies).field("lengthscales", &self.lengthscales);
        search.field("lambdas", &self.lambdas).field("criterion", &self.criterion).field("rows", &self.rows);
        search.field("seed", &self.seed).field("sweeps", &self.sweeps).finish_non_exhaustive()
    }
}

impl<'a, T: Real> RidgeSearch<'a, T> {
    /// A search over Gaussian kernels in ℝᵈ: [`Trigonometric`] features of m frequencies from one [`Orthogonal`] draw, D = 2m.
    ///
    /// ```
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// let x =
    ///     Array2::from_shape_fn((300, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let y = x.column(0).mapv(f64::cos);
    /// let fit = RidgeSearch::gaussian(2, 64, 7)?.fit(&x, &y)?;
    /// let predicted = fit.model().predict_single(&x)?;
    /// assert!((predicted - &y).iter().all(|error| error.abs() < 1e-2));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `d` or `m` is 0, [`Memory`](crate::Error::Memory) if there is no memory for the
    /// frequencies.
    pub fn gaussian(d: usize, m: usize, seed: u64) -> Result<Self> {
        let omega = Orthogonal.draw(d, m, seed)?;
        Ok(Self::new(omega, |omega, lengthscale| Trigonometric.gaussian(omega, lengthscale)))
    }

    /// A search over the maps of any mechanism: those that `make` gives for frequencies and a lengthscale, such as
    /// `|omega, ell| Trigonometric.gaussian(omega, ell)`. `make` is given these frequencies without a copy, or leading ones, which
    /// are copied once for each number of frequencies.
    pub fn new(
        omega: impl Into<Arc<Frequencies>>,
        make: impl Fn(Arc<Frequencies>, Lengthscale) -> Result<Map<T>> + Send + Sync + 'a,
    ) -> Self {
        Self::over(Maps::On(omega.into(), Box::new(make)))
    }

    /// A search over the maps that `make` gives for a lengthscale: for maps of several draws, or of none.
    pub fn of(make: impl Fn(Lengthscale) -> Result<Map<T>> + Send + Sync + 'a) -> Self {
        Self::over(Maps::Of(Box::new(make)))
    }

    #[inline(never)]
    fn over(maps: Maps<'a, T>) -> Self {
        RidgeSearch {
            maps,
            frequencies: None,
            lengthscales: None,
            lambdas: None,
            criterion: Criterion::default(),
            rows: None,
            seed: 0,
            sweeps: 0,
            standardise: true,
            intercept: true,
        }
    }

    /// Sets the lengthscales to try, for inputs after standardisation: numbers, or vectors with one for each dimension.
    #[must_use]
    pub fn with_lengthscales<L: Into<Lengthscale>>(
        mut self,
        lengthscales: impl IntoIterator<Item = L>,
    ) -> Self {
        self.lengthscales = Some(lengthscales.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the λ to try. For each map, only λ above the [resolution](super::super::RidgeSpectrum::resolution) are tried.
    #[must_use]
    pub fn with_lambdas(mut self, lambdas: impl IntoIterator<Item = f64>) -> Self {
        self.lambdas = Some(lambdas.into_iter().collect());
        self
    }

    /// Sets the numbers of frequencies to try, each rounded up to whole blocks of the draw and at most m; by default only m is
    /// tried. It is for a search that was given frequencies.
    #[must_use]
    pub fn with_frequencies(mut self, counts: impl IntoIterator<Item = usize>) -> Self {
        self.frequencies = Some(counts.into_iter().collect());
        self
    }

    /// Sets the criterion; the default is leave-one-out.
    #[must_use]
    pub fn with_criterion(mut self, criterion: Criterion<'a, T>) -> Self {
        self.criterion = criterion;
        self
    }

    /// Sets the most rows that the search reads, drawn at random; `usize::MAX` for all.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Sets the seed with which rows are drawn; the default is 0.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Gives each coordinate a lengthscale of its own, in so many sweeps over the coordinates. A sweep multiplies or divides each
    /// lengthscale by a factor where that lowers the criterion: by 2 at first, and by the square root of the last factor after a
    /// sweep that changed nothing. It tries 2 d more maps.
    ///
    /// A lengthscale moves by a factor of 2 in a sweep at most. Where many coordinates do not matter, the best common lengthscale
    /// is far too long for the others, and some five sweeps are needed. With many coordinates and few rows the criterion is
    /// overfitted: it falls below the error at new points.
    #[must_use]
    pub fn with_lengthscale_per_dimension(mut self, sweeps: usize) -> Self {
        self.sweeps = sweeps;
        self
    }

    /// Leaves inputs as they are.
    #[must_use]
    pub fn without_standardisation(mut self) -> Self {
        self.standardise = false;
        self
    }

    /// Leaves out the intercept.
    #[must_use]
    pub fn without_intercept(mut self) -> Self {
        self.intercept = false;
        self
    }
}

once!(RidgeSearch::<T>::over, <RidgeSearch<T> as std::fmt::Debug>::fmt);
