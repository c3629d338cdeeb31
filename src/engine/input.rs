//! [`Input`]: the function of a point that is projected.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_complex::Complex64;

use super::Side;
use super::logarithms::Logarithms;
use crate::Real;
use crate::kernel::Lengthscale;

/// The function of a point that is projected, and the row term of its exponents.
#[derive(Debug)]
pub(crate) enum Input {
    /// The point itself.
    Points,
    /// A complex linear image of the point.
    Linear(Linear),
    /// The logarithms of the point's coordinates.
    Logarithms(Logarithms),
}

/// z = Mu with u = x/ℓ and a matrix M for each side; exponents have the row term `inner` z·z + `outer` u·u.
///
/// z·z is bilinear, without conjugation.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub matrices: [ComplexMatrix; 2],
    pub lengthscale: Lengthscale,
    pub inner: f64,
    pub outer: f64,
}

/// A complex matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComplexMatrix {
    Diagonal(Vec<Complex64>),
    Full(Array2<Complex64>),
}

impl ComplexMatrix {
    /// Calls `put(k, (Mu)ₖ)` for all k.
    pub fn times(&self, u: &[f64], mut put: impl FnMut(usize, Complex64)) {
        match self {
            ComplexMatrix::Diagonal(entries) => {
                entries.iter().zip(u).enumerate().for_each(|(k, (a, u))| put(k, a * u));
            }
            ComplexMatrix::Full(a) => {
                for (k, row) in a.rows().into_iter().enumerate() {
                    put(k, row.iter().zip(u).map(|(a, u)| a * u).sum());
                }
            }
        }
    }

    /// out ← Re(Mᵀz).
    pub fn transposed_times(&self, z: &[Complex64], out: &mut [f64]) {
        match self {
            ComplexMatrix::Diagonal(entries) => {
                out.iter_mut().zip(entries.iter().zip(z)).for_each(|(out, (a, z))| *out = (a * z).re);
            }
            ComplexMatrix::Full(a) => {
                for (out, column) in out.iter_mut().zip(a.columns()) {
                    *out = column.iter().zip(z).map(|(a, z)| (a * z).re).sum();
                }
            }
        }
    }

    /// The real part.
    pub fn real(&self) -> Array2<f64> {
        match self {
            ComplexMatrix::Diagonal(entries) => {
                Array2::from_diag(&entries.iter().map(|a| a.re).collect::<Array1<f64>>())
            }
            ComplexMatrix::Full(a) => a.mapv(|a| a.re),
        }
    }

    pub fn is_real(&self) -> bool {
        match self {
            ComplexMatrix::Diagonal(entries) => entries.iter().all(|a| a.im == 0.0),
            ComplexMatrix::Full(a) => a.iter().all(|a| a.im == 0.0),
        }
    }
}

impl Linear {
    /// Writes Re z of all rows of `x` to `re`, Im z to `im`, and the real and imaginary part of each row's term to `terms`.
    pub fn transform<T: Real>(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        re: &mut [T],
        im: &mut [T],
        terms: &mut [[f64; 2]],
        u: &mut [f64],
    ) {
        let d = x.ncols();
        for (i, (x, term)) in x.rows().into_iter().zip(terms).enumerate() {
            self.divide(x, u);
            let mut square = Complex64::ZERO;
            let (re, im) = (&mut re[i * d..], &mut im[i * d..]);
            self.matrices[side as usize].times(u, |k, z| {
                (re[k], im[k]) = (T::saturated(z.re), T::saturated(z.im));
                square += z * z;
            });
            // A coefficient of 0 is left out: the square may be infinite.
            let outer =
                if self.outer == 0.0 { 0.0 } else { self.outer * u.iter().map(|u| u * u).sum::<f64>() };
            let inner = self.inner * square;
            *term = [inner.re + outer, inner.im];
        }
    }

    /// u ← x/ℓ.
    pub fn divide<T: Real>(&self, x: ArrayView1<'_, T>, u: &mut [f64]) {
        u.iter_mut().zip(x).enumerate().for_each(|(k, (u, v))| *u = v.widen() / self.lengthscale.at(k));
    }
}
