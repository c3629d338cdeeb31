//! [`GlmSums`]: the sums over rows for one step of Newton's method.

use std::ops::Range;

use ndarray::{Array1, Array2, Axis, s};

use super::response::Given;
use super::{Curvature, Glm, GlmFit, GlmLoss, LossTerms, Response, Step};
use crate::engine::{FeatureSource, PointsView};
use crate::error::{Error, Result, check_alike};
use crate::once::once;
use crate::reduce::{GramIntake, LinearisedRows, check_points, size_of_linearised};
use crate::{Points, Real, Targets};

/// Sums over rows at one model, which give a step of Newton's method. Machines that share a fit exchange such sums in each pass.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::{Glm, GlmSums};
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, s};
/// let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0 - 2.0);
/// let labels: Vec<usize> = (0..400)
///     .map(|i| usize::from(x[[i, 0]] + (9.0 * i as f64).sin() > 0.0))
///     .collect();
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 40, 1)?, 1.0)?;
/// let (mut model, lambda) = (Glm::logistic(map, 2)?, 0.1);
/// for _ in 0..8 {
///     let mut sums = GlmSums::at(&model)?;
///     sums.update(&x.slice(s![..250, ..]), &labels[..250])?;
///     // On another machine.
///     let mut other = GlmSums::at(&model)?.with_first_row(250)?;
///     other.update(&x.slice(s![250.., ..]), &labels[250..])?;
///     sums.merge(&other)?;
///     model = sums.step(lambda)?;
/// }
/// let alone = Glm::logistic(model.map().clone(), 2)?.fit(&x, &labels, lambda)?;
/// let difference = &model.weights() - &alone.model().weights();
/// assert!(difference.iter().all(|d| d.abs() < 1e-9));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Let η and π be the decision values and predictions of the model, a the weights of rows and φ̃ = (φ, 1). The sums are Σ a loss,
/// Σ a(y − π)φ̃, and Σ sφ̃φ̃ᵀ with the second derivative s of a row's loss. For several classes there is a sum Σ sφ̃φ̃ᵀ for each
/// pair (k, l), with s = aπ_kπ_l. Merged sums are exact. They have the same bits for any number of threads and parts and in any
/// order, if parts begin at multiples of [`CHUNK`](crate::apply::RidgeStatistics::CHUNK).
///
/// A full step may increase the loss. If [`loss`](GlmSums::loss) at the new model is not below the loss at the model before, take
/// half the step by [`step_by`](GlmSums::step_by). [`Glm::fit`] does so by itself. All classes of the model must occur in the
/// merged rows.
///
/// # Cost
/// Sums take O(n D²) time and 12 D² bytes. With K > 2 classes they take K(K − 1)/2 times as much, for K (D + 1) ≤ 2048.
#[derive(Clone, Debug)]
pub struct GlmSums<T: Real> {
    pub(super) model: Glm<T>,
    /// The sums with s for each pair of classes; the first sums have the first derivatives too.
    pub(super) intakes: Vec<GramIntake<T>>,
}

impl<T: Real> GlmSums<T> {
    /// Empty sums at a model.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the model has several classes and K (D + 1) is above 2048, or if it has one class;
    /// [`Memory`](Error::Memory) if there is no memory for the sums.
    #[inline(never)]
    pub fn at(model: &Glm<T>) -> Result<Self> {
        if model.is_certain() {
            return Err(Error::Unsupported { what: "sums at a model in which only one class occurs" });
        }
        let values = model.values();
        if model.is_large() {
            let what =
                "second derivatives of more than 2048 weights of several classes: Glm::fit does without them";
            return Err(Error::Unsupported { what });
        }
        let empty = |pair: usize| model.intake(if pair == 0 { values + 1 } else { 1 });
        let intakes = (0..pairs(values).len()).map(empty).collect::<Result<_>>()?;
        Ok(GlmSums { model: model.clone(), intakes })
    }

