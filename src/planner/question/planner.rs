//! [`Planner`]: points, and what is to be planned for them.

use std::borrow::Cow;
use std::sync::OnceLock;

use ndarray::{Array2, ArrayRef2, ArrayRef4};

use super::constraints::Constraints;
use super::goal::{Goal, Loss};
use super::points::PlannedPoints;
use super::stated::StatedRecipe;
use crate::Real;
use crate::apply::attention::TokenScale;
use crate::data::Reservoir;
use crate::error::{Result, check_positive};
use crate::kernel::{Gaussian, Softmax};
use crate::map::{AnyKernel, Recipe};
use crate::once::once;
use crate::planner::costs::{Calibration, Cost, Measure};

/// The number of features unless a budget is stated.
const FEATURES: usize = 256;

/// Chooses a map for your data: the best map, coupling, parameters and number of features, with the error to expect.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::Map;
/// use random_features::planner::Planner;
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
///
/// // x is 300 × 4. The kernel is Gaussian with the median lengthscale.
/// let plan = Planner::of_one_set(&x)?.with_max_features(100).plan()?;
/// println!("{plan}");
/// let best = plan.best()?;
/// assert!(best.loss() < 0.1);
/// let map: Map<f64> = best.recipe.draw(42)?;
///
/// // The fewest features for half of that error.
/// let max_error = 0.5 * best.loss();
/// let plan = Planner::of_one_set(&x)?.with_max_error(max_error)?.plan()?;
/// assert!(plan.best()?.loss() <= max_error);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// A planner combines every map that supports the kernel with every compatible coupling, and fits parameters to the
/// data. It evaluates the errors of each recipe within the budget by closed forms at pairs of points. Some couplings
/// have no closed form. Then the errors of the most promising maps are simulated by draws, at all pairs of a few
/// points. Each is divided by the closed form of the same map with another coupling at these pairs. This ratio, times
/// that closed form at all pairs, is the forecast. A map without any closed form has the errors of its draws alone. The
/// plan ranks recipes by their [`Loss`].
///
/// A plan follows from data, options and seed alone, on any number of threads; a budget of time depends on its
/// [`Calibration`].
///
/// # Cost
/// A plan takes a pass over the points, O(nd), and the evaluation of some hundred recipes, however many points there are: on two
/// cores 3 to 5 s for 512 features of 10,000 points in ℝ⁶⁴, 10 to 15 s in ℝ⁶⁰⁰, and 45 s there with a maximal error. Fewer
/// [couplings](Planner::with_couplings) take less, and a program without optimisation several times as long.
/// [`progress::watch`](crate::progress::watch) shows how far a plan is. Points are taken as they are, not standardised.
#[derive(Clone, Debug)]
#[doc(alias = "choose", alias = "autotune", alias = "model selection")]
#[must_use]
pub struct Planner {
    pub(crate) data: PlannedPoints,
    pub(crate) kernel: AnyKernel,
    /// Whether the kernel is Gaussian with the median lengthscale, which is found when errors are evaluated.
    pub(super) is_of_median: bool,
    pub(crate) goal: Goal,
    pub(crate) loss: Loss,
    pub(crate) constraints: Constraints,
    /// Recipes of the caller, which are ranked among those of the crate.
    pub(crate) stated: Vec<StatedRecipe>,
    pub(crate) calibration: Option<Calibration>,
    /// What was measured, once it was.
    pub(super) measured: OnceLock<Calibration>,
    /// Targets of the points that are kept, for the error of a regression.
    pub(crate) targets: Option<Array2<f64>>,
    /// In what the cost of a recipe that keeps a maximal error is counted.
    pub(super) cheapest: Measure,
    pub(crate) seed: u64,
}

impl Planner {
    /// Plans for kernel values of queries, n × d, with keys, l × d: exp(x·y) unless another kernel is [stated](Planner::with_kernel).
    /// Softmax attention, whose logits are q·k/√d, wants [`of_heads`](Planner::of_heads).
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let points = |n, f: f32| Array2::from_shape_fn((n, 8), |(i, k)| 0.4 * (f * (7 * i + 3 * k) as f32).sin());
    /// # let (queries, keys) = (points(200, 1.1), points(300, 0.7));
    /// let plan = Planner::new(&queries, &keys)?.with_max_features(64).plan()?;
    /// println!("{}", plan.best()?.recipe);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) for fewer than 8 points of a side, [`Shape`](crate::Error::Shape) if the dimensions differ,
    /// [`NotFinite`](crate::Error::NotFinite) with the first row whose squared norm is not finite.
    #[inline(never)]
    pub fn new<T: Real>(queries: &ArrayRef2<T>, keys: &ArrayRef2<T>) -> Result<Self> {
        let (queries, keys) = (read("the queries", queries)?, read("the keys", keys)?);
        Ok(Self::over(PlannedPoints::new(&queries, Some(&keys), size_of::<T>())?))
    }

