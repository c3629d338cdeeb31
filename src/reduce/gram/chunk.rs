//! [`FeatureChunk`]: the features of at most 4096 rows, packed for the products Σ w φ φᵀ, and the sums Σ w y φ.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, s};

use super::totals::{Adder, Totals};
use crate::Real;
use crate::engine::{Batch, FeatureSource, FoldBuffers, PointsView, Program, Runs, fold};
use crate::error::{Error, Result};
use crate::numeric::{self, Isa, Packed, Twofold, add_scaled, max_abs, panel_width};
use crate::progress;
use crate::threads::Pool;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod linearised;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use linearised::LinearisedRows;

/// The number of rows whose products are summed before the sum is added to others. A chunk begins at a multiple of it.
pub(crate) const ROWS: u64 = 4096;
/// The number of rows whose products are summed in the scalar type; sums of such sums are `f64`.
pub(super) const RUN: usize = 512;
/// The number of features of a block: whole panels, so that two blocks of a run stay in the second cache.
pub(super) const BLOCK: usize = 96;

/// Rows of a data set: points, n × d, with their targets, n × t, and weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data<'a, T> {
    pub x: PointsView<'a, T>,
    pub targets: ArrayView2<'a, T>,
    /// How often each row counts; `None` if all count once.
    pub weights: Option<ArrayView1<'a, f64>>,
    /// The precision of each row; `None` if all are 1.
    pub precisions: Option<ArrayView1<'a, f64>>,
}

impl<T: Real> Data<'_, T> {
    pub fn rows(&self, rows: Range<usize>) -> Data<'_, T> {
        Data {
            x: self.x.rows(rows.clone()),
            targets: self.targets.slice(s![rows.clone(), ..]),
            weights: self.weights.as_ref().map(|weights| weights.slice(s![rows.clone()])),
            precisions: self.precisions.as_ref().map(|precisions| precisions.slice(s![rows])),
        }
    }

    /// How often a row counts.
    fn count(&self, i: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[i])
    }

    /// The weight of a row in sums: how often it counts, times its precision.
    pub fn weight(&self, i: usize) -> f64 {
        self.count(i) * self.precisions.as_ref().map_or(1.0, |precisions| precisions[i])
    }

    /// The logarithm of a row's precision.
    fn log_precision(&self, i: usize) -> f64 {
        self.precisions.as_ref().map_or(0.0, |precisions| precisions[i].ln())
    }

    /// The targets r of the row of largest weight, the first of equal ones. For n rows, (r − mean)² is at most n times the
    /// variance, so that squares of y − r keep their digits whatever the mean is. y − r is 0 for constant targets, and for most
    /// indicators of a class.
    fn references(&self) -> Vec<f64> {
        let heavier = |best: usize, i: usize| if self.weight(i) > self.weight(best) { i } else { best };
        let heaviest = (0..self.targets.nrows()).reduce(heavier);
        heaviest.map_or_else(Vec::new, |i| self.targets.row(i).iter().map(|y| y.widen()).collect())
    }
}

/// The features of the rows of a chunk, and the sums over them in `f64`.
#[derive(Debug)]
pub(super) struct FeatureChunk<T> {
    runs: Vec<PackedRun<T>>,
    /// The sums with targets, and the remainders that their rounding has left.
    pub sums: [TargetSums; 2],
    /// Σ w (y − r)² for each target, with its reference r.
    pub scatter: Vec<f64>,
}

/// Sums with targets.
#[derive(Debug)]
pub(super) struct TargetSums {
    /// (t + 1) × D: Σ w y φ; the last row is for the target 1.
    pub cross: Array2<f64>,
    /// Σ w y for each target and for the target 1; then Σ w y² for each target; then n and L.
    pub moments: Vec<f64>,
}

