//! [`KernelPca`]: principal components of features.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1, ArrayView2, aview1};

use crate::apply::ridge::Normal;
use crate::apply::{Ridge, Standardisation};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};
use crate::linalg::largest_eigenpairs;
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::GramIntake;
use crate::{Points, Real};

/// The relative difference below which two entries count as equal.
const EQUAL: f64 = 1e-6;

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
/// Let Σ w (φ − φ̄)(φ − φ̄)ᵀ = Σ_k s_k v_k v_kᵀ over the training points, with s falling. The components of a point are z_k(x) =
/// v_k·(φ(x) − φ̄), and s_k / Σ w is their variance over the training points. Up to the sign of each column, they are the
/// components of kernel PCA with the centred Gram matrix of the estimates. In each v, the entry of largest magnitude is positive,
/// the first of equal ones. If directions have equal variance, only the space that they span is determined. Directions whose
/// variance is below its rounding error are not determined, and their variance is given as 0.
///
/// # Cost
/// Projecting a point on k components costs O(m d + D k). The components are found by the method of Lanczos if k is at most D/5
/// and D at least 200. It takes a few tens of steps of about D² each, and leaves residuals ‖Av − sv‖ of at most 10⁻⁸ s₁. Otherwise
/// they take O(D³), or O(n² D + n³) for n < D points in memory.
///
/// # References
/// B. Schölkopf, A. Smola, K.-R. Müller, *Nonlinear Component Analysis as a Kernel Eigenvalue Problem*, Neural Computation 10,
/// 1998; D. Lopez-Paz and others, *Randomized Nonlinear Component Analysis*, ICML 2014.
#[doc(alias = "kernel PCA")]
#[doc(alias = "KPCA")]
#[derive(Clone, Debug)]
pub struct KernelPca<T: Real> {
    /// z as linear functions of features, whose weights are the directions v.
    pub(super) projection: Ridge<T>,
    /// φ̄, D numbers, which are subtracted from features.
    pub(super) mean: Vec<f64>,
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
        check_components(components, sums.feature_dim())?;
        let normal = Normal::centred(sums)?;
        normal.check_products()?;
        let Normal { a, mean_features, weight, total_noise, .. } = normal;
        let total = a.diag().sum() / weight;
        let found = largest_eigenpairs(a, components)?;
        // Eigenvalues below the rounding error of the matrix count as 0.
        let variance = |s: &f64| if *s > total_noise { s / weight } else { 0.0 };
        let variances: Vec<f64> = found.values.iter().map(variance).collect();
        let total = total.max(variances.iter().sum());
        let inputs = sums.standardisation().cloned();
        Ok(Self::new((map.clone(), inputs), mean_features, found.vectors, variances, total))
    }

    /// Components with the given directions, D × k, whose signs are set here.
    pub(super) fn new(
        (map, inputs): (Map<T>, Option<Standardisation>),
        mean: Array1<f64>,
        mut directions: Array2<f64>,
        variances: Vec<f64>,
        total: f64,
    ) -> Self {
        directions.columns_mut().into_iter().for_each(|mut v| v *= sign(v.view()));
        let offsets = -mean.dot(&directions);
        KernelPca {
            projection: Ridge::new(map, inputs, directions, offsets),
            mean: mean.to_vec(),
            variances,
            total,
        }
    }

    /// Projects the rows of `x`, n × d: the components z(x), n × k. Points are in the original units: they are standardised as
    /// the points of the statistics were. A row that is not finite gives NaN.
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

    /// Projects the rows of `x`, n × d, and divides each component by the root of its variance: n × k numbers. Over the training
    /// points the variances are then 1, and the components uncorrelated. A component whose variance is 0 is 0.
    /// [`inverse_transform_whitened`](KernelPca::inverse_transform_whitened) is the way back.
    ///
    /// # Errors
    /// The errors of [`transform`](KernelPca::transform).
    #[doc(alias = "whiten")]
    pub fn transform_whitened<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.whitened(x.into().view())
    }

    #[inline(never)]
    fn whitened(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        let mut components = self.projection.scores(x)?;
        for (mut column, variance) in components.columns_mut().into_iter().zip(&self.variances) {
            column *= if *variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
        }
        Ok(components.mapv(T::saturated))
    }

    /// The features φ̄ + Σ z_k v_k of components z, n × k: n × D plain values. They are the nearest to the mean among all
    /// features with these components. For z = z(x) they are the orthogonal projection of φ(x).
    ///
    /// The components are those of [`transform`](KernelPca::transform); whitened components belong to
    /// [`inverse_transform_whitened`](KernelPca::inverse_transform_whitened). The result are features, not points: in general no
    /// point has these features, and no pre-image is computed. The squared distance of φ(x) from them measures how unusual x is.
    /// Their products with the features of other points estimate the part of the kernel in the components.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if z does not have k columns, [`Memory`](crate::Error::Memory) if there is no memory for the result.
    pub fn inverse_transform(&self, components: &ArrayRef2<T>) -> Result<Array2<T>> {
        self.features_of(components, |_| 1.0)
    }

    /// The features of whitened components, n × k: n × D plain values. Each component is multiplied by the root of its variance, and
    /// then [transformed back](KernelPca::inverse_transform).
    ///
    /// The components are those of [`transform_whitened`](KernelPca::transform_whitened).
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::apply::pca::PcaStatistics;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 16, 1)?, 1.0)?;
    /// let mut statistics = PcaStatistics::new(map)?;
    /// let x = Array2::from_shape_fn((50, 1), |(i, _)| i as f64 / 10.0);
    /// statistics.update(&x)?;
    /// let pca = statistics.components(3)?;
    /// let plain = pca.inverse_transform(&pca.transform(&x)?)?;
    /// let whitened = pca.transform_whitened(&x)?;
    /// let back = pca.inverse_transform_whitened(&whitened)?;
    /// assert!((back - plain).iter().all(|error| error.abs() < 1e-12));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`inverse_transform`](KernelPca::inverse_transform).
    pub fn inverse_transform_whitened(&self, components: &ArrayRef2<T>) -> Result<Array2<T>> {
        self.features_of(components, f64::sqrt)
    }

    /// The features of components that are multiplied by a function of their variances.
    #[inline(never)]
    fn features_of(&self, components: &ArrayRef2<T>, factor: fn(f64) -> f64) -> Result<Array2<T>> {
        check_size("the number of columns of the components", self.variances.len(), components.ncols())?;
        let row = self.mean.len().saturating_mul(2 * size_of::<f64>());
        check_memory("rows of features", components.nrows(), row)?;
        let mut components = components.mapv(Real::widen);
        for (mut column, variance) in components.columns_mut().into_iter().zip(&self.variances) {
            column *= factor(*variance);
        }
        let features = components.dot(&self.directions()) + aview1(&self.mean);
        Ok(features.mapv(T::saturated))
    }

    /// The directions v, k × D, one in each row.
    pub fn directions(&self) -> ArrayView2<'_, f64> {
        self.projection.weights()
    }

    /// The variance of each component over the training points, in falling order.
    pub fn explained_variance(&self) -> &[f64] {
        &self.variances
    }

    /// The variance of each component divided by the total variance of the features; 0 if all points have the same features.
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

/// Rejects a number of components that is 0 or above the number of features.
pub(super) fn check_components(components: usize, features: usize) -> Result<()> {
    let (name, domain) = ("the number of components", "from 1 to the number of features");
    let value = components as f64;
    if (1..=features).contains(&components) { Ok(()) } else { Err(Error::Parameter { name, value, domain }) }
}

/// The sign of the entry of largest magnitude, or of the first of several entries that are equal up to rounding.
fn sign(vector: ArrayView1<'_, f64>) -> f64 {
    let largest = vector.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    let first = vector.iter().find(|v| v.abs() >= largest * (1.0 - EQUAL));
    first.map_or(1.0, |v| v.signum())
}

once!(KernelPca::<T>::of, KernelPca::<T>::whitened, KernelPca::<T>::features_of,);
