//! [`Map::fold`]: sums over the features of many points, which are not stored; [`FeatureRun`]: the features that it shows.

use std::ops::Range;

use ndarray::ArrayView2;

use super::arrays::times;
use super::{Map, Side};
use crate::engine::{Batch, FeatureSource, Form, PointsView, Runs, drive, fold};
use crate::error::Result;
use crate::numeric::matrix_view;
use crate::threads::Pool;
use crate::{Points, Real};

impl<T: Real> Map<T> {
    /// Folds the features of the rows of `x`, n × d, into a sum, without storing them: what an application of your own is made of.
    ///
    /// Rows are cut into runs of at most 252. `part` computes what is wanted of a run from its features, on any thread; `add` takes
    /// the results in the order of the rows, on the calling thread. Without rows neither is called.
    ///
    /// Runs depend on d, D and `T` alone, and every row is computed by itself. So the bits of a sum do not
    /// depend on the number of threads, and features have the bits of [`features`](Map::features), for points of every layout. A row
    /// that is not finite has NaN features.
    ///
    /// # Cost
    /// The features, O(n m d) for an exponential map, and what both functions take. `add` should be cheap, as other threads wait for
    /// it. A thread keeps the features of one run, and at most sixteen results wait to be added.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` does not have d columns, [`Memory`](crate::Error::Memory) if there is no memory for copies
    /// of points that are not in standard layout; nothing is added then. [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it between runs; then the first runs are added, each as a whole. An error of your own
    /// is a result of `part` as any other.
    ///
    /// A panic of either function is passed on. The map is as before, and what was added stays.
    ///
    /// # Example
    /// The mean embedding (1/n) Σᵢ φ(xᵢ) of a sample:
    /// ```
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// use random_features::{Map, Side, Trigonometric};
    /// let map: Map<f32> =
    ///     Trigonometric.gaussian(Orthogonal.draw(3, 64, 1)?, 1.0)?;
    /// let x =
    ///     Array2::from_shape_fn((1000, 3), |(i, k)| ((i * (k + 1)) % 7) as f32);
    ///
    /// let mut mean = vec![0.0; map.feature_dim()];
    /// let part = |run: random_features::extend::FeatureRun<'_, f32>| {
    ///     let mut sum = vec![0.0; run.feature_dim()];
    ///     (0..run.len()).for_each(|i| run.add_row(i, 1e-3, &mut sum));
    ///     sum
    /// };
    /// map.fold(Side::X, &x, part, |sum| {
    ///     mean.iter_mut().zip(sum).for_each(|(mean, sum)| *mean += sum)
    /// })?;
    ///
    /// let stored = map.features(Side::X, &x)?.to_array().mapv(f64::from);
    /// assert!(
    ///     mean.iter()
    ///         .zip(stored.columns())
    ///         .all(|(mean, column)| (mean - column.sum() / 1e3).abs() < 1e-6)
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn fold<'a, A: Send>(
        &self,
        side: Side,
        x: impl Into<Points<'a, T>>,
        part: impl Fn(FeatureRun<'_, T>) -> A + Sync,
        add: impl FnMut(A),
    ) -> Result<()> {
        self.fold_points(side, x.into().view(), part, add)
    }

    fn fold_points<A: Send>(
        &self,
        side: Side,
        x: PointsView<'_, T>,
        part: impl Fn(FeatureRun<'_, T>) -> A + Sync,
        add: impl FnMut(A),
    ) -> Result<()> {
        self.check_points(x)?;
        let program = self.program();
        let rows = drive::run_rows::<T>(program.width(), x.ncols());
        let runs = Runs { rows, bytes: size_of::<A>() };
        let of_run = |run: Range<usize>, batch: &mut Batch<T>, (): &mut ()| {
            let blocks = program.blocks();
            batch.clear_absent(blocks);
            part(FeatureRun { first: run.start, batch, blocks })
        };
        fold(FeatureSource::new(program, side, Form::Values), x, runs, &Pool::default(), of_run, add)
    }
}

/// Features of a run of successive points, n × D, as [`Map::fold`] shows them.
///
/// Feature f of point i, in block b, is exp(log_scales\[i, b\]) · values\[i, f\]. Scales are `f64` for every `T`; a scale of −∞ marks an
/// absent block, whose values are 0. A map that is not composed has one block; a hybrid has one for each of its products.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRun<'a, T> {
    first: usize,
    batch: &'a Batch<T>,
    blocks: &'a [Range<usize>],
}

impl<'a, T: Real> FeatureRun<'a, T> {
    /// The rows of all points that these are, to find what belongs to them.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.len()
    }

    /// n, the number of points, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a run has at least one point")]
    pub fn len(&self) -> usize {
        self.batch.rows()
    }

    /// D, the number of features of a point.
    pub fn feature_dim(&self) -> usize {
        self.batch.width()
    }

    /// The columns of each block, from first to last.
    pub fn blocks(&self) -> &'a [Range<usize>] {
        self.blocks
    }

    /// The values, n × D.
    pub fn mantissas(&self) -> ArrayView2<'a, T> {
        matrix_view(self.len(), self.feature_dim(), self.batch.values())
    }

    /// The logarithmic scales, n × blocks.
    pub fn log_scales(&self) -> ArrayView2<'a, f64> {
        matrix_view(self.len(), self.blocks.len(), self.batch.log_scales())
    }

    /// The features of point i of the run with their scales multiplied in, D numbers: those of absent blocks are 0.
    ///
    /// # Panics
    /// If the run has no point i.
    pub fn row(&self, i: usize) -> impl Iterator<Item = f64> + 'a {
        let row = self.batch.row(i);
        self.blocks.iter().zip(row.log_scales).flat_map(move |(columns, scale)| {
            let times = times(*scale);
            row.values[columns.clone()].iter().map(move |v| times(v.widen()))
        })
    }

    /// Adds the features of point i of the run, times a weight, to D sums: faster than by [`row`](FeatureRun::row). Absent blocks add
    /// nothing. The weight times the exponential of a scale must not overflow.
    ///
    /// # Panics
    /// If the run has no point i, or there are fewer than D sums.
    pub fn add_row(&self, i: usize, weight: f64, sums: &mut [f64]) {
        self.batch.row(i).add_to(self.blocks, weight, sums);
    }
}
