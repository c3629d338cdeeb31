//! [`Moments`]: mean and second moments of the points of one side.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis, s};

use crate::Real;
use crate::data::statistics::{check_row, checked_row_weight, checked_weight};
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric::slice_of;
use crate::once::once;
use crate::progress;

/// The number of rows that are centred and multiplied together: enough for matrix products to be efficient.
const RUN: usize = 256;
/// The number of columns of a block of the lower triangle.
const BLOCK: usize = 128;

/// Weighted mean and d × d second moments of points in ℝᵈ, for the choice of [shapes](super::Shaping).
///
/// ```
/// use random_features::ndarray::{arr1, arr2};
/// use random_features::data::shaping::Moments;
/// let mut moments = Moments::of(&arr2(&[[1.0f32, 0.0], [3.0, 0.5]]))?;
/// assert_eq!(moments.mean()?, arr1(&[2.0, 0.25]));
/// assert_eq!(moments.covariance()?, arr2(&[[1.0, 0.25], [0.25, 0.0625]]));
/// moments.update_weighted(&arr2(&[[5.0, -1.0f32]]), &arr1(&[2.0]))?;
/// assert_eq!((moments.rows(), moments.weight()), (3, 4.0));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// μ = Σ wᵢxᵢ / Σ wᵢ and C = Σ wᵢ(xᵢ − μ)(xᵢ − μ)ᵀ / Σ wᵢ. Points may come in any number of batches, and moments from
/// different threads or machines can be [merged](Moments::merge): up to rounding the result is that of all points at
/// once, in any order. A point of weight 2 counts as two points; a point of weight 0 is checked and otherwise
/// ignored. C is updated directly and not as a difference of sums, so it does not cancel if the mean is far from 0.
///
/// Computations are in `f64` for any type of points. If a point is rejected (NaN, an infinity, or a squared norm that
/// overflows), its whole batch is ignored.
///
/// # Cost
/// One pass with nd²/2 multiplications in matrix products; O(d²) memory.
///
/// # References
/// Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances*.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    count: usize,
    weight: f64,
    /// The mean μ; zeros before the first point.
    mean: Vec<f64>,
    /// The lower triangle of C.
    second: Array2<f64>,
}

impl Moments {
    /// Moments without points, in ℝᵈ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` is 0, [`Memory`](Error::Memory) if d² numbers do not fit in memory.
    pub fn new(d: usize) -> Result<Self> {
        check_positive("the dimension d", d)?;
        check_memory(
            "rows of a matrix of second moments",
            d,
            d.saturating_add(1).saturating_mul(size_of::<f64>()),
        )?;
        Ok(Moments { count: 0, weight: 0.0, mean: vec![0.0; d], second: Array2::zeros((d, d)) })
    }

