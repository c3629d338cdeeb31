//! Laplace's approximation: variances of decision values, and mean probabilities.

use ndarray::{Array1, Array2};

use super::curvature::{CurvatureKind, Single};
use super::loss::sigmoid;
use super::{Glm, GlmFit};
use crate::Real;
use crate::apply::ridge::rotation::{FeatureRotation, ROWS, RotationBuffers};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};
use crate::numeric::special::normal_cdf;
use crate::once::once;
use crate::threads::Pool;
use crate::{Points, labels, progress};

/// The distance of the nodes of the trapezoidal rule. The rule converges exponentially, and its error is about 10⁻¹⁵.
const STEP: f64 = 0.5;
/// The distance from the middle beyond which the standard normal and the logistic density are left out.
const NORMAL_END: f64 = 10.0;
const LOGISTIC_END: f64 = 40.0;

/// The error for weights without an evidence.
pub(super) const NO_EVIDENCE: Error =
    Error::Unsupported { what: "the evidence of weights that are not whole numbers: take leave-one-out" };

impl Single {
    /// φ̃ᵀH⁻¹φ̃ at the rows of `x`.
    pub fn variances<T: Real>(&self, model: &Glm<T>, x: PointsView<'_, T>) -> Result<Array1<f64>> {
        check_size("the number of columns of x", model.map().dim(), x.ncols())?;
        let inverse = self.factor.lower_inverse();
        let (map, inputs) = (model.map(), model.standardisation());
        let rotation = FeatureRotation::new(map, inputs, &self.mean, inverse.nrows(), |k, f| inverse[[k, f]]);
        let own = if self.total > 0.0 { 1.0 / self.total } else { 0.0 };
        let of_run = |buffers: &mut RotationBuffers<T>, start: usize| {
            if progress::is_stopped() {
                return Vec::new();
            }
            let rows = x.rows(start..x.nrows().min(start + ROWS));
            let square = |u: &[f64]| own + u.iter().map(|u| u * u).sum::<f64>();
            rotation.of(rows, buffers).map(square).collect::<Vec<f64>>()
        };
        let parts = Pool::default().map((0..x.nrows()).step_by(ROWS), of_run);
        progress::check()?;
        Ok(parts.concat().into())
    }
}

impl<T: Real> GlmFit<T> {
    /// The log evidence by Laplace's approximation, in nats: the logarithm of the probability of the targets, where β has the
    /// prior N(0, I/λ) and the intercept a flat prior. Approximate. Weights must be how often rows count, or exposures of counts;
    /// with weights that balance classes there is no evidence.
    ///
    /// It is −L + ½D ln λ − ½ ln|H| + ½ ln 2π, with the penalised loss L and its second derivatives H. Without an intercept the
    /// last term is left out. Losses of counts leave out ln y!.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) without [`with_posterior`](GlmFit::with_posterior), for several classes, for the hinge,
    /// and for weights that are not whole numbers. For counts, a weight may also be an exposure: a y must be whole.
    pub fn log_evidence(&self) -> Result<f64> {
        let single = self.single()?;
        if self.curvature.as_ref().is_some_and(|curvature| !curvature.is_counted) {
            return Err(NO_EVIDENCE);
        }
        let width = self.model().map().feature_dim() as f64;
        let flat = if single.total > 0.0 { 0.5 * std::f64::consts::TAU.ln() } else { 0.0 };
        Ok(0.5 * width * self.lambda().ln() - self.loss() - 0.5 * single.log_determinant() + flat)
    }

    /// The variance of η at each row of `x`, n × d, by Laplace's approximation: φ̃ᵀH⁻¹φ̃ with φ̃ = (φ, 1), n numbers.
    /// Approximate.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) without [`with_posterior`](GlmFit::with_posterior), for several classes and for the hinge;
    /// [`Shape`](Error::Shape) if `x` does not have d columns.
    pub fn variances<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<f64>> {
        self.variances_of(x.into().view())
    }

    #[inline(never)]
    fn variances_of(&self, x: PointsView<'_, T>) -> Result<Array1<f64>> {
        self.single()?.variances(self.model(), x)
    }

    /// The mean probabilities of two classes under Laplace's approximation, n × 2: the mean of 1/(1 + e^(−η)), where η is normal
    /// with the [variances](GlmFit::variances) of the posterior. Approximate, as the posterior is; the error of the integral is below
    /// 10⁻¹² for any variance.
    ///
    /// The mean raises small probabilities. If λ is far too small, a class of 1 % of the rows may get 19 % on average. Take mean
    /// probabilities only with λ from the evidence. [`Glm::probabilities`] do not have this bias: over the training rows they add
    /// up to the counts of the classes.
    ///
    /// # Errors
    /// The errors of [`variances`](GlmFit::variances); [`Unsupported`](Error::Unsupported) for counts.
    pub fn mean_probabilities<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.means_of(x.into().view())
    }

    #[inline(never)]
    fn means_of(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        self.model().check_classes("mean probabilities of counts")?;
        let variances = self.single()?.variances(self.model(), x)?;
        let eta = self.model().linear.scores(x)?;
        let mut means = labels::zeros("rows of probabilities", x.nrows(), self.model().classes)?;
        let [smaller, larger] = [self.model().present[0], self.model().present[1]];
        for ((mut means, eta), variance) in means.rows_mut().into_iter().zip(&eta).zip(&variances) {
            let deviation = variance.sqrt();
            means[larger] = T::narrow(mean_sigmoid(*eta, deviation));
            means[smaller] = T::narrow(mean_sigmoid(-eta, deviation));
        }
        Ok(means)
    }

    pub(super) fn single(&self) -> Result<&Single> {
        match self.curvature.as_ref().map(|curvature| &curvature.kind) {
            Some(CurvatureKind::Single(single)) if self.model().loss != super::GlmLoss::SquaredHinge => {
                Ok(single)
            }
            Some(_) => {
                Err(Error::Unsupported { what: "Laplace's approximation for several classes or the hinge" })
            }
            None => Err(Error::Unsupported { what: "Laplace's approximation before GlmFit::with_posterior" }),
        }
    }
}

/// The mean of 1/(1 + e^(−η)) for normal η, with small relative error, by the trapezoidal rule.
///
/// For a deviation up to 1, the rule integrates over z in η + σz, where the poles of the integrand have a distance of at least π
/// from the real axis. Beyond, they come near to it. The mean is also the mean of Φ((η − t)/σ) over t of the logistic law, whose
/// poles have the distance π for any σ.
fn mean_sigmoid(eta: f64, deviation: f64) -> f64 {
    let sum = |start: f64, end: f64, term: &dyn Fn(f64) -> f64| -> f64 {
        let nodes = (start / STEP).floor() as i64..=(end / STEP).ceil() as i64;
        nodes.map(|node| STEP * term(STEP * node as f64)).sum()
    };
    if deviation <= 1.0 {
        let normal = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        return sum(-NORMAL_END, NORMAL_END, &|z| normal(z) * sigmoid(eta + deviation * z));
    }
    // Below −745 the mean is 0 up to rounding, unless the deviation is large and t near 0 counts.
    let start = eta.clamp(-745.0, 0.0) - LOGISTIC_END;
    sum(start, LOGISTIC_END, &|t| sigmoid(t) * sigmoid(-t) * normal_cdf((eta - t) / deviation))
}

once!(GlmFit::<T>::variances_of, GlmFit::<T>::means_of);