/// Sums of targets less a reference r, which keep twice the digits of `f64` in their moments. They are needed if rows are removed
/// in other batches than they were added in. Such rows had another reference then, and rounding errors of large targets would
/// hide small ones.
#[derive(Debug)]
struct Differences {
    /// (t + 1) × D: Σ w (y − r) φ; the last row is Σ w φ.
    cross: Array2<f64>,
    /// Σ w (y − r) for each target and Σ w; then Σ w (y − r)² for each target; then n and L.
    moments: Vec<Twofold>,
}

/// Buffers for the features of chunks, which are reused: page faults of new buffers would take longer than many of the sums.
#[derive(Debug, Default)]
pub(super) struct ChunkPools<T> {
    features: Pool<Packed<T>>,
    buffers: Pool<FoldBuffers<T, ()>>,
}

/// A run: its features, and the sums over them.
#[derive(Debug)]
struct PackedRun<T> {
    /// Features times the square root of the weight of their row, divided by a power of two; feature after feature in panels.
    features: Packed<T>,
    /// The square of that power of two.
    unit: f64,
    /// An upper bound of every Σ w φ², up to rounding.
    bound: f64,
    /// Σ w φ², summed over the features.
    trace: f64,
    /// The sums with targets less their references.
    sums: Differences,
}

impl<T: Real> FeatureChunk<T> {
    /// The chunk of the rows of `data`; the first is row `first` of the caller's data.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if a point has no finite features.
    pub fn new(
        source: FeatureSource<'_, T>,
        data: Data<'_, T>,
        first: usize,
        pools: &ChunkPools<T>,
    ) -> Result<Self> {
        let references = data.references();
        let part = |run: Range<usize>, batch: &mut Batch<T>, (): &mut ()| {
            progress::check()?;
            let features = pools.features.take().unwrap_or_default();
            PackedRun::new(source.program, batch, data.rows(run.clone()), &references, features).map_err(
                |row| Error::NotFinite {
                    what: "the features of x",
                    row: first + run.start + row,
                    column: None,
                },
            )
        };
        // All runs are kept, so that none is a reason to have fewer at a time.
        let (shape, mut runs) = (Runs { rows: RUN, bytes: 0 }, Vec::new());
        fold(source, data.x, shape, &pools.buffers, part, |run| runs.push(run))?;
        let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
        let mut sums = Differences::zeros(data.targets.ncols(), source.program.width());
        runs.iter().for_each(|run| sums.add(&run.sums));
        let squares = sums.moments.iter().skip(references.len() + 1).take(references.len());
        let scatter = squares.map(|square| square.high).collect();
        Ok(FeatureChunk { runs, sums: sums.about_zero(&references), scatter })
    }

    /// Returns the buffers.
    pub fn give_back(self, pools: &ChunkPools<T>) {
        self.runs.into_iter().for_each(|run| pools.features.give(run.features));
    }

    /// Σ w.
    pub fn weight(&self) -> f64 {
        let [sums, _] = &self.sums;
        sums.moments[self.scatter.len()]
    }

    /// An upper bound of every Σ w φ² and every product of two features.
    pub fn bound(&self) -> f64 {
        // The bound is doubled for the rounding of sums in the scalar type.
        2.0 * self.runs.iter().map(|run| run.bound).sum::<f64>()
    }

    /// The largest Σ w φ² of a feature in each run, up to rounding, and the sum over all features.
    pub fn magnitudes(&self) -> impl Iterator<Item = [f64; 2]> {
        self.runs.iter().map(|run| [run.bound, run.trace])
    }

    /// Adds the products of all pairs of features to the pieces of their blocks.
    pub fn add_products(&self, adder: Adder, gram: &mut Totals, sign: f64) {
        let places = blocks(self.sums[0].cross.ncols());
        let (len, words) = gram.pieces_mut();
        let pieces = words.chunks_mut(len).zip(places);
        Pool::default().for_each(pieces, |(products, sums): &mut (Vec<T>, Vec<f64>), (words, (i, j))| {
            products.resize(BLOCK * BLOCK, T::zero());
            sums.resize(BLOCK * BLOCK, 0.0);
            self.multiply(i, j, products, sums);
            sums.iter_mut().for_each(|sum| *sum *= sign);
            adder.add(words, sums);
        });
    }

