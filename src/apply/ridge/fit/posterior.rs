//! [`RidgePosterior`]: predictions with their variances.

use std::sync::Arc;

use ndarray::{Array2, ArrayRef1, ArrayRef2, Axis};

use super::landmarks::{Landmarks, Share};
use super::rotation::{FeatureRotation, ROWS, RotationBuffers};
use super::{Ridge, RidgeSpectrum, check_precisions};
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::special::normal_quantile;
use crate::once::once;
use crate::threads::Pool;
use crate::{Points, Real, progress};

/// Predicts means with variances and intervals: ridge regression as a Gaussian process. Approximate: the covariance is the map's
/// estimate of the kernel, and **variances are too small away from the data** unless
/// [`landmarks`](RidgePosterior::with_landmarks) are set.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::{Criterion, RidgeStatistics};
/// use random_features::extend::Coupling;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, arr2};
/// let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0);
/// let y = Array2::from_shape_fn((400, 1), |(i, _)| {
///     (i as f64 / 50.0).sin() + 0.1 * ((i * i) as f64).sin()
/// });
/// let mut statistics = RidgeStatistics::new(
///     Trigonometric.gaussian(Orthogonal.draw(1, 100, 1)?, 0.5)?,
///     1,
/// )?;
/// statistics.update(&x, &y)?;
/// let spectrum = statistics.spectrum()?;
/// let (lambda, _) =
///     spectrum.choose(&Criterion::LogEvidence, &spectrum.lambdas())?;
/// let prediction =
///     spectrum.posterior(lambda)?.predict(&arr2(&[[1.0], [3.0]]))?;
/// // The noise has variance ½ · 0.01.
/// assert!((prediction.noise[0] / 0.005 - 1.0).abs() < 0.2);
/// let (low, high) = prediction.interval(0.95)?;
/// assert!(
///     low[[0, 0]] < 2f64.sin()
///         && 2f64.sin() < high[[0, 0]]
///         && high[[0, 0]] - low[[0, 0]] < 0.35
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Targets are y = f(x) + b + ε. f is a Gaussian process with covariance σ_f² φ(x)·φ(x′). The intercept b is unknown, with a flat
/// prior; without an intercept it is 0. ε is noise of variance σ² = λ σ_f². Let A and φ̄ be as in [`RidgeSpectrum`] and n = Σ w.
/// Given the data, the mean of f(x) + b is the prediction of the [model](RidgeSpectrum::model), and its variance is
///
/// v(x) = σ² ((φ(x) − φ̄)ᵀ(A + λI)⁻¹(φ(x) − φ̄) + 1/n),
///
/// where the last term is for the intercept. The variance of y is v(x) + σ², or v(x) + σ²/p at a point of
/// [precision](crate::Targets::with_precisions) p ([`Prediction::with_precisions`]). Each target may have a λ of its
/// own ([`RidgeSpectrum::posterior_per_target`]), and each has its own σ². That is the most likely value for this λ,
/// R/ν as in [`log_evidence`](RidgeSpectrum::log_evidence), or a [known value](RidgePosterior::with_noise). Intervals
/// have the stated coverage if the data come from such a process with λ = σ²/σ_f², and if there are enough features for
/// its kernel. With a λ from cross-validation their coverage is only roughly right.
///
/// # Groups of rows
/// A posterior assumes that the errors of rows are independent, whatever the criterion was. If rows of a group have a
/// common error, as repeated measurements may, the group says hardly more than one row, and intervals are too narrow. A
/// search that leaves out groups warns of it by [`RidgeWarning::Groups`](crate::apply::RidgeWarning::Groups). Give each
/// row the [weight](crate::Targets::with_weights) 1/k for the k rows of its group, so that a group counts as one row.
/// If errors in a group are only partly common, intervals are then too wide.
///
/// # Far from the data
/// Far from the data, a Gaussian process returns to its prior: v = σ_f² K(x, x). With D features it does not: all points share D
/// weights, and v falls to about σ_f² (1 − f/D) for f [degrees of freedom](RidgeSpectrum::degrees_of_freedom). Intervals are
/// right where training points are within about a lengthscale, and too narrow beyond.
/// [`with_landmarks`](RidgePosterior::with_landmarks) adds the missing variance.
///
/// # Cost
/// A posterior takes O(D³) once and O(m d + D² + D l) for each point, in parallel, for l different λ. After a
/// [search](super::RidgeSearch) on n < D rows it takes O(n² D + n³) once and O(m d + n D + n l) for each point.
///
/// # References
/// C. E. Rasmussen, C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, chapter 2; J. Quiñonero-Candela, C. E.
/// Rasmussen, *A Unifying View of Sparse Approximate Gaussian Process Regression*, JMLR 6, 2005, on variances of degenerate
/// processes.
#[doc(alias = "GaussianProcess")]
#[doc(alias = "GaussianProcessRegressor")]
#[doc(alias = "GPR")]
#[derive(Clone, Debug)]
pub struct RidgePosterior<T: Real> {
    pub(super) model: Ridge<T>,
    /// The rotation of centred features by Vᵀ.
    pub(super) rotation: Arc<FeatureRotation<T>>,
    /// s, the eigenvalue of each column of V.
    pub(super) values: Arc<[f64]>,
    /// λ for each target.
    pub(super) lambdas: Vec<f64>,
    /// σ² for each target.
    pub(super) noise: Vec<f64>,
    /// The variance of the mean of f + b over the rows, divided by σ²: 1/n, or 0 without an intercept.
    pub(super) mean: f64,
    pub(super) landmarks: Option<Arc<Landmarks<T>>>,
}

