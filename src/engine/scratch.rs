//! [`Scratch`]: buffers that a thread reuses from tile to tile.

use ndarray::ArrayView2;

use super::batch::Batch;
use super::pass::{Norms, SharedProjection};
use crate::Real;
use crate::numeric::{Buffer, spread};

/// Buffers for filling a tile, which are empty at first, grow when they are needed and are kept between tiles.
#[derive(Debug, Default)]
pub struct Scratch<T> {
    rows: Vec<T>,
    work: Buffer<T>,
    pool: Vec<Vec<T>>,
    wide_pool: Vec<Vec<f64>>,
    batches: Vec<Batch<T>>,
    /// Sets of coordinates of a point.
    pub(crate) masks: Vec<u64>,
    /// Pairs of a cluster and a row number, by cluster.
    pub(crate) sorted: Vec<(usize, usize)>,
    pub(super) shared: Vec<SharedProjection<T>>,
    pub(super) norms: Norms,
    /// Whether one tile may use all threads: there are not enough tiles for them.
    pub(crate) wide: bool,
}

impl<T: Real> Scratch<T> {
    /// A buffer of `len` elements, with arbitrary contents, to be given back after use.
    pub(crate) fn take(&mut self, len: usize) -> Vec<T> {
        let mut buffer = self.pool.pop().unwrap_or_default();
        buffer.resize(len, T::zero());
        buffer
    }

    /// Takes back a buffer of [`take`](Scratch::take).
    pub(crate) fn give(&mut self, buffer: Vec<T>) {
        self.pool.push(buffer);
    }

    /// A buffer of `len` `f64`, with arbitrary contents, to be given back after use.
    pub(crate) fn take_wide(&mut self, len: usize) -> Vec<f64> {
        let mut buffer = self.wide_pool.pop().unwrap_or_default();
        buffer.resize(len, 0.0);
        buffer
    }

    /// Takes back a buffer of [`take_wide`](Scratch::take_wide).
    pub(crate) fn give_wide(&mut self, buffer: Vec<f64>) {
        self.wide_pool.push(buffer);
    }

    /// A batch with arbitrary contents, to be given back after use.
    pub(crate) fn take_batch(&mut self) -> Batch<T> {
        self.batches.pop().unwrap_or_default()
    }

    /// Takes back a batch of [`take_batch`](Scratch::take_batch).
    pub(crate) fn give_batch(&mut self, batch: Batch<T>) {
        self.batches.push(batch);
    }

    /// The points in row-major order with the distance between rows, and a buffer for other use. Contiguous rows are borrowed
    /// unless their distance would map all of them to a few sets of the first cache; others are copied.
    pub(crate) fn rows_and_work<'a>(
        &'a mut self,
        x: &ArrayView2<'a, T>,
    ) -> (&'a [T], usize, &'a mut Buffer<T>) {
        let Scratch { rows, work, .. } = self;
        let d = x.ncols();
        let stride = if x.nrows() > 1 { spread::<T>(d) } else { d };
        match x.to_slice() {
            Some(slice) if stride == d => (slice, stride, work),
            _ => {
                rows.resize(x.nrows() * stride, T::zero());
                for (to, from) in rows.chunks_exact_mut(stride).zip(x.rows()) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
                (rows, stride, work)
            }
        }
    }
}
