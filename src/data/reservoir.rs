//! [`Reservoir`]: statistics and a random sample of the rows of a data set, from one pass.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayRef1, ArrayRef2};

use super::Statistics;
use crate::Real;
use crate::digest::{Digest, avalanche};
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric::matrix_of;
use crate::once::once;
use crate::progress;
use crate::rows::RowRanges;

/// The number of rows that are kept by default.
const CAPACITY: usize = 4096;
/// The number of rows between two checks for cancellation.
const ROWS: u64 = 4096;

/// The [`Statistics`] of all rows of a data set and a uniform random sample of them, from one pass in batches.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::data::Reservoir;
/// let rows = |first: usize| {
///     Array2::from_shape_fn((1000, 2), |(i, k)| {
///         ((first + i) * (k + 1)) as f32
///     })
/// };
/// let mut all = Reservoir::new(2)?.with_capacity(10)?;
/// all.update(&rows(0))?;
/// all.update(&rows(1000))?;
/// assert_eq!((all.statistics().rows(), all.row_numbers().len()), (2000, 10));
/// // From two machines.
/// let mut second =
///     Reservoir::new(2)?.with_capacity(10)?.with_first_row(1000)?;
/// second.update(&rows(1000))?;
/// let mut merged = Reservoir::new(2)?.with_capacity(10)?;
/// merged.update(&rows(0))?;
/// merged.merge(&second)?;
/// assert_eq!(merged.row_numbers(), all.row_numbers());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Rows are numbered from 0 or from [`with_first_row`](Reservoir::with_first_row) on. The k rows with the smallest hashes of seed
/// number are kept (bottom-k sampling). The sample depends neither on the batches nor on the order of merges, so that parts of a
/// data set may be read by several machines.
///
/// # Cost
/// O(nd) time for [`Statistics`], and a hash for each row; O(kd) memory.
///
/// # References
/// Cohen and Kaplan, *Summarizing Data Using Bottom-k Sketches*.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservoir {
    statistics: Statistics,
    seed: u64,
    capacity: usize,
    /// The numbers of the rows that were read.
    read: RowRanges,
    next: u64,
    /// The rows that are kept, by the hash of a row's number and the number itself.
    kept: BTreeMap<(u64, u64), Vec<f64>>,
}

impl Reservoir {
    /// An empty reservoir in ℝᵈ, which will keep 4096 rows, with seed 0.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` is 0, [`Memory`](Error::Memory) if 4096 rows do not fit in memory.
    pub fn new(d: usize) -> Result<Self> {
        let statistics = Statistics::new(d)?;
        Reservoir {
            statistics,
            seed: 0,
            capacity: 0,
            read: RowRanges::default(),
            next: 0,
            kept: BTreeMap::new(),
        }
        .with_capacity(CAPACITY)
    }

