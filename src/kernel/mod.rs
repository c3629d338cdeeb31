//! Exact kernels: the definitions that feature maps approximate.
//!
//! ```
//! use random_features::kernel::{Gaussian, Kernel};
//! use random_features::ndarray::arr2;
//! let kernel = Gaussian::new(2.0)?;
//! let x = arr2(&[[0.0, 0.0], [0.0, 2.0]]);
//! let gram = kernel.gram(&x, &x)?;
//! assert_eq!(gram[[0, 1]], (-0.5f64).exp());
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! A kernel gives its value and its logarithm, for one pair of points or for all pairs of two sets. It computes in `f64` and
//! rounds once at the end. Maps, tests and examples take these values as the reference.
//!
//! All kernels of this module also give the [gradient](Kernel::gradient) of their value with respect to x. So does a
//! kernel of your own that states its [slope](crate::extend::ShiftInvariant::log_slope).
//!
//! | data | kernel |
//! |---|---|
//! | tables, smooth functions | [`Gaussian`] |
//! | functions with kinks, with one derivative, with two, … | [`Matern`] of smoothness ½, 3/2, 5/2, … |
//! | rough functions | [`PoweredExponential`] |
//! | functions that are rough in each coordinate | [`Laplace`], [`SpectralMixture::powered_exponential`] |
//! | several scales at once | [`RationalQuadratic`] |
//! | any other function of the distance | [`RadialKernel`] |
//! | sums and products of kernels, waves that repeat | [`SpectralMixture`] |
//! | hours, days, angles | [`Gaussian`] of [`periodic`](crate::data::periodic) points |
//! | queries and keys of attention | [`Softmax`], [`RegularisedSoftmax`] |
//! | directions without lengths | [`Angular`] |
//! | wide layers of a neural network | [`ActivationKernel`] |
//!
//! [`Map::for_kernel`](crate::Map::for_kernel) makes the features of each.

mod activation;
mod activation_kernel;
pub(crate) mod agreement;
mod angular;
mod gamma_mixture;
mod gamma_radii;
pub(crate) mod gaussian;
pub(crate) mod gradient;
pub(crate) mod laplace;
pub(crate) mod lengthscale;
mod matern;
pub(crate) mod powered_exponential;
mod radial;
mod radial_density;
pub(crate) mod radial_table;
mod rational_quadratic;
pub(crate) mod regularised;
pub(crate) mod shift_invariant;
mod softmax;
mod spectral_mixture;
pub(crate) mod spectrum;

pub use activation::Activation;
pub use activation_kernel::ActivationKernel;
pub(crate) use activation_kernel::checked_offset;
pub(crate) use angular::ln_norm;
pub use angular::{Angular, angle};
pub(crate) use gaussian::Chi;
pub use gaussian::Gaussian;
pub(crate) use laplace::Cauchy;
pub use laplace::Laplace;
pub use lengthscale::Lengthscale;
pub use matern::{Matern, Smoothness};
pub use powered_exponential::PoweredExponential;
pub use radial::RadialKernel;
pub use rational_quadratic::RationalQuadratic;
pub use regularised::RegularisedSoftmax;
pub(crate) use regularised::RootDim;
pub(crate) use shift_invariant::{OwnKernel, ShiftInvariant};
pub use softmax::Softmax;
pub(crate) use spectral_mixture::Component;
pub use spectral_mixture::SpectralMixture;
pub(crate) use spectrum::{Marginal, Radii, Radius, Spectrum};

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

use crate::digest::Identity;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::slice_of;
use crate::once::once;
use crate::{Real, SignedLog, progress, threads};

/// An exact kernel K(x, y) on ℝᵈ.
///
/// Required methods are [`check_dim`](Kernel::check_dim) and [`log_of_slices`](Kernel::log_of_slices). NaN in a point
/// gives NaN; infinities follow IEEE arithmetic.
pub trait Kernel<T: Real>: std::fmt::Debug + Send + Sync {
    /// Checks that points of dimension `d` fit this kernel.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the kernel has parameters for another dimension, [`Parameter`](crate::Error::Parameter)
    /// if `d` is above the dimension of a [`RegularisedSoftmax`].
    fn check_dim(&self, d: usize) -> Result<()>;

