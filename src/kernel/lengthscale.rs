//! [`Lengthscale`]: one scale for all coordinates, or one for each.

use ndarray::Array2;

use super::angular::quadratic;
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_positive, check_size};
#[cfg(feature = "serde")]
use crate::tagged::named;

/// The lengthscale ℓ by which points are divided before anything else: K_ℓ(x, y) = K₁(x/ℓ, y/ℓ).
///
/// A lengthscale is one number, or one number for each dimension (automatic relevance determination). It converts from any number
/// (`f64`, `f32` and whole ones) and from `Vec<f64>`.
///
/// ```
/// use random_features::kernel::Gaussian;
/// let (one, each) = (Gaussian::new(2.0)?, Gaussian::new(vec![1.0, 3.0])?);
/// assert_ne!(one, each);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Kernels and maps check it: every ℓ must be positive, with ℓ² and 1/ℓ² in the range of `f64`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredLengthscale", into = "StoredLengthscale")
)]
pub enum Lengthscale {
    /// One ℓ for all coordinates.
    Isotropic(f64),
    /// One ℓₖ for each of the d coordinates.
    PerDimension(Vec<f64>),
}

impl Default for Lengthscale {
    fn default() -> Self {
        Lengthscale::Isotropic(1.0)
    }
}

impl Identify for Lengthscale {
    fn identify(&self, digest: &mut Digest) {
        match self {
            Lengthscale::Isotropic(scale) => scale.identify(digest),
            Lengthscale::PerDimension(scales) => scales.identify(digest),
        }
    }
}

/// Implements conversions from numbers, by way of [`Lengthscale`].
macro_rules! from_numbers {
    ($Type:ty, $of:expr) => {
        $crate::kernel::lengthscale::from_numbers!($Type, $of; f64 f32 i8 u8 i16 u16 i32 u32 i64 u64 isize usize);
    };
    ($Type:ty, $of:expr; $($Number:ty)*) => {
        $(impl From<$Number> for $Type {
            fn from(scale: $Number) -> Self {
                // Whole numbers beyond 2⁵³ are rounded.
                $of($crate::kernel::Lengthscale::Isotropic(scale as f64))
            }
        })*
    };
}

pub(crate) use from_numbers;

from_numbers!(Lengthscale, std::convert::identity);

impl From<Vec<f64>> for Lengthscale {
    fn from(scales: Vec<f64>) -> Self {
        Lengthscale::PerDimension(scales)
    }
}

impl Lengthscale {
    /// The lengthscale of coordinate `k`, which must be below d.
    pub(crate) fn at(&self, k: usize) -> f64 {
        match self {
            Lengthscale::Isotropic(scale) => *scale,
            Lengthscale::PerDimension(scales) => scales[k],
        }
    }

