//! The options of a [`Planner`].

use std::sync::OnceLock;

use ndarray::{Array2, ArrayRef2};

use super::goal::{Goal, Loss};
use super::lengthscales;
use super::planner::Planner;
use super::stated::StatedRecipe;
use crate::error::{Error, Result, check_finite, checked_positive};
use crate::frequency::AnyCoupling;
use crate::kernel::Gaussian;
use crate::map::{AnyKernel, Recipe};
use crate::once::once;
use crate::planner::costs::{Calibration, Measure};
use crate::{Real, Targets};

/// # Options: the kernel
impl Planner {
    /// Sets the kernel. Errors of its parameters come with the [plan](Planner::plan).
    pub fn with_kernel(self, kernel: impl Into<AnyKernel>) -> Self {
        Planner { kernel: kernel.into(), is_of_median: false, ..self }
    }

    /// Sets the Gaussian kernel whose lengthscale is the median distance of points, of both sides if there are two.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the median is 0, as it is where most points are equal.
    pub fn with_gaussian_of_median(self) -> Result<Self> {
        let ell = lengthscales::median(&self.data, &vec![1.0; self.data.dim()], self.seed)?;
        Ok(self.with_kernel(Gaussian::new(ell)?))
    }

    /// Sets the Gaussian kernel with a lengthscale for each coordinate: its standard deviation, times the median distance of points
    /// whose coordinates are divided by their standard deviations. A constant coordinate counts with the mean deviation of the others.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the median is 0, as it is where most points are equal.
    pub fn with_gaussian_of_medians(self) -> Result<Self> {
        let deviations = lengthscales::deviations(&self.data)?;
        let ell = lengthscales::median(&self.data, &deviations, self.seed)?;
        Ok(self.with_kernel(Gaussian::new(deviations.into_iter().map(|s| ell * s).collect::<Vec<_>>())?))
    }

    /// Sets the Gaussian kernel with the lengthscale that a [`RidgeSearch`](crate::apply::RidgeSearch) finds for these targets, n
    /// numbers or n × t, by the criterion. With `sweeps` above 0 the search finds a lengthscale for each coordinate.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a target for each point; the errors of
    /// [`RidgeSearch::fit`](crate::apply::RidgeSearch::fit).
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn with_gaussian_for_targets<'a, T: Real>(
        self,
        targets: impl Into<Targets<'a, T>>,
        criterion: crate::apply::Criterion<'_>,
        sweeps: usize,
    ) -> Result<Self> {
        let kept = self.kept_targets(targets.into())?;
        let ell = lengthscales::for_targets(&self.data, &kept, criterion, sweeps, self.seed)?;
        Ok(self.with_kernel(Gaussian::new(ell)?))
    }
}

/// # Options: the budget, or the error to reach
impl Planner {
    /// Limits the number D of features; the default budget is 256 features. [`plan`](Planner::plan) refuses 0.
    pub fn with_max_features(self, most: usize) -> Self {
        self.with_budget(Measure::Features, most as f64)
    }

    /// Limits the cost of a point's features. [`plan`](Planner::plan) refuses a limit that is not positive and finite.
    pub fn with_budget(self, measure: Measure, most: f64) -> Self {
        Planner { goal: Goal::Budget { measure, most }, ..self }
    }

    /// Asks for the cheapest recipes whose loss is at most `error`: the smallest numbers of frequencies, in whole blocks of their
    /// couplings. Candidates are recipes with closed forms and, if they are [asked for](Planner::with_nystroem), Nyström features.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the error is positive and finite.
    pub fn with_max_error(self, error: f64) -> Result<Self> {
        self.reaching(error, None)
    }

    /// Asks for the cheapest recipes of which a single draw has at most this error of the Gram matrix, with this
    /// probability.
    ///
    /// That takes 1/(1 − probability) times as many frequencies as the [mean](Planner::with_max_error) error, by Markov's inequality,
    /// or fewer by McDiarmid's where features are bounded. Both are bounds: fewer features may do.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the error is positive and finite and the probability between 0 and 1.
    pub fn with_max_error_with_probability(self, error: f64, probability: f64) -> Result<Self> {
        if !(probability > 0.0 && probability < 1.0) {
            let domain = "above 0 and below 1";
            return Err(Error::Parameter { name: "the probability", value: probability, domain });
        }
        self.reaching(error, Some(probability))
    }