    /// ln K(x, y) for two slices of equal length that [`check_dim`](Kernel::check_dim) accepts.
    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog;

    /// Writes numbers g, one for each of the d coordinates, for which the gradient ∂K(x, y)/∂x is eˢ g, and returns s. Slices have
    /// equal lengths that [`check_dim`](Kernel::check_dim) accepts.
    ///
    /// s may be infinite: where g is 0, the gradient is 0 nevertheless. A point with NaN has NaN in g or in s. `None` must be
    /// returned at all points or at none, and the default returns it: the kernel then has no gradients.
    fn gradient_of_slices(&self, _x: &[T], _y: &[T], _out: &mut [f64]) -> Option<f64> {
        None
    }

    /// The kernel as exp(x·y/ℓ²) times a factor of each point, if it is the softmax or the Gaussian kernel. Maps for
    /// these kernels can be [conditioned](crate::compose::Conditioning).
    fn exponential(&self) -> Option<Exponential> {
        None
    }

    /// A hash of the kernel and its parameters: kernels of equal identities are equal. The default is `None`: the kernel then
    /// counts as different from every other.
    fn identity(&self) -> Option<Identity> {
        None
    }

    /// ln K(x, y) for two points of equal dimension.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the dimensions differ; the errors of [`check_dim`](Kernel::check_dim).
    fn log_value(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<SignedLog> {
        let mut log = SignedLog::from(0.0);
        with_pair(x, y, &|d| self.check_dim(d), &mut |x, y| log = self.log_of_slices(x, y))?;
        Ok(log)
    }

    /// K(x, y); 0 or ±∞ where `T` underflows or overflows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the dimensions differ; the errors of [`check_dim`](Kernel::check_dim).
    fn value(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<T> {
        Ok(T::narrow(self.log_value(x, y)?.value()))
    }

    /// The gradient ∂K(x, y)/∂x, d numbers; 0 or ±∞ where `T` underflows or overflows. Cost O(d) and two or three values.
    ///
    /// ```
    /// use random_features::kernel::{Gaussian, Kernel};
    /// use random_features::ndarray::arr1;
    /// let (x, y) = (arr1(&[1.0, 2.0]), arr1(&[0.0, 2.0]));
    /// let gradient = Gaussian::new(1.0)?.gradient(&x, &y)?;
    /// assert!((gradient[0] + (-0.5f64).exp()).abs() < 1e-15);
    /// assert_eq!(gradient[1], 0.0);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// It is 0 at x = y for functions of x − y, also where they have a kink, and along each coordinate in which a product over
    /// coordinates has one. Kernels of this module are symmetric: their ∂K(x, y)/∂y is the gradient at (y, x). The kernel of a
    /// map with a matrix is not. NaN in a point gives NaN.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) for a kernel without gradients: a kernel of your own that
    /// states no [slope](crate::extend::ShiftInvariant::log_slope) or has no
    /// [`gradient_of_slices`](Kernel::gradient_of_slices), a Nyström kernel of one of these, and the kernel of a truncated
    /// [conditioned](crate::compose::Conditioning) map;
    /// [`Shape`](crate::Error::Shape) if the dimensions differ; the errors of [`check_dim`](Kernel::check_dim).
    fn gradient(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Array1<T>> {
        let (mut gradient, mut ln_scale) = (vec![0.0; x.len()], None);
        with_pair(x, y, &|d| self.check_dim(d), &mut |x, y| {
            ln_scale = self.gradient_of_slices(x, y, &mut gradient);
        })?;
        scaled(&gradient, ln_scale)
    }

    /// The matrix of K(xᵢ, yⱼ) for points in rows, n × l. Cost O(n l d).
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the numbers of columns differ, the errors of [`check_dim`](Kernel::check_dim),
    /// [`Memory`](crate::Error::Memory) if the result does not fit in memory, [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
        gram_of(x, y, &|d| self.check_dim(d), &|x, y, logs| logs_of_pairs(self, x, y, logs))
    }

    /// The matrix of ln |K(xᵢ, yⱼ)| for points in rows, n × l. Cost O(n l d).
    ///
    /// # Errors
    /// The errors of [`gram`](Kernel::gram).
    fn log_gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<f64>> {
        log_gram_of(x, y, &|d| self.check_dim(d), &|x, y, logs| logs_of_pairs(self, x, y, logs))
    }
}

/// The kernel exp(x·y/ℓ² + r ‖x/ℓ‖² + r ‖y/ℓ‖²) with a number r, which conditioned maps estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    /// The lengthscale ℓ.
    pub lengthscale: Lengthscale,
    /// r: 0 for the softmax kernel, −½ for the Gaussian one.
    pub row: f64,
}

/// The check of a dimension by a kernel.
type CheckDim<'a> = dyn Fn(usize) -> Result<()> + 'a;

/// Calls `work` with the coordinates of two points that fit a kernel.
#[inline(never)]
fn with_pair<T: Real>(
    x: &ArrayRef1<T>,
    y: &ArrayRef1<T>,
    check_dim: &CheckDim<'_>,
    work: &mut dyn FnMut(&[T], &[T]),
) -> Result<()> {
    check_size("the dimension of y", x.len(), y.len())?;
    check_dim(x.len())?;
    let (x, y) = (x.as_standard_layout(), y.as_standard_layout());
    work(slice_of(&x), slice_of(&y));
    Ok(())
}

/// The gradient eˢ g, if there is one. Entries of g that are 0 stay 0 where s is infinite.
fn scaled<T: Real>(g: &[f64], ln_scale: Option<f64>) -> Result<Array1<T>> {
    let ln_scale = ln_scale.ok_or(Error::Unsupported { what: "gradients of this kernel" })?;
    let entry = |v: f64| match v == 0.0 && !ln_scale.is_nan() {
        true => 0.0,
        false => SignedLog::from(v).scaled(ln_scale).value(),
    };
    Ok(g.iter().map(|v| T::narrow(entry(*v))).collect())
}

/// The number of pairs in a run, after which a Gram matrix may be cancelled.
const RUN: usize = 256;

/// Writes ln K(x, yⱼ) for some points in rows.
type LogsOfPairs<'a, T> = dyn Fn(&[T], ArrayView2<'_, T>, &mut [SignedLog]) + Sync + 'a;

