//! Predictions of a [`Glm`]: classes, probabilities and rates.

use ndarray::{Array1, Array2};

use super::{Glm, GlmLoss};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_results, check_size};
use crate::numeric;
use crate::once::once;
use crate::{Points, Real, labels};

use super::loss::sigmoid;

impl<T: Real> Glm<T> {
    /// The probability of each class at each row of `x`, n × K; each row adds up to 1. Probabilities of a fit with an intercept need
    /// no calibration: over the training rows, the weighted probabilities of a class add up to the weight of its rows. They do so
    /// approximately for the model of a [`GlmStream`](super::GlmStream). A class without rows in training has probability 0. A
    /// point that is not finite gives NaN.
    ///
    /// # Errors
    /// The errors of [`scores`](Glm::scores); [`Unsupported`](Error::Unsupported) for counts and the squared hinge,
    /// [`Memory`](Error::Memory) if n × K numbers do not fit in memory.
    #[doc(alias = "predict_proba")]
    pub fn probabilities<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.probabilities_of(x.into().view())
    }

    #[inline(never)]
    fn probabilities_of(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        if self.loss != GlmLoss::Logistic {
            return Err(Error::Unsupported { what: "probabilities from a model that is not logistic" });
        }
        let mut eta = self.linear.scores(x)?;
        let mut all = labels::zeros("rows of probabilities", x.nrows(), self.classes)?;
        for (mut row, mut eta) in all.rows_mut().into_iter().zip(eta.rows_mut()) {
            match self.present[..] {
                [only] => row[only] = T::narrow(1.0 + 0.0 * eta[0]),
                [smaller, larger] => {
                    (row[smaller], row[larger]) = (T::narrow(sigmoid(-eta[0])), T::narrow(sigmoid(eta[0])));
                }
                _ => {
                    numeric::softmax(eta.view_mut());
                    self.present.iter().zip(&eta).for_each(|(class, p)| row[*class] = T::narrow(*p));
                }
            }
        }
        Ok(all)
    }

    /// Predicts the class of each row of `x`, n × d: the most probable one, the first of equal ones.
    ///
    /// # Errors
    /// The errors of [`scores`](Glm::scores); [`NotFinite`](Error::NotFinite) if a row is not finite,
    /// [`Unsupported`](Error::Unsupported) for counts.
    #[doc(alias = "predict")]
    pub fn classify<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Vec<usize>> {
        self.classes_of(x.into().view())
    }

    #[inline(never)]
    fn classes_of(&self, x: PointsView<'_, T>) -> Result<Vec<usize>> {
        self.check_classes("classes from a model of counts")?;
        let eta = self.linear.scores(x)?;
        check_results("x", &eta)?;
        let best = |row: ndarray::ArrayView1<'_, f64>| match self.present[..] {
            [only] => only,
            [smaller, larger] => {
                if row[0] > 0.0 {
                    larger
                } else {
                    smaller
                }
            }
            _ => self.present[(0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })],
        };
        Ok(eta.rows().into_iter().map(best).collect())
    }

    /// The expected counts e^η at the rows of `x`, n × d, for an exposure of 1: n numbers. A rate beyond the range of the scalar type
    /// becomes the largest number of that type.
    ///
    /// # Errors
    /// The errors of [`scores`](Glm::scores); [`Unsupported`](Error::Unsupported) for models of classes.
    pub fn rates<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<T>> {
        if self.loss != GlmLoss::Poisson {
            return Err(Error::Unsupported { what: "rates from a model of classes" });
        }
        Ok(self.linear.scores(x.into().view())?.iter().map(|eta| T::saturated(eta.exp())).collect())
    }

    /// Corrects probabilities after a fit with weights that balance classes, or of a sample with other shares of the classes. The
    /// probability π_c becomes π_c · `meant`_c / `fitted`_c, normalised. Both arguments are the shares of the K classes, or their
    /// numbers of rows.
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::Targets;
    /// use random_features::apply::Glm;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// // One row of twenty is of class 1.
    /// let labels: Vec<usize> =
    ///     (0..400).map(|i| usize::from(i % 20 == 0)).collect();
    /// let x = Array2::from_shape_fn((400, 1), |(i, _)| {
    ///     labels[i] as f64 + (i as f64).sin()
    /// });
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 32, 1)?, 1.0)?;
    /// let fit = Glm::logistic(map, 2)?
    ///     .fit(&x, Targets::from(&labels).balanced()?, 1.0)?;
    /// let model = fit.model().clone().with_priors(&[1.0, 1.0], &[380.0, 20.0])?;
    /// let mean = model.probabilities(&x)?.column(1).mean();
    /// assert!((0.03..0.07).contains(&mean.unwrap()));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not K shares, [`Entry`](Error::Entry) if the share of a class in the model is not
    /// positive and finite, [`Unsupported`](Error::Unsupported) unless the model is logistic with an intercept.
    #[inline(never)]
    pub fn with_priors(self, fitted: &[f64], meant: &[f64]) -> Result<Self> {
        if self.loss != GlmLoss::Logistic || !self.intercept {
            let what = "priors of a model that is not logistic or has no intercept";
            return Err(Error::Unsupported { what });
        }
        let shifts = log_ratios(fitted, meant, self.classes, &self.present)?;
        let mut parameters = self.parameters();
        match shifts[..] {
            [] | [_] => {}
            [smaller, larger] => parameters.intercepts[0] += larger - smaller,
            _ => parameters.intercepts.iter_mut().zip(&shifts).for_each(|(b, shift)| *b += shift),
        }
        parameters.centre();
        Ok(self.with_parameters(parameters))
    }
}

/// ln(meant/fitted) for each of the classes that are present.
pub(in crate::apply) fn log_ratios(
    fitted: &[f64],
    meant: &[f64],
    classes: usize,
    present: &[usize],
) -> Result<Vec<f64>> {
    for shares in [fitted, meant] {
        check_size("the number of shares of classes", classes, shares.len())?;
        let wrong = |class: &&usize| !(shares[**class].is_finite() && shares[**class] > 0.0);
        if let Some(row) = present.iter().find(wrong) {
            let (what, domain) = ("the shares of the classes", "positive and finite");
            return Err(Error::Entry { what, row: *row, value: shares[*row], domain });
        }
    }
    Ok(present.iter().map(|class| meant[*class].ln() - fitted[*class].ln()).collect())
}

once!(Glm::<T>::probabilities_of, Glm::<T>::classes_of, Glm::<T>::with_priors);
