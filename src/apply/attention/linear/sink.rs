//! [`Sink`]: takes what queries read. [`Outputs`] and [`Estimates`] are the sinks of the forward pass.

use ndarray::{ArrayViewMut1, ArrayViewMut2};

use super::super::features::{Chunk, LogBuffers, Setup, Tokens};
use super::super::input::{LogScale, SplitRows, Undivided};
use crate::Real;
use crate::engine::Scratch;
use crate::numeric::slice_of_mut;
use crate::reduce::{RunSums, WeightedSums};

/// Takes what queries read, row by row, and sees the sums that they have read it from.
///
/// A worker calls it for rows and chunks and never for features, so that a dynamic call costs nothing that counts.
pub(in super::super) trait Sink<T: Real>: Send {
    /// The number of sums of each feature: d_v, unless something else is summed than values.
    fn targets(&self) -> usize;

    /// Begins with so many rows.
    fn begin(&mut self, _count: usize) {}

    /// ln of the scale of query `i`.
    fn scale_of(&self, queries: &Tokens<T>, i: usize) -> f64 {
        queries.precision(i).scale
    }

    /// Takes all that row `i` reads, of which the estimate by features has the scale e^`of_features`. False if its normaliser is not
    /// positive although it has seen a key.
    fn take(&mut self, i: usize, sum: Undivided<'_, T>, of_features: LogScale) -> bool;

    /// As [`take`](Sink::take), from sums in `f64`.
    fn take_wide(&mut self, i: usize, sum: Undivided<'_, f64>, of_features: LogScale) -> bool;

    /// Sees the keys that the first rows have read by matrix products: those of a chunk, and the sums before it.
    fn see_chunk(&mut self, _: Setup<'_, T>, _: ChunkRead<'_, T>, _: &mut Scratch<T>) {}

    /// Sees the sums that all rows have read by matrix products.
    fn see_sums(&mut self, _: Setup<'_, T>, _: &RunSums<T>, _queries: &Tokens<T>, _: &mut Scratch<T>) {}

    /// Sees the sums that row `i` has read by logarithms. It is the row `query` of `queries`, with its logarithms in the buffers.
    fn see_logarithms(
        &mut self,
        _: Setup<'_, T>,
        _: &WeightedSums<T>,
        _queries: (&Tokens<T>, usize),
        _i: usize,
        _: &mut LogBuffers<T>,
    ) {
    }

    /// The first `at` rows, and the others.
    fn split<'b>(self: Box<Self>, at: usize) -> (BoxedSink<'b, T>, BoxedSink<'b, T>)
    where
        Self: 'b;
}

/// A sink of rows that are cut into runs.
pub(in super::super) type BoxedSink<'a, T> = Box<dyn Sink<T> + 'a>;

/// What rows have read by matrix products.
#[derive(Clone, Copy)]
pub(in super::super) struct ChunkRead<'a, T> {
    pub chunk: &'a Chunk<T>,
    /// The sums over the keys before the chunk.
    pub before: &'a RunSums<T>,
    pub queries: &'a Tokens<T>,
    /// Which of the queries the first row is.
    pub first: usize,
    /// The number of rows.
    pub count: usize,
    /// How many keys of the chunk the first row sees; each row sees one more than the one before.
    pub sees: usize,
}

/// Outputs, row by row.
pub(in super::super) struct Outputs<'a, T> {
    pub rows: ArrayViewMut2<'a, T>,
    /// Whether they are divided by their normaliser.
    pub normalised: bool,
}

/// Estimates that are kept as they are: in a row both parts of the scale, the normaliser, whether a key was seen, and the sums.
pub(super) struct Estimates<'a>(pub ArrayViewMut2<'a, f64>);

/// Numbers of a kept estimate before its sums.
pub(super) const HEAD: usize = 4;

/// The bytes of a kept estimate, for values of dimension `d_v`.
pub(super) fn bytes_of_estimate(d_v: usize) -> usize {
    d_v.saturating_add(HEAD).saturating_mul(size_of::<f64>())
}

impl<T> Outputs<'_, T> {
    /// The outputs for a shorter time.
    pub fn view(&mut self) -> Outputs<'_, T> {
        Outputs { rows: self.rows.view_mut(), normalised: self.normalised }
    }
}

impl<T: Real> Sink<T> for Outputs<'_, T> {
    fn targets(&self) -> usize {
        self.rows.ncols()
    }

    fn take(&mut self, i: usize, sum: Undivided<'_, T>, _: LogScale) -> bool {
        sum.write_row(self.normalised, self.rows.row_mut(i))
    }

    fn take_wide(&mut self, i: usize, sum: Undivided<'_, f64>, _: LogScale) -> bool {
        sum.write(self.normalised, self.rows.row_mut(i))
    }

    fn split<'b>(self: Box<Self>, at: usize) -> (BoxedSink<'b, T>, BoxedSink<'b, T>)
    where
        Self: 'b,
    {
        let (first, rest) = self.rows.split_rows(at);
        let of = |rows| Box::new(Outputs { rows, normalised: self.normalised });
        (of(first), of(rest))
    }
}

impl<T: Real> Sink<T> for Estimates<'_> {
    fn targets(&self) -> usize {
        self.0.ncols() - HEAD
    }

    fn take(&mut self, i: usize, sum: Undivided<'_, T>, _: LogScale) -> bool {
        keep(&sum, self.0.row_mut(i))
    }

    fn take_wide(&mut self, i: usize, sum: Undivided<'_, f64>, _: LogScale) -> bool {
        keep(&sum, self.0.row_mut(i))
    }

    fn split<'b>(self: Box<Self>, at: usize) -> (BoxedSink<'b, T>, BoxedSink<'b, T>)
    where
        Self: 'b,
    {
        let (first, rest) = self.0.split_rows(at);
        (Box::new(Estimates(first)), Box::new(Estimates(rest)))
    }
}

/// Keeps an estimate in a row.
fn keep<U: Real>(estimate: &Undivided<'_, U>, mut row: ArrayViewMut1<'_, f64>) -> bool {
    let LogScale { own, read } = estimate.scale;
    let head = [own, read, estimate.normaliser, f64::from(u8::from(estimate.seen))];
    let numbers = head.into_iter().chain(estimate.sums.iter().map(|sum| sum.widen()));
    row.iter_mut().zip(numbers).for_each(|(kept, number)| *kept = number);
    true
}

/// The estimate that is kept in a row.
pub(super) fn kept<'b>(row: &'b mut ArrayViewMut1<'_, f64>) -> Undivided<'b, f64> {
    let (head, sums) = slice_of_mut(row).split_at_mut(HEAD);
    let scale = LogScale { own: head[0], read: head[1] };
    Undivided { scale, normaliser: head[2], seen: head[3] != 0.0, sums }
}
