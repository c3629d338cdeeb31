//! [`KernelRidge`]: ridge regression from a Gram matrix, exact or estimated.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis};

use super::normal::{LEAST_SQUARE, check_lambda, squares_out_of_range};
use super::{check_finite, is_constant};
use crate::error::{Error, Result, check_positive, check_size, singular};
use crate::labels::best_classes;
use crate::linalg::Backend;
use crate::memory::check_memory;
use crate::once::once;
use crate::{Real, Targets, progress};

/// A bound of sums of squares above which results may overflow.
const LARGEST_SQUARE: f64 = 1e304;

/// Solves kernel ridge regression from the Gram matrix of the training points. With an exact kernel it is the reference for
/// regressions on features. It also takes estimates by maps whose two sides differ.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::apply::KernelRidge;
/// use random_features::kernel::{Gaussian, Kernel};
/// let x = Array2::from_shape_fn((50, 1), |(i, _)| i as f64 / 10.0);
/// let y = x.mapv(f64::sin);
/// let kernel = Gaussian::new(1.0)?;
/// let model = KernelRidge::fit(&kernel.gram(&x, &x)?, &y, 1e-6)?;
/// let at = random_features::ndarray::arr2(&[[2.05]]);
/// assert!(
///     (model.predict_from_gram(&kernel.gram(&at, &x)?)?[[0, 0]]
///         - 2.05f64.sin())
///     .abs()
///         < 1e-4
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ŷ(x) = k(x)·α + b with k(x) = (K(x, xᵢ))ᵢ and (K + λI) α + b 1 = y, 1·α = 0: the intercept b is not penalised. Estimates by
/// asymmetric or complex maps give Gram matrices that are not symmetric; their symmetric part ½(K + Kᵀ) is used. The features of
/// one side alone would estimate another kernel.
///
/// # Cost
/// A fit takes O(n³) time and O(n²) memory, for up to a few thousand points. It is solved in `f64`, also for a Gram matrix in
/// `f32`. [`RidgeStatistics`](super::RidgeStatistics) takes O(n D²) time and O(D²) memory.
///
/// # References
/// C. Saunders, A. Gammerman, V. Vovk, *Ridge Regression Learning Algorithm in Dual Variables*, ICML 1998.
#[doc(alias = "KRR")]
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRidge<T> {
    /// α, n × t.
    coefficients: Array2<T>,
    intercepts: Array1<T>,
}