    /// Sets the row of the whole data set at which the next update begins.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row is counted already.
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        let intakes = self.intakes.into_iter().map(|intake| intake.with_first_row(row));
        Ok(GlmSums { intakes: intakes.collect::<Result<_>>()?, ..self })
    }

    /// Adds the next rows: points `x`, n × d, with their targets.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number is not finite or a point has
    /// no finite features, [`Entry`](Error::Entry) with the row of a target outside the domain of the loss or of a class that is
    /// not in the model, [`Row`](Error::Row) if a row is counted already, [`Parameter`](Error::Parameter) if a sum would exceed
    /// 1e288. [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.take_in(x.into().view(), &targets.into())
    }

    #[inline(never)]
    fn take_in(&mut self, x: PointsView<'_, T>, targets: &Targets<'_, T>) -> Result<()> {
        check_points(x)?;
        let response = Given::new(&self.model, targets, x.nrows())?.response(&self.model)?;
        let eta = self.model.linear.scores(x)?;
        self.add(x, &self.model.loss.terms(&eta, &response), &response)
    }

    /// Adds the next rows, with the terms of their losses.
    pub(super) fn add(&mut self, x: PointsView<'_, T>, terms: &LossTerms, response: &Response) -> Result<()> {
        let (n, values) = terms.pull.dim();
        let sums = terms.values(response, self.model.loss);
        if values == 1 {
            let curvature = terms.second.column(0);
            let rows = LinearisedRows { curvature, pull: terms.pull.view(), values: sums.view() };
            return self.intakes[0].take_in_linearised(x, rows);
        }
        // Either all sums are changed, or none.
        let mut intakes = self.intakes.clone();
        for (pair, ((k, l), intake)) in pairs(values).into_iter().zip(&mut intakes).enumerate() {
            let product = |i: usize| response.weights[i] * terms.second[[i, k]] * terms.second[[i, l]];
            let curvature = Array1::from_shape_fn(n, product);
            let (columns, sums) = match pair {
                0 => (0..values, sums.view()),
                _ => (0..0, sums.slice(s![.., values..])),
            };
            let pull = terms.pull.slice(s![.., columns]);
            intake
                .take_in_linearised(x, LinearisedRows { curvature: curvature.view(), pull, values: sums })?;
        }
        self.intakes = intakes;
        Ok(())
    }

    /// Adds the rows of other sums, which are at an equal model, to these.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if models differ, [`Row`](Error::Row) if a row is in both, [`Memory`](Error::Memory) if there is no
    /// memory for a copy of the other sums.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.model.check_kind(&other.model)?;
        let (own, their) = (&self.model.linear, &other.model.linear);
        let equal = own.weights == their.weights && own.intercepts == their.intercepts;
        check_alike([(!equal, "their models differ: begin every part of a step at the same weights")])?;
        let mut intakes = self.intakes.clone();
        for (own, their) in intakes.iter_mut().zip(&other.intakes) {
            own.merge_sums(their.sums())?;
        }
        self.intakes = intakes;
        Ok(())
    }

    /// The model at which the sums were taken.
    pub fn model(&self) -> &Glm<T> {
        &self.model
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.intakes.first().map_or(0, |intake| intake.sums().rows())
    }

    /// The numbers of the rows that are held, as ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.intakes.first().map_or_else(Vec::new, |intake| intake.sums().row_ranges())
    }

    /// The penalised loss at the model, Σ a loss + ½λ‖β‖².
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is not positive and finite, [`NoData`](Error::NoData) without rows of positive weight.
    pub fn loss(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        Ok(self.moments()[self.model.values()] + self.model.penalty(lambda))
    }

    /// The model after a full step of Newton's method.
    ///
    /// # Errors
    /// The errors of [`loss`](GlmSums::loss); [`Entry`](Error::Entry) with a class that has no rows,
    /// [`Factorisation`](Error::Factorisation) if the step is not determined.
    pub fn step(&self, lambda: f64) -> Result<Glm<T>> {
        self.step_by(lambda, 1.0)
    }

    /// The model after `fraction` times the full step of Newton's method.
    ///
    /// # Errors
    /// The errors of [`step`](GlmSums::step); [`Parameter`](Error::Parameter) if the fraction is not finite.
    #[inline(never)]
    pub fn step_by(&self, lambda: f64, fraction: f64) -> Result<Glm<T>> {
        self.check(lambda)?;
        self.check_classes()?;
        crate::error::checked_not_negative("the fraction of a step", fraction)?;
        let step = Curvature::of(self, lambda)?.solve(&self.gradient(lambda))?;
        let mut parameters = self.model.parameters();
        parameters.add(fraction, &step);
        parameters.centre();
        Ok(self.model.clone().with_parameters(parameters))
    }

    /// The model of these sums as a fit, with its loss, evidence and variances. The model should be the minimum for λ.
    ///
    /// # Errors
    /// The errors of [`step`](GlmSums::step); [`Singular`](Error::Singular) if rounding hides the second derivatives.
    #[inline(never)]
    pub fn fit(&self, lambda: f64) -> Result<GlmFit<T>> {
        let loss = self.loss(lambda)?;
        self.check_classes()?;
        let curvature = Curvature::of(self, lambda)?.exact(lambda)?;
        let parts = (self.model.clone(), lambda, loss);
        Ok(GlmFit::new(parts, self.totals()[0], 0).with_curvature(curvature))
    }

    /// Minus the gradient of the penalised loss.
    pub(super) fn gradient(&self, lambda: f64) -> Step {
        let (values, moments) = (self.model.values(), self.moments());
        let sums = self.intakes[0].sums();
        let pull = |(k, f): (usize, usize)| sums.cross_about(f, k, 0.0);
        let mut weights = Array2::from_shape_fn((values, sums.feature_dim()), pull);
        weights.scaled_add(-lambda, &self.model.linear.weights);
        let intercept = |k: usize| if self.model.intercept { moments[k] } else { 0.0 };
        Step { weights, intercepts: Array1::from_shape_fn(values, intercept) }
    }

    fn moments(&self) -> Vec<f64> {
        self.intakes[0].sums().moments()
    }

    /// Σ a and Σ a y of the first column of targets.
    pub(super) fn totals(&self) -> [f64; 2] {
        let (values, moments) = (self.model.values(), self.moments());
        [moments[2 * values + 2], moments[values + 2]]
    }

    /// Whether each row counts a whole number of times, so that there is an evidence.
    pub(super) fn is_counted(&self) -> bool {
        self.intakes[0].sums().counts()[1] == 0.0
    }

    fn check(&self, lambda: f64) -> Result<()> {
        crate::error::checked_positive("λ", lambda)?;
        if self.intakes[0].sums().present() == 0 {
            return Err(Error::NoData { what: "a step of Newton's method" });
        }
        Ok(())
    }

    /// Rejects sums in which a class has no rows, since its intercept has no minimum.
    fn check_classes(&self) -> Result<()> {
        let (values, moments) = (self.model.values(), self.moments());
        let (totals, weight) = (&moments[values + 2..2 * values + 2], moments[2 * values + 2]);
        let (domain, what) =
            ("above 0: leave classes without rows out of the model", "the weights of the classes");
        let missing = |row: usize| Err(Error::Entry { what, row, value: 0.0, domain });
        let sums: Vec<f64> = match (self.model.classes, totals) {
            (0, _) => return Ok(()),
            (_, [second]) if self.model.loss == GlmLoss::Logistic => vec![weight - second, *second],
            (_, [difference]) => vec![weight - difference, weight + difference],
            (_, totals) => totals.to_vec(),
        };
        sums.iter().position(|sum| *sum <= 0.0).map_or(Ok(()), |k| missing(self.model.present[k]))
    }
}

