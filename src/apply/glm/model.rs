//! [`Glm`]: a generalised linear model on features.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use super::{GlmLoss, Response, Ridge, StandardisedMap, Step};
use crate::data::standardisation::Standardisation;
use crate::error::{Error, MAPS_DIFFER, Result, STANDARDISATIONS_DIFFER, check_alike, check_size};
use crate::labels::check_classes;
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::GramIntake;
use crate::{Points, Real};

/// The largest number of weights and intercepts of several classes for which second derivatives are computed.
const LARGEST: usize = 2048;

/// Predicts classes with their probabilities, or counts, from features: logistic regression, Poisson regression and the squared
/// hinge of support vector machines. Approximate: the kernel is the map's estimate.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::Glm;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, arr2};
/// let x = Array2::from_shape_fn((300, 1), |(i, _)| i as f64 / 75.0 - 2.0);
/// // Class 1 is likely beyond ±1.
/// let labels: Vec<usize> = (0..300)
///     .map(|i| usize::from(x[[i, 0]].abs() + 0.3 * (9.0 * i as f64).sin() > 1.0))
///     .collect();
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 64, 1)?, 1.0)?;
/// let fit = Glm::logistic(map, 2)?.search(&x, &labels)?;
/// let p = fit.model().probabilities(&arr2(&[[-1.9], [0.0]]))?;
/// assert!(p[[0, 1]] > 0.9 && p[[1, 1]] < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With decision values η(x) = β·φ(x) + b, the model minimises Σ a loss(y, η) + ½λ‖β‖² over β and b. The weight a of a row says
/// how often the row counts. The intercept b is not penalised. λ is 1/C for scikit-learn's C.
///
/// | constructor | loss | targets |
/// |---|---|---|
/// | [`logistic`](Glm::logistic), two classes | ln(1 + e^η) − y η | labels, or numbers y from 0 to 1 |
/// | [`logistic`](Glm::logistic), more | ln Σ e^(η_k) − η_y | labels, or rows of probabilities |
/// | [`poisson`](Glm::poisson) | e^η − y η | numbers y ≥ 0, or whole numbers as counts |
/// | [`squared_hinge`](Glm::squared_hinge) | max(0, 1 − y η)², y = ±1 | labels 0 and 1 |
///
/// Only classes that occur in training are in the model; others have probability 0. With two such classes, η is the logarithm of
/// the odds of the larger label. With one, its probability is 1. For a Poisson model with exposures E, give y/E as targets and E
/// as weights: this has the same minimum, and e^η is the rate for an exposure of 1.
///
/// A fit begins at the model for which it is called; a new model has β = 0. [`fit`](Glm::fit) takes λ, and
/// [`search`](Glm::search) chooses it. [`GlmSums`](super::GlmSums) fit rows on several machines.
///
/// A model takes its lengthscale from the map, and inputs as they are. Inputs whose ranges are far from the lengthscale, such as
/// times in seconds since 1970, leave nothing to be learnt; [`GlmFit::warnings`](super::GlmFit::warnings) says so. Fit a
/// [`RidgeSearch`](crate::apply::RidgeSearch) to the labels or counts, which standardises inputs and chooses a lengthscale.
/// `Glm::logistic(&fit, 2)` takes both from its fit.
///
/// # References
/// C. E. Rasmussen, C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, chapter 3; D. Böhning, *Multinomial Logistic
/// Regression Algorithm*, Annals of the Institute of Statistical Mathematics 44, 1992.
#[doc(alias = "LogisticRegression")]
#[doc(alias = "PoissonRegressor")]
#[doc(alias = "LinearSVC")]
#[doc(alias = "generalised linear model")]
#[derive(Clone, Debug)]
pub struct Glm<T: Real> {
    /// η as linear functions of features, with weights k × D for k decision values.
    pub(super) linear: Ridge<T>,
    pub(super) loss: GlmLoss,
    pub(super) intercept: bool,
    /// The number of classes; 0 for counts.
    pub(super) classes: usize,
    /// The classes that occur in training, ascending.
    pub(super) present: Vec<usize>,
}

