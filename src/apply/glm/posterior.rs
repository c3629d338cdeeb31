//! Laplace's approximation: variances of decision values, and mean probabilities.

use ndarray::{Array1, Array2, Axis};

use super::curvature::{Kind, Single};
use super::loss::sigmoid;
use super::{Glm, GlmFit};
use crate::Real;
use crate::apply::ridge::rotation::{ROWS, Rotation, RotationBuffers};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};
use crate::linalg::Backend;
use crate::once::once;
use crate::threads::Pool;
use crate::{Points, progress};

/// The number of nodes of the quadrature.
const NODES: usize = 64;

impl Single {
    /// φ̃ᵀH⁻¹φ̃ at the rows of `x`.
    pub fn variances<T: Real>(&self, model: &Glm<T>, x: PointsView<'_, T>) -> Result<Array1<f64>> {
        check_size("the number of columns of x", model.map().dim(), x.ncols())?;
        let inverse = self.factor.lower_inverse();
        let (map, inputs) = (model.map(), model.standardisation());
        let rotation = Rotation::new(map, inputs, &self.mean, inverse.nrows(), |k, f| inverse[[k, f]]);
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
    /// prior N(0, I/λ) and the intercept a flat prior. Approximate. Weights must be how often rows count; with weights that
    /// balance classes there is no evidence.
    ///
    /// It is −L + ½D ln λ − ½ ln|H| + ½ ln 2π, with the penalised loss L and its second derivatives H. Without an intercept the
    /// last term is left out. Losses of counts leave out ln y!.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) without [`with_posterior`](GlmFit::with_posterior), for several classes and for the hinge.
    pub fn log_evidence(&self) -> Result<f64> {
        let single = self.single()?;
        let width = self.model().map().feature_dim() as f64;
        let flat = if single.total > 0.0 { 0.5 * std::f64::consts::TAU.ln() } else { 0.0 };
        Ok(0.5 * width * self.lambda().ln() - self.loss() - 0.5 * single.log_determinant() + flat)
    }

    /// The variance of η at each row of `x`, n × d, by Laplace's approximation: φ̃ᵀH⁻¹φ̃ with φ̃ = (φ, 1), n numbers.
    /// Approximate.
    ///
    /// # Errors
    /// The errors of [`log_evidence`](GlmFit::log_evidence); [`Shape`](Error::Shape) if `x` does not have d columns.
    pub fn variances<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<f64>> {
        self.variances_of(x.into().view())
    }

    #[inline(never)]
    fn variances_of(&self, x: PointsView<'_, T>) -> Result<Array1<f64>> {
        self.single()?.variances(self.model(), x)
    }

    /// The mean probabilities of two classes under Laplace's approximation, n × 2: the mean of 1/(1 + e^(−η)), where η is normal
    /// with the [variances](GlmFit::variances) of the posterior. Approximate: the mean is computed by Gauss–Hermite quadrature
    /// with 64 nodes.
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
        let nodes = nodes()?;
        let mut means = Array2::zeros((x.nrows(), self.model().classes));
        let [smaller, larger] = [self.model().present[0], self.model().present[1]];
        for ((mut means, eta), variance) in means.rows_mut().into_iter().zip(&eta).zip(&variances) {
            let deviation = variance.sqrt();
            let mean = |sign: f64| -> f64 {
                nodes.iter().map(|(node, weight)| weight * sigmoid(sign * (eta + deviation * node))).sum()
            };
            (means[larger], means[smaller]) = (T::narrow(mean(1.0)), T::narrow(mean(-1.0)));
        }
        Ok(means)
    }

    fn single(&self) -> Result<&Single> {
        match self.curvature.as_ref().map(|curvature| &curvature.kind) {
            Some(Kind::Single(single)) if self.model().loss != super::Loss::SquaredHinge => Ok(single),
            Some(_) => {
                Err(Error::Unsupported { what: "Laplace's approximation for several classes or the hinge" })
            }
            None => Err(Error::Unsupported { what: "Laplace's approximation before GlmFit::with_posterior" }),
        }
    }
}

/// The nodes and weights of Gauss–Hermite quadrature for the standard normal law. Nodes are the eigenvalues of the matrix of the
/// recurrence of Hermite polynomials, and weights are the squared first entries of its eigenvectors.
fn nodes() -> Result<Vec<(f64, f64)>> {
    let mut recurrence = Array2::<f64>::zeros((NODES, NODES));
    (1..NODES).for_each(|k| recurrence[[k, k - 1]] = (k as f64).sqrt());
    let eigen = Backend::default().eigen(&recurrence)?;
    let weights = eigen.vectors.index_axis(Axis(0), 0).mapv(|v| v * v);
    Ok(eigen.values.into_iter().zip(weights).collect())
}

once!(GlmFit::<T>::variances_of, GlmFit::<T>::means_of);