impl<T: Real> KernelRidge<T> {
    /// The regression on the Gram matrix of the training points, n × n, and their targets, n × t or n, for λ ≥ 0.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit. [`Parameter`](Error::Parameter) if there are no points or targets, if the
    /// range of a target overflows, or if λ is negative or not finite. [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// or if a coefficient or an intercept is out of the range of the scalar. [`Singular`](Error::Singular), with a λ that is
    /// large enough, if K + λI is not positive definite up to rounding. This happens for repeated points with λ = 0, or if an
    /// estimate of the kernel is indefinite. [`Memory`](Error::Memory) if there is no memory for the equations in `f64`.
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn fit<'a>(gram: &ArrayRef2<T>, targets: impl Into<Targets<'a, T>>, lambda: f64) -> Result<Self> {
        let targets = targets.into();
        Self::fit_view(gram, targets.unweighted(targets.ncols(), UNWEIGHTED)?.view(), lambda)
    }

    #[inline(never)]
    fn fit_view(gram: &ArrayRef2<T>, targets: ArrayView2<'_, T>, lambda: f64) -> Result<Self> {
        check_lambda(lambda)?;
        check_gram(gram, &targets, 1)?;
        let n = gram.nrows();
        let mut matrix = symmetric_part(gram);
        matrix.diag_mut().mapv_inplace(|v| v + lambda);
        if matrix.diag().iter().any(|v| !v.is_finite()) {
            let domain = "small enough for K + λI to be finite";
            return Err(Error::Parameter { name: "λ", value: lambda, domain });
        }
        let backend = Backend::default();
        // The entries have been rounded to the scalar of the Gram matrix.
        let noise = |matrix: &Array2<f64>| {
            let largest = matrix.diag().iter().fold(0.0, |a: f64, v| a.max(v.abs()));
            largest * T::epsilon().widen() * n as f64
        };
        let too_small = |matrix: &Array2<f64>| -> Result<Error> {
            let eigen = backend.eigen(matrix)?;
            Ok(singular(lambda, lambda + 4.0 * noise(matrix) - 2.0 * eigen.values[0].min(0.0)))
        };
        progress::check()?;
        let factor = match backend.cholesky(&matrix) {
            Err(Error::Factorisation { .. }) => return Err(too_small(&matrix)?),
            factor => factor?,
        };
        let pivot = factor.lower().diag().iter().fold(f64::INFINITY, |a: f64, v| a.min(v.powi(2)));
        if pivot <= noise(&matrix) / (n as f64).sqrt() {
            return Err(too_small(&matrix)?);
        }
        // Means are subtracted from targets: beside large means, rounding would lose the differences.
        let CentredTargets { values: targets, references, offsets, .. } =
            CentredTargets::of(&targets, None, true)?;
        let means = references + offsets;
        let mut rhs = Array2::ones((n, targets.ncols() + 1));
        rhs.slice_mut(ndarray::s![.., 1..]).assign(&targets);
        factor.solve_inplace(&mut rhs)?;
        let ones = rhs.column(0).to_owned();
        let total = ones.sum();
        let mut coefficients = rhs.slice_move(ndarray::s![.., 1..]);
        let intercepts: Array1<f64> = coefficients.columns().into_iter().map(|c| c.sum() / total).collect();
        for (mut column, b) in coefficients.columns_mut().into_iter().zip(&intercepts) {
            column.scaled_add(-*b, &ones);
        }
        let intercepts = (intercepts + means).mapv(T::narrow);
        KernelRidge::new(coefficients.mapv(T::narrow), intercepts)
    }
}

/// The text of the error for weights, which a Gram matrix does not take.
pub(super) const UNWEIGHTED: &str = "weights of the rows of a Gram matrix";

/// Targets less their means.
pub(super) struct CentredTargets {
    /// Targets less their means r + o, n × t; 0 for constant targets.
    pub values: Array2<f64>,
    /// r, the first value of each target.
    pub references: Array1<f64>,
    /// o, the mean of each target less r.
    pub offsets: Array1<f64>,
    /// The error for criteria, if squares of a target that varies are out of range.
    pub out_of_range: Option<Error>,
}

impl CentredTargets {
    /// Targets, n × t, less their weighted means; without an intercept, nothing is subtracted.
    pub fn of<T: Real>(
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
        intercept: bool,
    ) -> Result<Self> {
        let zeros = || Array1::zeros(targets.ncols());
        let mut centred = CentredTargets {
            values: targets.mapv(Real::widen),
            references: zeros(),
            offsets: zeros(),
            out_of_range: None,
        };
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let total: f64 = (0..targets.nrows()).map(weight).sum();
        for (j, mut column) in centred.values.columns_mut().into_iter().enumerate() {
            let present = || column.iter().enumerate().filter(|(i, _)| weight(*i) > 0.0);
            let first = if intercept { present().next().map_or(0.0, |(_, y)| *y) } else { 0.0 };
            let (least, most) =
                present().fold((first, first), |(least, most), (_, y)| (y.min(least), y.max(most)));
            let spread = if intercept { most - least } else { most.max(-least) };
            if !spread.is_finite() {
                let (name, domain) = ("the range of a target", "finite: scale the targets");
                return Err(Error::Parameter { name, value: spread, domain });
            }
            if intercept {
                centred.references[j] = first;
                centred.offsets[j] = present().map(|(i, y)| (y - first) * (weight(i) / total)).sum();
            }
            if spread == 0.0 || (intercept && is_constant((least, most), T::epsilon().widen())) {
                column.fill(0.0);
                continue;
            }
            let offset = centred.offsets[j];
            column.mapv_inplace(|y| (y - first) - offset);
            if !(LEAST_SQUARE..LARGEST_SQUARE).contains(&(total * spread * spread)) {
                centred.out_of_range = Some(squares_out_of_range(spread, total));
            }
        }
        Ok(centred)
    }
}

