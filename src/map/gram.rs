//! Gram matrices: products of features on two sides, with their scales.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use super::pairing::{Pairing, RowBuffers};
use crate::engine::{Batch, FeatureRow, FeatureSource, Form, Program, Side, for_runs, map_rows};
use crate::error::Result;
use crate::numeric::{self, Isa, Packed, dot, exp_minus};
use crate::{Real, SignedLog, progress, threads};

/// The number of columns that are computed together, so that their packed features stay in the L2 cache.
const COLUMNS: usize = 256;
/// The number of rows that are computed together if features already exist.
const ROWS: usize = 120;
/// The largest scale for which the exponentials of two scales and their product are normal numbers.
const SAFE: f64 = 300.0;

/// The rows of the matrix.
pub(super) enum GramRows<'a, T: Real> {
    /// Points, whose features are computed tile by tile.
    Points(&'a Program<T>, ArrayView2<'a, T>),
    /// Features.
    Features(RowFeatures<'a, T>),
}

/// The estimates for all pairs of rows of `left` and `right`, from products of features combined by the pairing.
/// `resolve(pairs)` gives estimates of pairs that scaled features cannot resolve, or `None`.
///
/// # Errors
/// [`Cancelled`](crate::Error::Cancelled) if the watcher stops the work.
pub(super) fn gram<T: Real>(
    left: GramRows<'_, T>,
    right: RowFeatures<'_, T>,
    pairing: &Pairing,
    resolve: impl Fn(&[(usize, usize)]) -> Option<Vec<T>> + Sync,
) -> Result<Array2<T>> {
    let n = match &left {
        GramRows::Points(_, x) => x.nrows(),
        GramRows::Features(features) => features.len(),
    };
    let mut out = numeric::zeros((n, right.len()));
    if out.is_empty() {
        return Ok(out);
    }
    let chunk = |start: usize| ColumnChunk::new(right, start..right.len().min(start + COLUMNS));
    let chunks: Vec<ColumnChunk<T>> = threads::map((0..right.len()).step_by(COLUMNS), chunk);
    let write = |first: usize,
                 rows: RowFeatures<'_, T>,
                 mut out: ArrayViewMut2<'_, T>,
                 buffers: &mut GramBuffers<T>| {
        let mut unresolved = std::mem::take(&mut buffers.unresolved);
        unresolved.clear();
        let mut spread = std::mem::take(&mut buffers.spread);
        let rows = rows.spread(&mut spread);
        for chunk in chunks.iter().take_while(|_| !progress::is_stopped()) {
            chunk.write(pairing, first, rows, &mut out, buffers, &mut unresolved);
        }
        if let Some(estimates) = (!unresolved.is_empty()).then(|| resolve(&unresolved)).flatten() {
            unresolved.iter().zip(estimates).for_each(|((i, j), v)| out[[i - first, *j]] = v);
        }
        (buffers.unresolved, buffers.spread) = (unresolved, spread);
    };
    let work = right.len() * right.width;
    match left {
        GramRows::Points(program, x) => {
            let write = |run: Range<usize>,
                         batch: &mut Batch<T>,
                         out: ArrayViewMut2<'_, T>,
                         buffers: &mut GramBuffers<T>| {
                write(run.start, RowFeatures::of_batch(batch, program), out, buffers);
            };
            map_rows(
                &FeatureSource::new(program, Side::X, Form::Values),
                x.into(),
                out.view_mut(),
                work,
                write,
            )?;
        }
        GramRows::Features(features) => {
            let total = work.saturating_mul(n);
            for_runs(out.view_mut(), ROWS, total, GramBuffers::default, |buffers, run, out| {
                write(run.start, features.part(run), out, buffers);
            })?;
        }
    }
    // A single run may have been stopped within.
    progress::check().map(|()| out)
}

/// Features of a run of points, row by row.
#[derive(Clone, Copy)]
pub(super) struct RowFeatures<'a, T> {
    pub values: &'a [T],
    pub log_scales: &'a [f64],
    pub columns: &'a [Range<usize>],
    /// The number of elements between the beginnings of rows, at least that of a row.
    pub width: usize,
}

