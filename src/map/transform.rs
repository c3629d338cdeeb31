//! [`Transform`]: the matrix of a complex-exponential map.

use ndarray::Array2;
use num_complex::Complex64;

use crate::digest::{Digest, Identify};
use crate::engine::ComplexMatrix;
use crate::error::{Error, Result, check_positive, check_size};
use crate::linalg::Lu;
#[cfg(feature = "serde")]
use crate::tagged::named;

/// An invertible complex matrix A and its inverse transpose, with which a complex-exponential map transforms points.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredTransform", into = "StoredTransform")
)]
pub struct Transform {
    /// The matrices A and A⁻ᵀ.
    sides: [ComplexMatrix; 2],
}

impl Transform {
    /// A diagonal A with these entries, one for each coordinate.
    ///
    /// ```
    /// use random_features::map::Transform;
    /// use random_features::num_complex::Complex64;
    /// assert!(Transform::diagonal(vec![Complex64::I, Complex64::ONE]).is_ok());
    /// assert!(Transform::diagonal(vec![Complex64::ZERO]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no entry, or one is 0 or not finite, or its square or inverse square
    /// overflows `f64`.
    pub fn diagonal(entries: Vec<Complex64>) -> Result<Self> {
        check_positive("the dimension of A", entries.len())?;
        let inverses: Vec<Complex64> = entries.iter().map(|a| a.finv()).collect();
        let usable = |(a, inverse): (&Complex64, &Complex64)| {
            a.norm_sqr().is_normal() && inverse.norm_sqr().is_normal()
        };
        match entries.iter().zip(&inverses).position(|pair| !usable(pair)) {
            None => {
                Ok(Transform { sides: [ComplexMatrix::Diagonal(entries), ComplexMatrix::Diagonal(inverses)] })
            }
            Some(k) => {
                let (name, value) = ("the magnitude of an entry of A", entries[k].norm());
                Err(Error::Parameter {
                    name,
                    value,
                    domain: "not 0 and finite, with a square and an inverse square in range",
                })
            }
        }
    }

    /// A full matrix A, d × d. Cost O(d³).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if A is not square, [`Parameter`](Error::Parameter) if it is empty, singular or not
    /// finite.
    pub fn full(a: Array2<Complex64>) -> Result<Self> {
        check_positive("the dimension of A", a.nrows())?;
        check_size("the number of columns of A", a.nrows(), a.ncols())?;
        let inverse = Lu::factor(a.t().to_owned())?.inverse();
        Ok(Transform { sides: [ComplexMatrix::Full(a), ComplexMatrix::Full(inverse)] })
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        match &self.sides[0] {
            ComplexMatrix::Diagonal(entries) => entries.len(),
            ComplexMatrix::Full(a) => a.nrows(),
        }
    }

    /// ζ = Ax + A⁻ᵀy.
    pub(crate) fn zeta(&self, x: &[f64], y: &[f64]) -> Vec<Complex64> {
        let mut zeta = vec![Complex64::ZERO; x.len()];
        self.sides[0].times(x, |k, z| zeta[k] += z);
        self.sides[1].times(y, |k, z| zeta[k] += z);
        zeta
    }

    /// A and A⁻ᵀ, if they are real.
    pub(crate) fn real_sides(&self) -> Option<[Array2<f64>; 2]> {
        self.sides[0].is_real().then(|| self.sides.each_ref().map(ComplexMatrix::real))
    }

    /// Whether both sides have equal features: A is the conjugate of A⁻ᵀ.
    pub(crate) fn is_symmetric(&self) -> bool {
        match &self.sides {
            [ComplexMatrix::Diagonal(a), ComplexMatrix::Diagonal(b)] => {
                a.iter().zip(b).all(|(a, b)| *a == b.conj())
            }
            [ComplexMatrix::Full(a), ComplexMatrix::Full(b)] => a.iter().zip(b).all(|(a, b)| *a == b.conj()),
            _ => false,
        }
    }

    /// A, then A⁻ᵀ.
    pub(crate) fn sides(&self) -> &[ComplexMatrix; 2] {
        &self.sides
    }
}

/// A transform is identified by A, from which A⁻ᵀ follows.
impl Identify for Transform {
    fn identify(&self, digest: &mut Digest) {
        match &self.sides[0] {
            ComplexMatrix::Diagonal(entries) => ("diagonal", entries).identify(digest),
            ComplexMatrix::Full(a) => ("full", a).identify(digest),
        }
    }
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
enum StoredTransform {
    Diagonal(Vec<Complex64>),
    Full(Array2<Complex64>),
}

#[cfg(feature = "serde")]
named!(StoredTransform, "a kind of matrix" {
    "diagonal" => Diagonal[entries: Vec<Complex64>],
    "full" => Full[a: Array2<Complex64>],
});

#[cfg(feature = "serde")]
impl TryFrom<StoredTransform> for Transform {
    type Error = Error;

    fn try_from(stored: StoredTransform) -> Result<Self> {
        match stored {
            StoredTransform::Diagonal(entries) => Transform::diagonal(entries),
            StoredTransform::Full(a) => Transform::full(a),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Transform> for StoredTransform {
    fn from(transform: Transform) -> Self {
        let [a, _] = transform.sides;
        match a {
            ComplexMatrix::Full(a) => StoredTransform::Full(a),
            ComplexMatrix::Diagonal(entries) => StoredTransform::Diagonal(entries),
        }
    }
}
