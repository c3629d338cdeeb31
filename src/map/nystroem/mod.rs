//! [`Nystroem`]: Nyström features, which are kernel values at landmarks.

mod errors;
mod features;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod fitted;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod landmarks;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) mod leverage;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod precomputed;
mod sketch;
mod values;

use ndarray::{Array2, ArrayRef2};

use super::compose::{Part, UnbiasedNystroem};
use super::{AnyKernel, Map, PlainRecipe, Recipe, SketchDraw, Sketched};
use crate::Real;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric::{matrix_of, slice_of};
use crate::once::once;
pub(super) use sketch::NystroemSketch;
use values::{Landmarks, check_points, valued};

/// Nyström features, made of kernel values at landmarks. Their estimates K̂ are **biased**: 0 ≼ K̂ ≼ K up to rounding, unless the factor is your own.
///
/// ```
/// use random_features::Map;
/// use random_features::kernel::Gaussian;
/// use random_features::map::Nystroem;
/// use random_features::ndarray::{Array2, arr1};
/// let x =
///     Array2::from_shape_fn((500, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
/// let features = Nystroem::fit(Gaussian::new(1.0)?, &x, 40, 7)?;
/// assert!(features.trace_error(&x)? < 1e-3);
/// let map: Map<f64> = features.map()?;
/// let estimate = map.estimate(&arr1(&[0.3, 0.2]), &arr1(&[-0.5, 0.2]))?;
/// assert!((estimate - (-0.32f64).exp()).abs() < 1e-3);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φ(x) = A k(x) with k(x) = (K(x, zⱼ))ⱼ for M landmarks z and a D × M matrix A. With S = diag(K(zⱼ, zⱼ)^(−½)) (0 where
/// K(zⱼ, zⱼ) is 0) and the Gram matrix K of the landmarks, SKS = UΛUᵀ, [`new`](Nystroem::new) takes A = Λ^(−½)UᵀS. It keeps the D
/// eigenvalues above Mελ₁ with ε = 2⁻⁵² max(1, |ln K(zⱼ, zⱼ)|). Then K̂(x, y) = φ(x)·φ(y) is K(x, y) where x or y is a landmark, up to rounding. For kernels that fall off with distance, K̂ tends to
/// 0 far from all landmarks.
///
/// | landmarks | how they are chosen |
/// |---|---|
/// | [`fit`](Nystroem::fit) | 2D points, spread out or pivoted, then the best D features: the usual choice |
/// | [`uniform`](Nystroem::uniform) | points at random, which costs least |
/// | [`pivoted`](Nystroem::pivoted) | points drawn by what is left of K: randomly pivoted Cholesky |
/// | [`leverage`](Nystroem::leverage) | points drawn by ridge leverage scores, which say how little others determine a point |
/// | [`greedy`](Nystroem::greedy) | the point at which most of K is left, which takes outliers first |
/// | [`fit_unbiased`](Nystroem::fit_unbiased) | as for `fit`, with random features of the rest: no bias |
/// | [`new`](Nystroem::new) | your own |
/// | [`pivots_of_gram`](Nystroem::pivots_of_gram) | objects whose kernel values are given, with [`factor_of_gram`](Nystroem::factor_of_gram) |
/// | [`from_parts`](Nystroem::from_parts) | your own, with a factor A of your own |
///
/// Features are computed in `f64` for points of any scalar. Near the landmarks, distances of the Gaussian kernel follow from products;
/// beyond, from differences. Where x or y is a landmark, eigenvalues that are left out change K̂(x, y) by at most about
/// M√ε √(K(x, x)K(y, y)). Elsewhere K̂ may lose what nearly equal landmarks add. Values K(x, x) of landmarks, and of points that features are fitted to, must not overflow `f64`. Those of softmax do
/// at norms above 26 lengthscales. A point whose squared norm overflows has NaN features.
///
/// # Error
/// Nothing is random once the landmarks are chosen: the variance is 0 (its logarithm −∞), and the [kernel](Map::kernel) of the map
/// is K̂. [`trace_error`](Nystroem::trace_error) is its relative distance from K on the diagonal, and
/// [`frobenius_error`](Nystroem::frobenius_error) that of all pairs. Estimate both on points that the features were not fitted to,
/// where they are larger.
///
/// # Gradients
/// [`Map::pull_back`] gives gradients for every kernel that has [gradients](crate::kernel::Kernel::gradient).
/// Kernels of your own that state no [slope](crate::extend::ShiftInvariant::log_slope) have none.
/// The kernel K̂ of the map has them too. At a landmark where K has a kink, that landmark adds 0.
///
/// # Exact where
/// x or y is a landmark, before a [truncation](Nystroem::truncated).
///
/// # Cost
/// A point takes M kernel values and O(MD). Its gradient takes about twice as much for the Gaussian kernel, and three to four times
/// as much for others. Fitting costs O(M³) for the eigenvalues, and O(nM(d + M)) for `fit`, `pivoted`, `greedy` and `leverage`. Fitting
/// needs the Cargo feature `faer` or `ndarray-linalg`.
///
/// # When
/// Nyström features have a smaller error than random ones where the eigenvalues of K on the data decay fast. On
/// handwritten digits, wines and tumours, errors of `fit` were 5 to 70 times smaller than those of orthogonal
/// frequencies, with D = 64 and ℓ the median distance or half of it. Where the eigenvalues decay slowly, a regression
/// may do better on as many random features. Take random features also if the data are not known yet, estimates must be
/// unbiased, machines cannot share landmarks, or MD operations a point are too many. A plan [compares
/// both](crate::planner::Planner::with_nystroem) on points.
///
/// # References
/// Williams and Seeger, *Using the Nyström Method to Speed Up Kernel Machines*; Chen, Epperly, Tropp and Webber, *Randomly Pivoted
/// Cholesky* (`pivoted`); Musco and Musco, *Recursive Sampling for the Nyström Method*, NIPS 2017 (`leverage`).
#[doc(alias = "Nystrom")]
#[doc(alias = "Nyström")]
#[doc(alias = "landmarks")]
#[doc(alias = "RPCholesky")]
#[derive(Clone, Debug, PartialEq)]
pub struct Nystroem {
    kernel: AnyKernel,
    sketch: NystroemSketch,
}