/// Predictions with their variances: [`RidgePosterior::predict`].
///
/// A new target y varies by [`variance_of_targets`](Prediction::variance_of_targets), which includes its noise, and lies in
/// [`interval`](Prediction::interval). The mean f + b, without noise, varies by `variance_of_mean` and lies in
/// [`interval_of_mean`](Prediction::interval_of_mean). Standard deviations are the roots:
/// `prediction.variance_of_targets().mapv(f64::sqrt)`.
///
/// All numbers are computed in `f64`. A positive variance outside the range of the scalar type becomes the largest or the least
/// normal number of the type, never infinity or 0. Likewise, means and ends of intervals become at most the largest number.
/// Intervals are computed from the means and variances in `f64`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction<T> {
    /// The means of f + b, n × t, which are also the means of y. Intervals do not follow changes of them.
    pub mean: Array2<T>,
    /// The variances v of f + b, n × t, without the noise of y.
    pub variance_of_mean: Array2<T>,
    /// The variance σ² of the noise of each target, t entries.
    pub noise: Vec<f64>,
    /// The means in `f64`, n × t.
    exact_mean: Array2<f64>,
    /// The variance of f + b at each point, divided by σ², for each different λ.
    units: Array2<f64>,
    /// The column of `units` for each target.
    columns: Vec<usize>,
    /// The precision p of each point; `None` if all are 1.
    precisions: Option<Vec<f64>>,
}

impl<T: Real> RidgeSpectrum<T> {
    /// The posterior for one λ. It costs O(D² (t + 1)), or O(D r (t + 1)) for r < D eigenvectors.
    ///
    /// # Errors
    /// The errors of [`log_evidence`](RidgeSpectrum::log_evidence).
    #[inline(never)]
    pub fn posterior(&self, lambda: f64) -> Result<RidgePosterior<T>> {
        self.posterior_per_target(&vec![lambda; self.rotated.ncols()])
    }

    /// The posterior with a λ for each target. It costs O(D² (t + 1)).
    ///
    /// # Errors
    /// The errors of [`log_evidence`](RidgeSpectrum::log_evidence) for each λ; [`Shape`](Error::Shape) if there is not one λ for each
    /// target.
    #[inline(never)]
    pub fn posterior_per_target(&self, lambdas: &[f64]) -> Result<RidgePosterior<T>> {
        different(lambdas).0.into_iter().try_for_each(|lambda| self.log_evidence(lambda).map(drop))?;
        let model = self.model_per_target(lambdas)?;
        progress::check()?;
        let (vectors, shrinkage) = (&self.vectors, &self.shrinkage);
        Ok(RidgePosterior {
            model,
            rotation: Arc::new(self.rotation(|k, f| vectors[[f, k]]).with_axes()),
            values: shrinkage.values.to_vec().into(),
            lambdas: lambdas.to_vec(),
            noise: lambdas.iter().enumerate().map(|(j, lambda)| shrinkage.noise(*lambda, j)).collect(),
            mean: if shrinkage.intercept { shrinkage.weight.recip() } else { 0.0 },
            landmarks: None,
        })
    }
}

/// The different λ, in the order in which they occur, and for each target the place of its λ among them.
fn different(lambdas: &[f64]) -> (Vec<f64>, Vec<usize>) {
    let mut found: Vec<f64> = Vec::new();
    let place = |lambda: &f64| {
        found.iter().position(|other| other == lambda).unwrap_or_else(|| {
            found.push(*lambda);
            found.len() - 1
        })
    };
    let places = lambdas.iter().map(place).collect();
    (found, places)
}

/// A λ with the factors of variances in units of σ².
struct PosteriorLevel {
    lambda: f64,
    /// 1/√(s + λ) for each eigenvalue.
    factors: Vec<f64>,
    /// The variance of b.
    intercept: f64,
}

