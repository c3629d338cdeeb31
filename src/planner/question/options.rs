//! [`Planner`]: what is to be planned, and under which constraints.

use std::sync::OnceLock;

use ndarray::{Array2, ArrayRef2, ArrayRef4};

use super::constraints::Constraints;
use super::goal::{Goal, Loss};
use super::lengthscales;
use super::points::PlannedPoints;
use crate::apply::attention::TokenScale;
use crate::data::Reservoir;
use crate::error::{Error, Result, check_finite, check_positive};
use crate::kernel::Gaussian;
use crate::map::{AnyKernel, Recipe};
use crate::once::once;
use crate::planner::costs::{Calibration, Cost, Measure};
use crate::{Real, Targets};

/// The number of features unless a budget is stated.
const FEATURES: usize = 256;

/// Chooses maps for data: from points, a kernel and a budget to a ranked [`Plan`](crate::planner::Plan) of recipes with the errors to expect.
///
/// # Definition
/// Every mechanism that serves the kernel is taken with every coupling that suits it, and with parameters that its page fits to
/// the data. Of each recipe within the budget the errors are evaluated: by closed forms at pairs of points, or, for the most
/// promising without a closed form, by draws at some of them, as a ratio to the closed form of another coupling. Recipes are
/// ranked by [`Loss`].
///
/// A plan follows from data, options and seed alone, on any number of threads; a budget of time depends on its
/// [`Calibration`].
///
/// # Cost
/// A pass over the points, O(nd), and the evaluation of some hundred recipes, whatever their number: on two cores 3 to 5 s for
/// 512 features of 10,000 points in ℝ⁶⁴, 10 to 15 s in ℝ⁶⁰⁰ (45 s for a target). Fewer [couplings](Planner::couplings) take less.
///
/// # Example
/// ```
/// use ndarray::Array2;
/// use random_features::kernel::Gaussian;
/// use random_features::planner::{Loss, Planner};
/// let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let planner = Planner::of_one_set(&x)?.kernel(Gaussian::new(1.0)?);
/// // The error of 100 features, and the features for half of that error.
/// let error = planner.clone().features(100).plan()?.best()?.forecast.gram.value;
/// let enough = planner.clone().target(0.5 * error)?.plan()?;
/// assert!(enough.best()?.forecast.gram.value <= 0.5 * error);
/// // A tenth of the pairs may have larger errors than this, for features that are never negative.
/// let plan = planner.features(100).loss(Loss::RelativeNinety).non_negative().plan()?;
/// println!("{}", plan.best()?.forecast.relative.ninety.value);
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Planner {
    pub(crate) data: PlannedPoints,
    pub(crate) target: AnyKernel,
    pub(crate) goal: Goal,
    pub(crate) loss: Loss,
    pub(crate) constraints: Constraints,
    pub(crate) calibration: Option<Calibration>,
    /// What was measured, once it was.
    measured: OnceLock<Calibration>,
    /// Targets of the points that are kept, for the error of a regression.
    pub(crate) targets: Option<Array2<f64>>,
    /// In what the cost of a target is counted.
    cheapest: Measure,
    pub(crate) seed: u64,
}

impl Planner {
    /// For kernel values of queries, n × d, with keys, l × d, such as weights of attention.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) for fewer than 8 points of a side, [`Shape`](Error::Shape) if the dimensions differ,
    /// [`NotFinite`](Error::NotFinite) with the first row whose squared norm is not finite.
    #[inline(never)]
    pub fn new<T: Real>(queries: &ArrayRef2<T>, keys: &ArrayRef2<T>) -> Result<Self> {
        let (queries, keys) = (read("the queries", queries)?, read("the keys", keys)?);
        Self::over(PlannedPoints::new(&queries, Some(&keys), size_of::<T>())?)
    }