impl<T: Real> Glm<T> {
    /// The largest number in sums over these rows at the model, up to rounding. Weights are added to second derivatives, which may
    /// be small at this model alone.
    pub(super) fn size_of_sums(
        &self,
        x: PointsView<'_, T>,
        terms: &LossTerms,
        response: &Response,
    ) -> Result<f64> {
        let curvature = &terms.second.column(0) + &response.weights;
        let (pull, values) = (terms.pull.view(), terms.values(response, self.loss));
        let rows = LinearisedRows { curvature: curvature.view(), pull, values: values.view() };
        let source = FeatureSource::standardised(self.map().program(), self.standardisation());
        size_of_linearised(source, x, rows)
    }
}

impl LossTerms {
    /// Numbers that are summed without features, n × (k + 3): the losses, a y for each decision value, the weights a, and a of rows
    /// that do not count a whole number of times.
    fn values(&self, response: &Response, loss: GlmLoss) -> Array2<f64> {
        let (n, values) = self.pull.dim();
        let mut sums = Array2::zeros((n, values + 3));
        sums.column_mut(0).assign(&self.losses);
        let weights = response.weights.view().insert_axis(Axis(1));
        sums.slice_mut(s![.., 1..=values]).assign(&(&response.y * &weights));
        sums.column_mut(values + 1).assign(&response.weights);
        let uncounted = |i: usize| if response.is_counted(i, loss) { 0.0 } else { response.weights[i] };
        sums.column_mut(values + 2).assign(&Array1::from_shape_fn(n, uncounted));
        sums
    }
}

/// The pairs of decision values (classes), each of which has a sum of second derivatives.
pub(super) fn pairs(values: usize) -> Vec<(usize, usize)> {
    if values == 1 {
        return vec![(0, 0)];
    }
    (0..values).flat_map(|k| (k + 1..values).map(move |l| (k, l))).collect()
}

once!(GlmSums::<T>::at, GlmSums::<T>::take_in, GlmSums::<T>::merge, GlmSums::<T>::step_by, GlmSums::<T>::fit,);