impl<'a, T: Real> RowFeatures<'a, T> {
    /// Features from arrays in standard layout.
    pub fn new(values: &'a Array2<T>, log_scales: &'a Array2<f64>, columns: &'a [Range<usize>]) -> Self {
        let width = values.ncols();
        let (values, log_scales) = (numeric::slice_of(values), numeric::slice_of(log_scales));
        RowFeatures { values, log_scales, columns, width }
    }

    fn of_batch(batch: &'a Batch<T>, program: &'a Program<T>) -> Self {
        let (columns, width) = (program.blocks(), program.width());
        RowFeatures { values: batch.values(), log_scales: batch.log_scales(), columns, width }
    }

    /// A range of the rows.
    fn part(self, run: Range<usize>) -> Self {
        let blocks = self.columns.len();
        RowFeatures {
            values: &self.values[run.start * self.width..run.end * self.width],
            log_scales: &self.log_scales[run.start * blocks..run.end * blocks],
            ..self
        }
    }

    /// These features, copied to a buffer if the distance between rows would map all of them to a few sets of the first cache.
    fn spread(self, buffer: &'a mut Vec<T>) -> RowFeatures<'a, T> {
        let stride = numeric::spread::<T>(self.width);
        if stride == self.width || self.len() < 2 {
            return self;
        }
        buffer.resize(self.len() * stride, T::zero());
        for (to, from) in buffer.chunks_exact_mut(stride).zip(self.values.chunks_exact(self.width)) {
            to[..self.width].copy_from_slice(from);
        }
        RowFeatures { values: buffer, width: stride, ..self }
    }

    fn len(&self) -> usize {
        self.log_scales.len() / self.columns.len()
    }

    fn scale(&self, i: usize, block: usize) -> f64 {
        self.log_scales[i * self.columns.len() + block]
    }
}

/// Buffers that a thread reuses.
#[derive(Default)]
struct GramBuffers<T> {
    products: Vec<Vec<T>>,
    gathered: Vec<T>,
    /// A copy of rows that would share sets of the first cache.
    spread: Vec<T>,
    sums: RowBuffers,
    /// e^scale of each row, for maps of one block.
    weights: Vec<f64>,
    unresolved: Vec<(usize, usize)>,
}

/// The points of a range of columns of the matrix.
struct ColumnChunk<T> {
    columns: Range<usize>,
    blocks: Vec<PackedBlock<T>>,
}

/// A block of features of a chunk's points, without points where the block is absent.
struct PackedBlock<T> {
    packed: Packed<T>,
    scales: Vec<f64>,
    /// e^scale of each point, if it is [safe](is_safe).
    weights: Vec<f64>,
    /// Whether all scales are safe and no point is absent.
    safe: bool,
    /// The indices of the points in the chunk; `None` for all points.
    places: Option<Vec<usize>>,
    width: usize,
}

impl<T: Real> ColumnChunk<T> {
    fn new(rows: RowFeatures<'_, T>, columns: Range<usize>) -> Self {
        let rows = rows.part(columns.clone());
        let blocks = (0..rows.columns.len()).map(|b| PackedBlock::new(rows, b)).collect();
        ColumnChunk { columns, blocks }
    }