/// The part of a Gram matrix that is compiled for each kernel.
fn logs_of_pairs<T: Real, K: Kernel<T> + ?Sized>(
    kernel: &K,
    x: &[T],
    y: ArrayView2<'_, T>,
    logs: &mut [SignedLog],
) {
    logs.iter_mut().zip(y.rows()).for_each(|(log, y)| *log = kernel.log_of_slices(x, slice_of(&y)));
}

/// The matrix of K(xᵢ, yⱼ), whatever the kernel.
#[inline(never)]
fn gram_of<T: Real>(
    x: &ArrayRef2<T>,
    y: &ArrayRef2<T>,
    check_dim: &CheckDim<'_>,
    logs_of_pairs: &LogsOfPairs<'_, T>,
) -> Result<Array2<T>> {
    pairwise(x, y, check_dim, logs_of_pairs, |k| T::narrow(k.value()))
}

/// The matrix of ln |K(xᵢ, yⱼ)|, whatever the kernel.
#[inline(never)]
fn log_gram_of<T: Real>(
    x: &ArrayRef2<T>,
    y: &ArrayRef2<T>,
    check_dim: &CheckDim<'_>,
    logs_of_pairs: &LogsOfPairs<'_, T>,
) -> Result<Array2<f64>> {
    pairwise(x, y, check_dim, logs_of_pairs, |k| k.ln_abs)
}

/// The matrix of a number for each pair of points, from the logarithm of its kernel.
fn pairwise<T: Real, A: Copy + Send>(
    x: &ArrayRef2<T>,
    y: &ArrayRef2<T>,
    check_dim: &CheckDim<'_>,
    logs_of_pairs: &LogsOfPairs<'_, T>,
    entry: impl Fn(SignedLog) -> A + Sync,
) -> Result<Array2<A>> {
    check_size("the number of columns of y", x.ncols(), y.ncols())?;
    check_dim(x.ncols())?;
    check_memory("rows of a Gram matrix", x.nrows(), y.nrows().saturating_mul(size_of::<A>()))?;
    let (x, y) = (x.as_standard_layout(), y.as_standard_layout());
    let mut gram = Array2::from_elem((x.nrows(), y.nrows()), entry(SignedLog::from(0.0)));
    let going = threads::map(gram.rows_mut().into_iter().zip(x.rows()), |(mut row, x)| {
        let mut logs = [SignedLog::from(0.0); RUN];
        let runs = row.axis_chunks_iter_mut(Axis(0), RUN).zip(y.axis_chunks_iter(Axis(0), RUN));
        for (mut entries, y) in runs {
            progress::check()?;
            logs_of_pairs(slice_of(&x), y, &mut logs);
            entries.iter_mut().zip(&logs).for_each(|(out, log)| *out = entry(*log));
        }
        Ok(())
    });
    going.into_iter().collect::<Result<()>>().map(|()| gram)
}