    /// xₖ/ℓₖ of each coordinate of a point, in `f64`.
    ///
    /// ```
    /// use random_features::kernel::Lengthscale;
    /// let u: Vec<f64> =
    ///     Lengthscale::from(vec![0.5, 2.0]).divide(&[1.0f32, 3.0]).collect();
    /// assert_eq!(u, [2.0, 1.5]);
    /// ```
    ///
    /// # Panics
    /// The iterator panics if there are more coordinates than lengthscales, one for each dimension.
    pub fn divide<'a, T: Real>(
        &self,
        x: impl IntoIterator<Item = &'a T, IntoIter: Clone>,
    ) -> impl Iterator<Item = f64> + Clone {
        x.into_iter().enumerate().map(|(k, v)| v.widen() / self.at(k))
    }

    /// The rows of x divided by ℓ.
    pub(crate) fn divide_rows(&self, mut x: Array2<f64>) -> Array2<f64> {
        x.indexed_iter_mut().for_each(|((_, k), v)| *v /= self.at(k));
        x
    }

    /// ℓ, if it is the same for all coordinates.
    pub(crate) fn isotropic(&self) -> Option<f64> {
        match self {
            Lengthscale::Isotropic(scale) => Some(*scale),
            Lengthscale::PerDimension(_) => None,
        }
    }

    /// The arguments of [`squared_norm`](crate::numeric::squared_norm): (1/ℓ, none) if ℓ is the same for all
    /// coordinates, else (1, 1/ℓₖ for each coordinate).
    pub(crate) fn inverses(&self) -> (f64, Vec<f64>) {
        match self {
            Lengthscale::Isotropic(scale) => (scale.recip(), Vec::new()),
            Lengthscale::PerDimension(scales) => (1.0, scales.iter().map(|s| s.recip()).collect()),
        }
    }

    /// Σₖ term(xₖ, yₖ)/ℓₖ² for a quadratic form `term`, in `f64`: ±∞ only if the sum itself overflows.
    pub(super) fn sum<T: Real>(&self, x: &[T], y: &[T], term: impl Fn(f64, f64) -> f64) -> f64 {
        let terms = x.iter().zip(y).map(|(x, y)| term(x.widen(), y.widen()));
        let sum = match self {
            Lengthscale::Isotropic(scale) => terms.sum::<f64>() / (scale * scale),
            Lengthscale::PerDimension(scales) => terms.zip(scales).map(|(t, s)| t / (s * s)).sum(),
        };
        if sum.is_finite() {
            return sum;
        }
        // Coordinates divided by ℓ may be out of range, but not after they were divided by the largest.
        let largest = x.iter().chain(y).fold(0.0, |a: f64, v| a.max(v.widen().abs()));
        let (_, above) = libm::frexp(largest);
        let small = |v: &T| libm::ldexp(v.widen(), -above);
        let pairs =
            x.iter().zip(y).enumerate().map(|(k, (x, y))| (small(x) / self.at(k), small(y) / self.at(k)));
        let (sum, exponent) = quadratic(pairs, term);
        libm::ldexp(sum, exponent + 2 * above)
    }

    /// Rejects scales outside the domain.
    pub(crate) fn checked(self) -> Result<Self> {
        let scales = match &self {
            Lengthscale::Isotropic(scale) => std::slice::from_ref(scale),
            Lengthscale::PerDimension(scales) => scales,
        };
        check_positive("the number of lengthscales", scales.len())?;
        let fits =
            |scale: f64| scale > 0.0 && (scale * scale).is_normal() && (scale * scale).recip().is_normal();
        match scales.iter().find(|scale| !fits(**scale)) {
            None => Ok(self),
            Some(&value) => Err(Error::Parameter {
                name: "the lengthscale",
                value,
                domain: "positive, with its square and the inverse of that in range",
            }),
        }
    }

    /// Accepts points of dimension `d` if there is one lengthscale, or one for each of d dimensions.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are lengthscales for another dimension.
    pub fn check_dim(&self, d: usize) -> Result<()> {
        match self {
            Lengthscale::Isotropic(_) => Ok(()),
            Lengthscale::PerDimension(scales) => {
                check_size("the number of lengthscales, one for each dimension,", d, scales.len())
            }
        }
    }
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
enum StoredLengthscale {
    Isotropic(f64),
    PerDimension(Vec<f64>),
}

#[cfg(feature = "serde")]
named!(StoredLengthscale, "a kind of lengthscale" {
    "isotropic" => Isotropic[scale: f64],
    "per dimension" => PerDimension[scales: Vec<f64>],
});

#[cfg(feature = "serde")]
impl TryFrom<StoredLengthscale> for Lengthscale {
    type Error = Error;

    fn try_from(stored: StoredLengthscale) -> Result<Self> {
        match stored {
            StoredLengthscale::Isotropic(scale) => Lengthscale::from(scale).checked(),
            StoredLengthscale::PerDimension(scales) => Lengthscale::from(scales).checked(),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Lengthscale> for StoredLengthscale {
    fn from(lengthscale: Lengthscale) -> Self {
        match lengthscale {
            Lengthscale::Isotropic(scale) => StoredLengthscale::Isotropic(scale),
            Lengthscale::PerDimension(scales) => StoredLengthscale::PerDimension(scales),
        }
    }
}