impl PosteriorLevel {
    /// Σ u²/(s + λ).
    fn spread(&self, u: &[f64]) -> f64 {
        u.iter().zip(&self.factors).map(|(u, factor)| (u * factor).powi(2)).sum()
    }
}

impl<T: Real> RidgePosterior<T> {
    /// Sets the variance σ² of the noise, one number for each target.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not one for each target, [`Entry`](Error::Entry) if one is negative or not finite.
    #[inline(never)]
    pub fn with_noise(mut self, variances: &[f64]) -> Result<Self> {
        check_size("the number of variances of noise", self.noise.len(), variances.len())?;
        let wrong = |variance: &f64| !(*variance >= 0.0 && variance.is_finite());
        if let Some(row) = variances.iter().position(wrong) {
            let domain = "finite and not negative";
            return Err(Error::Entry { what: "the variances of noise", row, value: variances[row], domain });
        }
        self.noise = variances.to_vec();
        Ok(self)
    }

    /// Sets landmarks, l × d, in original units: points like the training points. Far from all of them, variances
    /// return to the prior variance. About a hundred training points, spread over all of them, are enough.
    ///
    /// Let z be the landmarks and K the exact kernel. Values of f at z determine the share ρ(x) = k(x)ᵀ K_zz⁻¹ k(x) / K(x, x) of
    /// its variance at x. The variance becomes ρ v(x) + (1 − ρ) (σ_f² K(x, x) + Var b); the mean does not change. At a landmark
    /// the variance is v, and far from all landmarks it is the variance of the Gaussian process. Between landmarks it is rather
    /// too large than too small. Landmarks are useful if they lie within about a lengthscale of every training point, that is, in
    /// few dimensions or with long lengthscales. Elsewhere variances are near the prior variance. The cost is O(l³) once and
    /// O(l² + l d) for each point.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map's kernel has no closed form, [`Shape`](Error::Shape) if points do not
    /// have d columns, [`NoData`](Error::NoData) without points, [`NotFinite`](Error::NotFinite) if one is not finite.
    #[inline(never)]
    pub fn with_landmarks(mut self, points: &ArrayRef2<T>) -> Result<Self> {
        let landmarks = Landmarks::new(self.model.map(), self.model.standardisation(), points)?;
        self.landmarks = Some(Arc::new(landmarks));
        Ok(self)
    }

    /// The model that gives the means.
    pub fn model(&self) -> &Ridge<T> {
        &self.model
    }

    /// The penalty λ = σ²/σ_f² of the first target; it is the λ of all targets unless each has [its
    /// own](RidgePosterior::lambdas).
    pub fn lambda(&self) -> f64 {
        self.lambdas.first().copied().unwrap_or(f64::INFINITY)
    }

    /// The penalties λ = σ²/σ_f², one for each target.
    pub fn lambdas(&self) -> &[f64] {
        &self.lambdas
    }

    /// σ², the variance of the noise, for each target.
    pub fn noise(&self) -> &[f64] {
        &self.noise
    }

    /// Predicts means and variances at the rows of `x`, n × d. Points are in the original units: the model applies its
    /// standardisation, if it has one. A row that is not finite gives NaN.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`Memory`](Error::Memory) if the result does not fit in memory.
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn predict<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Prediction<T>> {
        self.predictions(x.into())
    }

    #[inline(never)]
    fn predictions(&self, x: Points<'_, T>) -> Result<Prediction<T>> {
        let (exact_mean, targets) = (self.model.scores(x.view())?, self.noise.len());
        let (lambdas, columns) = different(&self.lambdas);
        let row = targets.saturating_mul(2 * size_of::<T>());
        let row = row.saturating_add(lambdas.len().saturating_mul(size_of::<f64>()));
        check_memory("rows of variances", x.nrows(), row)?;
        let (shifts, outside) = self.rotation.parts_of_mean();
        let levels: Vec<PosteriorLevel> =
            lambdas.into_iter().map(|lambda| self.level(lambda, (&shifts, outside))).collect();
        let mut units = Array2::zeros((x.nrows(), levels.len()));
        let points = x.view();
        let runs = units.axis_chunks_iter_mut(Axis(0), ROWS).enumerate();
        Pool::default().for_each(runs, |buffers: &mut RotationBuffers<T>, (run, mut out)| {
            if progress::check().is_err() {
                return;
            }
            let rows = points.run(run, ROWS);
            let shares = self.landmarks.as_ref().map(|landmarks| landmarks.shares(rows));
            for (u, mut out) in self.rotation.of(rows, buffers).zip(out.rows_mut()) {
                out.iter_mut().zip(&levels).for_each(|(out, level)| *out = level.spread(u) + self.mean);
            }
            let rests = self.rotation.rests(rows.nrows(), buffers);
            for (i, (rest, mut out)) in rests.into_iter().zip(out.rows_mut()).enumerate() {
                for (out, level) in out.iter_mut().zip(&levels) {
                    let own = *out + rest / level.lambda;
                    let mixed = |shares: &Vec<Share>| shares[i].mix(own, level.lambda, level.intercept);
                    *out = shares.as_ref().map_or(own, mixed);
                }
            }
        });
        progress::check()?;
        let variance_of_mean = Array2::from_shape_fn(exact_mean.dim(), |(i, j)| {
            saturated_variance(self.noise[j] * units[[i, columns[j]]])
        });
        Ok(Prediction {
            mean: exact_mean.mapv(T::saturated),
            variance_of_mean,
            noise: self.noise.clone(),
            exact_mean,
            units,
            columns,
            precisions: None,
        })
    }

