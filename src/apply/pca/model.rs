//! [`KernelPca`]: principal components of features.

use ndarray::{Array2, ArrayRef2, ArrayView2, Axis, Slice};

use crate::apply::ridge::Normal;
use crate::apply::{Ridge, Standardisation};
use crate::error::{Error, Result};
use crate::linalg::Backend;
use crate::map::Map;
use crate::once::once;
use crate::reduce::GramIntake;
use crate::{Points, Real, progress};

/// Projects points onto the directions of largest variance in the space of a kernel: kernel PCA. Approximate: the kernel is the
/// map's estimate.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::Trigonometric;
/// use random_features::apply::pca::PcaStatistics;
/// use random_features::frequency::Orthogonal;
/// // Two rings, which a line cannot part.
/// let x = Array2::from_shape_fn((400, 2), |(i, k)| {
///     let angle = i as f64 * 0.1
///         + if k == 0 { 0.0 } else { std::f64::consts::FRAC_PI_2 };
///     angle.cos() * if i < 200 { 1.0 } else { 3.0 }
/// });
/// let mut statistics = PcaStatistics::new(
///     Trigonometric.gaussian(Orthogonal.draw(2, 256, 1)?, 1.5)?,
/// )?;
/// statistics.update(&x)?;
/// let pca = statistics.components(3)?;
/// let z = pca.transform(&x)?;
/// // The sign of the first component tells the rings apart.
/// let sign = z[[0, 0]].signum();
/// assert!((0..400).all(|i| (z[[i, 0]].signum() == sign) == (i < 200)));
/// assert!(pca.explained_variance_ratio().iter().sum::<f64>() > 0.5);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With Σ w (φ − φ̄)(φ − φ̄)ᵀ = Σ_k s_k v_k v_kᵀ over the training points, s falling, the components of a point are
/// z_k(x) = v_k·(φ(x) − φ̄), and s_k / Σ w is their variance over the training points. Up to the sign of each column, these are the
/// components of kernel PCA with the centred Gram matrix of the estimates. In each v the first entry within a tenth of the
/// largest in size is positive. Directions of equal variance are determined only as a space, and directions whose variance
/// is below rounding not at all: their variance is given as 0.
///
/// # Cost
/// O(m d + D k) a point, for k components.
///
/// # References
/// B. Schölkopf, A. Smola, K.-R. Müller, *Nonlinear Component Analysis as a Kernel Eigenvalue Problem*, Neural Computation 10,
/// 1998; D. Lopez-Paz and others, *Randomized Nonlinear Component Analysis*, ICML 2014.
#[doc(alias = "kernel PCA")]
#[doc(alias = "KPCA")]
#[derive(Clone, Debug)]
pub struct KernelPca<T: Real> {
    /// z as linear functions of features, with weights v.
    pub(super) projection: Ridge<T>,
    /// s_k / Σ w for the k components, falling; 0 where s_k is below rounding.
    pub(super) variances: Vec<f64>,
    /// The sum of s / Σ w over all D directions.
    pub(super) total: f64,
}

impl<T: Real> KernelPca<T> {
    /// The first `components` components of the features that `intake` sums up.
    #[inline(never)]
    pub(super) fn of(intake: &GramIntake<T>, components: usize) -> Result<Self> {
        let (map, sums) = (intake.map(), intake.sums());
        let width = sums.feature_dim();
        if !(1..=width).contains(&components) {
            let domain = "from 1 to the number of features";
            return Err(Error::Parameter {
                name: "the number of components",
                value: components as f64,
                domain,
            });
        }
        let normal = Normal::centred(sums)?;
        // Eigenvalues below the rounding error of the matrix count as 0.
        let variance = |s: &f64| if *s > normal.total_noise { s / normal.weight } else { 0.0 };
        progress::check()?;
        let mut eigen = Backend::default().eigen(&normal.a)?;
        progress::check()?;
        eigen.values.invert_axis(Axis(0));
        eigen.vectors.invert_axis(Axis(1));
        let directions = eigen.vectors.slice_axis(Axis(1), Slice::from(..components)).to_owned();
        let offsets = -normal.mean_features.dot(&directions);
        let inputs = sums.standardisation().cloned();
        Ok(KernelPca {
            projection: Ridge::new(map.clone(), inputs, directions, offsets),
            variances: eigen.values.iter().take(components).map(variance).collect(),
            total: eigen.values.iter().map(variance).sum(),
        })
    }

    /// Projects the rows of `x`, n × d: the components z(x), n × k. Points are standardised as those of the statistics were, if they
    /// were. A row that is not finite gives NaN.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`Memory`](Error::Memory) if there is no memory for
    /// the result.
    pub fn transform<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.projection.predict(x)
    }

    /// Writes z(x) for the rows of `x`, n × d, to `out`, n × k. Memory does not grow with n.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if an array does not fit; nothing is written then. If the work is
    /// [`Cancelled`](Error::Cancelled), some rows are written.
    pub fn transform_into<'a>(&self, x: impl Into<Points<'a, T>>, out: &mut ArrayRef2<T>) -> Result<()> {
        self.projection.predict_into(x, out)
    }

    /// The directions v in rows, k × D.
    pub fn directions(&self) -> ArrayView2<'_, f64> {
        self.projection.weights()
    }

    /// The variance of each component over the training points, falling.
    pub fn explained_variance(&self) -> &[f64] {
        &self.variances
    }

    /// The variance of each component divided by the variance of all D; 0 if all points have the same features.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let ratio = |variance: &f64| if self.total > 0.0 { variance / self.total } else { 0.0 };
        self.variances.iter().map(ratio).collect()
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        self.projection.map()
    }

    /// The centring and scaling of inputs, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.projection.standardisation()
    }
}

once!(KernelPca::<T>::of);