    fn reaching(self, error: f64, probability: Option<f64>) -> Result<Self> {
        let error = checked_positive("the error to reach", error)?;
        let measure = self.cheapest;
        Ok(Planner { goal: Goal::MaxError { error, probability, measure }, ..self })
    }

    /// Sets the unit of the cost by which recipes that keep a [maximal error](Planner::with_max_error) are compared;
    /// the number of features unless stated.
    pub fn with_cheapest_in(mut self, by: Measure) -> Self {
        self.cheapest = by;
        if let Goal::MaxError { measure, .. } = &mut self.goal {
            *measure = by;
        }
        self
    }
}

/// # Options: the loss
impl Planner {
    /// Sets what the plan minimises; [`Loss::Gram`] unless stated.
    pub fn with_loss(self, loss: Loss) -> Self {
        Planner { loss, ..self }
    }

    /// Minimises the error of attention's output, Σⱼ wᵢⱼ vⱼ, with these values v, one row for each key.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a value for each key, or keys came in [heads](Planner::of_heads), which have their own
    /// values; [`NotFinite`](Error::NotFinite) if a value is not finite; [`Row`](Error::Row) if rows of the keys do not begin at 0.
    #[inline(never)]
    pub fn with_values<T: Real>(mut self, values: &ArrayRef2<T>) -> Result<Self> {
        if self.data.in_heads {
            crate::error::check_size("the number of values beside those of the heads", 0, values.nrows())?;
        }
        check_finite("the values", values)?;
        if values.iter().all(|v| *v == T::zero()) {
            let (name, domain) = ("the largest value", "not 0: outputs of which an error can be a part");
            return Err(Error::Parameter { name, value: 0.0, domain });
        }
        let kept = self.data.rows_of(1, "the number of values", values)?;
        self.data = self.data.with_one_head(Some(&kept));
        Ok(self.with_loss(Loss::AttentionOutput))
    }

    /// Minimises the [excess risk](Loss::Ridge) of ridge regression with these targets, n numbers or n × t.
    ///
    /// ```
    /// # use random_features::ndarray::{Array2, Axis};
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// # let y = x.sum_axis(Axis(1));
    /// let plan = Planner::of_one_set(&x)?.with_ridge_targets(&y)?.plan()?;
    /// println!("excess risk {}", plan.best()?.loss());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a target for each point, [`NotFinite`](Error::NotFinite) if a target is not finite,
    /// [`Row`](Error::Row) if rows of the points do not begin at 0.
    pub fn with_ridge_targets<'a, T: Real>(mut self, targets: impl Into<Targets<'a, T>>) -> Result<Self> {
        self.targets = Some(self.kept_targets(targets.into())?);
        Ok(self.with_loss(Loss::Ridge))
    }

    /// The targets of the points that are kept.
    #[inline(never)]
    fn kept_targets<T: Real>(&self, targets: Targets<'_, T>) -> Result<Array2<f64>> {
        let targets = targets.unweighted(targets.ncols(), "weights of the targets of a plan")?;
        check_finite("the targets", &targets)?;
        self.data.rows_of(0, "the number of targets", &targets)
    }
}

/// # Options: which maps and couplings
impl Planner {
    /// Takes only maps whose features, and so whose estimates, are never negative.
    pub fn only_non_negative(mut self) -> Self {
        self.constraints.non_negative = true;
        self
    }

    /// Takes only symmetric maps: φ = ψ, so that Gram matrices are positive semidefinite.
    pub fn only_symmetric(mut self) -> Self {
        self.constraints.symmetric = true;
        self
    }

    /// Takes only maps without bias, whatever the points.
    pub fn only_unbiased(mut self) -> Self {
        self.constraints.unbiased = true;
        self
    }

