//! [`ExactSmoother`]: kernel regression with the exact kernel, as the reference.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1, Axis};

use super::smoother::UNWEIGHTED;
use crate::engine::{PointsView, for_runs};
use crate::error::{Error, Result, check_positive, check_size};
use crate::kernel::Kernel;
use crate::labels::best_classes;
use crate::memory::check_memory;
use crate::numeric::slice_of;
use crate::numeric::special::largest;
use crate::reduce::{check_targets, check_training};
use crate::targets::single;
use crate::{Points, Real, SignedLog, Targets};

/// The number of rows that are predicted together.
const ROWS: usize = 12;

/// Predicts weighted means of targets with an exact kernel, as the reference for [`Smoother`](super::Smoother): kernel regression
/// (Nadaraya–Watson smoothing).
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::apply::ExactSmoother;
/// use random_features::kernel::Gaussian;
/// let mut smoother = ExactSmoother::new(Gaussian::default(), 1, 1)?;
/// smoother.update(&arr2(&[[0.0], [2.0]]), &arr2(&[[1.0], [3.0]]))?;
/// assert_eq!(smoother.predict(&arr2(&[[1.0f64]]))?[[0, 0]], 2.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ŷ(x) = Σᵢ K(x, xᵢ) yᵢ / Σᵢ K(x, xᵢ). Sums are taken relative to the largest weight, so that they do not
/// underflow; if the logarithms of all weights overflow, ŷ is the mean.
///
/// # Cost
/// O(n t d) to predict t points, O(n d) memory. [`Smoother`](super::Smoother) is the approximation without either.
/// Sparse points are stored as dense ones.
#[doc(alias = "Nadaraya-Watson")]
#[doc(alias = "Nadaraya–Watson")]
#[derive(Clone, Debug)]
pub struct ExactSmoother<T, K> {
    kernel: K,
    x: Array2<T>,
    targets: Array2<T>,
}

impl<T: Real, K: Kernel<T>> ExactSmoother<T, K> {
    /// A smoother without training points, for points in ℝᵈ with `targets` numbers each (for labels: the number
    /// of classes).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` or `targets` is 0, [`Shape`](Error::Shape) if the kernel is for
    /// another dimension.
    pub fn new(kernel: K, d: usize, targets: usize) -> Result<Self> {
        check_positive("the dimension d", d)?;
        check_targets(targets, d)?;
        kernel.check_dim(d)?;
        Ok(ExactSmoother { kernel, x: Array2::zeros((0, d)), targets: Array2::zeros((0, targets)) })
    }

