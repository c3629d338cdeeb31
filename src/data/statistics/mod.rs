//! [`Statistics`]: the statistics of points, from which parameters are chosen.

mod coordinate;
mod moved;
mod summary;

pub(super) use coordinate::Coordinate;

use ndarray::{ArrayRef1, ArrayRef2, Axis};

use crate::Real;
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric::{Isa, Twofold, slice_of, squared_norm};
use crate::once::once;
use crate::progress;

/// The number of rows whose statistics are computed together: enough to make merging cheap, few enough to stay in the L1 cache.
const RUN: usize = 64;

/// Weighted statistics of points in ℝᵈ: means, variances, mean magnitudes and ranges of each coordinate.
///
/// ```
/// use random_features::ndarray::{arr1, arr2};
/// use random_features::data::Statistics;
/// let mut statistics = Statistics::of(&arr2(&[[1.0f32, 0.0], [3.0, 0.5]]))?;
/// assert_eq!(
///     (statistics.mean()?, statistics.variance()?),
///     (vec![2.0, 0.25], vec![1.0, 0.0625])
/// );
/// statistics.update_weighted(&arr2(&[[5.0, -1.0f32]]), &arr1(&[2.0]))?;
/// assert_eq!(
///     (statistics.rows(), statistics.weight(), statistics.max()?),
///     (3, 4.0, vec![5.0, 0.5])
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Points may come in any number of batches, and statistics from different threads or machines can be
/// [merged](Statistics::merge). Up to rounding, the result is the same as for all points at once, in any order. A point of weight
/// 2 counts as two points; a point of weight 0 is checked and otherwise ignored. Variances are population variances (divided by
/// the weight, like NumPy's `X.var()`), updated directly and not as a difference of sums. Means are held with twice the digits of
/// `f64`, so that variances keep their digits however far the mean is from 0.
///
/// Computations are in `f64` for points of any scalar type. If a point is rejected (NaN, an infinity, or a squared norm that
/// overflows), its whole batch is ignored.
///
/// # Cost
/// One pass over the points, O(nd) time and O(d) memory.
///
/// # References
/// Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances*;
/// West, *Updating Mean and Variance Estimates: An Improved Method*.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    count: usize,
    weight: f64,
    /// The largest ε of the scalar types in which points came; 0 before the first one.
    epsilon: f64,
    /// The statistics of each coordinate; zeros before the first point.
    coordinates: Vec<Coordinate>,
}

impl Statistics {
    /// Statistics of no points, in ℝᵈ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` is 0, [`Memory`](Error::Memory) if d coordinates do not fit in memory.
    pub fn new(d: usize) -> Result<Self> {
        check_positive("the dimension d", d)?;
        check_memory("coordinates, each with its mean, variance and range", d, size_of::<Coordinate>())?;
        Ok(Statistics { count: 0, weight: 0.0, epsilon: 0.0, coordinates: vec![Coordinate::default(); d] })
    }

    /// Statistics of the rows of `x`, n × d, each with weight 1.
    ///
    /// # Errors
    /// The errors of [`new`](Statistics::new) and [`update`](Statistics::update).
    #[inline(never)]
    pub fn of<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        let mut statistics = Statistics::new(x.ncols())?;
        statistics.update(x)?;
        Ok(statistics)
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
    /// The errors of [`update`](Statistics::update); [`Shape`](Error::Shape) if there are not n weights,
    /// [`Entry`](Error::Entry) with the first row whose weight is negative or not finite,
    /// [`Parameter`](Error::Parameter) if the sum of all weights overflows. Nothing is added on error.
    #[inline(never)]
    pub fn update_weighted<T: Real>(&mut self, x: &ArrayRef2<T>, weights: &ArrayRef1<f64>) -> Result<()> {
        check_size("the number of weights", x.nrows(), weights.len())?;
        self.take(x, |row| checked_row_weight(weights[row], row))
    }