    /// Writes the products of these rows with the chunk's points to their columns of `out`.
    fn write(
        &self,
        pairing: &Pairing,
        first: usize,
        rows: RowFeatures<'_, T>,
        out: &mut ArrayViewMut2<'_, T>,
        buffers: &mut GramBuffers<T>,
        unresolved: &mut Vec<(usize, usize)>,
    ) {
        let GramBuffers { products, gathered, sums: row_sums, weights, .. } = buffers;
        products.resize_with(products.len().max(self.blocks.len()), Vec::new);
        let present: Vec<Option<Vec<usize>>> = self
            .blocks
            .iter()
            .zip(&mut *products)
            .enumerate()
            .map(|(b, (block, products))| block.multiply(rows, b, gathered, products))
            .collect();
        weights.clear();
        weights.extend((0..rows.len()).map(|i| rows.scale(i, 0)));
        exp_minus(Isa::best(), weights, 0.0);
        for (i, weight) in weights.iter().enumerate() {
            let mut row = out.row_mut(i);
            let row = &mut numeric::slice_of_mut(&mut row)[self.columns.clone()];
            let unresolved = |j: usize| unresolved.push((first + i, self.columns.start + j));
            let terms = |b: usize| {
                let block = &self.blocks[b];
                let place = present[b].as_ref().map_or(Some(i), |present| present.binary_search(&i).ok())?;
                let count = block.scales.len();
                Some(BlockTerms {
                    products: &products[b][place * count..][..count],
                    scale: rows.scale(i, b),
                    block,
                })
            };
            if let [_] = self.blocks[..] {
                match terms(0) {
                    Some(terms) => terms.write(*weight, row, unresolved),
                    None => row.fill(T::zero()),
                }
                continue;
            }
            let mut sums = pairing.row(row.len(), &terms, row_sums);
            sums.finish(row, unresolved);
            row_sums.give(sums);
        }
    }
}

impl<T: Real> PackedBlock<T> {
    fn new(rows: RowFeatures<'_, T>, b: usize) -> Self {
        let columns = rows.columns[b].clone();
        let all = |i: &usize| rows.scale(*i, b) != f64::NEG_INFINITY;
        let places: Vec<usize> = (0..rows.len()).filter(all).collect();
        let row = |j: usize| &rows.values[places[j] * rows.width..][columns.clone()];
        let scales: Vec<f64> = places.iter().map(|i| rows.scale(*i, b)).collect();
        let complete = places.len() == rows.len();
        let mut weights = scales.clone();
        exp_minus(Isa::best(), &mut weights, 0.0);
        PackedBlock {
            packed: Packed::of_rows(places.len(), columns.len(), row),
            width: columns.len(),
            places: (!complete).then_some(places),
            safe: complete && scales.iter().all(|scale| is_safe(*scale)),
            weights,
            scales,
        }
    }

    /// The products of the rows where the block is present with the points of the chunk, and the indices of these rows unless
    /// they are all.
    fn multiply(
        &self,
        rows: RowFeatures<'_, T>,
        b: usize,
        gathered: &mut Vec<T>,
        products: &mut Vec<T>,
    ) -> Option<Vec<usize>> {
        let columns = rows.columns[b].clone();
        let absent = |i: usize| rows.scale(i, b) == f64::NEG_INFINITY;
        let count = self.scales.len();
        if !(0..rows.len()).any(absent) {
            products.resize(rows.len() * count, T::zero());
            if count > 0 {
                let x = &rows.values[columns.start..];
                numeric::product(Isa::best(), x, rows.width, self.packed.all(), products, count);
            }
            return None;
        }
        let present: Vec<usize> = (0..rows.len()).filter(|i| !absent(*i)).collect();
        gathered.clear();
        for i in &present {
            gathered.extend_from_slice(&rows.values[i * rows.width..][columns.clone()]);
        }
        products.resize(present.len() * count, T::zero());
        if count > 0 && !present.is_empty() {
            numeric::product(Isa::best(), gathered, columns.len(), self.packed.all(), products, count);
        }
        Some(present)
    }
}

/// Whether e^scale, and its product with another safe one, is a normal number.
fn is_safe(scale: f64) -> bool {
    scale.abs() <= SAFE
}

/// The magnitude below which a product of features may be inaccurate because of underflow: each term may be off by the
/// smallest normal number.
fn floor<T: Real>(width: usize) -> f64 {
    width as f64 * T::min_positive_value().widen() / T::epsilon().widen()
}

/// The contribution of a block to a row of a chunk.
pub(super) struct BlockTerms<'a, T> {
    pub products: &'a [T],
    scale: f64,
    block: &'a PackedBlock<T>,
}