/// Rejects training data of the wrong size, numbers that are not finite, and Gram matrices of which `copies` copies in `f64` do not
/// fit in memory.
pub(super) fn check_gram<T: Real>(gram: &ArrayRef2<T>, targets: &ArrayRef2<T>, copies: usize) -> Result<()> {
    check_positive("the number of points", gram.nrows())?;
    check_positive("the number of targets", targets.ncols())?;
    check_size("the number of columns of the Gram matrix", gram.nrows(), gram.ncols())?;
    check_size("the number of rows of targets", gram.nrows(), targets.nrows())?;
    let columns = gram.ncols().saturating_add(targets.ncols()).saturating_mul(copies);
    check_memory("rows of equations", gram.nrows(), columns.saturating_mul(size_of::<f64>()))?;
    check_finite("the Gram matrix", gram)?;
    check_finite("the targets", targets)
}

/// ½(K + Kᵀ).
pub(super) fn symmetric_part<T: Real>(gram: &ArrayRef2<T>) -> Array2<f64> {
    let symmetric = |(i, j): (usize, usize)| 0.5 * gram[[i, j]].widen() + 0.5 * gram[[j, i]].widen();
    Array2::from_shape_fn(gram.dim(), symmetric)
}

impl<T: Real> KernelRidge<T> {
    /// The model with these coefficients and intercepts, unless one has left the range of the scalar.
    pub(super) fn new(coefficients: Array2<T>, intercepts: Array1<T>) -> Result<Self> {
        check_finite("the coefficients", &coefficients)?;
        check_finite("the intercepts", &intercepts.view().insert_axis(Axis(0)))?;
        Ok(KernelRidge { coefficients: coefficients.as_standard_layout().into_owned(), intercepts })
    }

    /// α, n × t.
    pub fn coefficients(&self) -> ArrayView2<'_, T> {
        self.coefficients.view()
    }

    /// The intercept b for each target.
    pub fn intercepts(&self) -> ArrayView1<'_, T> {
        self.intercepts.view()
    }

    /// Predicts ŷ, l × t, at l points. Row i of `gram`, l × n, has the kernel values of point i with the n training points. Sums are
    /// taken in the scalar type, and are not finite where they leave its range.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `gram` does not have n columns, [`Memory`](Error::Memory) if the predictions do not fit in
    /// memory.
    #[inline(never)]
    pub fn predict_from_gram(&self, gram: &ArrayRef2<T>) -> Result<Array2<T>> {
        check_size("the number of columns of the Gram matrix", self.coefficients.nrows(), gram.ncols())?;
        let targets = self.coefficients.ncols();
        check_memory("rows of predictions", gram.nrows(), targets.saturating_mul(size_of::<T>()))?;
        Ok(gram.dot(&self.coefficients) + &self.intercepts)
    }

    /// Predicts the class for each row of `gram`, l × n: the target with the largest prediction, the first of equal ones. Targets
    /// must be labels or indicators of classes. A class without rows in training is never predicted.
    ///
    /// # Errors
    /// The errors of [`predict_from_gram`](KernelRidge::predict_from_gram); [`NotFinite`](Error::NotFinite) if a prediction is
    /// not finite, [`Parameter`](Error::Parameter) if the regression has one target.
    #[inline(never)]
    pub fn classify_from_gram(&self, gram: &ArrayRef2<T>) -> Result<Vec<usize>> {
        let predictions = self.predict_from_gram(gram)?.mapv(Real::widen);
        best_classes(&predictions, |class| {
            let weights = self.coefficients.column(class);
            self.intercepts[class] != T::zero() || weights.iter().any(|weight| *weight != T::zero())
        })
    }
}

once!(KernelRidge::<T>::fit_view, KernelRidge::<T>::predict_from_gram, KernelRidge::<T>::classify_from_gram);
