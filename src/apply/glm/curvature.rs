//! [`Curvature`]: the second derivatives of a penalised loss, factorised.

use ndarray::{Array1, Array2};

use super::several::Several;
use super::{GlmSums, Step};
use crate::Real;
use crate::error::{Error, Result, singular};
use crate::linalg::{Backend, Cholesky};
use crate::progress;
use crate::reduce::{GramSums, LEAST_SUMMAND};

/// Multiples of the rounding error that are added to the diagonal of a matrix that rounding makes indefinite.
const SHIFTS: [f64; 4] = [0.0, 1.0, 1e2, 1e4];

/// The second derivatives of a penalised loss, factorised.
#[derive(Clone, Debug)]
pub(super) struct Curvature {
    pub kind: CurvatureKind,
    /// If more than λ was added to the diagonal: a λ that is large beside rounding errors.
    shifted: Option<f64>,
    /// Whether each row counts a whole number of times.
    pub is_counted: bool,
}

#[derive(Clone, Debug)]
pub(super) enum CurvatureKind {
    Single(Single),
    Several(Several),
}

/// The second derivatives Σ sφ̃φ̃ᵀ for one decision value η, with λ. The intercept is eliminated.
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// Σ s(φ − mean)(φ − mean)ᵀ + λI.
    pub factor: Cholesky,
    /// Σ sφ / Σ s; 0 without an intercept.
    pub mean: Array1<f64>,
    /// Σ s; 0 without an intercept.
    pub total: f64,
}

impl Curvature {
    pub fn of<T: Real>(sums: &GlmSums<T>, lambda: f64) -> Result<Self> {
        progress::check()?;
        if lambda <= LEAST_SUMMAND && too_small(sums).is_some() {
            return Err(singular(lambda, LEAST_SUMMAND));
        }
        let mut matrix =
            if sums.model.values() == 1 { Hessian::single(sums) } else { Hessian::bordered(sums) };
        let largest = matrix.a.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        let noise = GramSums::<T>::rounding() * largest * matrix.a.nrows() as f64;
        let diagonal = matrix.a.diag().to_owned();
        let at = |shift: f64| &diagonal + &matrix.penalised.mapv(|is| is * (lambda + shift * noise));
        let (factor, shift) = factorised(&mut matrix.a, at)?.ok_or_else(|| singular(lambda, noise))?;
        let shifted = (shift > 0.0).then_some(noise);
        Ok(Curvature { kind: matrix.kind(factor), shifted, is_counted: sums.is_counted() })
    }

    /// The trace of the second derivatives for one decision value η, without λ; 0 if rounding hides it.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if features and weights are so small that sums have lost second derivatives.
    pub fn trace<T: Real>(sums: &GlmSums<T>) -> Result<f64> {
        too_small(sums).map_or(Ok(()), Err)?;
        let values = sums.model.values();
        let matrix = if values == 1 { Hessian::single(sums) } else { Hessian::bordered(sums) };
        let entries = matrix.a.diag().into_iter().zip(&matrix.penalised);
        let trace = entries.map(|(entry, is)| entry * is).sum::<f64>();
        Ok(seen_trace::<T>(trace, &matrix.mean, matrix.total) / values as f64)
    }

    /// The step that takes a gradient to 0.
    pub fn solve(&self, gradient: &Step) -> Result<Step> {
        match &self.kind {
            CurvatureKind::Single(single) => single.solve(gradient),
            CurvatureKind::Several(several) => several.solve(gradient),
        }
    }

    /// The curvature, or an error if more than λ was added to it.
    pub fn exact(self, lambda: f64) -> Result<Self> {
        self.shifted.map_or(Ok(self), |least| Err(singular(lambda, least)))
    }
}

impl Single {
    fn solve(&self, gradient: &Step) -> Result<Step> {
        let (row, pull) = (gradient.weights.row(0), gradient.intercepts[0]);
        let weights = self.factor.solve_vector(&(&row - &(&self.mean * pull)))?;
        let has_intercept = self.total > 0.0;
        let intercept = if has_intercept { pull / self.total - self.mean.dot(&weights) } else { 0.0 };
        Ok(Step {
            weights: weights.insert_axis(ndarray::Axis(0)),
            intercepts: Array1::from_elem(1, intercept),
        })
    }

    /// ln det of the second derivatives, intercept included.
    pub fn log_determinant(&self) -> f64 {
        let total = if self.total > 0.0 { self.total.ln() } else { 0.0 };
        self.factor.log_determinant() + total
    }
}

/// Second derivatives before λ is added.
pub(super) struct Hessian {
    /// The second derivatives, of which the lower triangle is used.
    pub a: Array2<f64>,
    /// 1 where the diagonal has λ, 0 at intercepts.
    pub penalised: Array1<f64>,
    pub mean: Array1<f64>,
    pub total: f64,
    /// The number of decision values η, and the number of entries of each.
    pub shape: (usize, usize),
}

impl Hessian {
    fn single<T: Real>(sums: &GlmSums<T>) -> Self {
        let (a, mean, total) = centred(sums.intakes[0].sums(), sums.model.intercept);
        let width = mean.len();
        Hessian { a, penalised: Array1::ones(width), mean, total, shape: (1, width) }
    }

    fn kind(&self, factor: Cholesky) -> CurvatureKind {
        match self.shape {
            (1, _) => CurvatureKind::Single(Single { factor, mean: self.mean.clone(), total: self.total }),
            (_, entries) => CurvatureKind::Several(Several { factor, entries }),
        }
    }
}

/// The error for second derivatives that are so small that sums have lost their digits, if all are.
fn too_small<T: Real>(sums: &GlmSums<T>) -> Option<Error> {
    let mut errors = sums.intakes.iter().map(|intake| intake.sums().too_small());
    errors.next()?.filter(|_| errors.all(|error| error.is_some()))
}

/// The factor of a matrix whose diagonal is `diagonal(shift)`, for the least of [`SHIFTS`] for which it is positive definite, and that
/// shift; `None` if it is for no shift.
pub(super) fn factorised(
    matrix: &mut Array2<f64>,
    diagonal: impl Fn(f64) -> Array1<f64>,
) -> Result<Option<(Cholesky, f64)>> {
    for shift in SHIFTS {
        matrix.diag_mut().assign(&diagonal(shift));
        match Backend::default().cholesky(matrix) {
            Err(Error::Factorisation { .. }) => {}
            factor => return Ok(Some((factor?, shift))),
        }
    }
    Ok(None)
}

/// The trace of centred products; 0 if rounding hides it, as where all rows have equal features.
pub(super) fn seen_trace<T: Real>(trace: f64, mean: &Array1<f64>, total: f64) -> f64 {
    let cancelled = total * mean.dot(mean);
    if trace > GramSums::<T>::rounding() * cancelled { trace } else { 0.0 }
}

/// Σ s(φ − mean)(φ − mean)ᵀ, of which the lower triangle is used, the mean and Σ s. Without an intercept the mean and Σ s are 0.
pub(super) fn centred<T: Real>(sums: &GramSums<T>, intercept: bool) -> (Array2<f64>, Array1<f64>, f64) {
    let total = if intercept { sums.weight() } else { 0.0 };
    let mean = |f: usize| if total > 0.0 { sums.feature(f) / total } else { 0.0 };
    let (mut a, mean) = (sums.lower_products(), Array1::from_shape_fn(sums.feature_dim(), mean));
    for (f, mut row) in a.rows_mut().into_iter().enumerate() {
        row.scaled_add(-total * mean[f], &mean);
    }
    (a, mean, total)
}
