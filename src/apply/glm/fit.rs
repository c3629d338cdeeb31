//! [`GlmFit`]: what a fit has found.

use std::fmt;

use super::descent::Descent;
use super::few_rows::{FEW_FOR_FIT, FewRows};
use super::response::Given;
use super::{Curvature, Glm, GlmLoss, GlmSums, Response};
use crate::apply::RidgeWarning;
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size, checked_positive};
use crate::once::once;
use crate::reduce::{GramIntake, check_points};
use crate::{Points, Real, Targets};

/// The largest difference of sums over equal rows, relative to the sum of magnitudes.
const TOLERANCE: f64 = 1e-9;

/// The result of a fit or a search: the model, its λ, and the errors by which λ was chosen.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::Glm;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::Array2;
/// let x = Array2::from_shape_fn((300, 1), |(i, _)| i as f64 / 75.0);
/// // Counts with the rate e^(x/2).
/// let y = x.column(0).mapv(|x| ((x / 2.0).exp() + (40.0 * x).sin()).round());
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 32, 1)?, 2.0)?;
/// let fit = Glm::poisson(map)?.fit(&x, &y, 0.1)?.with_posterior(&x, &y)?;
/// let rates = fit.model().rates(&x)?;
/// assert!((rates[150] / 1f64.exp() - 1.0).abs() < 0.3);
/// assert!(fit.log_evidence()?.is_finite());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GlmFit<T: Real> {
    model: Glm<T>,
    lambda: f64,
    loss: f64,
    /// Σ a.
    weight: f64,
    passes: usize,
    pub(super) errors: Vec<(f64, f64)>,
    warnings: Vec<RidgeWarning>,
    pub(super) curvature: Option<Curvature>,
}

impl<T: Real> Glm<T> {
    /// Fits the model for one λ to rows in memory: points `x`, n × d, with their targets, which are labels or numbers, with
    /// weights or without. The iteration begins at this model.
    ///
    /// Two classes, counts and the hinge are fitted by Newton's method, in about 4 to 17 steps of O(n D²). From 2048
    /// rows on, second derivatives serve several steps of O(n D), corrected by the changes of the gradient (L-BFGS). If
    /// there are many rows, these derivatives are those of a sample. The penalised loss is then above its minimum by
    /// some 10⁻¹⁴ of its value or, for counts, of Σ a (y + e^η).
    ///
    /// Several classes are fitted by Newton's method for K (D + 1) ≤ 2048. Beyond, they are fitted by conjugate gradients with
    /// Böhning's bound as preconditioner, in about 45 to 250 passes of O(n D K).
    ///
    /// If D ≥ 8n and no weight is 0, features are replaced by n coordinates with the same inner products. This takes O(n² D) time
    /// and 60 n D bytes, and n takes the place of D in the other figures. Results have the same bits on any number of threads.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if λ is not positive and finite (without a penalty, classes that can be separated
    /// have no minimum), [`Singular`](crate::Error::Singular) if λ and all products of weights and squared features are below 1e-271,
    /// which sums do not hold, [`NoData`](crate::Error::NoData) without rows of positive weight,
    /// [`Factorisation`](crate::Error::Factorisation) if the iteration does not converge,
    /// [`Memory`](crate::Error::Memory) if there is none for what it keeps, and the errors of
    /// [`GlmSums::update`](super::GlmSums::update).
    pub fn fit<'a, 't>(
        &self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
        lambda: f64,
    ) -> Result<GlmFit<T>> {
        self.fit_rows(x.into().view(), &targets.into(), lambda)
    }

    #[inline(never)]
    fn fit_rows(&self, x: PointsView<'_, T>, targets: &Targets<'_, T>, lambda: f64) -> Result<GlmFit<T>> {
        checked_positive("λ", lambda)?;
        let (model, response) = self.begin(x, targets)?;
        let Some(response) = response else {
            return Ok(GlmFit::new((model, lambda, 0.0), 0.0, 0));
        };
        let warning = model.scale_warning(x);
        let fit = match FewRows::of(&model, x, &response, FEW_FOR_FIT)? {
            Some(few) => {
                let fit = few.model.clone().fit_response(few.coordinates.view().into(), &response, lambda)?;
                let found = few.lifted(&model, fit.model());
                fit.with_model(found)
            }
            None => model.fit_response(x, &response, lambda)?,
        };
        Ok(fit.with_warnings(warning))
    }

    /// Fits a model to rows in memory.
    fn fit_response(self, x: PointsView<'_, T>, response: &Response, lambda: f64) -> Result<GlmFit<T>> {
        let mut descent = Descent::at(self, x, response)?;
        descent.run_from_sample(lambda)?;
        Ok(GlmFit::of_descent(descent, lambda))
    }

    /// The model at which a fit begins, and the response; no response if only one class occurs.
    pub(super) fn begin(
        &self,
        x: PointsView<'_, T>,
        targets: &Targets<'_, T>,
    ) -> Result<(Glm<T>, Option<Response>)> {
        check_size("the number of columns of x", self.map().dim(), x.ncols())?;
        check_points(x)?;
        let given = Given::new(self, targets, x.nrows())?;
        let present = given.present(self)?;
        let model = if present == self.present { self.clone() } else { self.clone().of_classes(present) };
        if model.is_certain() {
            return Ok((model, None));
        }
        let response = given.response(&model)?;
        Ok((model.with_start(&response), Some(response)))
    }

