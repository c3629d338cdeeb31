//! The transformation T that makes the second moments of both sides equal.

use ndarray::{Array1, Array2, Axis};

use crate::error::Result;
use crate::linalg::Backend;
use crate::progress;

/// The smallest ridge, of the size of rounding errors of eigenvalues that are 0.
pub(super) const LEAST_RIDGE: f64 = 1e-12;

/// T and T⁻ᵀ, d × d.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    pub left: Array2<f64>,
    pub right: Array2<f64>,
}

impl Balance {
    /// T for the covariances of both sides, to which `ridge` times the mean variance is added.
    ///
    /// G = TᵀT solves G A G = B. With A^½ B A^½ = W Σ Wᵀ a solution of TᵀT = G is T = Σ^¼ Wᵀ A^{−½}, for which T A Tᵀ =
    /// T⁻ᵀ B T⁻¹ = Σ^½. A side without variance gets `ridge` times the other side's mean variance in every direction;
    /// if both have none, T is the identity.
    pub fn new(x: &Array2<f64>, y: &Array2<f64>, ridge: f64) -> Result<Self> {
        let (ridge, d) = (ridge.max(LEAST_RIDGE), x.nrows());
        let (size_x, size_y) = (mean_variance(x), mean_variance(y));
        if size_x == 0.0 && size_y == 0.0 {
            return Ok(Balance { left: Array2::eye(d), right: Array2::eye(d) });
        }
        let (a, size_x) = relative(x, size_x, ridge, size_y);
        let (b, size_y) = relative(y, size_y, ridge, size_x);
        let backend = Backend::default();
        let sides = backend.eigen(&a)?;
        let roots = sides.values.mapv(|value| value.max(ridge).sqrt());
        let root = scaled(&sides.vectors, &roots).dot(&sides.vectors.t());
        let inverse = scaled(&sides.vectors, &roots.recip()).dot(&sides.vectors.t());
        progress::check()?;
        let product = backend.eigen(&root.dot(&b).dot(&root))?;
        // The value is at least that of two sides that consist of their ridge only.
        let fourth = product.values.mapv(|value| value.max(ridge * ridge).sqrt().sqrt());
        // Roots are taken separately, because the ratio may overflow or underflow.
        let unit = size_y.sqrt().sqrt() / size_x.sqrt().sqrt();
        let left = scaled(&product.vectors, &fourth).t().dot(&inverse) * unit;
        let right = scaled(&product.vectors, &fourth.recip()).t().dot(&root) / unit;
        // One Newton step, because rounding errors are large relative to a small ridge.
        let off = left.dot(&right.t()) - Array2::<f64>::eye(d);
        let right = &right - &off.t().dot(&right);
        Ok(Balance { left, right })
    }

    /// E wwᵀ for w = T(x − μ_x) + T⁻ᵀ(y − μ_y), from the moments about μ.
    pub fn sum_moment(&self, x: &Array2<f64>, y: &Array2<f64>, cross: Option<&Array2<f64>>) -> Array2<f64> {
        let Balance { left, right } = self;
        let mut moment = left.dot(x).dot(&left.t()) + right.dot(y).dot(&right.t());
        if let Some(cross) = cross {
            let product = left.dot(cross).dot(&right.t());
            moment += &product;
            moment += &product.t();
        }
        moment
    }
}

/// The mean of the diagonal, computed so that it does not overflow where the sum does.
pub(super) fn mean_variance(covariance: &Array2<f64>) -> f64 {
    let d = covariance.nrows() as f64;
    covariance.diag().iter().map(|v| v / d).sum()
}

/// The covariance plus ridge, divided by its mean variance, and that mean variance.
fn relative(covariance: &Array2<f64>, size: f64, ridge: f64, other: f64) -> (Array2<f64>, f64) {
    if size == 0.0 {
        return (Array2::eye(covariance.nrows()), (ridge * other).max(f64::MIN_POSITIVE));
    }
    let mut relative = covariance / size;
    relative.diag_mut().mapv_inplace(|v| v + ridge);
    (relative, size)
}

/// V diag(s).
fn scaled(vectors: &Array2<f64>, scales: &Array1<f64>) -> Array2<f64> {
    vectors * &scales.view().insert_axis(Axis(0))
}