    /// The factors of variances for a λ. The mean features have the parts `shifts` in the axes, and the squared length `outside`
    /// of these.
    fn level(&self, lambda: f64, (shifts, outside): (&[f64], f64)) -> PosteriorLevel {
        let factors = self.values.iter().map(|s| (s + lambda).sqrt().recip()).collect();
        let mut level = PosteriorLevel { lambda, factors, intercept: self.mean + outside / lambda };
        level.intercept += level.spread(shifts);
        level
    }
}

/// A variance in the scalar type: positive and finite if the variance is positive, whatever its size.
fn saturated_variance<T: Real>(variance: f64) -> T {
    if variance > 0.0 {
        T::saturated(variance.max(T::min_positive_value().widen()))
    } else {
        T::narrow(variance)
    }
}

impl<T: Real> Prediction<T> {
    /// Sets the precision p of each point, n numbers, so that the noise of its targets has the variance σ²/p. Where training had
    /// [precisions](crate::Targets::with_precisions) 1/s² from error bars s, give 1/s² for the error bar s that the new target
    /// would have.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not one precision for each point, [`Entry`](Error::Entry) if one is not positive and finite.
    #[inline(never)]
    pub fn with_precisions(self, precisions: &ArrayRef1<f64>) -> Result<Self> {
        check_precisions(precisions, self.mean.nrows())?;
        Ok(Prediction { precisions: Some(precisions.to_vec()), ..self })
    }

    /// The variances of y, n × t: v + σ², or v + σ²/p for points of [precision](Prediction::with_precisions) p.
    #[inline(never)]
    pub fn variance_of_targets(&self) -> Array2<T> {
        Array2::from_shape_fn(self.mean.dim(), |place| saturated_variance(self.exact_variance(place, true)))
    }

    /// The lower and the upper ends of the intervals in which a new target y lies with the probability `level`, each n × t.
    /// Intervals are centred at the mean.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `level` is not between 0 and 1.
    #[inline(never)]
    pub fn interval(&self, level: f64) -> Result<(Array2<T>, Array2<T>)> {
        self.around(true, level)
    }

    /// The lower and the upper ends of the intervals in which f + b, the target without noise, lies with the probability `level`,
    /// each n × t. Intervals are centred at the mean.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `level` is not between 0 and 1.
    #[inline(never)]
    pub fn interval_of_mean(&self, level: f64) -> Result<(Array2<T>, Array2<T>)> {
        self.around(false, level)
    }

    /// The variance in `f64` of y, which includes the noise, or of f + b.
    fn exact_variance(&self, (i, j): (usize, usize), with_noise: bool) -> f64 {
        let variance = self.noise[j] * self.units[[i, self.columns[j]]];
        let precision = self.precisions.as_ref().map_or(1.0, |precisions| precisions[i]);
        if with_noise { variance + self.noise[j] / precision } else { variance }
    }

    fn around(&self, with_noise: bool, level: f64) -> Result<(Array2<T>, Array2<T>)> {
        if !(level > 0.0 && level < 1.0) {
            let domain = "above 0 and below 1";
            return Err(Error::Parameter { name: "the level of an interval", value: level, domain });
        }
        // The quantile of the lower tail, where levels near 1 keep their digits.
        let factor = -normal_quantile(0.5 * (1.0 - level));
        let ends = |sign: f64| {
            Array2::from_shape_fn(self.mean.dim(), |place| {
                let half = factor * self.exact_variance(place, with_noise).sqrt();
                T::saturated(self.exact_mean[place] + sign * half)
            })
        };
        Ok((ends(-1.0), ends(1.0)))
    }
}

once!(
    RidgeSpectrum::<T>::posterior,
    RidgeSpectrum::<T>::posterior_per_target,
    RidgePosterior::<T>::with_noise,
    RidgePosterior::<T>::with_landmarks,
    Prediction::<T>::with_precisions,
    Prediction::<T>::variance_of_targets,
    Prediction::<T>::interval,
    Prediction::<T>::interval_of_mean,
    RidgePosterior::<T>::predictions,
);
