//! [`RidgeSpectrum`]: the regressions for all λ, and the choice of one.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, Axis};
use rayon::prelude::*;

use super::super::check_training;
use super::chunk::{FeatureBuffers, FeatureSource};
use super::normal::{Normal, check_lambda};
use super::statistics::check_weights;
use super::training::Training;
use super::{Ridge, RidgeStatistics, Standardisation};
use crate::engine::FeatureRow;
use crate::error::{Error, Result};
use crate::linalg::Backend;
use crate::map::Map;
use crate::numeric::{self, Isa, Packed};
use crate::{Points, Real};

/// The number of rows that are projected onto the eigenvectors at a time.
const ROWS: usize = 48;

/// Ridge regressions for all λ from one eigendecomposition: [`RidgeStatistics::spectrum`]. Each model then costs
/// O(D² t), and the [errors](RidgeSpectrum::errors) for choosing λ need no refitting.
///
/// # Definition
/// With A = Σ w (φ − φ̄)(φ − φ̄)ᵀ = V diag(s) Vᵀ and c = Σ w (φ − φ̄)(y − ȳ)ᵀ, the weights are β = V diag(1/(s + λ)) Vᵀc.
///
/// # Example
/// ```
/// use ndarray::Array2;
/// use random_features::apply::{Criterion, RidgeStatistics};
/// use random_features::frequency::{Coupling, Orthogonal};
/// use random_features::Trigonometric;
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
/// let y = x.mapv(|x| x.sin() + 0.1 * (1e4 * x).sin());
/// statistics.update(&x, &y)?;
/// let spectrum = statistics.spectrum()?;
/// let lambdas = [1e-6, 1e-3, 1.0, 1e3];
/// let by_approximation = spectrum.choose(&Criterion::GeneralisedCrossValidation, &lambdas)?;
/// let exactly = spectrum.choose(&Criterion::leave_one_out(&x, &y), &lambdas)?;
/// assert_eq!((by_approximation.lambda, exactly.lambda), (1e-3, 1e-3));
/// // The noise has variance ½ · 0.01.
/// assert!((exactly.error / 0.005 - 1.0).abs() < 0.2);
/// let model = spectrum.model(exactly.lambda)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// G. H. Golub, M. Heath, G. Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter*,
/// Technometrics 21, 1979; R. D. Cook, *Detection of Influential Observation in Linear Regression*, Technometrics 19, 1977.
#[derive(Clone, Debug)]
pub struct RidgeSpectrum<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    intercept: bool,
    training: Training,
    normal: Normal,
    /// s, ascending.
    values: Array1<f64>,
    /// V, D × D.
    vectors: Array2<f64>,
    /// Vᵀc, D × t.
    rotated: Array2<f64>,
}

/// The criterion that λ minimises: an estimate of the squared error of predictions at new points.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Criterion<'a, T: Real> {
    /// Σ w (y − ŷ)² / n divided by (1 − f/n)² with n = Σ w and the [degrees of freedom](RidgeSpectrum::degrees_of_freedom) f:
    /// leave-one-out with every leverage replaced by their mean. Approximate; needs no data.
    ///
    /// n is the number of rows if weights are how often a row counts: a row of weight 2 is the row twice, and one of weight 0
    /// is not there. Weights that are something else, such as inverse variances, must be scaled so that Σ w is the number of
    /// rows, or λ is chosen for another number of them.
    GeneralisedCrossValidation,
    /// The error at each training point of the regression on all others, computed exactly in a second pass over the training
    /// data: Σ w (y − ŷ)² / Σ w, where ŷ is predicted without the row.
    ///
    /// A row is left out with all of its weight. Of one of weight 2 no copy stays in the regression, unlike of one that was
    /// given twice; one of weight 0 adds no error.
    ///
    /// The sample must be the training data, in any order. What the statistics know of these is compared: the number of rows,
    /// Σ w, and Σ w y and Σ w y² of each target, to a relative difference of 10⁻⁹. The points are not.
    LeaveOneOut(Sample<'a, T>),
    /// The error on points that were held out.
    HeldOut(Sample<'a, T>),
}

/// The λ that a criterion chooses: [`RidgeSpectrum::choose`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LambdaChoice {
    /// λ.
    pub lambda: f64,
    /// The criterion for this λ: a mean squared error, summed over the targets.
    pub error: f64,
}