    /// For kernel values of all pairs of one set of points, n × d.
    ///
    /// # Errors
    /// As [`new`](Planner::new).
    #[inline(never)]
    pub fn of_one_set<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        Self::over(PlannedPoints::new(&read("the points", x)?, None, size_of::<T>())?)
    }

    /// For points that were read in batches, or by several machines; those of one set without `keys`.
    ///
    /// ```
    /// use ndarray::Array2;
    /// use random_features::data::Reservoir;
    /// use random_features::kernel::Gaussian;
    /// use random_features::planner::Planner;
    /// let mut points = Reservoir::new(3)?;
    /// for batch in 0..10 {
    ///     points.update(&Array2::from_shape_fn((1000, 3), |(i, k)| ((batch + 10 * i) as f32 * [0.3, 0.7, 1.1][k]).sin()))?;
    /// }
    /// let plan = Planner::of_reservoirs(&points, None)?.kernel(Gaussian::new(0.5)?).features(200).plan()?;
    /// assert!(plan.best()?.forecast.gram.value < 0.2);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Planner::new).
    pub fn of_reservoirs(queries: &Reservoir, keys: Option<&Reservoir>) -> Result<Self> {
        Self::over(PlannedPoints::new(queries, keys, size_of::<f64>())?)
    }

    /// For softmax attention of several heads, with logits q·k/√d: queries and keys, batch × heads × length × dim, as
    /// [`Heads`](crate::apply::attention::Heads) has them. The kernel is softmax with ℓ = 1, for the points that
    /// [`Attention`](crate::apply::attention::Attention) makes of them, and the loss that of its output if there are values, else of
    /// its weights. One recipe for all heads.
    ///
    /// # Errors
    /// As [`new`](Planner::new); [`Multiple`](Error::Multiple) if heads of the keys do not divide those of the queries.
    #[inline(never)]
    pub fn of_heads<T: Real>(
        queries: &ArrayRef4<T>,
        keys: &ArrayRef4<T>,
        values: Option<&ArrayRef4<T>>,
    ) -> Result<Self> {
        let d = queries.dim().3;
        check_positive("the dimension d", d)?;
        let data = PlannedPoints::of_heads([queries, keys], values, TokenScale::of_dim(d).factor)?;
        let loss = if values.is_some() { Loss::AttentionOutput } else { Loss::AttentionWeights };
        Ok(Self::over(data)?.loss(loss))
    }

    fn over(data: PlannedPoints) -> Result<Self> {
        Ok(Planner {
            data,
            target: crate::kernel::Softmax::default().into(),
            goal: Goal::Budget { measure: Measure::Features, most: FEATURES as f64 },
            loss: Loss::default(),
            constraints: Constraints::default(),
            calibration: None,
            measured: OnceLock::new(),
            targets: None,
            cheapest: Measure::Features,
            seed: 0,
        })
    }

    /// The kernel; the softmax kernel with ℓ = 1 unless stated. Errors of parameters come with the [plan](Planner::plan).
    pub fn kernel(self, kernel: impl Into<AnyKernel>) -> Self {
        Planner { target: kernel.into(), ..self }
    }

    /// The Gaussian kernel whose lengthscale is the [median](crate::data::lengthscale::median) of the distances, of all points of both sides.
    ///
    /// # Errors
    /// As [`median`](crate::data::lengthscale::median).
    pub fn gaussian_of_median(self) -> Result<Self> {
        let ell = lengthscales::median(&self.data, &vec![1.0; self.data.dim()], self.seed)?;
        Ok(self.kernel(Gaussian::new(ell)?))
    }

    /// The Gaussian kernel with a lengthscale for each coordinate: its standard deviation times the median distance of points whose
    /// coordinates are divided by theirs. Coordinates that are constant have that of the others' mean.
    ///
    /// # Errors
    /// As [`median`](crate::data::lengthscale::median).
    pub fn gaussian_of_medians(self) -> Result<Self> {
        let deviations = lengthscales::deviations(&self.data)?;
        let ell = lengthscales::median(&self.data, &deviations, self.seed)?;
        Ok(self.kernel(Gaussian::new(deviations.into_iter().map(|s| ell * s).collect::<Vec<_>>())?))
    }

    /// The Gaussian kernel with the lengthscale that a [`RidgeSearch`](crate::apply::RidgeSearch) finds for these targets, one row for each point:
    /// by the log evidence or by cross-validation, as the criterion says. With `sweeps` above 0 a lengthscale for each coordinate.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a target for each point; as [`RidgeSearch::fit`](crate::apply::RidgeSearch::fit).
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn gaussian_for_targets<'a, T: Real>(
        self,
        targets: impl Into<Targets<'a, T>>,
        criterion: crate::apply::Criterion<'_>,
        sweeps: usize,
    ) -> Result<Self> {
        let kept = self.kept_targets(targets.into())?;
        let ell = lengthscales::for_targets(&self.data, &kept, criterion, sweeps, self.seed)?;
        Ok(self.kernel(Gaussian::new(ell)?))
    }

    /// At most so many features of a point; 256 unless a budget is stated.
    pub fn features(self, most: usize) -> Self {
        self.budget(Measure::Features, most as f64)
    }

    /// At most so much for a point.
    pub fn budget(self, measure: Measure, most: f64) -> Self {
        Planner { goal: Goal::Budget { measure, most }, ..self }
    }

    /// The cheapest recipes whose loss is at most `error`, in features: the smallest numbers of frequencies, in whole blocks
    /// of their couplings. Only recipes with closed forms are candidates.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the error is positive and finite.
    pub fn target(self, error: f64) -> Result<Self> {
        self.goal_of(error, None)
    }

    /// As [`target`](Planner::target), for an error of the Gram matrix that one draw keeps with this probability: by Markov's
    /// inequality, 1/(1 − probability) times as many frequencies, or, where features are bounded, by McDiarmid's. A bound: fewer
    /// features may do.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the error is positive and finite and the probability between 0 and 1.
    pub fn target_with_probability(self, error: f64, probability: f64) -> Result<Self> {
        if !(probability > 0.0 && probability < 1.0) {
            let domain = "above 0 and below 1";
            return Err(Error::Parameter { name: "the probability", value: probability, domain });
        }
        self.goal_of(error, Some(probability))
    }

    fn goal_of(self, error: f64, probability: Option<f64>) -> Result<Self> {
        let error = crate::error::checked_positive("the error to reach", error)?;
        let measure = self.cheapest;
        Ok(Planner { goal: Goal::Target { error, probability, measure }, ..self })
    }

    /// Counts the cost of a [target](Planner::target), stated before or after, in another measure than features.
    pub fn cheapest_in(mut self, by: Measure) -> Self {
        self.cheapest = by;
        if let Goal::Target { measure, .. } = &mut self.goal {
            *measure = by;
        }
        self
    }

    /// What to minimise; [`Loss::Gram`] unless stated.
    pub fn loss(self, loss: Loss) -> Self {
        Planner { loss, ..self }
    }

    /// Minimises the error of normalised attention's output with these values, one row for each key.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a value for each key, or these came in [heads](Planner::of_heads), which have their
    /// own; [`NotFinite`](Error::NotFinite) if one is not finite; [`Row`](Error::Row) if keys were read whose rows do not begin at 0.
    #[inline(never)]
    pub fn values<T: Real>(mut self, values: &ArrayRef2<T>) -> Result<Self> {
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
        Ok(self.loss(Loss::AttentionOutput))
    }

    /// Minimises the excess risk of ridge regression with these targets, one row for each point.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not a target for each point, [`NotFinite`](Error::NotFinite) if one is not finite;
    /// [`Row`](Error::Row) if points were read whose rows do not begin at 0.
    pub fn ridge<'a, T: Real>(mut self, targets: impl Into<Targets<'a, T>>) -> Result<Self> {
        self.targets = Some(self.kept_targets(targets.into())?);
        Ok(self.loss(Loss::Ridge))
    }

    /// The targets of the points that are kept.
    #[inline(never)]
    fn kept_targets<T: Real>(&self, targets: Targets<'_, T>) -> Result<Array2<f64>> {
        let targets = targets.view();
        check_finite("the targets", &targets)?;
        self.data.rows_of(0, "the number of targets", &targets)
    }

    /// Only maps whose features, and so whose estimates, are never negative.
    pub fn non_negative(mut self) -> Self {
        self.constraints.non_negative = true;
        self
    }

    /// Only maps with the same features on both sides.
    pub fn symmetric(mut self) -> Self {
        self.constraints.symmetric = true;
        self
    }

    /// Only maps without bias for any points.
    pub fn unbiased(mut self) -> Self {
        self.constraints.unbiased = true;
        self
    }

    /// No couplings by fast transforms.
    pub fn no_structured(mut self) -> Self {
        self.constraints.no_structured = true;
        self
    }

    /// Only these couplings, such as `[Independent.into(), Orthogonal.into()]`; counts, which are always independent, stay.
    pub fn couplings(mut self, couplings: impl IntoIterator<Item = crate::frequency::AnyCoupling>) -> Self {
        self.constraints.couplings = Some(couplings.into_iter().collect());
        self
    }

    /// For features of `T`, whatever the data were: the size of a number and how long work takes follow from it.
    pub fn for_features_of<T: Real>(mut self) -> Self {
        self.data.scalar = size_of::<T>();
        self.measured = OnceLock::new();
        self
    }

    /// The calibration by which time is counted: the one that was given, or else one that is measured now and kept.
    ///
    /// # Errors
    /// As [`Calibration::measure`].
    pub fn calibration(&self) -> Result<Calibration> {
        if let Some(known) = self.calibration.or(self.measured.get().copied()) {
            return Ok(known);
        }
        let measured = match self.data.scalar {
            4 => Calibration::measure::<f32>()?,
            _ => Calibration::measure::<f64>()?,
        };
        Ok(*self.measured.get_or_init(|| measured))
    }

    /// Counts time by this calibration instead of measuring one.
    pub fn calibrated(self, calibration: Calibration) -> Self {
        Planner { calibration: Some(calibration), ..self }
    }

    /// Another seed than 0, for pairs of points and for draws.
    pub fn seed(self, seed: u64) -> Self {
        Planner { seed, ..self }
    }

    /// What the features of a point cost with any recipe; in nanoseconds if there is a [calibration](Planner::calibrated).
    pub fn cost(&self, recipe: &Recipe) -> Cost {
        Cost::of(recipe, self.data.scalar, self.calibration.as_ref())
    }
}

/// All rows, of which some are kept.
fn read<T: Real>(name: &'static str, x: &ArrayRef2<T>) -> Result<Reservoir> {
    check_positive("the dimension d", x.ncols())?;
    Reservoir::of(x).map_err(|error| match error {
        Error::NotFinite { row, .. } if x.row(row).iter().any(|v| !v.is_finite()) => {
            Error::NotFinite { what: name, row }
        }
        other => other,
    })
}

once!(
    Planner::new::<T>,
    Planner::of_one_set::<T>,
    Planner::of_heads::<T>,
    Planner::values::<T>,
    Planner::kept_targets::<T>,
);