    /// Writes Σ w φ φᵀ over the chunk for block (i, j) of pairs of features, `BLOCK` × `BLOCK` with zeros beyond the last feature.
    /// Above the diagonal they are 0 too.
    fn multiply(&self, i: usize, j: usize, products: &mut [T], sums: &mut [f64]) {
        sums.fill(0.0);
        let panels = BLOCK / panel_width::<T>();
        for run in &self.runs {
            let Some(right) = run.features.runs(BLOCK).nth(j) else { continue };
            let bands = run.features.runs(1).skip(i * panels).take(panels);
            for (k, (left, sums)) in bands.zip(sums.chunks_mut(panel_width::<T>() * BLOCK)).enumerate() {
                // Blocks on the diagonal need only the lower triangle, up to whole panels.
                let right = right.first(if i == j { (k + 1) * panel_width::<T>() } else { BLOCK });
                let products = &mut products[..left.rows() * BLOCK];
                numeric::panel_product(Isa::best(), left, right, products, BLOCK);
                for (sums, products) in sums.chunks_exact_mut(BLOCK).zip(products.chunks_exact(BLOCK)) {
                    add_scaled(Isa::best(), &mut sums[..right.rows()], run.unit, products);
                }
            }
        }
        if i == j {
            let rows = sums.chunks_exact_mut(BLOCK).enumerate();
            rows.for_each(|(f, sums)| sums[f + 1..].fill(0.0));
        }
    }
}

impl<T: Real> PackedRun<T> {
    /// The sums over a batch of features, which are overwritten. Fails with the first row that has no finite features.
    fn new(
        program: &Program<T>,
        batch: &mut Batch<T>,
        data: Data<'_, T>,
        references: &[f64],
        features: Packed<T>,
    ) -> std::result::Result<Self, usize> {
        first_without_features(batch).map_or(Ok(()), Err)?;
        let sums = Differences::of(program, batch, &data, references);
        Ok(PackedRun::of_sums(program, batch, |i| data.weight(i), sums, features))
    }

    /// The run of a batch of features, which are overwritten, whose rows have these weights, with its sums.
    fn of_sums(
        program: &Program<T>,
        batch: &mut Batch<T>,
        weight: impl Fn(usize) -> f64,
        sums: Differences,
        mut features: Packed<T>,
    ) -> Self {
        let (rows, width) = (batch.rows(), program.width());
        let root = scale_rows(program, batch, weight);
        features.refill_columns(batch.values(), rows, width);
        let mut squares = vec![T::zero(); width];
        for row in batch.values().chunks_exact(width) {
            numeric::add_squares(Isa::best(), &mut squares, row);
        }
        let trace: f64 = squares.iter().map(|square| square.widen()).sum();
        let bound = squares.into_iter().fold(T::zero(), T::max).widen();
        let unit = root * root;
        // Features whose squares underflow are not 0.
        let bound = if bound > 0.0 { (bound * unit).max(f64::MIN_POSITIVE) } else { 0.0 };
        PackedRun { features, unit, bound, trace: trace * unit, sums }
    }
}

impl TargetSums {
    fn zeros(targets: usize, width: usize) -> Self {
        TargetSums { cross: Array2::zeros((targets + 1, width)), moments: vec![0.0; moment_count(targets)] }
    }
}

impl Differences {
    fn zeros(targets: usize, width: usize) -> Self {
        let moments = vec![Twofold::default(); moment_count(targets)];
        Differences { cross: Array2::zeros((targets + 1, width)), moments }
    }