    /// Plans for kernel values of all pairs of one set of points, n × d: those of the Gaussian kernel with the
    /// [median](Planner::with_gaussian_of_median) lengthscale unless another kernel is [stated](Planner::with_kernel).
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let plan = Planner::of_one_set(&x)?.with_max_features(64).plan()?;
    /// assert!(plan.title.starts_with("gaussian"));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) for fewer than 8 points, [`NotFinite`](crate::Error::NotFinite) with the first row whose squared norm
    /// is not finite. A median of 0 is an error of the [plan](Planner::plan).
    #[inline(never)]
    pub fn of_one_set<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        Ok(Self::over(PlannedPoints::new(&read("the points", x)?, None, size_of::<T>())?))
    }

    /// Plans for points that were read in batches, or by several machines: queries and keys as [`new`](Planner::new), or one set
    /// of points, without `keys`, as [`of_one_set`](Planner::of_one_set).
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::data::Reservoir;
    /// use random_features::planner::Planner;
    /// # let batches = (0..10).map(|batch| {
    /// #     Array2::from_shape_fn((1000, 3), |(i, k)| ((batch + 10 * i) as f32 * [0.3, 0.7, 1.1][k]).sin())
    /// # });
    /// let mut points = Reservoir::new(3)?;
    /// for batch in batches {
    ///     points.update(&batch)?;
    /// }
    /// let planner = Planner::of_reservoirs(&points, None)?;
    /// let plan = planner.with_max_features(200).plan()?;
    /// assert!(plan.best()?.loss() < 0.2);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) for fewer than 8 points of a side, [`Shape`](crate::Error::Shape) if the dimensions differ.
    pub fn of_reservoirs(queries: &Reservoir, keys: Option<&Reservoir>) -> Result<Self> {
        Ok(Self::over(PlannedPoints::new(queries, keys, size_of::<f64>())?))
    }

    /// Plans for softmax attention with logits q·k/√d, one recipe for all heads: queries and keys are batch × heads × length × dim,
    /// as [`Heads`](crate::apply::attention::Heads) has them. The kernel is softmax with ℓ = 1, for the points that
    /// [`Attention`](crate::apply::attention::Attention) makes of them. The loss is the error of attention's output if there are
    /// values, else of its weights.
    ///
    /// ```
    /// # use random_features::ndarray::Array4;
    /// use random_features::planner::Planner;
    /// # let tokens = |f: f32| Array4::from_shape_fn((1, 2, 32, 8), |(_, h, i, k)| (f * (h + 3 * i + 7 * k) as f32).sin());
    /// # let (q, k, v) = (tokens(1.1), tokens(0.7), tokens(0.3));
    /// let plan = Planner::of_heads(&q, &k, Some(&v))?.with_max_features(64).plan()?;
    /// println!("{}", plan.best()?.recipe);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) for fewer than 8 queries or keys, [`Shape`](crate::Error::Shape) if shapes do not fit,
    /// [`NotFinite`](crate::Error::NotFinite) with the first row whose squared norm is not finite, [`Multiple`](crate::Error::Multiple) if heads of
    /// the keys do not divide those of the queries.
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
        Ok(Self::over(data).with_loss(loss))
    }

    fn over(data: PlannedPoints) -> Self {
        let is_of_median = data.one_set;
        Planner {
            data,
            kernel: if is_of_median { Gaussian::default().into() } else { Softmax::default().into() },
            is_of_median,
            goal: Goal::Budget { measure: Measure::Features, most: FEATURES as f64 },
            loss: Loss::default(),
            constraints: Constraints::default(),
            stated: Vec::new(),
            calibration: None,
            measured: OnceLock::new(),
            targets: None,
            cheapest: Measure::Features,
            seed: 0,
        }
    }

    /// This planner with a kernel whose lengthscale is known.
    pub(crate) fn with_known_kernel(&self) -> Result<Cow<'_, Self>> {
        Ok(match self.is_of_median {
            true => Cow::Owned(self.clone().with_gaussian_of_median()?),
            false => Cow::Borrowed(self),
        })
    }

    /// The calibration by which time is counted: the one that was [given](Planner::with_calibration), or else one that is measured
    /// now and kept.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is none for some thousand points.
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

    /// The cost of the features of a point, by any recipe. It is NaN for [`Measure::Nanoseconds`] unless a
    /// [calibration](Planner::with_calibration) was given.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::Positive;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::recipe::Draw;
    /// use random_features::kernel::Softmax;
    /// use random_features::planner::{Measure, Planner};
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let recipe = Positive.recipe(Draw::new(4, 64, Orthogonal), Softmax::default());
    /// // 64 features and a scale, each a number of 8 bytes.
    /// assert_eq!(Planner::of_one_set(&x)?.cost(&recipe, Measure::Bytes), 520.0);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn cost(&self, recipe: &Recipe, measure: Measure) -> f64 {
        Cost::of(recipe, self.data.scalar, self.calibration.as_ref()).in_measure(measure)
    }
}

/// All rows, of which some are kept.
fn read<T: Real>(name: &'static str, x: &ArrayRef2<T>) -> Result<Reservoir> {
    check_positive("the dimension d", x.ncols())?;
    Reservoir::of(x).map_err(|error| error.of_array(name))
}

once!(Planner::new::<T>, Planner::of_one_set::<T>, Planner::of_heads::<T>);
