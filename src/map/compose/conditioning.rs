//! [`Conditioning`]: an affine transformation of points that leaves a softmax or Gaussian kernel unchanged.

use ndarray::{Array2, ArrayRef1};
use num_complex::Complex64;

use crate::Real;
use crate::digest::identified;
use crate::engine::Affine;
use crate::error::{Error, Result, check_positive, check_size};
use crate::kernel::Exponential;
use crate::linalg::Lu;
use crate::memory::check_memory;
use crate::numeric::matrix_times;

/// An affine transformation of points that leaves a softmax or Gaussian kernel unchanged and reduces the variance of
/// its estimates.
///
/// ```
/// use random_features::Positive;
/// use random_features::compose::Conditioning;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{arr1, arr2};
/// let map = Positive.softmax::<f64>(Orthogonal.draw(2, 64, 1)?)?;
/// // Queries vary in the first coordinate, keys in the second.
/// let (x, y) = (arr1(&[3.0f64, 0.2]), arr1(&[0.3, 2.5]));
/// let t = Conditioning::new(arr2(&[[0.3, 0.0], [0.0, 3.0]]))?;
/// let shaped = map.conditioned(&t)?;
/// let kernel = x.dot(&y).exp();
/// let spread =
///     |map: &random_features::Map<f64>| -> random_features::Result<f64> {
///         Ok((0.5 * map.log_variance(&x, &y)?.unwrap()).exp() / kernel)
///     };
/// assert!(spread(&map)? > 100.0 && spread(&shaped)? < 3.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// For an invertible T and any c_x, c_y let u = T(x/ℓ − c_x) and v = T⁻ᵀ(y/ℓ − c_y). Then exp(x·y/ℓ²) = exp(u·v)
/// exp(x·c_y/ℓ) exp(c_x·y/ℓ) exp(−c_x·c_y). All factors except the first depend on one point only and become
/// logarithmic scales of features. [`Map::conditioned`](super::Map::conditioned) gives the features of any unbiased map for
/// one of these kernels at u and v, times these factors. This adds no bias, and the variance is that of the map at (u, v),
/// which is small for suitable c and T. c_x and c_y are in units of the lengthscale.
///
/// Keeping only r rows of T and T⁻ᵀ ([`truncated`](Conditioning::truncated)) **is biased**: the exponent of K then
/// lacks (x/ℓ − c_x)·(y/ℓ − c_y) − u·v ([`log_bias`](Conditioning::log_bias)). Dropping a coordinate reduces the
/// variance by about its share of E‖u+v‖² and changes the exponent only to second order.
///
/// # Variance
/// The variance is e^{2t} times that of the map at (u, v), where e^t is the product of the factors of both points. Relative to
/// K² it is exactly that of the map at (u, v). For exponential maps it depends on E‖u+v‖², which is smallest if c are the
/// means and T C_x Tᵀ = T⁻ᵀ C_y T⁻¹ with the covariances C. For with G = TᵀT, E‖Tx‖² + E‖T⁻ᵀy‖² = tr(G C_x) + tr(G⁻¹ C_y)
/// is convex in G and stationary where G C_x G = C_y.
///
/// # Exact where
/// Where the map is exact at u and v.
///
/// # Cost
/// For a plain map with a dense projection, the cost of the map plus ½d² for the norm of u, since T is multiplied into the
/// frequencies. For other maps, the cost of the map plus r d for a product with T. Normalised attention does not compute the
/// factors of queries.
///
/// # References
/// With real T and without shifts: complex-exponential features with a real matrix (Choromanski et al., *Hybrid Random Features*,
/// section 3); optimal T: Likhosherstov et al., *Dense-Exponential Random Features*. Shifts: new.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredConditioning", into = "StoredConditioning")
)]
pub struct Conditioning {
    /// T and T⁻ᵀ, or r rows of them.
    matrices: [Array2<f64>; 2],
    /// c_x and c_y.
    shifts: [Vec<f64>; 2],
}

/// The largest allowed difference of the product of the two matrices from the identity.
const TOLERANCE: f64 = 1e-8;

impl Conditioning {
    /// The transformation by T, d × d, without shifts.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if T is not square, [`Parameter`](Error::Parameter) if it is empty, singular or not finite.
    pub fn new(t: Array2<f64>) -> Result<Self> {
        check_positive("the dimension of T", t.nrows())?;
        check_size("the number of columns of T", t.nrows(), t.ncols())?;
        let singular = |error| match error {
            Error::Parameter { value, domain, .. } => {
                Error::Parameter { name: "a pivot of the matrix T", value, domain }
            }
            other => other,
        };
        let inverse = Lu::factor(t.t().mapv(Complex64::from)).map_err(singular)?.inverse().mapv(|v| v.re);
        Self::of_matrices(t, inverse)
    }