    /// Proposes Nyström features of the points, too.
    ///
    /// They often have far smaller errors than random features, but are fitted to these points, biased and not random:
    /// all seeds give one map, whose own [kernel](crate::Map::kernel) is what it estimates. The plan has at most 512 of
    /// them, fitted to all points that it keeps (4,096 of each set unless a [`Reservoir`](crate::data::Reservoir) says
    /// otherwise). Its errors are those at held-out points, with features fitted to half of the points.
    /// [`forecast`](Planner::forecast) and [`measure`](Planner::measure) give the smaller errors at the points of the
    /// fit. A [`RidgeSearch`](crate::apply::RidgeSearch) refuses such a recipe, since it tries other lengthscales.
    ///
    /// Where a bias is [not allowed](Planner::only_unbiased), random features of the rest are added
    /// ([`Nystroem::fit_unbiased`](crate::map::Nystroem::fit_unbiased)), and errors are means over eight draws.
    ///
    /// For two sets of points they are fitted to both together. For a maximal error the plan has about the fewest that keep it, which
    /// takes up to 70 fits of at most 512 features to half of the points, some tens of seconds at worst.
    ///
    /// [`Plan::left_out`](crate::planner::Plan::left_out) gives the reason if a plan has no Nyström features. They are
    /// not tried for losses of attention, several heads, features that must not be negative, costs in time, and a
    /// maximal error with a probability. Otherwise the fit failed, the fewest features exceed the budget, up to 512
    /// features do not reach the error, or random features alone have a smaller error where a bias is not allowed.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let planner = Planner::of_one_set(&x)?.with_max_features(32);
    /// let random = planner.plan()?.best()?.loss();
    /// let plan = planner.with_nystroem().plan()?;
    /// assert_eq!(plan.best()?.map, "Nyström");
    /// assert!(plan.best()?.loss() < 0.5 * random);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn with_nystroem(mut self) -> Self {
        self.constraints.nystroem = true;
        self
    }

    /// Proposes a plain map of your own, too, under this name: a map with your parameters, a coupling of your choice, or a
    /// [`Sketch`](crate::extend::Sketch).
    ///
    /// The plan draws it anew, with as many frequencies as the goal allows. [`Sketch::with_m`](crate::extend::Sketch::with_m) says how a
    /// sketch grows. Its coupling stays, whatever couplings the plan takes. Within a budget, errors without a closed form are simulated.
    /// A recipe for another kernel is biased, and ranked by its error for the plan's kernel.
    ///
    /// [`plan`](Planner::plan) refuses a recipe for another dimension, with several parts, or with frequencies that
    /// were given as numbers. It also refuses a sketch that cannot have any number of terms, and a name that is empty,
    /// taken or longer than 60 letters. A loss of attention refuses recipes for another kernel, and a budget of time
    /// refuses sketches. A draw that fails ends the plan with its error.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::Gerf;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::kernel::Gaussian;
    /// use random_features::planner::Planner;
    /// use random_features::recipe::Draw;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let kernel = Gaussian::new(1.0)?;
    /// let draw = Draw::new(4, 64, Orthogonal);
    /// let own = Gerf::optimal(4, 8.0)?.recipe(draw, kernel.clone());
    /// let planner = Planner::of_one_set(&x)?.with_kernel(kernel);
    /// let plan = planner.with_recipe("my OPRF", own).plan()?;
    /// assert!(plan.choices.iter().any(|choice| choice.map == "my OPRF"));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn with_recipe(mut self, name: impl Into<String>, recipe: Recipe) -> Self {
        self.stated.push(StatedRecipe { name: name.into(), recipe });
        self
    }

    /// Leaves out couplings by fast transforms (Hadamard and Givens), except in [recipes of your
    /// own](Planner::with_recipe).
    pub fn without_structured(mut self) -> Self {
        self.constraints.no_structured = true;
        self
    }

    /// Takes only these couplings, such as `[Independent.into(), Orthogonal.into()]`. Maps of counts, which are always
    /// independent, and [recipes of your own](Planner::with_recipe) are kept.
    pub fn with_couplings(mut self, couplings: impl IntoIterator<Item = AnyCoupling>) -> Self {
        self.constraints.couplings = Some(couplings.into_iter().collect());
        self
    }
}

/// # Options: how costs are counted, and the seed
impl Planner {
    /// Sets the scalar `T` of the features, whatever the scalar of the data: bytes and times are counted for it.
    pub fn with_scalar<T: Real>(mut self) -> Self {
        self.data.scalar = size_of::<T>();
        self.measured = OnceLock::new();
        self
    }

    /// Counts time by this calibration instead of measuring one.
    pub fn with_calibration(self, calibration: Calibration) -> Self {
        Planner { calibration: Some(calibration), ..self }
    }

    /// Sets the seed, for pairs of points and for draws; 0 unless stated.
    pub fn with_seed(self, seed: u64) -> Self {
        Planner { seed, ..self }
    }
}

once!(Planner::with_values::<T>, Planner::kept_targets::<T>);
