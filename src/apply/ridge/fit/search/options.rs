//! [`RidgeSearch`]: the search for a ridge regression of data in memory.

use std::sync::Arc;

use super::super::Criterion;
use super::errors::LambdaSharing;
use crate::Real;
use crate::error::Result;
use crate::frequency::{Frequencies, Orthogonal};
use crate::kernel::Lengthscale;
use crate::map::{Map, Recipe, Trigonometric};
use crate::once::once;

/// Fits a ridge regression to data in memory, and searches for its lengthscale, number of frequencies and λ. Approximate: kernels
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
/// # What a search does
/// 1. Inputs are standardised, unless they are sparse.
/// 2. A [number of rows](RidgeSearch::with_rows) is drawn at random. For each lengthscale of a grid and each number of
///    frequencies, a regression is fitted to these rows, and its [criterion](Criterion) is computed for each λ of a
///    grid. All lengthscales share one draw of m frequencies, and a smaller number of frequencies takes the leading
///    whole blocks of this draw. Differences between errors are thus not due to different draws. If some maps predict
///    better than the mean of the targets by a margin, the best of these is chosen, even if another map has a smaller
///    error ([`RidgeFit::best`](super::RidgeFit::best)). Each of several targets gets its own λ
///    ([`with_lambda_per_target`](RidgeSearch::with_lambda_per_target)); all classes of labels share one λ.
/// 3. With [`with_lengthscale_per_dimension`](RidgeSearch::with_lengthscale_per_dimension), each coordinate gets its own lengthscale,
///    beginning with the best lengthscales of step 2.
/// 4. The best map is fitted to all rows, and λ is chosen again for this fit. Left-out rows and groups are those of the
///    search, and each is predicted by the regression on all other rows of the data. With folds, blocks or a held-out
///    share, the model keeps the λ that the best map had in the search, raised where rounding requires it. Rows that
///    you [hold out](Criterion::held_out) are not in the model; [`into_statistics`](super::RidgeFit::into_statistics)
///    gives sums to which they can be added.
///
/// The errors that a search prints are mean squared errors, summed over the targets, in (units of the target)². Their
/// square roots are in units of the target. With the log evidence as criterion, the numbers are nats.
///
/// # Default grids
/// The number of rows is the larger of 4096 and 4 D. The grid of λ is
/// [`RidgeSpectrum::lambdas`](super::super::RidgeSpectrum::lambdas). If its largest λ is the best, larger ones are
/// tried too, up to 10⁴ times the largest eigenvalue. Lengthscales are ℓ₀·2^{k/2} with whole numbers k and the
/// [median](crate::data::lengthscale::median) distance ℓ₀ of points. They are tried in this order:
///
/// 1. k = −4 … 4 are tried. Then a spectral start is tried: lengthscales ½/ω, 1/ω and 2/ω for the frequencies ω of at
///    most three waves. Such a wave is a sinusoid along one coordinate that explains more of a target's variance than
///    noise would, and its 1/ω lies outside of the lengthscales that were tried first. No wave is faster than π divided
///    by the least difference between values of its coordinate, and a coordinate of two values has none.
/// 2. While the best lengthscale is the shortest one tried, a shorter one is tried, and the step in k doubles each
///    time. Longer lengthscales are tried in the same way.
/// 3. The gaps in k on both sides of the best lengthscale are halved until no whole k is left in them.
///
/// k stays between −24 and 20, and steps 2 and 3 try at most 16 maps.
/// [`RidgeWarning::Lengthscale`](crate::apply::RidgeWarning::Lengthscale) says whether the best lengthscale is the shortest or
/// the longest that was tried. Grids that are given are not extended.
///
/// [`progress::watch`](crate::progress::watch) shows each map that was tried, and can stop a search.
///
/// # Cost
/// A search takes O(r D² + D³) for each map with r rows, in parallel over maps, and O(n D²) at the end. Each thread holds a map,
/// its sums and its spectrum ([`RidgeStatistics::bytes`](crate::apply::RidgeStatistics::bytes)). A map holds its own copy of the
/// frequencies, divided by its lengthscale and rounded to `T`. The draw itself exists once for each number of frequencies.
///
/// # Maps that fail
/// If a map of the grid cannot be fitted, for example because sums overflow, the search goes on with the others, and
/// [`RidgeWarning::Failed`](crate::apply::RidgeWarning::Failed) names the map. The search fails if no map can be
/// fitted. There is no warning for maps that fail beyond the first lengthscales of the default grid, or in a sweep over
/// the coordinates.
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
    /// How λ are chosen; `None` for the default, which is one for each target, or one for all classes.
    pub(super) share: Option<LambdaSharing>,
}