once!(gram_of::<T>, log_gram_of::<T>);

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr1, arr2, s};

    #[test]
    fn values_of_the_definition() {
        let (x, y) = (arr1(&[1.0f64, -2.0]), arr1(&[0.5, 0.25]));
        assert_eq!(Softmax::new(1.0).unwrap().value(&x, &y).unwrap(), 1.0);
        assert_eq!(Softmax::new(2.0).unwrap().log_value(&arr1(&[3.0]), &arr1(&[4.0])).unwrap().ln_abs, 3.0);
        let distance = 0.25 + 2.25f64.powi(2);
        assert_eq!(Gaussian::new(1.0).unwrap().value(&x, &y).unwrap(), (-0.5 * distance).exp());
        let ard = Gaussian::new(vec![0.5, 2.25]).unwrap();
        assert_eq!(ard.log_value(&x, &y).unwrap().ln_abs, -1.0);
    }

    #[test]
    fn batches_take_any_layout() {
        let x = arr2(&[[1.0f32, 2.0, 3.0], [0.0, -1.0, 0.5]]);
        let kernel = Gaussian::new(1.5).unwrap();
        let plain = kernel.gram(&x, &x).unwrap();
        let columns = x.t().as_standard_layout().reversed_axes().to_owned();
        assert_eq!(kernel.gram(&columns, &x.slice(s![.., ..])).unwrap(), plain);
        assert_eq!(plain[[0, 1]], kernel.value(&x.row(0), &x.row(1)).unwrap());
        assert_eq!(plain.diag().to_vec(), [1.0, 1.0]);
        assert_eq!(kernel.gram(&x.slice(s![..0, ..]), &x).unwrap().len_of(Axis(0)), 0);
    }

    #[test]
    fn runs_of_pairs_end_where_points_end() {
        let kernel = Gaussian::new(40.0).unwrap();
        let x = arr2(&[[0.5], [-3.0]]);
        for count in [1, RUN - 1, RUN, RUN + 1, 3 * RUN + 7] {
            let y = Array2::from_shape_fn((count, 1), |(j, _)| j as f64 / 10.0);
            let (gram, logs) = (kernel.gram(&x, &y).unwrap(), kernel.log_gram(&x, &y).unwrap());
            for ((i, j), value) in gram.indexed_iter() {
                assert_eq!(*value, kernel.value(&x.row(i), &y.row(j)).unwrap());
                assert_eq!(logs[[i, j]], kernel.log_value(&x.row(i), &y.row(j)).unwrap().ln_abs);
            }
        }
    }

    #[test]
    fn logs_outlive_the_range() {
        let x = arr1(&[1e30f32]);
        let log = Softmax::new(1.0).unwrap().log_value(&x, &x).unwrap();
        assert_eq!((log.ln_abs, log.sign), (f64::from(1e30f32).powi(2), 1.0));
        assert_eq!(Softmax::new(1.0).unwrap().value(&x, &x).unwrap(), f32::INFINITY);
    }

    #[test]
    fn refusals_name_the_value() {
        for (bad, shown) in
            [(0.0, "0"), (-1.5, "-1.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (1e-200, "1e-200")]
        {
            let error = Gaussian::new(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the lengthscale is {shown}, but must be")), "{error}");
        }
        assert!(Gaussian::new(vec![]).is_err());
        let ard = Softmax::new(vec![1.0, 2.0]).unwrap();
        assert!(ard.value(&arr1(&[1.0f64]), &arr1(&[1.0])).is_err());
        assert!(ard.value(&arr1(&[1.0f64, 2.0]), &arr1(&[1.0])).is_err());
    }
}
