//! [`RidgeClassifier`]: ridge regression of labels, one class against all others, with probabilities.

use ndarray::{Array2, ArrayRef2};

use super::calibration::{ClassCalibration, WeightedLabels};
use super::threshold::{ScoredRow, best_threshold};
use super::{Ridge, check_classes, check_finite};
use crate::apply::glm::log_ratios;
use crate::engine::PointsView;
use crate::error::{Error, Result, check_results, check_size};
use crate::labels::best_classes;
use crate::numeric;
use crate::once::once;
use crate::{Points, Real, Targets};

/// Gives the probabilities of classes from a regression of labels, after a calibration on held-out points or on left-out
/// predictions. Approximate: the kernel is the map's estimate. [`Glm`](crate::apply::Glm) gives probabilities without a
/// calibration.
///
/// ```
/// use random_features::ndarray::{Array2, arr2, s};
/// use random_features::Trigonometric;
/// use random_features::apply::{RidgeClassifier, RidgeStatistics};
/// use random_features::frequency::Orthogonal;
/// let x = Array2::from_shape_fn((300, 1), |(i, _)| i as f64 / 75.0 - 2.0);
/// let labels: Vec<usize> =
///     x.iter().map(|x| usize::from(x.abs() > 1.0)).collect();
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 64, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::new(map, 2)?;
/// statistics.update(&x, &labels)?;
/// let held_out = arr2(&[[-1.9], [-0.8], [0.1], [0.7], [1.5]]);
/// let classifier = RidgeClassifier::new(statistics.solve(1e-3)?)?
///     .with_calibration(&held_out, &[1, 0, 0, 0, 1])?;
/// assert_eq!(classifier.classify(&arr2(&[[-1.5], [0.0]]))?, [1, 0]);
/// let p = classifier.probabilities(&arr2(&[[-1.5], [0.0]]))?;
/// assert!(
///     p[[0, 1]] > 0.5
///         && p[[1, 0]] > 0.5
///         && (p.row(0).sum() - 1.0).abs() < 1e-12
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Labels are regressed as [indicators](crate::Targets). With the predictions ŷ, p(class c | x) = e^(a ŷ_c + b_c) / Σ_k e^(a
/// ŷ_k + b_k), where a and b minimise the cross-entropy on held-out labels. Target probabilities are as in Platt's method. For a
/// held-out point of class c, they are (n_c + 1)/(n_c + t) for c, and 1/(n_c + t) for each other class, with n_c points of the
/// class and t classes. Classes that are separated perfectly therefore do not get probabilities of 0 and 1. Without a calibration
/// there are no probabilities, since predictions may be negative.
///
/// [`Ridge::classify`] needs no calibration: it names the class with the largest prediction, which may not be the most probable
/// one.
///
/// A class without rows in training is never predicted and has probability 0. It is left out of the sum over k and of the number
/// t.
///
/// # References
/// J. C. Platt, *Probabilistic Outputs for Support Vector Machines*, 1999; C. Guo and others, *On Calibration of Modern
/// Neural Networks*, ICML 2017.
#[doc(alias = "Platt scaling")]
#[derive(Clone, Debug)]
pub struct RidgeClassifier<T: Real> {
    pub(super) model: Ridge<T>,
    pub(super) calibration: Option<ClassCalibration>,
    /// The threshold between two classes: a larger prediction of the larger label gives that label.
    pub(super) threshold: Option<f64>,
    /// Whether the calibration was corrected for other shares of the classes.
    pub(super) corrected: bool,
}

impl<T: Real> RidgeClassifier<T> {
    /// A classifier from a regression of labels, without probabilities.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the regression has one target: a regression of two classes has two.
    pub fn new(model: Ridge<T>) -> Result<Self> {
        check_classes(model.intercepts.len())?;
        Ok(RidgeClassifier { model, calibration: None, threshold: None, corrected: false })
    }

    /// Calibrates probabilities on held-out points, n × d, and their n labels, with weights or without. The model must not have
    /// been fitted to these points. A row of weight 2 counts as the row given twice.
    ///
    /// Held-out points of classes without rows in training are left out. Probabilities are calibrated for the population that the
    /// weights describe: weights that balance classes give probabilities for equally frequent classes.
    ///
    /// The slope a is at least 0, so that the order of points is kept for each pair of classes: where ŷ_c − ŷ_k is larger, p_c /
    /// p_k is not smaller. The order of the classes at a point may change, because offsets differ. The most probable class may
    /// thus differ from the class with the largest prediction, which [`classify`](RidgeClassifier::classify) names.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points of classes that occur in training, [`Shape`](Error::Shape) if a size does not fit,
    /// [`NotFinite`](Error::NotFinite) if a point or a prediction is not finite, [`Entry`](Error::Entry) with the row of a label
    /// that is too large, [`Factorisation`](Error::Factorisation) if the minimum is not found. [`Parameter`](Error::Parameter) if the
    /// sum of the weights is above 1e288. [`Unsupported`](Error::Unsupported) after
    /// [`with_priors`](RidgeClassifier::with_priors), whose correction a new calibration would drop.
    pub fn with_calibration<'a, 't>(
        self,
        x: impl Into<Points<'a, T>>,
        labels: impl Into<Targets<'t, T>>,
    ) -> Result<Self> {
        let scores = self.model.scores(x.into().view())?;
        self.calibrated(&scores, &labels.into())
    }

    /// Calibrates probabilities on predictions for rows, n × t, and the labels of these n rows. Each row must be predicted by a
    /// regression without it. [Left-out predictions](super::RidgeSpectrum::left_out) of the training rows are such predictions,
    /// so that no data need be held out.
    ///
    /// # Errors
    /// The errors of [`with_calibration`](RidgeClassifier::with_calibration).
    pub fn with_score_calibration<'t>(
        self,
        scores: &ArrayRef2<T>,
        labels: impl Into<Targets<'t, T>>,
    ) -> Result<Self> {
        check_size("the number of columns of predictions", self.model.intercepts.len(), scores.ncols())?;
        self.calibrated(&scores.mapv(Real::widen), &labels.into())
    }

    #[inline(never)]
    fn calibrated(mut self, scores: &Array2<f64>, labels: &Targets<'_, T>) -> Result<Self> {
        if self.corrected {
            let what = "a calibration after RidgeClassifier::with_priors, which corrects a calibration: set priors last";
            return Err(Error::Unsupported { what });
        }
        let labels = WeightedLabels::of(labels, scores.nrows(), scores.ncols())?;
        self.calibration = Some(ClassCalibration::fit(scores, &labels, &self.model.occurring())?);
        Ok(self)
    }

    /// Sets the threshold between two classes to the threshold of best balanced accuracy, which is the mean of two shares. Each
    /// share is the weighted share of the rows of one label to which that label is given. The predictions, n × t, must come from
    /// regressions without the row that is predicted, and the n labels are the labels of these rows. A threshold is useful for a
    /// rare class that was fitted without balanced weights.
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::apply::{RidgeClassifier, RidgeStatistics};
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// // One row of ten is of class 1.
    /// let labels: Vec<usize> =
    ///     (0..400).map(|i| usize::from(i % 10 == 0)).collect();
    /// let x = Array2::from_shape_fn((400, 1), |(i, _)| {
    ///     2.0 * labels[i] as f64 + (i as f64).sin()
    /// });
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 16, 1)?, 2.0)?;
    /// let mut statistics = RidgeStatistics::new(map, 2)?;
    /// statistics.update(&x, &labels)?;
    /// let model = statistics.solve(1.0)?;
    /// // With few features, predictions of the training rows are not much
    /// // better than predictions of left-out rows.
    /// let scores = model.predict(&x)?;
    /// let classifier =
    ///     RidgeClassifier::new(model)?.with_threshold(&scores, &labels)?;
    /// assert!(classifier.threshold().unwrap() < 0.5);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) unless two classes occur in training, [`Parameter`](Error::Parameter) without rows of both, and the
    /// errors of [`with_calibration`](RidgeClassifier::with_calibration).
    pub fn with_threshold<'t>(
        self,
        scores: &ArrayRef2<T>,
        labels: impl Into<Targets<'t, T>>,
    ) -> Result<Self> {
        self.with_threshold_of(&scores.mapv(Real::widen), &labels.into())
    }

    #[inline(never)]
    fn with_threshold_of(mut self, scores: &Array2<f64>, labels: &Targets<'_, T>) -> Result<Self> {
        check_size("the number of columns of predictions", self.model.intercepts.len(), scores.ncols())?;
        check_finite("the predictions", scores)?;
        let [smaller, larger] = self.model.occurring()[..] else {
            return Err(Error::Unsupported { what: "a threshold unless two classes occur" });
        };
        let WeightedLabels { labels, weights } = WeightedLabels::of(labels, scores.nrows(), scores.ncols())?;
        let scored = |i: usize| ScoredRow {
            score: scores[[i, larger]],
            weight: if labels[i] == smaller || labels[i] == larger { weights[i] } else { 0.0 },
            is_larger: labels[i] == larger,
        };
        self.threshold = Some(best_threshold((0..labels.len()).map(scored).collect())?);
        Ok(self)
    }

    /// Corrects probabilities for other shares of the classes than in the calibration, for example after weights that
    /// balance classes. The probability p_c becomes p_c · `meant`_c / `fitted`_c, normalised. Both arguments are the
    /// shares of the t classes, or their numbers of rows. A second call corrects the corrected probabilities of the
    /// first.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) without a calibration, [`Shape`](Error::Shape) if there are not t shares,
    /// [`Entry`](Error::Entry) if the share of a class that occurs in training is not positive and finite.
    pub fn with_priors(mut self, fitted: &[f64], meant: &[f64]) -> Result<Self> {
        let occurring = self.model.occurring();
        let shifts = log_ratios(fitted, meant, self.model.intercepts.len(), &occurring)?;
        match &mut self.calibration {
            Some(calibration) => calibration.shift(occurring.into_iter().zip(shifts)),
            None => return Err(Error::Unsupported { what: "priors of a classifier without calibration" }),
        }
        self.corrected = true;
        Ok(self)
    }

    /// The threshold, if it is set: a prediction of the larger of two labels above the threshold gives that label.
    pub fn threshold(&self) -> Option<f64> {
        self.threshold
    }

    /// The regression, with its map and standardisation.
    pub fn model(&self) -> &Ridge<T> {
        &self.model
    }

    /// Predicts the class of each row of `x`, n × d. It is the class with the largest prediction among the classes that occur in
    /// training, the first of equal ones. With a [threshold](RidgeClassifier::with_threshold), it is the larger label where the
    /// prediction of that label is above the threshold, and otherwise the smaller one. A calibration does not change the class;
    /// the most probable class is the one of the largest [probability](RidgeClassifier::probabilities).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`NotFinite`](Error::NotFinite) if a row is not finite.
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn classify<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Vec<usize>> {
        self.classes_of(x.into().view())
    }

    #[inline(never)]
    fn classes_of(&self, x: PointsView<'_, T>) -> Result<Vec<usize>> {
        let scores = self.model.scores(x)?;
        let occurring = self.model.occurring();
        let (Some(threshold), [smaller, larger]) = (self.threshold, &occurring[..]) else {
            return best_classes(&scores, |class| occurring.contains(&class));
        };
        check_results("x", &scores)?;
        let above = |score: &f64| if *score > threshold { *larger } else { *smaller };
        Ok(scores.column(*larger).iter().map(above).collect())
    }

    /// The probability of each class for each row of `x`, n × t; each row adds up to 1. A class without rows in training has
    /// probability 0. A point that is not finite gives NaN.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`Unsupported`](Error::Unsupported) without a calibration.
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[doc(alias = "predict_proba")]
    pub fn probabilities<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.probabilities_of(x.into().view())
    }

    #[inline(never)]
    fn probabilities_of(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        let Some(calibration) = &self.calibration else {
            return Err(Error::Unsupported {
                what: "probabilities before RidgeClassifier::with_calibration",
            });
        };
        let mut scores = self.model.scores(x)?;
        let occurring = self.model.occurring();
        let absent: Vec<usize> =
            (0..scores.ncols()).filter(|class| occurring.binary_search(class).is_err()).collect();
        for mut row in scores.rows_mut() {
            calibration.apply(row.view_mut());
            absent.iter().for_each(|class| row[*class] = f64::NEG_INFINITY);
            numeric::softmax(row);
        }
        Ok(scores.mapv(T::narrow))
    }
}

once!(
    RidgeClassifier::<T>::probabilities_of,
    RidgeClassifier::<T>::classes_of,
    RidgeClassifier::<T>::calibrated,
    RidgeClassifier::<T>::with_threshold_of,
);