/// A function or recipe that makes the maps of a search.
pub(super) enum Maps<'a, T: Real> {
    /// A function of a lengthscale alone.
    Of(Box<dyn Fn(Lengthscale) -> Result<Map<T>> + Send + Sync + 'a>),
    /// A recipe whose lengthscale varies.
    Recipe(Box<Recipe>),
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

    /// A search over the maps of any mechanism. `make` gives the map for frequencies and a lengthscale, such as
    /// `|omega, ell| Trigonometric.gaussian(omega, ell)`. `make` gets either all frequencies, without a copy, or the
    /// leading ones, which are copied once for each number of frequencies.
    pub fn new(
        omega: impl Into<Arc<Frequencies>>,
        make: impl Fn(Arc<Frequencies>, Lengthscale) -> Result<Map<T>> + Send + Sync + 'a,
    ) -> Self {
        Self::over(Maps::On(omega.into(), Box::new(make)))
    }

    /// A search over the maps that `make` gives for a lengthscale. Use it for maps that have several draws or none.
    pub fn of(make: impl Fn(Lengthscale) -> Result<Map<T>> + Send + Sync + 'a) -> Self {
        Self::over(Maps::Of(Box::new(make)))
    }

    /// A search over the lengthscales of a recipe, such as the best recipe of a plan. All kernels in it get the lengthscale that
    /// is tried. Frequencies that are not drawn yet are drawn once, from the seed.
    ///
    /// ```
    /// # #[cfg(feature = "planner")] {
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// let x =
    ///     Array2::from_shape_fn((300, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let y = x.column(0).mapv(f64::cos);
    /// let plan = Planner::of_one_set(&x)?.with_max_features(100).plan()?;
    /// let search = RidgeSearch::of_recipe(&plan.best()?.recipe, 7)?;
    /// let fit = search.fit(&x, &y)?;
    /// assert!(fit.error() < 0.1 * fit.best().mean_error);
    /// # }
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Recipe::drawn`]; [`Unsupported`](crate::Error::Unsupported) if a kernel of the recipe has no lengthscale, or
    /// kernels have different ones; [`Unsupported`](crate::Error::Unsupported) for Nyström features, which serve one lengthscale alone.
    pub fn of_recipe(recipe: &Recipe, seed: u64) -> Result<Self> {
        let recipe = recipe.drawn(seed)?;
        // A kernel without a lengthscale has the lengthscale 1.
        recipe.with_lengthscale(&Lengthscale::from(2.0))?.check()?;
        Ok(Self::over(Maps::Recipe(Box::new(recipe))))
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
            share: None,
        }
    }

    /// Sets the lengthscales to try, for standardised inputs: numbers, or vectors with a number for each dimension.
    /// [`fit`](RidgeSearch::fit) refuses an empty list, vectors of another length than d, and numbers that are not
    /// positive or whose squares overflow or underflow.
    #[must_use]
    pub fn with_lengthscales<L: Into<Lengthscale>>(
        mut self,
        lengthscales: impl IntoIterator<Item = L>,
    ) -> Self {
        self.lengthscales = Some(lengthscales.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the λ to try. Each map is tried only with those λ that are above the rounding error of its sums, which also
    /// bounds the [default grid](super::super::RidgeSpectrum::lambdas). [`fit`](RidgeSearch::fit) refuses an empty
    /// list, and numbers that are negative or not finite.
    #[must_use]
    pub fn with_lambdas(mut self, lambdas: impl IntoIterator<Item = f64>) -> Self {
        self.lambdas = Some(lambdas.into_iter().collect());
        self
    }

    /// Sets the numbers of frequencies to try. Each is rounded up to whole blocks of the draw and is at most m; by default only m
    /// is tried. The option is for a search that was made from frequencies. [`fit`](RidgeSearch::fit) refuses an empty list and 0.
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

    /// Sets the maximum number of rows that the search reads, drawn at random; `usize::MAX` reads all.
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

    /// Gives each coordinate its own lengthscale, in this number of sweeps over the coordinates. A sweep multiplies or divides
    /// each lengthscale by a factor where that lowers the criterion. The factor is 2 at first; after a sweep that changed
    /// nothing, it is replaced by its square root. A sweep tries 2 d more maps.
    ///
    /// Sweeps begin with the best lengthscales of the default grid, which here tries 2^{k/2} g s_l for coordinate l.
    /// s_l is the median of |x_il − x_jl| over pairs of points (of the non-zero values if that median is 0), and g is
    /// the median distance of two points whose coordinates are divided by s_l. The first sweep also tries ½/ω, 1/ω and
    /// 2/ω for the frequency ω of a wave along the coordinate that explains more of a target than noise would.
    ///
    /// Apart from these waves, a lengthscale changes by a factor of at most 2 in a sweep. Where many coordinates do not matter,
    /// the best common lengthscale is far too long for the others, and about five sweeps are needed. With many coordinates and
    /// few rows the criterion is overfitted: it becomes less than the error at new points.
    #[must_use]
    pub fn with_lengthscale_per_dimension(mut self, sweeps: usize) -> Self {
        self.sweeps = sweeps;
        self
    }

    /// Gives each target its own λ: the λ with the least error of this target. This is the default for numbers. With
    /// the evidence, maps are compared by the sum of log evidences. With other criteria they are compared by Σ
    /// ln(error/variance) over the targets that vary, which does not change with their units.
    ///
    /// With labels, the predictions of all classes then no longer add up to 1.
    ///
    /// ```
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
    /// // A wave, and noise that is a thousand times as large.
    /// let y = Array2::from_shape_fn((200, 2), |(i, j)| match j {
    ///     0 => x[[i, 0]].sin(),
    ///     _ => 1e3 * ((i * i) as f64).sin(),
    /// });
    /// let search = RidgeSearch::gaussian(1, 64, 7)?.with_lambda_per_target();
    /// let own = search.fit(&x, &y)?;
    /// assert!(own.lambdas()[0] < 1e-6 * own.lambdas()[1]);
    /// let common = search.without_lambda_per_target().fit(&x, &y)?;
    /// assert_eq!(common.lambdas()[0], common.lambdas()[1]);
    /// let error = |fit: random_features::apply::RidgeFit<f64>| {
    ///     let off = fit.model().predict(&x)? - &y;
    ///     Ok::<f64, random_features::Error>(off.column(0).mapv(f64::abs).sum())
    /// };
    /// assert!(error(own)? < 0.1 * error(common)?);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[must_use]
    pub fn with_lambda_per_target(mut self) -> Self {
        self.share = Some(LambdaSharing::PerTarget);
        self
    }

    /// Takes one λ for all targets: the λ with the least sum of their errors. This is the default for labels, whose
    /// predictions then add up to 1 over the classes.
    #[must_use]
    pub fn without_lambda_per_target(mut self) -> Self {
        self.share = Some(LambdaSharing::Common);
        self
    }

    /// Leaves out the standardisation of inputs.
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