    /// The sums over the rows of a batch.
    fn of<T: Real>(program: &Program<T>, batch: &Batch<T>, data: &Data<'_, T>, references: &[f64]) -> Self {
        let mut all = Self::zeros(references.len(), program.width());
        let weights: Vec<f64> = (0..batch.rows()).map(|i| data.weight(i)).collect();
        for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let targets = data.targets.row(i);
            let difference = |(y, r): (&T, &f64)| Twofold::default().add(y.widen()).add(-r);
            all.add_moments(*weight, targets.iter().zip(references).map(difference));
            all.add_count(data.count(i), data.log_precision(i));
        }
        let difference =
            |i: usize, j: usize| references.get(j).map_or(1.0, |r| data.targets[[i, j]].widen() - r);
        let factor = |i: usize, j: usize| if weights[i] == 0.0 { 0.0 } else { weights[i] * difference(i, j) };
        batch.add_to(program.blocks(), factor, numeric::slice_of_mut(&mut all.cross));
        all
    }

    /// Adds w (y − r) and w (y − r)² for each target.
    fn add_moments(&mut self, weight: f64, differences: impl ExactSizeIterator<Item = Twofold>) {
        let (means, squares) = self.moments.split_at_mut(differences.len() + 1);
        for ((y, mean), square) in
            differences.zip(&mut *means).zip(squares).filter(|((y, _), _)| y.high != 0.0)
        {
            let weighted = Twofold::default().add_product(weight, y.high).add_product(weight, y.low);
            *mean = mean.add(weighted.low).add(weighted.high);
            *square = square.add_product(weighted.low, y.high).add_product(weighted.high, y.low);
            *square = square.add_product(weighted.high, y.high);
        }
        if let Some(sum) = means.last_mut() {
            *sum = sum.add(weight);
        }
    }

    /// Adds the weight a of a row to n, and a ln p to L.
    fn add_count(&mut self, count: f64, log_precision: f64) {
        if let [.., n, logs] = self.moments.as_mut_slice() {
            *n = n.add(count);
            *logs = logs.add_product(count, log_precision);
        }
    }

    fn add(&mut self, other: &Differences) {
        self.cross += &other.cross;
        for (sum, moment) in self.moments.iter_mut().zip(&other.moments) {
            *sum = sum.add(moment.low).add(moment.high);
        }
    }

    /// The sums with the targets themselves: Σ w y φ = Σ w (y − r) φ + r Σ w φ, and likewise for the moments. They have twice the
    /// digits of `f64`, so that terms that are small beside r are kept.
    fn about_zero(self, references: &[f64]) -> [TargetSums; 2] {
        let (t, width) = (references.len(), self.cross.ncols());
        let Differences { cross, mut moments } = self;
        let weight = moments[t];
        let times = |sum: Twofold, r: f64, factor: Twofold| {
            sum.add_product(r, factor.low).add_product(r, factor.high)
        };
        let (mut sums, mut left) = (TargetSums { cross, moments: Vec::new() }, TargetSums::zeros(t, width));
        for (j, r) in references.iter().enumerate() {
            let own = moments[j];
            let total = times(own, *r, weight);
            moments[j] = total;
            moments[t + 1 + j] = times(times(moments[t + 1 + j], *r, own), *r, total);
            for f in 0..width {
                let sum = Twofold::default().add(sums.cross[[j, f]]).add_product(*r, sums.cross[[t, f]]);
                (sums.cross[[j, f]], left.cross[[j, f]]) = (sum.high, sum.low);
            }
        }
        (sums.moments, left.moments) = moments.iter().map(|sum| (sum.high, sum.low)).unzip();
        [sums, left]
    }
}

/// The first row of a batch that has no finite features.
fn first_without_features<T: Real>(batch: &Batch<T>) -> Option<usize> {
    let no_features = |i: &usize| batch.row(*i).log_scales.iter().any(|s| s.is_nan() || *s == f64::INFINITY);
    (0..batch.rows()).find(no_features)
}