    /// The transformation by rows of T and of T⁻ᵀ, r × d each: all rows, or fewer for
    /// [truncated](Conditioning::truncated) features.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the matrices differ in shape or have more rows than columns, [`Parameter`](Error::Parameter)
    /// if they are empty or the product of one with the other's transpose is not the identity.
    pub fn of_matrices(left: Array2<f64>, right: Array2<f64>) -> Result<Self> {
        check_positive("the number of rows of T", left.nrows())?;
        check_size("the number of rows of the inverse transpose of T", left.nrows(), right.nrows())?;
        check_size("the number of columns of the inverse transpose of T", left.ncols(), right.ncols())?;
        check_size("the number of rows of T", left.nrows().min(left.ncols()), left.nrows())?;
        let off = |((k, l), v): ((usize, usize), &f64)| (v - f64::from(u8::from(k == l))).abs();
        // NaN is kept, so that it is rejected.
        let error = left.dot(&right.t()).indexed_iter().map(off).fold(0.0, |a, b| if b <= a { a } else { b });
        if !(error <= TOLERANCE && left.iter().chain(&right).all(|v| (v * v).is_finite())) {
            let (name, domain) = ("the difference of T (T⁻¹) from the identity", "at most 1e-8");
            return Err(Error::Parameter { name, value: error, domain });
        }
        let d = left.ncols();
        Ok(Conditioning { matrices: [left, right], shifts: [vec![0.0; d], vec![0.0; d]] })
    }

    /// The identity on points in ℝᵈ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if d is 0, [`Memory`](Error::Memory) if d² numbers do not fit in memory.
    pub fn identity(d: usize) -> Result<Self> {
        // Memory is needed for the two matrices and their product.
        check_memory("rows of an identity matrix", d, d.saturating_mul(3 * size_of::<f64>()))?;
        Self::of_matrices(Array2::eye(d), Array2::eye(d))
    }

    /// Sets the shifts c_x and c_y, in units of the lengthscale. For exponential maps only c_y + TᵀT c_x matters; with c_x = 0
    /// keys have no factor.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not d entries, [`Entry`](Error::Entry) with the first whose square is not
    /// finite.
    pub fn shifted(mut self, c_x: Vec<f64>, c_y: Vec<f64>) -> Result<Self> {
        for (what, shift) in [("the shift of side X", &c_x), ("the shift of side Y", &c_y)] {
            check_size(what, self.dim(), shift.len())?;
            if let Some(row) = shift.iter().position(|c| !(c * c).is_finite()) {
                let (value, domain) = (shift[row], "a number with a finite square");
                return Err(Error::Entry { what, row, value, domain });
            }
        }
        self.shifts = [c_x, c_y];
        Ok(self)
    }

    /// Keeps only the first r coordinates of u and v, for a map of points in ℝʳ: **biased**.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless r is from 1 to the number of rows.
    pub fn truncated(&self, r: usize) -> Result<Self> {
        if r == 0 || r > self.rank() {
            let (name, domain) = ("the number of coordinates that are kept", "from 1 to that of the rows");
            return Err(Error::Parameter { name, value: r as f64, domain });
        }
        let first = |m: &Array2<f64>| m.slice(ndarray::s![..r, ..]).to_owned();
        let [left, right] = &self.matrices;
        Ok(Conditioning { matrices: [first(left), first(right)], shifts: self.shifts.clone() })
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.matrices[0].ncols()
    }

    /// r, the dimension of u and v.
    pub fn rank(&self) -> usize {
        self.matrices[0].nrows()
    }

    /// Whether the kernel is unchanged: r = d.
    pub fn is_exact(&self) -> bool {
        self.rank() == self.dim()
    }

    /// T and T⁻ᵀ, r × d each.
    pub fn matrices(&self) -> &[Array2<f64>; 2] {
        &self.matrices
    }

    /// c_x and c_y.
    pub fn shifts(&self) -> &[Vec<f64>; 2] {
        &self.shifts
    }