    /// A reservoir of the rows of `x`, n × d, as one data set.
    ///
    /// # Errors
    /// The errors of [`new`](Reservoir::new) and [`update`](Reservoir::update).
    #[inline(never)]
    pub fn of<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        let mut reservoir = Reservoir::new(x.ncols())?;
        reservoir.update(x)?;
        Ok(reservoir)
    }

    /// Sets k, the maximum number of rows that are kept. Surplus rows are dropped and do not return: set k before rows are added.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if k is 0, [`Memory`](Error::Memory) if k rows do not fit in memory.
    pub fn with_capacity(mut self, k: usize) -> Result<Self> {
        check_positive("the number of rows to keep", k)?;
        check_memory("rows of a sample", k, self.dim().saturating_mul(size_of::<f64>()))?;
        self.capacity = k;
        self.drop_surplus();
        Ok(self)
    }

    /// Sets the seed of the sample. Parts can be merged only if their seeds are equal.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if rows have been added.
    pub fn with_seed(self, seed: u64) -> Result<Self> {
        if self.statistics.rows() > 0 {
            return Err(Error::Merge { reason: "rows have been drawn with another seed" });
        }
        Ok(Reservoir { seed, ..self })
    }

    /// Sets the number in the whole data set of the next row that is added. Parts that are merged need different
    /// numbers.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row was read already.
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        self.read.check_start(row)?;
        Ok(Reservoir { next: row, ..self })
    }

    /// Adds the rows of `x`, n × d.
    ///
    /// # Errors
    /// The errors of [`Statistics::update`]; [`Row`](Error::Row) if a row with one of these numbers was read already, or numbers
    /// reach 2⁶⁴ − 1. Nothing is added on error.
    #[inline(never)]
    pub fn update<T: Real>(&mut self, x: &ArrayRef2<T>) -> Result<()> {
        self.take(x, |statistics| statistics.update(x), |_| true)
    }

    /// Adds the rows of `x`, n × d, with n weights, which say how often each row counts in the [statistics](Reservoir::statistics).
    /// The sample is drawn from the rows of positive weight, all with equal probability.
    ///
    /// # Errors
    /// The errors of [`update`](Reservoir::update) and of [`Statistics::update_weighted`]. Nothing is added on error.
    #[inline(never)]
    pub fn update_weighted<T: Real>(&mut self, x: &ArrayRef2<T>, weights: &ArrayRef1<f64>) -> Result<()> {
        check_size("the number of weights", x.nrows(), weights.len())?;
        self.take(x, |statistics| statistics.update_weighted(x, weights), |row| weights[row] > 0.0)
    }

    /// Adds rows to the statistics, and to the sample those that are present.
    fn take<T: Real>(
        &mut self,
        x: &ArrayRef2<T>,
        add: impl FnOnce(&mut Statistics) -> Result<()>,
        present: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let read = self.read.next(self.next, x.nrows())?;
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        let rows = self.rows_to_keep(x, present)?;
        add(&mut self.statistics)?;
        self.kept.extend(rows);
        self.drop_surplus();
        self.next = read.end;
        self.read.insert(read);
        Ok(())
    }

    /// The present rows of `x` that may be kept, with hash and number; later rows of `x` may replace some of them.
    fn rows_to_keep<T: Real>(
        &self,
        x: &ArrayRef2<T>,
        present: impl Fn(usize) -> bool,
    ) -> Result<BTreeMap<(u64, u64), Vec<f64>>> {
        let last =
            self.kept.last_key_value().filter(|_| self.kept.len() >= self.capacity).map(|(key, _)| *key);
        let mut rows = BTreeMap::new();
        for ((place, row), number) in x.rows().into_iter().enumerate().zip(self.next..) {
            if number.is_multiple_of(ROWS) {
                progress::check()?;
            }
            if !present(place) {
                continue;
            }
            let key = (self.hash(number), number);
            let is_full = rows.len() >= self.capacity;
            let most = if is_full { rows.last_key_value().map(|(key, _)| *key) } else { last };
            if most.is_none_or(|most| key < most) {
                rows.insert(key, row.iter().map(|v| v.widen()).collect());
                if is_full {
                    rows.pop_last();
                }
            }
        }
        Ok(rows)
    }

    /// Adds the rows of another part of the data set. Both must have one seed and one capacity, and rows of different
    /// numbers, which [`with_first_row`](Reservoir::with_first_row) gives them.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`Merge`](Error::Merge) if the seeds or the numbers of rows to keep
    /// differ, [`Row`](Error::Row) if both read a row. Nothing is added on error.
    pub fn merge(&mut self, other: &Reservoir) -> Result<()> {
        check_size("the dimension of the rows that are added", self.dim(), other.dim())?;
        if (self.seed, self.capacity) != (other.seed, other.capacity) {
            return Err(Error::Merge { reason: "their seeds or the numbers of rows to keep differ" });
        }
        self.read.check_apart(&other.read)?;
        self.statistics.merge(&other.statistics)?;
        self.read.join(&other.read);
        self.kept.extend(other.kept.iter().map(|(key, row)| (*key, row.clone())));
        self.next = self.next.max(other.next);
        self.drop_surplus();
        Ok(())
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.statistics.dim()
    }

    /// The statistics of all rows.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The number of rows that were read, with those of weight 0.
    pub fn rows(&self) -> u64 {
        self.read.len()
    }

    /// The numbers of the rows that are kept, ascending.
    pub fn row_numbers(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = self.kept.keys().map(|(_, row)| *row).collect();
        rows.sort_unstable();
        rows
    }

    /// The rows that are kept, at most k × d, in the order of [`row_numbers`](Reservoir::row_numbers).
    pub fn points(&self) -> Array2<f64> {
        let mut kept: Vec<(u64, &Vec<f64>)> = self.kept.iter().map(|((_, row), x)| (*row, x)).collect();
        kept.sort_unstable_by_key(|(row, _)| *row);
        let values = kept.into_iter().flat_map(|(_, x)| x.iter().copied()).collect();
        matrix_of(self.kept.len(), self.dim(), values)
    }

    fn hash(&self, row: u64) -> u64 {
        use std::hash::Hasher;
        let mut digest = Digest::new();
        digest.write_u64(self.seed);
        digest.write_u64(row);
        // Digests of neighbouring rows agree in some bits, so they are mixed.
        avalanche(digest.finish())
    }

    fn drop_surplus(&mut self) {
        while self.kept.len() > self.capacity {
            self.kept.pop_last();
        }
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Reservoir, RowRanges, Statistics};
    use crate::error::{Error, Result, check_size};
    use crate::sealed::{AnyScalar, sealed};

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "Reservoir")]
    struct StoredReservoir {
        statistics: Statistics,
        seed: u64,
        capacity: usize,
        read: RowRanges,
        next: u64,
        rows: Vec<u64>,
        points: Vec<StoredRow>,
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct StoredRow(#[serde(with = "crate::exact")] Vec<f64>);

    impl From<&Reservoir> for StoredReservoir {
        fn from(reservoir: &Reservoir) -> Self {
            let Reservoir { statistics, seed, capacity, read, next, kept } = reservoir.clone();
            let (rows, points) = kept.into_iter().map(|((_, row), point)| (row, StoredRow(point))).unzip();
            StoredReservoir { statistics, seed, capacity, read, next, rows, points }
        }
    }

    impl TryFrom<StoredReservoir> for Reservoir {
        type Error = Error;

        fn try_from(stored: StoredReservoir) -> Result<Self> {
            let StoredReservoir { statistics, seed, capacity, read, next, rows, points } = stored;
            let mut reservoir = Reservoir::new(statistics.dim())?.with_seed(seed)?.with_capacity(capacity)?;
            let count = rows.len();
            // Rows of weight 0 are read, and not in the statistics.
            if statistics.rows() > read.len() {
                return Err(Error::Merge {
                    reason: "the rows that were read are not those of the statistics",
                });
            }
            if count as u64 > statistics.rows() || count > capacity {
                let (name, domain) = (
                    "the number of rows that are kept",
                    "at most that of rows in the statistics, and of rows that may be kept",
                );
                return Err(Error::Parameter { name, value: count as f64, domain });
            }
            check_size("the number of their points", count, points.len())?;
            for (row, StoredRow(point)) in rows.into_iter().zip(points) {
                check_size("the dimension of a row that is kept", statistics.dim(), point.len())?;
                if read.check_start(row).is_ok() {
                    return Err(Error::Row { row, reason: "is kept, but was not read" });
                }
                if !point.iter().all(|v| v.is_finite()) {
                    return Err(Error::NotFinite {
                        what: "a row that is kept",
                        row: row as usize,
                        column: None,
                    });
                }
                reservoir.kept.insert((reservoir.hash(row), row), point);
            }
            check_size("the number of different rows that are kept", count, reservoir.kept.len())?;
            Ok(Reservoir { statistics, read, next, ..reservoir })
        }
    }

    sealed!(Reservoir, StoredReservoir, AnyScalar);
}

once!(Reservoir::of::<T>, Reservoir::update::<T>, Reservoir::update_weighted::<T>);