impl Nystroem {
    /// The features A k(x) of landmarks, M × d, and a factor A, D × M, of your own.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for [`AnyKernel::implied`], [`Shape`](Error::Shape) if sizes do not fit,
    /// [`Parameter`](Error::Parameter) if M, d or D is 0 or D is above M, [`NotFinite`](Error::NotFinite) with the first row that
    /// holds NaN or an infinity, or a landmark whose squared norm overflows.
    pub fn from_parts(
        kernel: impl Into<AnyKernel>,
        landmarks: Array2<f64>,
        factor: Array2<f64>,
    ) -> Result<Self> {
        Nystroem::of_parts(kernel.into(), landmarks, factor)
    }

    fn of_parts(kernel: AnyKernel, landmarks: Array2<f64>, factor: Array2<f64>) -> Result<Self> {
        let sketch = NystroemSketch::new(Digest::of(&kernel), landmarks, factor)?;
        Landmarks::new(&kernel, sketch.landmarks.clone())?;
        Ok(Nystroem { kernel, sketch })
    }

    /// The kernel K.
    pub fn kernel(&self) -> &AnyKernel {
        &self.kernel
    }

    /// The landmarks z, M × d.
    pub fn landmarks(&self) -> &Array2<f64> {
        &self.sketch.landmarks
    }

    /// The factor A, D × M.
    pub fn factor(&self) -> &Array2<f64> {
        &self.sketch.factor
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.sketch.landmarks.ncols()
    }

    /// D, the number of features.
    pub fn feature_dim(&self) -> usize {
        self.sketch.factor.nrows()
    }

