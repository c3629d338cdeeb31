//! [`GramSpectrum`]: the singular values of kernel values, and the least errors of their estimates.

use ndarray::{Array2, ArrayRef2};

use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive};
use crate::kernel::Kernel;
use crate::linalg::Backend;
use crate::memory::check_memory;
use crate::once::once;
use crate::theory::limits;

/// The singular values of the kernel values of given points, and from them the least errors that any D features can have there.
///
/// ```
/// use random_features::data::GramSpectrum;
/// use random_features::kernel::Gaussian;
/// use random_features::ndarray::Array2;
/// let x =
///     Array2::from_shape_fn((100, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
/// let spectrum = GramSpectrum::new(&Gaussian::new(1.0)?, &x, &x)?;
/// println!("32 independent features: {}", spectrum.independent_error(32));
/// println!("without bias: {}", spectrum.unbiased_error(32));
/// println!("any: {}", spectrum.least_error(32));
/// assert!(spectrum.least_error(32) < spectrum.unbiased_error(32));
/// assert!(spectrum.unbiased_error(32) < spectrum.independent_error(32));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// σ₁ ≥ σ₂ ≥ … are the singular values of the matrix of K(xᵢ, yⱼ), n × l, divided by its Frobenius norm: their squares
/// sum to 1. Errors are √(Σ E(K̂ − K)²/Σ K²) over all pairs of these points, as the Gram loss of a plan is. If the
/// points are a sample, errors for all points are only estimated. The unbiased and the independent error of a sample of
/// n rows are at most √(n/D − 1) and √((n − 1)/D), so that they are too low for narrow kernels. The least error of any
/// features may be too low or too high.
///
/// # Cost
/// O(nld) for the kernel values, and O(nl min(n, l)) for the singular values, in `f64`.
///
/// # References
/// [`theory::limits`](crate::theory::limits) has the sources.
#[doc(alias = "eigenvalues")]
#[doc(alias = "Eckart-Young")]
#[derive(Clone, Debug, PartialEq)]
pub struct GramSpectrum {
    values: Vec<f64>,
}

impl GramSpectrum {
    /// Computes the singular values of the kernel values K(xᵢ, yⱼ) for points in rows, n × d and l × d. For one set of
    /// points give it twice.
    ///
    /// # Errors
    /// The errors of [`of_gram`](GramSpectrum::of_gram); [`Shape`](Error::Shape) if the numbers of columns differ, the errors of
    /// [`check_dim`](Kernel::check_dim), [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an infinity, or a kernel value that
    /// overflows.
    #[inline(never)]
    pub fn new<T: Real>(kernel: &dyn Kernel<f64>, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Self> {
        Self::of_gram(&kernel.gram(&wide("the points x", x)?, &wide("the points y", y)?)?)
    }

    /// Computes the singular values of a matrix of kernel values, n × l.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the matrix is empty or 0 everywhere, [`NotFinite`](Error::NotFinite) with the first row that holds NaN
    /// or an infinity, [`Factorisation`](Error::Factorisation) if the singular values cannot be had, [`Memory`](Error::Memory)
    /// if copies of the matrix do not fit in memory.
    #[inline(never)]
    pub fn of_gram<T: Real>(gram: &ArrayRef2<T>) -> Result<Self> {
        check_positive("the number of rows of the kernel values", gram.nrows())?;
        check_positive("the number of columns of the kernel values", gram.ncols())?;
        let mut gram = wide("the kernel values", gram)?;
        let largest = gram.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        if largest == 0.0 {
            let (name, domain) =
                ("the largest kernel value", "not 0: a size of which an error can be a part");
            return Err(Error::Parameter { name, value: 0.0, domain });
        }
        // Singular values of numbers near the end of the range would overflow.
        gram /= largest;
        let values = Backend::default().singular_values(&gram)?;
        let relative = &values / values[0];
        let norm = relative.dot(&relative).sqrt();
        Ok(GramSpectrum { values: (relative / norm).to_vec() })
    }

    /// The singular values over the Frobenius norm, falling: min(n, l) numbers.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The least error of D independent features without bias, of one draw each: √(((Σ σᵢ)² − 1)/D). It is NaN for D = 0.
    ///
    /// For the softmax and the Gaussian kernel, [`ImportanceMixture`](crate::map::ImportanceMixture) reaches it on one set of points. Pairs of cosines and sines, which are two
    /// features of one draw, may have less: see [`limits::independent`].
    pub fn independent_error(&self, features: usize) -> f64 {
        limits::independent(self.values.iter().rev().sum(), 1.0, features, 1).sqrt()
    }

    /// The least error of D features without bias, whatever their draws have in common: the root of [`limits::unbiased`]. It is NaN for D = 0.
    pub fn unbiased_error(&self, features: usize) -> f64 {
        limits::unbiased(&self.values, features).sqrt()
    }

    /// The least error of any D features: √(Σ_{i>D} σᵢ²), as [`limits::any`] has it.
    pub fn least_error(&self, features: usize) -> f64 {
        limits::any(&self.values, features).sqrt()
    }
}

/// An array in `f64`, all of whose numbers are finite.
fn wide<T: Real>(what: &'static str, x: &ArrayRef2<T>) -> Result<Array2<f64>> {
    check_finite(what, x)?;
    check_memory(what, x.nrows(), x.ncols().saturating_mul(size_of::<f64>()))?;
    Ok(x.mapv(Real::widen))
}

once!(GramSpectrum::new::<T>, GramSpectrum::of_gram::<T>);
