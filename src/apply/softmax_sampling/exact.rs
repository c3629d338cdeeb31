//! [`Exact`]: draws from the softmax itself, for few classes.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};
use rand::RngExt;

use super::Draws;
use super::classes::Classes;
use super::draws::DrawsMut;
use crate::error::{Error, Result};
use crate::numeric::{Isa, Packed, exp_minus, matrix_of, max, plain_sum, product, slice_of};
use crate::threads::{self, Pool};
use crate::{Real, progress, rng_of_step};

/// The number of weights in a block, whose sum tells a draw whether its class is in it.
const BLOCK: usize = 64;
/// The number of logits that a thread computes at a time, if these are rows enough.
const LOGITS: usize = 1 << 17;
/// The least and the most rows of logits that a thread computes at a time.
const ROWS: (usize, usize) = (4, 64);

/// The vectors of classes, from which all logits are computed by a product.
#[derive(Clone, Debug)]
pub(super) struct ExactClasses<T: Real> {
    pub classes: Classes,
    /// The vectors, with room for more classes; vectors of removed classes do not matter.
    vectors: Packed<T>,
}

/// Buffers that a thread keeps from row to row.
#[derive(Default)]
struct Buffers<T> {
    logits: Vec<T>,
    weights: Vec<T>,
    ends: Vec<f64>,
}

/// The softmax of a row.
struct RowSoftmax<'a, T> {
    logits: &'a [T],
    /// e^(logit − top), 0 for classes that were removed.
    weights: &'a [T],
    /// The sums of the weights up to the end of each block.
    ends: &'a [f64],
    /// ln Z.
    log_sum: f64,
}