    /// These features φ with random features of what they leave of K, as a map or a recipe: estimates **without bias**.
    ///
    /// ```
    /// use random_features::kernel::Gaussian;
    /// use random_features::map::Nystroem;
    /// use random_features::ndarray::Array2;
    /// use random_features::{Map, Recipe};
    /// let x =
    ///     Array2::from_shape_fn((300, 3), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let kernel = Gaussian::new(1.0)?;
    /// let rest = Recipe::for_kernel(kernel.clone(), 3, 16)?;
    /// let recipe =
    ///     Nystroem::fit(kernel, &x, 32, 7)?.unbiased(rest)?;
    /// let map: Map<f64> = recipe.draw(1)?;
    /// assert_eq!(map.feature_dim(), 32 + 2 * 16);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Definition
    /// The features are φ(x) and f(x) − B φ(x) for features f that estimate K without bias. B = (A f(Z))ᵀ holds the features of the
    /// landmarks Z. A K Aᵀ = 1, for all of A but those of your own, makes E\[(f(x) − Bφ(x))·(f(y) − Bφ(y))\] = K(x, y) − K̂(x, y). At
    /// landmarks, before a [truncation](Nystroem::truncated), the second part is 0.
    ///
    /// The variance is that of features of the rest K − K̂, which is small where the eigenvalues of K on the data decay
    /// fast. No closed form is known. With the Cargo feature `faer` or `ndarray-linalg`, `Nystroem::fit_unbiased`
    /// chooses how many features of either kind to take.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if f is not known to estimate K, or, when a map is made of it, unless A K Aᵀ = 1;
    /// [`Shape`](Error::Shape) if f is for another dimension; the errors of [`Recipe::build`] for features of the landmarks.
    ///
    /// # Cost
    /// A point takes its features of both kinds, and D_φ D_f for B. To make a map takes O(MD_φ (D_φ + D_f)).
    ///
    /// # Exact where
    /// x or y is a landmark, before a [truncation](Nystroem::truncated). Where the law of f [is
    /// approximate](crate::theory::Law::is_approximate), estimates have a part of its bias.
    ///
    /// # References
    /// New.
    pub fn unbiased<M: Part>(&self, features: M) -> Result<M> {
        let nystroem = M::of_plain(self.plain())?;
        M::of_composite(UnbiasedNystroem { nystroem, features }.into())
    }

    /// The map as plain data, in which form it is stored. It is drawn, since nothing is random, and serves this kernel alone.
    pub fn recipe(&self) -> Recipe {
        Recipe::Plain(self.plain())
    }

    fn plain(&self) -> PlainRecipe {
        PlainRecipe::new(Sketched, SketchDraw::new(self.sketch.clone()).with_seed(0), self.kernel.clone())
    }

    /// The map for points of scalar T.
    ///
    /// # Errors
    /// The errors of [`Recipe::build`].
    #[inline(never)]
    pub fn map<T: Real>(&self) -> Result<Map<T>> {
        self.recipe().build()
    }
}

/// The number of points whose features are held at once.
const RUN: usize = 2048;

/// The rows of x in `f64`, in standard layout, for a kernel.
fn points<T: Real>(kernel: &AnyKernel, x: &ArrayRef2<T>) -> Result<Array2<f64>> {
    valued(kernel, x.ncols())?;
    check_memory("points", x.nrows(), x.ncols().saturating_mul(size_of::<f64>()))?;
    let x = matrix_of(x.nrows(), x.ncols(), x.iter().map(|v| v.widen()).collect());
    check_points("the points", &x, kernel.lengthscale())?;
    Ok(x)
}

/// K(x, x) for the rows of x, all finite.
fn diagonal(kernel: &AnyKernel, x: &Array2<f64>) -> Result<Vec<f64>> {
    let kernel = valued(kernel, x.ncols())?;
    let rows = slice_of(x).chunks_exact(x.ncols());
    let values: Vec<f64> = rows.map(|x| kernel.log_of_slices(x, x).value()).collect();
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(row) => {
            Err(Error::NotFinite { what: "the kernel values K(x, x) of the points", row, column: None })
        }
    }
}

once!(Nystroem::map::<T>);