impl<T: Real> Glm<T> {
    /// A logistic regression of this number of classes: binomial for two, multinomial (softmax) for more. The map may be that of a
    /// [`RidgeFit`](crate::apply::RidgeFit), with its standardisation: [`StandardisedMap`].
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) for fewer than two classes, or if sums of products of the features cannot be addressed;
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric; [`Memory`](Error::Memory) if the weights do not fit in memory.
    #[doc(alias = "softmax")]
    pub fn logistic(map: impl Into<StandardisedMap<T>>, classes: usize) -> Result<Self> {
        check_classes(classes)?;
        Self::new(map.into(), GlmLoss::Logistic, classes)
    }

    /// A regression of counts y ≥ 0 whose expected value is e^η. To choose a lengthscale, fit a
    /// [`RidgeSearch`](crate::apply::RidgeSearch) to the counts as `f32` or `f64`, or to their square roots if rates differ much, and
    /// give its fit.
    ///
    /// # Errors
    /// The errors of [`logistic`](Glm::logistic).
    pub fn poisson(map: impl Into<StandardisedMap<T>>) -> Result<Self> {
        Self::new(map.into(), GlmLoss::Poisson, 0)
    }

    /// A support vector machine of two classes with the squared hinge. It has no probabilities.
    ///
    /// # Errors
    /// The errors of [`logistic`](Glm::logistic).
    #[doc(alias = "SVM")]
    pub fn squared_hinge(map: impl Into<StandardisedMap<T>>) -> Result<Self> {
        Self::new(map.into(), GlmLoss::SquaredHinge, 2)
    }

    #[inline(never)]
    fn new(map: StandardisedMap<T>, loss: GlmLoss, classes: usize) -> Result<Self> {
        let StandardisedMap { map, inputs } = map;
        GramIntake::check(&map, classes.max(1))?;
        check_memory("weights of classes", classes, size_of::<f64>().saturating_mul(map.feature_dim() + 2))?;
        let present: Vec<usize> = (0..classes).collect();
        let zero = Ridge::new(map, inputs, Array2::zeros((0, 0)), Array1::zeros(0));
        let model = Glm { linear: zero, loss, intercept: true, classes, present: Vec::new() };
        Ok(model.of_classes(present))
    }

    /// Sets how inputs are centred and scaled before the map is applied. β becomes 0.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `inputs` is for points of another dimension.
    #[inline(never)]
    pub fn with_standardisation(self, inputs: Standardisation) -> Result<Self> {
        check_size("the dimension of the standardisation", self.map().dim(), inputs.centre().len())?;
        let linear = Ridge { inputs: Some(inputs), ..self.linear };
        let present = self.present.clone();
        Ok(Glm { linear, ..self }.of_classes(present))
    }

    /// Leaves out the intercept: η = β·φ(x). β becomes 0.
    #[must_use]
    pub fn without_intercept(self) -> Self {
        let present = self.present.clone();
        Glm { intercept: false, ..self }.of_classes(present)
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        self.linear.map()
    }

    /// Rejects a model of another kind, whatever the weights of both.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) with what differs.
    pub(super) fn check_kind(&self, other: &Self) -> Result<()> {
        check_alike([
            (self.map().identity() != other.map().identity(), MAPS_DIFFER),
            (self.standardisation() != other.standardisation(), STANDARDISATIONS_DIFFER),
            (self.loss != other.loss, "their losses differ"),
            (self.intercept != other.intercept, "only one of them has an intercept"),
            ((self.classes, &self.present) != (other.classes, &other.present), "their classes differ"),
        ])
    }

    /// The centring and scaling of inputs, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.linear.standardisation()
    }

    /// The weights β, k × D: one row for two classes or counts, otherwise a row for each of [`classes`](Glm::classes).
    pub fn weights(&self) -> ArrayView2<'_, f64> {
        self.linear.weights()
    }

    /// The intercepts b, k numbers. For three classes or more they add up to 0.
    pub fn intercepts(&self) -> ArrayView1<'_, f64> {
        self.linear.intercepts()
    }

    /// The classes that are in the model, ascending: all classes with rows in training. Empty for counts.
    pub fn classes(&self) -> &[usize] {
        &self.present
    }

    /// The decision values η at the rows of `x`, n × k for `x` of n × d. A row that is not finite gives NaN.
    ///
    /// # Errors
    /// The errors of [`Ridge::predict`].
    #[doc(alias = "decision_function")]
    pub fn scores<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.linear.predict(x)
    }

    /// k, the number of decision values.
    pub(super) fn values(&self) -> usize {
        self.linear.intercepts.len()
    }

    /// Whether second derivatives are too large to be computed: several classes with K (D + 1) above 2048.
    pub(super) fn is_large(&self) -> bool {
        self.is_large_for(self.map().feature_dim())
    }

    /// Whether second derivatives would be too large for this number of features.
    pub(super) fn is_large_for(&self, width: usize) -> bool {
        self.values() > 1 && self.values().saturating_mul(width.saturating_add(1)) > LARGEST
    }

    /// Empty sums over rows, with `values` targets.
    pub(super) fn intake(&self, values: usize) -> Result<GramIntake<T>> {
        let intake = GramIntake::new(self.map().clone(), values)?;
        match self.standardisation() {
            Some(inputs) => intake.with_standardisation(inputs.clone()),
            None => Ok(intake),
        }
    }

    /// Whether only one class is in the model, so that its probability is 1.
    pub(super) fn is_certain(&self) -> bool {
        self.classes > 0 && self.present.len() < 2
    }

    /// The model of these classes with β = 0.
    pub(super) fn of_classes(self, present: Vec<usize>) -> Self {
        let values = if present.len() > 2 { present.len() } else { 1 };
        let zero = Step::zeros(values, self.map().feature_dim());
        Glm { present, ..self }.with_parameters(zero)
    }

    /// The model with these weights and intercepts.
    pub(super) fn with_parameters(self, Step { weights, intercepts }: Step) -> Self {
        let linear = Ridge { weights: weights.into_shared(), intercepts, ..self.linear };
        Glm { linear, ..self }
    }

    /// The model of other features of the same rows, with these weights and intercepts.
    pub(super) fn on<U: Real>(&self, map: Map<U>, parameters: Step) -> Glm<U> {
        let zero = Ridge::new(map, None, Array2::zeros((0, 0)), Array1::zeros(0));
        let Glm { loss, intercept, classes, ref present, .. } = *self;
        Glm { linear: zero, loss, intercept, classes, present: present.clone() }.with_parameters(parameters)
    }

    /// The weights and intercepts.
    pub(super) fn parameters(&self) -> Step {
        Step { weights: self.linear.weights.to_owned(), intercepts: self.linear.intercepts.clone() }
    }

    /// The model at which a fit begins: for counts with β = 0 and b = 0, b becomes ln ȳ.
    pub(super) fn with_start(self, response: &Response) -> Self {
        let mut start = self.parameters();
        let is_new = start.weights.iter().chain(&start.intercepts).all(|v| *v == 0.0);
        if self.loss == GlmLoss::Poisson && self.intercept && is_new {
            let total = response.total();
            // If all counts are 0, b has no minimum.
            let total = if total > 0.0 { total } else { response.half_a_count() };
            start.intercepts[0] = (total / response.weights.sum()).ln();
        }
        self.with_parameters(start)
    }

    /// ½λ‖β‖².
    pub(super) fn penalty(&self, lambda: f64) -> f64 {
        0.5 * lambda * self.linear.weights.iter().map(|weight| weight * weight).sum::<f64>()
    }

    /// Rejects models without probabilities of classes.
    pub(super) fn check_classes(&self, what: &'static str) -> Result<()> {
        if self.classes > 0 { Ok(()) } else { Err(Error::Unsupported { what }) }
    }
}

once!(Glm::<T>::new, Glm::<T>::with_standardisation);