/// Points, n × d, with their targets, n × t, and weights.
#[derive(Clone, Debug)]
pub struct Sample<'a, T: Real> {
    /// Points in rows.
    pub x: Points<'a, T>,
    /// Their targets.
    pub targets: &'a ArrayRef2<T>,
    /// Their weights; all are 1 if there are none.
    pub weights: Option<&'a ArrayRef1<f64>>,
}

impl<'a, T: Real> Criterion<'a, T> {
    /// [`LeaveOneOut`](Criterion::LeaveOneOut) for the training points, without weights.
    pub fn leave_one_out(x: impl Into<Points<'a, T>>, targets: &'a ArrayRef2<T>) -> Self {
        Criterion::LeaveOneOut(Sample { x: x.into(), targets, weights: None })
    }

    /// [`HeldOut`](Criterion::HeldOut) for other points, without weights.
    pub fn held_out(x: impl Into<Points<'a, T>>, targets: &'a ArrayRef2<T>) -> Self {
        Criterion::HeldOut(Sample { x: x.into(), targets, weights: None })
    }
}

impl<T: Real> RidgeSpectrum<T> {
    pub(super) fn new(statistics: &RidgeStatistics<T>, normal: Normal, backend: Backend) -> Result<Self> {
        let eigen = backend.eigen(&normal.a)?;
        let rotated = eigen.vectors.t().dot(&normal.c);
        Ok(RidgeSpectrum {
            map: statistics.map.clone(),
            inputs: statistics.inputs.clone(),
            intercept: statistics.intercept,
            training: statistics.training(),
            normal: Normal { a: Array2::zeros((0, 0)), ..normal },
            values: eigen.values.mapv(|s| s.max(0.0)),
            vectors: eigen.vectors,
            rotated,
        })
    }

    /// s, the eigenvalues of the (centred) Σ w φ φᵀ, ascending. Those below
    /// [`resolution`](RidgeSpectrum::resolution) are rounding errors.
    pub fn eigenvalues(&self) -> &Array1<f64> {
        &self.values
    }

    /// The rounding error of eigenvalues; a smaller λ has no effect.
    pub fn resolution(&self) -> f64 {
        self.normal.noise
    }

    /// The model for one λ ≥ 0. Cost O(D² t).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is negative or not finite, [`Singular`](Error::Singular) if no unique solution
    /// is left by rounding.
    pub fn model(&self, lambda: f64) -> Result<Ridge<T>> {
        self.check(lambda)?;
        let mut rotated = self.rotated.clone();
        for (mut row, s) in rotated.rows_mut().into_iter().zip(&self.values) {
            row /= s + lambda;
        }
        let weights = self.vectors.dot(&rotated);
        let intercepts = &self.normal.mean_targets - &self.normal.mean_features.dot(&weights);
        Ok(Ridge::new(self.map.clone(), self.inputs.clone(), weights, intercepts))
    }

    /// Σ s/(s + λ), plus 1 for an intercept: the trace of the matrix that maps targets to predictions.
    ///
    /// # Errors
    /// As [`model`](RidgeSpectrum::model).
    pub fn degrees_of_freedom(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        let sum: f64 = self.values.iter().map(|s| s / (s + lambda)).sum();
        Ok(sum + f64::from(u8::from(self.intercept)))
    }

    /// The criterion for each λ: weighted mean squared errors, summed over the targets.
    ///
    /// Generalised cross-validation costs O(D t) for each λ, the others O(D² + D t) for each point and each λ.
    ///
    /// # Errors
    /// As [`model`](RidgeSpectrum::model); [`NoData`](Error::NoData) if all weights are 0, [`Shape`](Error::Shape),
    /// [`NotFinite`](Error::NotFinite) and [`Entry`](Error::Entry) if points, targets or weights do not fit; for leave-one-out
    /// [`Shape`](Error::Shape) or [`Parameter`](Error::Parameter) if they are not the training data.
    pub fn errors(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Vec<f64>> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        match criterion {
            Criterion::GeneralisedCrossValidation => {
                lambdas.iter().map(|lambda| self.generalised(*lambda)).collect()
            }
            Criterion::LeaveOneOut(sample) => {
                self.check_sample(sample)?;
                self.training.check(sample)?;
                self.errors_at(sample, lambdas, true)
            }
            Criterion::HeldOut(sample) => {
                self.check_sample(sample)?;
                self.errors_at(sample, lambdas, false)
            }
        }
    }