impl<T: Real> ExactClasses<T> {
    /// Draws from the softmax over these vectors, in rows, one for each number of a class.
    pub fn new(classes: Classes, vectors: ArrayView2<'_, T>) -> Self {
        let packed = Packed::new(vectors.nrows(), vectors.ncols(), |j, k| vectors[[j, k]]);
        ExactClasses { classes, vectors: packed }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.vectors.elements())
    }

    /// The vectors of all classes, in rows.
    pub fn vectors(&self) -> Array2<T> {
        let (classes, d) = (self.classes.count(), self.vectors.depth());
        matrix_of(classes, d, (0..classes).flat_map(|class| self.vectors.row(class)).collect())
    }

    /// Gives classes other vectors, in rows; the last row counts for a class that occurs twice.
    pub fn replace(&mut self, classes: &[usize], vectors: ArrayView2<'_, T>) {
        for (class, vector) in classes.iter().zip(vectors.rows()) {
            self.vectors.write_row(*class, vector.iter().copied());
        }
    }

    /// Removes classes that are present, increasing. Their vectors become 0, so that their logits are finite.
    pub fn remove(&mut self, classes: &[usize]) {
        self.classes.remove(classes);
        let d = self.vectors.depth();
        classes.iter().for_each(|class| self.vectors.write_row(*class, (0..d).map(|_| T::zero())));
    }

    /// Adds classes with these vectors after the others.
    pub fn add(&mut self, vectors: ArrayView2<'_, T>) {
        let (new, room) = (self.classes.add(vectors.nrows()), self.vectors.rows());
        if new.end > room {
            let (old, room) = (std::mem::take(&mut self.vectors), new.end.max(2 * room));
            self.vectors = Packed::new(room, vectors.ncols(), |_, _| T::zero());
            (0..new.start).for_each(|class| self.vectors.write_row(class, old.row(class)));
        }
        self.replace(&new.collect::<Vec<_>>(), vectors);
    }

    /// Draws for all rows of `h`, row i with the generator of step i.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if logits are not finite. [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn sample(&self, h: ArrayView2<'_, T>, seed: u64, draws: &mut Draws) -> Result<()> {
        let h = h.as_standard_layout();
        let rows = h.nrows().div_ceil(threads::count());
        let rows = rows.min((LOGITS / self.classes.count()).clamp(ROWS.0, ROWS.1)).max(1);
        let mut all = draws.rows_mut();
        let runs = (0..h.nrows()).step_by(rows).map(|first| (first, all.by_ref().take(rows).collect()));
        let drawn = Pool::default().map(runs, |buffers, (first, out): (usize, Vec<DrawsMut<'_>>)| {
            progress::check()?;
            self.fill(slice_of(&h.slice(s![first..first + out.len(), ..])), buffers);
            for (i, out) in out.into_iter().enumerate() {
                let mut rng = rng_of_step(seed, (first + i) as u64);
                self.softmax(buffers, i, first + i)?.draw(out, &mut || rng.random());
            }
            Ok(())
        });
        drawn.into_iter().collect()
    }

    /// Draws for one point.
    ///
    /// # Errors
    /// The errors of [`sample`](ExactClasses::sample).
    pub fn draw(&self, h: &[T], out: DrawsMut<'_>, uniform: &mut dyn FnMut() -> f64) -> Result<()> {
        let mut buffers = Buffers::default();
        self.fill(h, &mut buffers);
        self.softmax(&mut buffers, 0, 0)?.draw(out, uniform);
        Ok(())
    }

    /// ln of the probabilities of classes that are present.
    ///
    /// # Errors
    /// The errors of [`sample`](ExactClasses::sample).
    pub fn log_probabilities(&self, h: &[T], classes: impl Iterator<Item = usize>) -> Result<Vec<f64>> {
        let mut buffers = Buffers::default();
        self.fill(h, &mut buffers);
        let softmax = self.softmax(&mut buffers, 0, 0)?;
        Ok(classes.map(|class| softmax.log_probability(class)).collect())
    }

    /// Computes the logits of some rows.
    fn fill(&self, h: &[T], buffers: &mut Buffers<T>) {
        let (classes, d) = (self.classes.count(), self.vectors.depth());
        buffers.logits.resize(h.len() / d * classes, T::zero());
        product(Isa::best(), h, d, self.vectors.all().first(classes), &mut buffers.logits, classes);
    }

    /// The softmax of row i of the logits; `row` is its number among all points.
    fn softmax<'a>(&self, buffers: &'a mut Buffers<T>, i: usize, row: usize) -> Result<RowSoftmax<'a, T>> {
        let classes = self.classes.count();
        let Buffers { logits, weights, ends } = buffers;
        let logits = &logits[i * classes..][..classes];
        if !logits.iter().all(|logit| logit.is_finite()) {
            return Err(Error::NotFinite { what: "the logits of h", row, column: None });
        }
        weights.clear();
        weights.extend_from_slice(logits);
        self.classes.removed().iter().for_each(|class| weights[*class] = T::neg_infinity());
        let top = max(Isa::best(), weights);
        exp_minus(Isa::best(), weights, top);
        let mut sum = 0.0;
        ends.clear();
        ends.extend(weights.chunks(BLOCK).map(|block| {
            sum += plain_sum(Isa::best(), block);
            sum
        }));
        Ok(RowSoftmax { logits, weights, ends, log_sum: top.widen() + sum.ln() })
    }
}

impl<T: Real> RowSoftmax<'_, T> {
    /// ln of the probability of a class that is present, cut at 0, which rounding could exceed.
    fn log_probability(&self, class: usize) -> f64 {
        (self.logits[class].widen() - self.log_sum).min(0.0)
    }

    fn draw(&self, out: DrawsMut<'_>, uniform: &mut dyn FnMut() -> f64) {
        let total = self.ends.last().copied().unwrap_or_default();
        for (class, log) in out.classes.iter_mut().zip(out.log_probabilities) {
            // The mark stays below the total, to which the product may be rounded.
            *class = self.pick((uniform() * total).min(total.next_down()));
            *log = self.log_probability(*class);
        }
    }

    /// The first class whose cumulated weight is above a mark.
    fn pick(&self, mark: f64) -> usize {
        let block = self.ends.partition_point(|end| *end <= mark);
        let run: Range<usize> = block * BLOCK..self.weights.len().min((block + 1) * BLOCK);
        let mut sum = if block == 0 { 0.0 } else { self.ends[block - 1] };
        let (first, mut last) = (run.start, run.start);
        for (class, weight) in (first..).zip(&self.weights[run]) {
            if *weight > T::zero() {
                (last, sum) = (class, sum + weight.widen());
                if sum > mark {
                    break;
                }
            }
        }
        // If rounding leaves the sum below the end of the block, the class is the last one with a weight.
        last
    }
}