    /// Warns if points are badly scaled for the map's kernel; never if they are standardised.
    pub(super) fn scale_warning(&self, x: PointsView<'_, T>) -> Option<RidgeWarning> {
        GramIntake::scale_warning_of(self.map(), self.standardisation(), x)
    }
}

impl<T: Real> GlmFit<T> {
    pub(super) fn new((model, lambda, loss): (Glm<T>, f64, f64), weight: f64, passes: usize) -> Self {
        let (errors, warnings) = (Vec::new(), Vec::new());
        GlmFit { model, lambda, loss, weight, passes, errors, warnings, curvature: None }
    }

    pub(super) fn of_descent(descent: Descent<'_, '_, T>, lambda: f64) -> Self {
        let Descent { model, response, eta, passes, .. } = descent;
        let loss = model.loss.total(&eta, response) + model.penalty(lambda);
        GlmFit::new((model, lambda, loss), response.weights.sum(), passes)
    }

    pub(super) fn with_curvature(self, curvature: Curvature) -> Self {
        GlmFit { curvature: Some(curvature), ..self }
    }

    /// The fit with a model of other features, without a posterior.
    pub(super) fn with_model<U: Real>(self, model: Glm<U>) -> GlmFit<U> {
        let GlmFit { lambda, loss, weight, passes, errors, warnings, .. } = self;
        GlmFit { model, lambda, loss, weight, passes, errors, warnings, curvature: None }
    }

    pub(super) fn with_errors(self, errors: Vec<(f64, f64)>) -> Self {
        GlmFit { errors, ..self }
    }

    pub(super) fn with_warnings(self, warnings: impl IntoIterator<Item = RidgeWarning>) -> Self {
        GlmFit { warnings: warnings.into_iter().collect(), ..self }
    }

    /// Reads the training rows once more for Laplace's approximation: [`log_evidence`](GlmFit::log_evidence),
    /// [`variances`](GlmFit::variances) and [`mean_probabilities`](GlmFit::mean_probabilities).
    ///
    /// The rows are checked by Σ a and by their loss at the model.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if the rows are not those of the fit, and the errors of
    /// [`GlmSums::fit`](super::GlmSums::fit).
    pub fn with_posterior<'a, 't>(
        self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<Self> {
        let mut sums = GlmSums::at(&self.model)?;
        sums.update(x, targets)?;
        self.with_sums(&sums)
    }

    #[inline(never)]
    fn with_sums(self, sums: &GlmSums<T>) -> Result<Self> {
        let (loss, [weight, total]) = (sums.loss(self.lambda)?, sums.totals());
        // Losses of counts have any sign, and may cancel.
        let counts = if self.model.loss == GlmLoss::Poisson { total } else { 0.0 };
        let tolerance = TOLERANCE.max(64.0 * T::epsilon().widen()).max(sums.rows() as f64 * f64::EPSILON);
        let alike = |name: &'static str, value: f64, known: f64, size: f64| {
            let is_near = (value - known).abs() <= tolerance * size;
            let domain = "its value over the rows of the fit, whose posterior is asked for";
            if is_near { Ok(()) } else { Err(Error::Parameter { name, value, domain }) }
        };
        alike("the sum of the weights", weight, self.weight, self.weight)?;
        alike("the penalised loss", loss, self.loss, self.loss.abs() + counts)?;
        let GlmFit { passes, errors, warnings, lambda, .. } = self;
        Ok(GlmFit { passes: passes + 1, errors, warnings, ..sums.fit(lambda)? })
    }

    /// The model.
    pub fn model(&self) -> &Glm<T> {
        &self.model
    }

    /// Returns the model and drops the rest.
    pub fn into_model(self) -> Glm<T> {
        self.model
    }

    /// The penalty λ of the fit.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// The penalised loss at the minimum, Σ a loss(y, η) + ½λ‖β‖².
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// The number of passes over all rows, or over their coordinates where these take the place of features.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Each λ that a search has tried, in falling order, with its error; empty after a fit. An infinite error means that rounding
    /// hides it.
    pub fn errors(&self) -> &[(f64, f64)] {
        &self.errors
    }

    /// The reasons why the model may be worse than it looks; empty if there are none.
    ///
    /// - Inputs that are not standardised are badly scaled for the map's kernel: one coordinate has more than 100 times the range of
    ///   another, or all ranges are below 0.01 or above 1000 lengthscales.
    /// - After a search by left-out rows, [`RidgeWarning::Repeated`]: rows repeat earlier ones, so that the errors are too small.
    pub fn warnings(&self) -> &[RidgeWarning] {
        &self.warnings
    }
}

impl<T: Real> fmt::Display for GlmFit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "λ = {:.3e}, loss {:.6} in {} passes", self.lambda, self.loss, self.passes)?;
        self.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

once!(Glm::<T>::fit_rows, GlmFit::<T>::with_sums);