impl<T: Real> BlockTerms<'_, T> {
    /// The magnitude below which a product may be inaccurate because of underflow.
    pub fn floor(&self) -> f64 {
        floor::<T>(self.block.width)
    }

    /// Writes a row of estimates of a map with one block. Each entry depends only on its two points.
    fn write(&self, weight: f64, out: &mut [T], mut unresolved: impl FnMut(usize)) {
        let (PackedBlock { scales, weights, places, .. }, floor) = (self.block, floor::<T>(self.block.width));
        let row_is_safe = is_safe(self.scale);
        if row_is_safe && self.block.safe {
            let least = numeric::weigh(Isa::best(), out, self.products, weight, weights);
            if least.widen() > floor {
                return;
            }
        }
        if places.is_some() {
            out.fill(T::zero());
        }
        for (k, product) in self.products.iter().enumerate() {
            let j = places.as_ref().map_or(k, |places| places[k]);
            let product = product.widen();
            if row_is_safe && is_safe(scales[k]) && product.abs() > floor {
                out[j] = T::narrow(product * (weight * weights[k]));
                continue;
            }
            let log = self.scale + scales[k];
            out[j] = T::narrow(scaled(product, log));
            // An entry that underflows T anyway need not be recomputed.
            if product.abs() <= floor && scaled(floor, log) >= T::min_positive_value().widen() {
                unresolved(j);
            }
        }
    }
}

impl<T> BlockTerms<'_, T> {
    /// The indices of the entries and the sums of their scales on both sides.
    pub fn each(&self) -> impl Iterator<Item = (usize, f64)> {
        let place = |k: usize| self.block.places.as_ref().map_or(k, |places| places[k]);
        self.block.scales.iter().enumerate().map(move |(k, other)| (place(k), self.scale + other))
    }
}

/// v · e^`log`, without intermediate overflow.
pub(super) fn scaled(v: f64, log: f64) -> f64 {
    SignedLog::from(v).scaled(log).value()
}

/// The estimate for two points from their features, either both values or both logarithms.
pub(super) fn estimate<'a, T: Real>(
    blocks: &[Range<usize>],
    left: FeatureRow<'a, T>,
    right: FeatureRow<'a, T>,
) -> SignedLog {
    let scale = |b: usize| left.log_scales[b] + right.log_scales[b];
    let present = blocks.iter().enumerate().filter(|(b, _)| scale(*b) != f64::NEG_INFINITY);
    if left.signs.is_empty() || right.signs.is_empty() {
        let product = |(b, columns): (usize, &Range<usize>)| {
            let wide: Vec<f64> = right.values[columns.clone()].iter().map(|v| v.widen()).collect();
            SignedLog::from(dot(Isa::best(), &left.values[columns.clone()], &wide)).scaled(scale(b))
        };
        let terms: Vec<SignedLog> = present.map(product).collect();
        return SignedLog::sum(terms.into_iter());
    }
    let (mut sizes, mut signs) =
        (Vec::with_capacity(left.values.len()), Vec::with_capacity(left.values.len()));
    for (b, columns) in present {
        let of = |row: FeatureRow<'a, T>| (&row.values[columns.clone()], &row.signs[columns.clone()]);
        let ((left, left_signs), (right, right_signs)) = (of(left), of(right));
        let exponents = left.iter().zip(right).map(|(left, right)| left.widen() + right.widen());
        sizes.extend(exponents.map(|exponent| scale(b) + exponent));
        signs.extend(left_signs.iter().zip(right_signs).map(|(left, right)| *left * *right));
    }
    let top = numeric::max(Isa::best(), &sizes);
    if !top.is_finite() {
        let term = |(ln, sign): (&f64, &T)| {
            let size = SignedLog::positive(*ln);
            SignedLog { sign: sign.widen() * size.sign, ..size }
        };
        return SignedLog::sum(sizes.iter().zip(&signs).map(term));
    }
    exp_minus(Isa::best(), &mut sizes, top);
    SignedLog::from(dot(Isa::best(), &signs, &sizes)).scaled(top)
}