    /// ln K − ln K_r = (x − c_x)·(y − c_y) − u·v for points divided by the lengthscale: the bias of truncated features;
    /// 0 up to rounding if r = d. It is at most ‖x′‖‖y′‖, where x′ and y′ are the dropped parts of x − c_x and y − c_y.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a point does not have d entries.
    pub fn log_bias(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Result<f64> {
        check_size("the dimension of x", self.dim(), x.len())?;
        check_size("the dimension of y", self.dim(), y.len())?;
        if self.is_exact() {
            return Ok(0.0);
        }
        let (x, y) = (self.moved(0, x), self.moved(1, y));
        let [left, right] = &self.matrices;
        let (u, v) = (matrix_times(left, &x), matrix_times(right, &y));
        Ok(dot(&x, &y) - dot(&u, &v))
    }

    /// u or v of a point already divided by the lengthscale.
    pub(crate) fn image(&self, side: usize, point: &[f64]) -> Vec<f64> {
        matrix_times(&self.matrices[side], &self.moved(side, point))
    }

    /// u or v of points in rows, already divided by the lengthscale.
    pub(crate) fn images(&self, side: usize, points: &Array2<f64>) -> Array2<f64> {
        let mut images = Array2::zeros((points.nrows(), self.rank()));
        for (point, mut image) in points.rows().into_iter().zip(images.rows_mut()) {
            image.iter_mut().zip(self.image(side, &point.to_vec())).for_each(|(out, v)| *out = v);
        }
        images
    }

    /// A point minus the shift of its side.
    fn moved<'a>(&self, side: usize, point: impl IntoIterator<Item = &'a f64>) -> Vec<f64> {
        point.into_iter().zip(&self.shifts[side]).map(|(v, c)| v - c).collect()
    }

    /// t, the logarithm of the factor of a point that is divided by the lengthscale, for a kernel with the row term `row` ‖·‖².
    pub(super) fn log_factor(&self, row: f64, side: usize, point: &[f64], image: &[f64]) -> f64 {
        let [c_x, c_y] = &self.shifts;
        let norms = if row == 0.0 { 0.0 } else { dot(point, point) - dot(image, image) };
        dot(point, &self.shifts[1 - side]) - 0.5 * dot(c_x, c_y) + row * norms
    }

    /// Whether this is the identity.
    pub(super) fn is_identity(&self) -> bool {
        let eye = |m: &Array2<f64>| m.indexed_iter().all(|((k, l), v)| *v == f64::from(u8::from(k == l)));
        self.is_exact() && self.matrices.iter().all(eye) && self.shifts.iter().flatten().all(|c| *c == 0.0)
    }

    /// The transformation of the points of each side that the engine applies before a map with this lengthscale and row
    /// term.
    pub(super) fn affine<T: Real>(&self, exponential: &Exponential) -> [Affine; 2] {
        let (scale, row) = (&exponential.lengthscale, exponential.row);
        // Shifts are rounded to the scalar type first, so that every part of the map uses one shift.
        let raw = |side: usize| -> Vec<f64> {
            self.shifts[side].iter().enumerate().map(|(k, c)| T::saturated(c * scale.at(k)).widen()).collect()
        };
        let shifts = [raw(0), raw(1)];
        let product: f64 =
            shifts[0].iter().zip(&shifts[1]).enumerate().map(|(k, (a, b))| a * b / scale.at(k).powi(2)).sum();
        let zero = |shift: &[f64]| shift.iter().all(|c| *c == 0.0);
        [0, 1].map(|side| {
            let (own, other) = (&shifts[side], &shifts[1 - side]);
            let linear = other.iter().enumerate().map(|(k, c)| c / scale.at(k).powi(2)).collect();
            Affine {
                shift: if zero(own) { Vec::new() } else { own.clone() },
                image: -row,
                point: row,
                linear: if zero(other) { Vec::new() } else { linear },
                constant: -0.5 * product,
                ..Affine::scaled(&self.matrices[side], scale)
            }
        })
    }
}

identified! { Conditioning { matrices, shifts } }

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredConditioning {
    #[serde(with = "crate::exact")]
    left: Array2<f64>,
    #[serde(with = "crate::exact")]
    right: Array2<f64>,
    #[serde(with = "crate::exact")]
    shift_x: Vec<f64>,
    #[serde(with = "crate::exact")]
    shift_y: Vec<f64>,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredConditioning> for Conditioning {
    type Error = Error;

    fn try_from(parts: StoredConditioning) -> Result<Self> {
        Conditioning::of_matrices(parts.left, parts.right)?.shifted(parts.shift_x, parts.shift_y)
    }
}

#[cfg(feature = "serde")]
impl From<Conditioning> for StoredConditioning {
    fn from(conditioning: Conditioning) -> Self {
        let [left, right] = conditioning.matrices;
        let [shift_x, shift_y] = conditioning.shifts;
        StoredConditioning { left, right, shift_x, shift_y }
    }
}