    /// Moments of the rows of `x`, n × d, each with weight 1.
    ///
    /// # Errors
    /// The errors of [`new`](Moments::new) and [`update`](Moments::update).
    #[inline(never)]
    pub fn of<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        let mut moments = Moments::new(x.ncols())?;
        moments.update(x)?;
        Ok(moments)
    }

    /// Adds the rows of `x`, n × d, each with weight 1.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`NotFinite`](Error::NotFinite) with the first row whose
    /// squared norm is not finite. Nothing is added on error.
    #[inline(never)]
    pub fn update<T: Real>(&mut self, x: &ArrayRef2<T>) -> Result<()> {
        self.take(x, |_| Ok(1.0))
    }

    /// Adds the rows of `x`, n × d, with these n weights.
    ///
    /// # Errors
    /// The errors of [`update`](Moments::update); [`Shape`](Error::Shape) if there are not n weights, [`Entry`](Error::Entry)
    /// with the first row whose weight is negative or not finite, [`Parameter`](Error::Parameter) if the sum of all
    /// weights overflows. Nothing is added on error.
    #[inline(never)]
    pub fn update_weighted<T: Real>(&mut self, x: &ArrayRef2<T>, weights: &ArrayRef1<f64>) -> Result<()> {
        check_size("the number of weights", x.nrows(), weights.len())?;
        self.take(x, |row| checked_row_weight(weights[row], row))
    }

    /// Adds the points of `other`.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`Parameter`](Error::Parameter) if the sum of the weights
    /// overflows; nothing is added on error.
    pub fn merge(&mut self, other: &Moments) -> Result<()> {
        check_size("the dimension of the moments that are added", self.dim(), other.dim())?;
        if other.weight == 0.0 {
            return Ok(());
        }
        if self.weight == 0.0 {
            self.clone_from(other);
            return Ok(());
        }
        let weight = checked_weight(self.weight + other.weight)?;
        let (old, new) = (self.weight / weight, other.weight / weight);
        let delta: Vec<f64> = other.mean.iter().zip(&self.mean).map(|(new, old)| new - old).collect();
        for (i, (mut own, their)) in self.second.rows_mut().into_iter().zip(other.second.rows()).enumerate() {
            // The product of shares is at most ¼, so that the step does not overflow where δ² does.
            let step = new * delta[i];
            let entries = own.iter_mut().zip(their).zip(&delta).take(i + 1);
            entries.for_each(|((own, their), delta)| {
                *own = old * *own + new * their + step * (old * delta);
            });
        }
        self.mean.iter_mut().zip(&delta).for_each(|(mean, delta)| *mean += new * delta);
        self.weight = weight;
        self.count = self.count.saturating_add(other.count);
        Ok(())
    }

    /// The number of points with a positive weight.
    pub fn rows(&self) -> u64 {
        self.count as u64
    }

    /// The sum of the weights: without weights, the number of points.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// The mean μ, with d entries.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if the weight is 0.
    pub fn mean(&self) -> Result<Array1<f64>> {
        self.check_data("the mean")?;
        Ok(self.mean.iter().copied().collect())
    }

    /// The covariance C, d × d, symmetric: divided by the weight, like NumPy's `cov(ddof=0)`.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if the weight is 0.
    pub fn covariance(&self) -> Result<Array2<f64>> {
        self.check_data("the covariance")?;
        let d = self.dim();
        Ok(Array2::from_shape_fn((d, d), |(i, j)| self.second[[i.max(j), i.min(j)]]))
    }

    /// Rejects `what` before the first point.
    pub(super) fn check_data(&self, what: &'static str) -> Result<()> {
        if self.weight > 0.0 { Ok(()) } else { Err(Error::NoData { what }) }
    }

    /// Adds the rows of `x` with these weights: all of them, or none on error.
    fn take<T: Real>(&mut self, x: &ArrayRef2<T>, weight: impl Fn(usize) -> Result<f64>) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        let mut batch = Moments::new(self.dim())?;
        for (run, first) in x.axis_chunks_iter(Axis(0), RUN).zip((0..).step_by(RUN)) {
            progress::check()?;
            let weights = (first..first + run.nrows()).map(&weight).collect::<Result<Vec<_>>>()?;
            for (row, i) in run.as_standard_layout().rows().into_iter().zip(first..) {
                check_row(slice_of(&row), i)?;
            }
            batch.merge(&Moments::of_run(run, &weights)?)?;
        }
        self.merge(&batch)
    }

    /// Moments of a few checked rows.
    fn of_run<T: Real>(x: ArrayView2<'_, T>, weights: &[f64]) -> Result<Self> {
        let mut run = Moments::new(x.ncols())?;
        let present: Vec<usize> = (0..x.nrows()).filter(|i| weights[*i] > 0.0).collect();
        let Some(first) = present.first() else { return Ok(run) };
        run.count = present.len();
        run.weight = checked_weight(present.iter().map(|i| weights[*i]).sum())?;
        // Offsets are taken from the first row, so that constant coordinates are exact.
        let origin = x.row(*first).mapv(Real::widen);
        let mut rows = x.select(Axis(0), &present).mapv(Real::widen);
        rows -= &origin;
        let share: Array1<f64> = present.iter().map(|i| weights[*i] / run.weight).collect();
        let offset = share.dot(&rows);
        rows -= &offset;
        run.mean = (origin + offset).to_vec();
        add_products(&(&rows * &share.insert_axis(Axis(1))), &rows, &mut run.second);
        Ok(run)
    }
}

/// Adds the lower triangle of aᵀb, in blocks.
fn add_products(a: &Array2<f64>, b: &Array2<f64>, to: &mut Array2<f64>) {
    for start in (0..a.ncols()).step_by(BLOCK) {
        let end = a.ncols().min(start + BLOCK);
        let (left, right) = (a.slice(s![.., start..end]), b.slice(s![.., ..end]));
        general_mat_mul(1.0, &left.t(), &right, 1.0, &mut to.slice_mut(s![start..end, ..end]));
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::Moments;
    use crate::data::statistics::check_stored_weight;
    use crate::error::{Error, Result, check_positive, check_size};
    use crate::sealed::{AnyScalar, sealed_fields};
    use ndarray::Array2;

    sealed_fields! {
        Moments, AnyScalar,
        #[serde(rename = "Moments")]
        struct StoredMoments {
            count: usize,
            #[serde(with = "crate::exact")]
            weight: f64,
            #[serde(with = "crate::exact")]
            mean: Vec<f64>,
            #[serde(with = "crate::exact")]
            second: Array2<f64>,
        }
    }

    impl TryFrom<StoredMoments> for Moments {
        type Error = Error;

        fn try_from(stored: StoredMoments) -> Result<Self> {
            let StoredMoments { count, weight, mean, second } = stored;
            check_positive("the dimension d", mean.len())?;
            check_size("the number of rows of the covariance", mean.len(), second.nrows())?;
            check_size("the number of columns of the covariance", mean.len(), second.ncols())?;
            check_stored_weight(weight, count)?;
            if count == 0 {
                return Moments::new(mean.len());
            }
            let finite = |row: usize| mean[row].is_finite() && second.row(row).iter().all(|v| v.is_finite());
            if let Some(row) = (0..mean.len()).find(|row| !finite(*row)) {
                return Err(Error::NotFinite { what: "the moments", row, column: None });
            }
            let mut variances = second.diag().into_iter().copied().enumerate();
            match variances.find(|(_, value)| *value < 0.0) {
                None => Ok(Moments { count, weight, mean, second }),
                Some((row, value)) => {
                    Err(Error::Entry { what: "the variances", row, value, domain: "not negative" })
                }
            }
        }
    }
}

once!(Moments::of::<T>, Moments::update::<T>, Moments::update_weighted::<T>);
