//! [`BufferedRidge`]: single rows, added to statistics in batches.

use ndarray::{ArrayRef1, aview1};

use super::RidgeStatistics;
use crate::error::{Error, Result, check_size};
use crate::labels::one_hot;
use crate::numeric::matrix_view;
use crate::once::once;
use crate::reduce::check_weights;
use crate::{Real, Targets};

/// Takes rows one by one and adds them to [`RidgeStatistics`] in batches. An update of a single row costs as much as an update of
/// about fifty rows.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::RidgeStatistics;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr1;
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 64, 1)?, 1.0)?;
/// let mut buffer = RidgeStatistics::new(map, 1)?.buffered();
/// for i in 0..200 {
///     let x = i as f64 / 50.0 - 2.0;
///     buffer.push(&arr1(&[x]), &arr1(&[x * x]))?;
/// }
/// assert_eq!(buffer.pending(), 200);
/// let model = buffer.statistics()?.solve(1e-4)?;
/// let mut y = [0.0];
/// model.predictor().predict_into(&arr1(&[0.5]), &mut y)?;
/// assert!((y[0] - 0.25).abs() < 1e-2);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Rows are added when a [chunk](RidgeStatistics::CHUNK) is full, and before statistics are returned. The sums thus have the same
/// bits as after one update with all rows. Dropping a buffer drops the rows that are [pending](BufferedRidge::pending).
///
/// # Cost
/// Each row costs its share of the update of a chunk. For D = 1024 features of `f32` on two cores of an AMD EPYC, that
/// is 5 µs on average; an update of one row takes 0.3 ms there. The row that fills a chunk waits for the whole update.
/// A buffer holds 4096 points and targets.
#[derive(Clone, Debug)]
pub struct BufferedRidge<T: Real> {
    statistics: RidgeStatistics<T>,
    points: Vec<T>,
    targets: Vec<T>,
    weights: Vec<f64>,
}

impl<T: Real> RidgeStatistics<T> {
    /// A buffer that takes single rows for these statistics.
    pub fn buffered(self) -> BufferedRidge<T> {
        BufferedRidge { statistics: self, points: Vec::new(), targets: Vec::new(), weights: Vec::new() }
    }
}

impl<T: Real> BufferedRidge<T> {
    /// Takes the next row: a point, d numbers, and its t targets.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// [`Row`](Error::Row) if the row is counted already. The row is not taken then. A row that fills a chunk can also give the
    /// errors of [`flush`](BufferedRidge::flush).
    #[inline(never)]
    pub fn push(&mut self, x: &ArrayRef1<T>, targets: &ArrayRef1<T>) -> Result<()> {
        self.push_weighted(x, targets, 1.0)
    }

    /// Takes the next row with a weight, which says how often the row counts.
    ///
    /// # Errors
    /// The errors of [`push`](BufferedRidge::push); [`Entry`](Error::Entry) if the weight is negative or not finite.
    #[inline(never)]
    pub fn push_weighted(&mut self, x: &ArrayRef1<T>, targets: &ArrayRef1<T>, weight: f64) -> Result<()> {
        check_size("the dimension of x", self.statistics.map().dim(), x.len())?;
        check_size("the number of targets", self.statistics.targets(), targets.len())?;
        let finite = [("x", x), ("the targets", targets)];
        for (what, row) in finite {
            if let Some(column) = row.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what, row: 0, column: Some(column) });
            }
        }
        check_weights(Some(&aview1(&[weight])), 1)?;
        let next = self.statistics.intake.check_next(self.pending())?;
        self.points.extend(x);
        self.targets.extend(targets);
        self.weights.push(weight);
        if (next + 1).is_multiple_of(RidgeStatistics::<T>::CHUNK) { self.flush() } else { Ok(()) }
    }

    /// Takes the next row with a label below the number of targets: the target of that class is 1, others are 0.
    ///
    /// # Errors
    /// The errors of [`push`](BufferedRidge::push); [`Entry`](Error::Entry) if the label is too large.
    #[inline(never)]
    pub fn push_label(&mut self, x: &ArrayRef1<T>, label: usize) -> Result<()> {
        let targets = one_hot(aview1(&[label]), self.statistics.targets())?;
        self.push(x, &targets.row(0))
    }

    /// The number of rows that are not added yet.
    pub fn pending(&self) -> usize {
        self.weights.len()
    }

    /// Adds the pending rows.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::update`], with rows counted from the first pending one. After an error, rows stay pending
    /// until they are [discarded](BufferedRidge::discard).
    #[inline(never)]
    pub fn flush(&mut self) -> Result<()> {
        if self.pending() == 0 {
            return Ok(());
        }
        let (rows, statistics) = (self.pending(), &mut self.statistics);
        let x = matrix_view(rows, statistics.map().dim(), &self.points);
        let targets = matrix_view(rows, statistics.targets(), &self.targets);
        let (targets, weights) = (Targets::from(targets), aview1(&self.weights));
        let all_are_one = self.weights.iter().all(|weight| *weight == 1.0);
        let targets = if all_are_one { targets } else { targets.with_weights(&weights)? };
        statistics.update(x, targets)?;
        self.discard();
        Ok(())
    }

    /// Drops the pending rows.
    pub fn discard(&mut self) {
        self.points.clear();
        self.targets.clear();
        self.weights.clear();
    }

    /// Adds the pending rows and returns the statistics of all rows.
    ///
    /// # Errors
    /// The errors of [`flush`](BufferedRidge::flush).
    pub fn statistics(&mut self) -> Result<&RidgeStatistics<T>> {
        self.flush()?;
        Ok(&self.statistics)
    }

    /// Adds the pending rows and returns the statistics of all rows; consumes the buffer.
    ///
    /// # Errors
    /// The errors of [`flush`](BufferedRidge::flush).
    pub fn into_statistics(mut self) -> Result<RidgeStatistics<T>> {
        self.flush()?;
        Ok(self.statistics)
    }
}

once!(
    BufferedRidge::<T>::push_weighted,
    BufferedRidge::<T>::push,
    BufferedRidge::<T>::push_label,
    BufferedRidge::<T>::flush,
);