    /// Adds the rows of `x` with these weights: all of them, or none on error.
    fn take<T: Real>(&mut self, x: &ArrayRef2<T>, weight: impl Fn(usize) -> Result<f64>) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        let mut batch = Statistics::new(self.dim())?;
        for (run, first) in x.axis_chunks_iter(Axis(0), RUN).zip((0..).step_by(RUN)) {
            progress::check()?;
            let run = run.as_standard_layout();
            let rows = || slice_of(&run).chunks_exact(run.ncols());
            let weights = (first..first + run.nrows()).map(&weight).collect::<Result<Vec<_>>>()?;
            rows().zip(first..).try_for_each(|(row, i)| check_row(row, i))?;
            let present = rows().zip(weights).filter(|(_, weight)| *weight > 0.0);
            batch.merge(&Statistics::of_run(self.dim(), &present.collect::<Vec<_>>())?)?;
        }
        self.merge(&batch)
    }

    /// Statistics of a few checked rows with positive weights.
    fn of_run<T: Real>(d: usize, rows: &[(&[T], f64)]) -> Result<Self> {
        let mut run = Statistics::new(d)?;
        // The heaviest row is near the mean on the scale of the deviation.
        let heaviest = rows.iter().reduce(|best, row| if row.1 > best.1 { row } else { best });
        let Some((origin, _)) = heaviest else { return Ok(run) };
        (run.count, run.epsilon) = (rows.len(), T::epsilon().widen());
        run.weight = checked_weight(rows.iter().map(|(_, weight)| weight).sum())?;
        let rows = || rows.iter().map(|(row, weight)| (*row, weight / run.weight));
        // Offsets are taken from a row, so that no digit is lost beside a large mean, and means of constant coordinates are exact.
        let origin: Vec<f64> = origin.iter().map(|v| v.widen()).collect();
        let (mut offset, mut magnitude) = (vec![0.0; d], vec![0.0; d]);
        for (row, share) in rows() {
            let values = || row.iter().map(|v| v.widen());
            let offsets = values().zip(&origin).map(|(v, origin)| v - origin);
            offset.iter_mut().zip(offsets).for_each(|(mean, v)| *mean += share * v);
            magnitude.iter_mut().zip(values()).for_each(|(magnitude, v)| *magnitude += share * v.abs());
        }
        let (mut variance, mut min, mut max) = (vec![0.0; d], origin.clone(), origin.clone());
        for (row, share) in rows() {
            let values = || row.iter().map(|v| v.widen());
            let offsets = values().zip(&origin).zip(&offset).map(|((v, origin), mean)| (v - origin) - mean);
            // The share is multiplied first, because δ² may overflow.
            variance.iter_mut().zip(offsets).for_each(|(variance, delta)| *variance += share * delta * delta);
            min.iter_mut().zip(values()).for_each(|(min, v)| *min = if v < *min { v } else { *min });
            max.iter_mut().zip(values()).for_each(|(max, v)| *max = if v > *max { v } else { *max });
        }
        for (k, c) in run.coordinates.iter_mut().enumerate() {
            c.set_mean(Twofold::default().add(origin[k]).add(offset[k]));
            (c.variance, c.magnitude, c.min, c.max) = (variance[k], magnitude[k], min[k], max[k]);
        }
        Ok(run)
    }

    /// Adds the points of `other`.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`Parameter`](Error::Parameter) if the sum of the weights
    /// overflows; nothing is added on error.
    pub fn merge(&mut self, other: &Statistics) -> Result<()> {
        check_size("the dimension of the statistics that are added", self.dim(), other.dim())?;
        if other.weight == 0.0 {
            return Ok(());
        }
        if self.weight == 0.0 {
            self.clone_from(other);
            return Ok(());
        }
        let weight = checked_weight(self.weight + other.weight)?;
        let (old, new) = (self.weight / weight, other.weight / weight);
        let coordinates = self.coordinates.iter_mut().zip(&other.coordinates);
        coordinates.for_each(|(own, their)| own.merge(old, new, their));
        self.weight = weight;
        self.count = self.count.saturating_add(other.count);
        self.epsilon = self.epsilon.max(other.epsilon);
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
        self.coordinates.len()
    }

    /// The largest ε of the scalar types in which points came.
    pub(in crate::data) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Whether coordinate `k` is constant up to rounding; there must be points.
    pub(crate) fn is_constant(&self, k: usize) -> bool {
        is_constant((self.coordinates[k].min, self.coordinates[k].max), self.epsilon)
    }

    pub(in crate::data) fn coordinates(&self) -> &[Coordinate] {
        &self.coordinates
    }

    /// Rejects `what` before the first point.
    pub(super) fn check_data(&self, what: &'static str) -> Result<()> {
        if self.weight > 0.0 { Ok(()) } else { Err(Error::NoData { what }) }
    }
}