    /// λ to choose from, falling, two for each decade: from the largest eigenvalue, where all weights are small, down to the
    /// [resolution](RidgeSpectrum::resolution), below which λ has no effect, or by fifteen decades; 1 if all eigenvalues are 0.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// # use random_features::apply::{Criterion, RidgeStatistics};
    /// # use random_features::frequency::{Coupling, Orthogonal};
    /// # let map = random_features::Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
    /// # let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
    /// # let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
    /// # statistics.update(&x, &x.mapv(f64::sin))?;
    /// let spectrum = statistics.spectrum()?;
    /// let choice = spectrum.choose(&Criterion::GeneralisedCrossValidation, &spectrum.lambdas())?;
    /// assert!(choice.lambda >= spectrum.resolution() && choice.error < 1e-6);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn lambdas(&self) -> Vec<f64> {
        let largest = self.values.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return vec![1.0];
        }
        let below = (0..=30).map(|k| largest * 10f64.powf(-0.5 * f64::from(k)));
        let lambdas: Vec<f64> = below.take_while(|lambda| *lambda > self.resolution()).collect();
        if lambdas.is_empty() { vec![largest.max(self.resolution())] } else { lambdas }
    }

    /// The λ with the least error, and this; of equal ones, the largest.
    ///
    /// # Errors
    /// As [`errors`](RidgeSpectrum::errors); [`Parameter`](Error::Parameter) if there is no λ.
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<LambdaChoice> {
        let errors = self.errors(criterion, lambdas)?;
        let choices =
            lambdas.iter().zip(errors).map(|(lambda, error)| LambdaChoice { lambda: *lambda, error });
        let better = |a: &LambdaChoice, b: &LambdaChoice| {
            a.error.total_cmp(&b.error).then(b.lambda.total_cmp(&a.lambda))
        };
        let none = Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };
        choices.min_by(better).ok_or(none)
    }

    fn generalised(&self, lambda: f64) -> Result<f64> {
        let mut residuals: f64 = self.normal.squares.iter().sum();
        for (row, s) in self.rotated.rows().into_iter().zip(&self.values) {
            let explained: f64 = row.iter().map(|c| c * c).sum();
            residuals -= explained * (s + 2.0 * lambda) / (s + lambda).powi(2);
        }
        let left = (1.0 - self.degrees_of_freedom(lambda)? / self.normal.weight).max(0.0);
        // 0/0: where as many degrees of freedom as rows fit the targets exactly, nothing is known about other points.
        let error = residuals.max(0.0) / self.normal.weight / (left * left);
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }

    fn check_sample(&self, sample: &Sample<'_, T>) -> Result<()> {
        check_training(sample.x.view(), self.map.input_dim(), sample.targets, self.rotated.ncols())?;
        check_weights(sample.weights, sample.x.nrows())
    }

    /// The errors at points that have been checked.
    fn errors_at(&self, sample: &Sample<'_, T>, lambdas: &[f64], left_out: bool) -> Result<Vec<f64>> {
        let total: f64 = sample.weights.map_or(sample.x.nrows() as f64, |weights| weights.sum());
        if total <= 0.0 {
            return Err(Error::NoData { what: "a choice of λ" });
        }
        let d = self.map.feature_dim();
        let vectors = Packed::new(d, d, |k, f| self.vectors[[f, k]]);
        let starts: Vec<usize> = (0..sample.x.nrows()).step_by(ROWS).collect();
        let errors_of = |buffers: &mut SpectrumBuffers<T>, start: &usize| {
            let end = sample.x.nrows().min(start + ROWS);
            self.rotate(sample, *start..end, &vectors, buffers);
            let errors = lambdas.iter().map(|lambda| {
                let error = |i: usize| {
                    self.error(sample, i, &buffers.rotated[(i - start) * d..][..d], *lambda, left_out)
                };
                (*start..end).map(error).sum::<f64>()
            });
            errors.collect::<Vec<f64>>()
        };
        let parts: Vec<Vec<f64>> = starts.par_iter().map_init(SpectrumBuffers::default, errors_of).collect();
        let sum = |k: usize| parts.iter().map(|part| part[k]).sum::<f64>() / total;
        let errors: Vec<f64> = (0..lambdas.len()).map(sum).collect();
        Ok(errors.into_iter().map(|error| if error.is_nan() { f64::INFINITY } else { error }).collect())
    }

    /// The centred features of some rows, projected onto the eigenvectors: rows × D.
    fn rotate(
        &self,
        sample: &Sample<'_, T>,
        rows: std::ops::Range<usize>,
        vectors: &Packed<f64>,
        buffers: &mut SpectrumBuffers<T>,
    ) {
        let (program, d) = (self.map.program(), self.map.feature_dim());
        let source = FeatureSource { program, inputs: self.inputs.as_ref() };
        source.fill(sample.x.view().rows(rows.clone()), &mut buffers.features);
        let stride = numeric::spread::<f64>(d);
        buffers.centred.resize(rows.len() * stride, 0.0);
        buffers.rotated.resize(rows.len() * d, 0.0);
        for (i, out) in buffers.centred.chunks_exact_mut(stride).enumerate() {
            let out = &mut out[..d];
            plain(program.blocks(), buffers.features.batch.row(i), out);
            out.iter_mut().zip(&self.normal.mean_features).for_each(|(v, mean)| *v -= mean);
        }
        numeric::product(Isa::best(), &buffers.centred, stride, vectors.all(), &mut buffers.rotated, d);
    }

    /// The weighted squared error at a row, whose centred features are `u` in the eigenvectors.
    fn error(&self, sample: &Sample<'_, T>, i: usize, u: &[f64], lambda: f64, left_out: bool) -> f64 {
        let weight = sample.weights.map_or(1.0, |weights| weights[i]);
        if weight == 0.0 {
            return 0.0;
        }
        let left = if left_out {
            let own = if self.intercept { 1.0 / self.normal.weight } else { 0.0 };
            let leverage: f64 = u.iter().zip(&self.values).map(|(u, s)| u * u / (s + lambda)).sum();
            1.0 - weight * (own + leverage)
        } else {
            1.0
        };
        let residual = |(j, y): (usize, &T)| {
            let shares = u.iter().zip(self.rotated.index_axis(Axis(1), j)).zip(&self.values);
            let predicted: f64 = shares.map(|((u, c), s)| u * c / (s + lambda)).sum();
            ((y.widen() - self.normal.mean_targets[j] - predicted) / left).powi(2)
        };
        weight * sample.targets.row(i).iter().enumerate().map(residual).sum::<f64>()
    }

    fn check(&self, lambda: f64) -> Result<()> {
        check_lambda(lambda)?;
        let least = self.values.first().copied().unwrap_or(0.0);
        if least + lambda <= self.normal.noise.min(f64::MAX) {
            return Err(Error::Singular { lambda, least: self.normal.least() });
        }
        Ok(())
    }
}

/// Buffers that a thread reuses from run to run.
struct SpectrumBuffers<T> {
    features: FeatureBuffers<T>,
    centred: Vec<f64>,
    rotated: Vec<f64>,
}

impl<T: Real> Default for SpectrumBuffers<T> {
    fn default() -> Self {
        SpectrumBuffers { features: FeatureBuffers::default(), centred: Vec::new(), rotated: Vec::new() }
    }
}

/// Features as plain values.
fn plain<T: Real>(blocks: &[std::ops::Range<usize>], row: FeatureRow<'_, T>, out: &mut [f64]) {
    for (columns, scale) in blocks.iter().zip(row.log_scales) {
        let out = &mut out[columns.clone()];
        if *scale == f64::NEG_INFINITY {
            out.fill(0.0);
            continue;
        }
        let factor = scale.exp();
        out.iter_mut().zip(&row.values[columns.clone()]).for_each(|(out, v)| *out = v.widen() * factor);
    }
}