    /// Adds training points `x`, n × d, with their [targets](Targets), numbers or labels.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// [`Memory`](Error::Memory) if all points do not fit in memory; nothing is added on error.
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        let targets = targets.into();
        self.take_in(x.into().view(), &targets.unweighted(self.targets.ncols(), UNWEIGHTED)?)
    }

    fn take_in(&mut self, x: PointsView<'_, T>, targets: &ArrayRef2<T>) -> Result<()> {
        // Arrays that grow may double.
        let rows = self.x.nrows().saturating_add(x.nrows());
        let rows = if self.x.is_empty() { rows } else { rows.saturating_mul(2) };
        let each = self.x.ncols().saturating_add(self.targets.ncols()).saturating_mul(size_of::<T>());
        // Memory is checked before all numbers are read, since that is fast.
        check_memory("training points", rows, each)?;
        check_training(x, self.x.ncols(), targets, self.targets.ncols())?;
        let count = self.x.nrows() as f64 + x.nrows() as f64;
        let full = |_| Error::Parameter {
            name: "the number of training points",
            value: count,
            domain: "small enough to be addressed",
        };
        let dense = x.to_dense()?;
        // Room for both is made first, so that nothing is half taken in. It grows in steps, so that few updates copy all rows.
        self.x.reserve_rows(x.nrows()).map_err(full)?;
        self.targets.reserve_rows(x.nrows()).map_err(full)?;
        self.x.append(Axis(0), dense.view()).map_err(full)?;
        self.targets.append(Axis(0), targets.view()).map_err(full)?;
        Ok(())
    }

    /// The regression ŷ at the rows of `x`, n × d: n × t for t targets. It is the mean of the targets if the weights of a signed kernel do
    /// not add up to a positive number. A row that is not finite gives NaN, and a number beyond the range of the scalar type is the largest
    /// number of that type.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`NoData`](Error::NoData) before the first training point,
    /// [`Memory`](Error::Memory) if the result does not fit in memory. [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn predict<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.predictions(x.into().view())
    }

    /// Predicts the only target: ŷ at the rows of `x`, as many numbers.
    ///
    /// # Errors
    /// The errors of [`predict`](ExactSmoother::predict); [`Shape`](Error::Shape) if there are several targets.
    pub fn predict_single<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<T>> {
        single(self.predict(x)?)
    }

    fn predictions(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        self.check(x)?;
        let means = self
            .targets
            .columns()
            .into_iter()
            .map(|column| column.iter().map(|y| y.widen()).sum::<f64>() / self.targets.nrows() as f64);
        let means: Vec<f64> = means.collect();
        self.apply(x, |sum, total, j| T::saturated(if total <= 0.0 { means[j] } else { sum / total }))
    }

    fn check(&self, x: PointsView<'_, T>) -> Result<()> {
        check_size("the number of columns of x", self.x.ncols(), x.ncols())?;
        if self.x.nrows() == 0 {
            return Err(Error::NoData { what: "a prediction" });
        }
        let columns = self.targets.ncols().saturating_add(x.ncols());
        check_memory("rows of predictions", x.nrows(), columns.saturating_mul(size_of::<f64>()))
    }

    /// Lets `entry(Σᵢ K(x, xᵢ) yᵢ, Σᵢ K(x, xᵢ), target)` compute each entry, up to a positive factor of the row.
    fn apply<U>(&self, x: PointsView<'_, T>, entry: impl Fn(f64, f64, usize) -> U + Sync) -> Result<Array2<U>>
    where
        U: Clone + Default + Send,
    {
        let mut out = Array2::default((x.nrows(), self.targets.ncols()));
        let x = x.to_dense()?;
        let x = x.as_standard_layout();
        let work = x.len().saturating_mul(self.x.nrows());
        for_runs(
            out.view_mut(),
            ROWS,
            work,
            || (),
            |(), run, mut out| {
                for (i, mut out) in run.zip(out.rows_mut()) {
                    let x = x.row(i);
                    let weights = self.weights(slice_of(&x));
                    let total: f64 = weights.iter().sum();
                    for (j, (out, column)) in out.iter_mut().zip(self.targets.columns()).enumerate() {
                        let sum: f64 = weights.iter().zip(column).map(|(w, y)| w * y.widen()).sum();
                        *out = entry(sum, total, j);
                    }
                }
            },
        )?;
        Ok(out)
    }

    /// K(x, xᵢ) for all training points, relative to the largest.
    fn weights(&self, x: &[T]) -> Vec<f64> {
        let log = |y: ArrayView1<'_, T>| self.kernel.log_of_slices(x, slice_of(&y));
        let logs: Vec<SignedLog> = self.x.rows().into_iter().map(log).collect();
        let top = largest(logs.iter().map(|w| w.ln_abs));
        let relative = |w: &SignedLog| match top {
            // If all logarithms overflow, all points count equally; if some do, only those count.
            f64::NEG_INFINITY => 1.0 + w.value(),
            f64::INFINITY if !w.ln_abs.is_nan() => w.sign * f64::from(w.ln_abs == top),
            top => w.scaled(-top).value(),
        };
        logs.iter().map(relative).collect()
    }

    /// The class with the largest score Σᵢ K(x, xᵢ) [label i = class] for each row of `x`; the first of equals. A class without
    /// training points is never predicted.
    ///
    /// # Errors
    /// The errors of [`predict`](ExactSmoother::predict); [`NotFinite`](Error::NotFinite) if a row of `x` is not finite.
    pub fn classify<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Vec<usize>> {
        self.classes(x.into().view())
    }

    fn classes(&self, x: PointsView<'_, T>) -> Result<Vec<usize>> {
        self.check(x)?;
        let occurs = |class| self.targets.column(class).iter().any(|y| *y != T::zero());
        best_classes(&self.apply(x, |sum, _, _| sum)?, occurs)
    }
}

/// The stored form: the kernel and the training points, taken in again when it is read.
#[cfg(feature = "serde")]
mod stored {
    use ndarray::Array2;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};

    use super::{ExactSmoother, Kernel, Real};
    use crate::error::{Error, Result};
    use crate::sealed::sealed;

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "ExactSmoother")]
    struct StoredExactSmoother<K> {
        kernel: K,
        #[serde(with = "crate::exact")]
        x: Array2<f64>,
        #[serde(with = "crate::exact")]
        targets: Array2<f64>,
    }

    sealed!(ExactSmoother<T, K>, StoredExactSmoother<K>, T, [T: Real, K: Kernel<T> + Clone + Serialize + DeserializeOwned]);

    impl<T: Real, K: Kernel<T> + Clone> From<&ExactSmoother<T, K>> for StoredExactSmoother<K> {
        fn from(ExactSmoother { kernel, x, targets }: &ExactSmoother<T, K>) -> Self {
            let (x, targets) = (x.mapv(T::widen), targets.mapv(T::widen));
            StoredExactSmoother { kernel: kernel.clone(), x, targets }
        }
    }

    impl<T: Real, K: Kernel<T>> TryFrom<StoredExactSmoother<K>> for ExactSmoother<T, K> {
        type Error = Error;

        fn try_from(StoredExactSmoother { kernel, x, targets }: StoredExactSmoother<K>) -> Result<Self> {
            let mut smoother = ExactSmoother::new(kernel, x.ncols(), targets.ncols())?;
            smoother.update(&x.mapv(T::narrow), &targets.mapv(T::narrow))?;
            Ok(smoother)
        }
    }
}