/// The number of sums over rows without features, for `targets` targets.
pub(super) fn moment_count(targets: usize) -> usize {
    2 * targets + 3
}

/// Turns values into plain features times √w, divided by a power of two near the largest, which is returned.
fn scale_rows<T: Real>(program: &Program<T>, batch: &mut Batch<T>, weight: impl Fn(usize) -> f64) -> f64 {
    let blocks = || program.blocks().iter().enumerate();
    let log = |i: usize, scale: f64| scale + 0.5 * weight(i).ln();
    let mut top = f64::NEG_INFINITY;
    for i in 0..batch.rows() {
        let row = batch.row(i);
        for (b, columns) in blocks().filter(|(b, _)| row.log_scales[*b] > f64::NEG_INFINITY) {
            let largest = max_abs(Isa::best(), &row.values[columns.clone()]).widen();
            // The inverse of a subnormal number may overflow.
            if largest > 0.0 {
                let largest = largest.max(T::min_positive_value().widen());
                top = top.max(log(i, row.log_scales[b]) + largest.ln());
            }
        }
    }
    let exponent = if top.is_finite() { (top / std::f64::consts::LN_2).ceil() } else { 0.0 };
    let unit_log = exponent * std::f64::consts::LN_2;
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        for (b, columns) in blocks() {
            let values = &mut row.values[columns.clone()];
            match row.log_scales[b] {
                f64::NEG_INFINITY => values.fill(T::zero()),
                scale => {
                    // The factor is exact where the powers are normal numbers.
                    let safe = scale.abs() < 600.0 && exponent.abs() < 1000.0;
                    let factor = if safe {
                        weight(i).sqrt() * scale.exp() * (-exponent).exp2()
                    } else {
                        (log(i, scale) - unit_log).exp()
                    };
                    numeric::affine(Isa::best(), values, T::narrow(factor), &[]);
                }
            }
        }
    }
    exponent.exp2()
}

/// The number of [`blocks`].
pub(super) fn block_count(width: usize) -> usize {
    let rows = width.div_ceil(BLOCK);
    rows * (rows + 1) / 2
}

/// The blocks of the lower triangle of a matrix of `width` rows, row by row.
pub(super) fn blocks(width: usize) -> Vec<(usize, usize)> {
    (0..width.div_ceil(BLOCK)).flat_map(|i| (0..=i).map(move |j| (i, j))).collect()
}

/// The places of points in ascending ranges of numbers, split where chunks begin. Points of one chunk stay together even if there
/// are gaps between them.
pub(super) fn cuts(rows: &[Range<u64>]) -> Vec<Range<usize>> {
    let (mut cuts, mut place, mut current): (Vec<Range<usize>>, usize, _) = (Vec::new(), 0, None);
    for Range { mut start, end } in rows.iter().cloned() {
        while start < end {
            let chunk = start / ROWS;
            let count = (end - start).min(ROWS - start % ROWS);
            // No more than 4096.
            let next = place + count as usize;
            match cuts.last_mut() {
                Some(last) if current == Some(chunk) => last.end = next,
                _ => cuts.push(place..next),
            }
            (start, place, current) = (start + count, next, Some(chunk));
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_begin_at_multiples() {
        let cuts = |first: u64, rows: u64| super::cuts(std::slice::from_ref(&(first..first + rows)));
        assert_eq!(cuts(0, 5000), [0..4096, 4096..5000]);
        assert_eq!(cuts(4000, 200), [0..96, 96..200]);
        assert_eq!(cuts(8192, 4096), [Range { start: 0, end: 4096 }]);
        assert!(cuts(3, 0).is_empty());
        // Points of one chunk stay together, whatever is between them.
        let gaps = [0..3, 10..11, 4000..4100, 5000..5001, 9000..9001];
        assert_eq!(super::cuts(&gaps), [0..100, 100..105, 105..106]);
    }
}
