//! Estimates of the kernel: of two points, of paired rows, and of all pairs.

use std::collections::BTreeSet;

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

use super::compose::Part;
use super::gram::{self, GramRows, RowFeatures};
use super::pairing::Pairing;
use super::{Form, Map, Side};
use crate::engine::{Batch, Scratch, drive, map_pairs};
use crate::error::{Result, check_size};
use crate::memory::check_memory;
use crate::numeric::zeros;
use crate::once::once;
use crate::{Real, SignedLog};

impl<T: Real> Map<T> {
    /// The estimates of K(xᵢ, yⱼ) for all rows of `x` and `y`, n × l; ±∞ or 0 where `T` overflows or underflows.
    ///
    /// The points are dense ([`Points::to_dense`](crate::Points::to_dense)); [`Features::gram`](super::Features::gram) takes the
    /// features of any points. The features of `x` are not stored. Entries that underflow are recomputed from logarithms, if the
    /// map has them. Hybrids combine the estimates of their parts instead of multiplying features. Cost O((n + l) m d + n l D),
    /// where D counts the features of the parts of a hybrid; more if many entries are recomputed.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` or `y` does not have d columns, [`Memory`](crate::Error::Memory) if the result does
    /// not fit in memory, [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
        self.check_points(x.view().into())?;
        self.check_points(y.view().into())?;
        check_memory("rows of a Gram matrix", x.nrows(), y.nrows().saturating_mul(size_of::<T>()))?;
        if let Some(gram) = self.composite().and_then(|composite| composite.gram(x, y)) {
            return gram;
        }
        let resolve = |pairs: &[(usize, usize)]| self.resolve_pairs(x, y, pairs);
        let Some(hybrid) = self.hybrid() else {
            let right = self.features(Side::Y, y)?;
            let left = GramRows::Points(self.program(), x.view());
            return gram::gram(left, right.rows(), &Pairing::of_blocks(self.blocks()), resolve);
        };
        let (program, pairing) = Pairing::of(hybrid)?;
        let (width, blocks) = (program.width(), program.blocks());
        let each = width.saturating_mul(size_of::<T>()) + blocks.len().saturating_mul(size_of::<f64>());
        check_memory("rows of features", y.nrows(), each)?;
        let (mut values, mut log_scales) =
            (zeros((y.nrows(), width)), Array2::zeros((y.nrows(), blocks.len())));
        drive::fill_values(&program, Side::Y, y.view().into(), values.view_mut(), log_scales.view_mut())?;
        let right = RowFeatures::new(&values, &log_scales, blocks);
        gram::gram(GramRows::Points(&program, x.view()), right, &pairing, resolve)
    }

    /// The estimate of K(x, y); ±∞ or 0 where `T` overflows or underflows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    pub fn estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<T> {
        Ok(T::narrow(self.log_estimate(x, y)?.value()))
    }

    /// The sign and logarithm of the estimate of K(x, y), from logarithms of features if the map has them.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    pub fn log_estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<SignedLog> {
        self.check_pair(x, y)?;
        let estimates =
            self.log_estimate_rows(&x.view().insert_axis(Axis(0)), &y.view().insert_axis(Axis(0)))?;
        Ok(estimates[0])
    }

    /// The estimates of K(xᵢ, yᵢ) for the n rows of `x` and `y`; ±∞ or 0 where `T` overflows or underflows. They are
    /// bit-identical to [`estimate`](Map::estimate), in less time: cost O(n m d), without the other pairs of
    /// [`gram`](Map::gram).
    ///
    /// The points are dense. Features are not stored. A row that gets NaN features gives NaN for its pair alone.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` or `y` does not have d columns, or the numbers of rows differ;
    /// [`Memory`](crate::Error::Memory) if the result does not fit in memory, [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    ///
    /// # Example
    /// ```
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::arr2;
    /// use random_features::{Map, Positive};
    /// let map: Map<f64> = Positive.softmax(Orthogonal.draw(2, 64, 1)?)?;
    /// let (x, y) =
    ///     (arr2(&[[0.1, 0.2], [0.3, -0.4]]), arr2(&[[0.5, 0.0], [0.2, 0.1]]));
    /// let estimates = map.estimate_rows(&x, &y)?;
    /// assert_eq!(estimates[1], map.estimate(&x.row(1), &y.row(1))?);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn estimate_rows(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<T>> {
        Ok(self.log_estimate_rows(x, y)?.mapv(|estimate| T::narrow(estimate.value())))
    }

    /// The signs and logarithms of the estimates of K(xᵢ, yᵢ) for the n rows of `x` and `y`.
    ///
    /// # Errors
    /// The errors of [`estimate_rows`](Map::estimate_rows).
    #[inline(never)]
    pub fn log_estimate_rows(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        self.check_points(x.view().into())?;
        self.check_points(y.view().into())?;
        check_size("the number of rows of y", x.nrows(), y.nrows())?;
        check_memory("estimates", x.nrows(), size_of::<SignedLog>())?;
        if let Some(estimates) = self.composite().and_then(|composite| composite.estimates(x, y)) {
            return estimates;
        }
        let program = self.program();
        let mut out = Array1::from_elem(x.nrows(), SignedLog::from(0.0));
        map_pairs(program, program.best_form(), x.view().into(), y.view().into(), out.view_mut(), |x, y| {
            gram::estimate(program.blocks(), x, y)
        })?;
        Ok(out)
    }

    /// The signs and logarithms of the estimates of K(xᵢ, yⱼ) for these pairs (i, j) of rows, with the bits of
    /// [`log_estimate`](Map::log_estimate), on the calling thread. The features of each row are computed once and held.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` or `y` does not have d columns.
    pub(crate) fn log_estimate_pairs(
        &self,
        x: &ArrayRef2<T>,
        y: &ArrayRef2<T>,
        pairs: &[(usize, usize)],
    ) -> Result<Array1<SignedLog>> {
        self.check_points(x.view().into())?;
        self.check_points(y.view().into())?;
        if let Some(estimates) =
            self.composite().and_then(|composite| composite.estimates_of_pairs(x, y, pairs))
        {
            return estimates;
        }
        let form = self.program().best_form();
        let rows = |of: fn(&(usize, usize)) -> usize| -> Vec<usize> {
            pairs.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (left_rows, right_rows) = (rows(|pair| pair.0), rows(|pair| pair.1));
        let left = self.batch(Side::X, form, x.select(Axis(0), &left_rows).view());
        let right = self.batch(Side::Y, form, y.select(Axis(0), &right_rows).view());
        let place = |rows: &[usize], row: &usize| rows.partition_point(|other| other < row);
        let estimate = |(i, j): &(usize, usize)| {
            let (left, right) = (left.row(place(&left_rows, i)), right.row(place(&right_rows, j)));
            gram::estimate(self.program().blocks(), left, right)
        };
        Ok(pairs.iter().map(estimate).collect())
    }

    fn batch(&self, side: Side, form: Form, x: ArrayView2<'_, T>) -> Batch<T> {
        let mut batch = Batch::default();
        batch.fill(self.program(), side, form, x.into(), &mut Scratch::default());
        batch
    }

    /// Estimates of pairs of rows from logarithms, each row projected once; `None` if the map has no logarithms.
    fn resolve_pairs(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>, pairs: &[(usize, usize)]) -> Option<Vec<T>> {
        if self.hybrid().is_none() && !self.facts().logarithms {
            return None;
        }
        let estimates = self.log_estimate_pairs(x, y, pairs).ok()?;
        Some(estimates.iter().map(|estimate| T::narrow(estimate.value())).collect())
    }
}

once!(Map::<T>::gram, Map::<T>::log_estimate_rows, Map::<T>::estimate_rows);