/// Rejects row `i` of x if its squared norm is not finite.
pub(in crate::data) fn check_row<T: Real>(row: &[T], i: usize) -> Result<()> {
    if squared_norm(Isa::best(), row, 1.0, &[]).is_finite() {
        return Ok(());
    }
    let column = row.iter().position(|v| !v.is_finite());
    let what = if column.is_some() { "x" } else { "the squared norms of x" };
    Err(Error::NotFinite { what, row: i, column })
}

/// The weight of row `row`, or an error if it is negative or not finite.
pub(in crate::data) fn checked_row_weight(value: f64, row: usize) -> Result<f64> {
    let error = Error::Entry { what: "the weights", row, value, domain: "finite and not negative" };
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(error) }
}

pub(in crate::data) fn checked_weight(sum: f64) -> Result<f64> {
    let error = Error::Parameter { name: "the sum of the weights", value: sum, domain: "finite" };
    if sum.is_finite() { Ok(sum) } else { Err(error) }
}

/// Rejects stored statistics whose weight is impossible for `count` points.
#[cfg(feature = "serde")]
pub(in crate::data) fn check_stored_weight(weight: f64, count: usize) -> Result<()> {
    if weight.is_finite() && weight >= 0.0 && (weight > 0.0) == (count > 0) {
        return Ok(());
    }
    let domain = "finite, and positive if and only if there are points";
    Err(Error::Parameter { name: "the weight", value: weight, domain })
}

/// Whether values between these ends, in a scalar type with this ε, are constant up to rounding. Ends merge without rounding, so
/// that the answer does not depend on the order of values.
pub(crate) fn is_constant((least, most): (f64, f64), epsilon: f64) -> bool {
    most - least <= 4.0 * epsilon * least.abs().max(most.abs())
}

/// Rejects a stored ε that no scalar type has.
#[cfg(feature = "serde")]
fn check_epsilon(value: f64) -> Result<()> {
    let error = Error::Parameter { name: "ε", value, domain: "at least 0 and below 1" };
    if (0.0..1.0).contains(&value) { Ok(()) } else { Err(error) }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Coordinate, Statistics, check_epsilon, check_stored_weight};
    use crate::error::{Error, Result, check_positive};
    use crate::sealed::{AnyScalar, sealed_fields};

    sealed_fields! {
        Statistics, AnyScalar,
        #[serde(rename = "Statistics")]
        struct StoredStatistics {
            count: usize,
            #[serde(with = "crate::exact")]
            weight: f64,
            #[serde(with = "crate::exact")]
            epsilon: f64,
            coordinates: Vec<Coordinate>,
        }
    }

    impl TryFrom<StoredStatistics> for Statistics {
        type Error = Error;

        fn try_from(stored: StoredStatistics) -> Result<Self> {
            let StoredStatistics { count, weight, epsilon, coordinates } = stored;
            check_positive("the dimension d", coordinates.len())?;
            check_stored_weight(weight, count)?;
            check_epsilon(epsilon)?;
            if count == 0 {
                return Statistics::new(coordinates.len());
            }
            coordinates.iter().enumerate().try_for_each(|(row, c)| c.check(row))?;
            Ok(Statistics { count, weight, epsilon, coordinates })
        }
    }
}

once!(Statistics::update::<T>, Statistics::update_weighted::<T>, Statistics::of::<T>);
