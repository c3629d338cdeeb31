//! [`LinearisedRows`]: the derivatives of a loss at rows, from which Newton's method computes its sums.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, s};

use super::{ChunkPools, Differences, FeatureChunk, PackedRun, RUN, TargetSums, first_without_features};
use crate::Real;
use crate::engine::{Batch, FeatureSource, PointsView, Program, Runs, fold};
use crate::error::{Error, Result};
use crate::numeric;
use crate::progress;

/// The derivatives of a loss at rows, for the decision values of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearisedRows<'a> {
    /// The second derivative s of a row's loss, not negative: the weight of φφᵀ.
    pub curvature: ArrayView1<'a, f64>,
    /// The negative first derivatives of a row's loss, n × k: the factors of φ.
    pub pull: ArrayView2<'a, f64>,
    /// Numbers that are summed without features, n × (k + 3). The last but one says how often each row counts.
    pub values: ArrayView2<'a, f64>,
}

impl LinearisedRows<'_> {
    /// The number of targets of sums over such rows: k + 1.
    pub fn targets(&self) -> usize {
        self.pull.ncols() + 1
    }

    pub fn rows(&self, rows: Range<usize>) -> LinearisedRows<'_> {
        LinearisedRows {
            curvature: self.curvature.slice(s![rows.clone()]),
            pull: self.pull.slice(s![rows.clone(), ..]),
            values: self.values.slice(s![rows, ..]),
        }
    }

    /// The moments in the order of moments of targets: the sums of the k derivatives and of the first value, Σ s, and the sums of
    /// the other values but the last. The last but one follows once more, since it counts rows, and then the last.
    fn moments(&self) -> Vec<f64> {
        let k = self.pull.ncols();
        let value = |j: usize| self.values.column(j).iter().sum();
        let pulls = (0..k).map(|j| self.pull.column(j).iter().sum());
        let curvature = self.curvature.iter().sum();
        pulls
            .chain([value(0), curvature])
            .chain((1..k + 2).map(value))
            .chain([value(k + 1), value(k + 2)])
            .collect()
    }
}

impl<T: Real> FeatureChunk<T> {
    /// The chunk of these rows; the first is row `first` of the caller's data.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if a point has no finite features.
    pub fn linearised(
        source: FeatureSource<'_, T>,
        x: PointsView<'_, T>,
        rows: LinearisedRows<'_>,
        first: usize,
        pools: &ChunkPools<T>,
    ) -> Result<Self> {
        let part = |run: Range<usize>, batch: &mut Batch<T>, (): &mut ()| {
            progress::check()?;
            if let Some(row) = first_without_features(batch) {
                return Err(Error::NotFinite {
                    what: "the features of x",
                    row: first + run.start + row,
                    column: None,
                });
            }
            let own = rows.rows(run);
            let sums = Differences::linearised(source.program, batch, &own);
            let features = pools.features.take().unwrap_or_default();
            Ok(PackedRun::of_sums(source.program, batch, |i| own.curvature[i], sums, features))
        };
        let (shape, mut runs) = (Runs { rows: RUN, bytes: 0 }, Vec::new());
        fold(source, x, shape, &pools.buffers, part, |run| runs.push(run))?;
        let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
        let (targets, width) = (rows.targets(), source.program.width());
        let mut sums = TargetSums::zeros(targets, width);
        runs.iter().for_each(|run: &PackedRun<T>| sums.cross += &run.sums.cross);
        sums.moments = rows.moments();
        let sums = [sums, TargetSums::zeros(targets, width)];
        Ok(FeatureChunk { runs, sums, scatter: vec![0.0; targets] })
    }
}

impl Differences {
    /// The sums with features over the rows of a batch: one for each derivative, one of zeros, and one for the second derivative.
    fn linearised<T: Real>(program: &Program<T>, batch: &Batch<T>, rows: &LinearisedRows<'_>) -> Self {
        let (k, targets) = (rows.pull.ncols(), rows.targets());
        let mut all = Differences::zeros(targets, program.width());
        let factor = |i: usize, j: usize| match j {
            j if j < k => rows.pull[[i, j]],
            j if j == targets => rows.curvature[i],
            _ => 0.0,
        };
        batch.add_to(program.blocks(), factor, numeric::slice_of_mut(&mut all.cross));
        all
    }
}
