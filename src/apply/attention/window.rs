//! Exact neighbours: [`Neighbours`] are the keys of a sequence that some query has near it, packed.

use std::ops::Range;

use super::Attention;
use super::blocks::{ExactRun, KeyBlock};
use super::drive::cuts;
use super::heads::KeyRun;
use super::reading::Reading;
use super::setup::CHUNK;
use crate::Real;
use crate::data::window::Window;
use crate::error::Result;
use crate::threads;

impl<T: Real> Attention<T> {
    /// The same with exact weights for neighbours: for the query at place i the keys at places j with
    /// i − `before` < j ≤ i + `after`. So `before` counts keys up to the query's own place, its own key first (1 is its own alone, 64 are
    /// it and the 63 before it), and `after` those behind it; `window(0, 0)` is attention without neighbours, to the bit. Places are rows in
    /// the sequence, of queries and keys alike, whatever is masked. Causally nothing comes after, whatever `after` says.
    ///
    /// # Definition
    /// out(q) = \[Σ_E exp(q·k s) v + Σ_¬E K̂(q, k) v\] / \[the same with v = 1\], with E the neighbours and the
    /// [exact keys](Attention::with_keys_exact), if there are any. Each pair counts once, so that numerator and normaliser are as
    /// unbiased as K̂: features of keys before the neighbours and of those behind them are summed up from either end, and
    /// nothing is subtracted. Windows that hold all keys are [exact attention](super::ExactAttention), to rounding. In
    /// [`CausalState`](super::CausalState) the last `before` keys and values are kept as they are, and enter the sums as they leave
    /// the window.
    ///
    /// The window is worth much where attention is local, and it may be all: neighbours alone, without features of the rest
    /// ([the manual](crate::manual::shaped) measures both), are what is left at m → 0.
    ///
    /// # Accuracy
    /// Logits and exact weights are computed in `T`, as in exact attention: a logit must fit it. Same bits on any number of threads; a
    /// causal output depends on no later token, not even in its last bit.
    ///
    /// # Cost
    /// O((before + after) (d + d_v)) for each query, in products of matrices. A copy of keys and values for each head
    /// in work. Bidirectional attention with neighbours behind a query or beside it sums up keys from both ends: features twice, and
    /// an output's worth of `f64` in memory.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) unless every map estimates, at least approximately, the softmax kernel with the same
    /// lengthscale in all coordinates.
    ///
    /// # Example
    /// ```
    /// use ndarray::Array4;
    /// use random_features::Positive;
    /// use random_features::apply::attention::{Attention, ExactAttention, Heads};
    /// use random_features::frequency::{Coupling, Orthogonal};
    /// // A query is much like the keys next to it, and meets them with large weights.
    /// let slow = |(_, _, i, k): (usize, usize, usize, usize)| 2.0 * (0.05 * (i * (k + 1)) as f64).sin();
    /// let x = Array4::from_shape_fn((1, 1, 200, 8), slow);
    /// let heads = Heads::new(&x, &x, &x)?;
    /// let exact: Array4<f64> = ExactAttention::new().causal(&heads)?.output;
    /// let error = |attention: &Attention<f64>| -> Result<f64, random_features::Error> {
    ///     Ok((attention.causal(&heads)?.output - &exact).mapv(|v| v * v).sum().sqrt())
    /// };
    /// let features = Attention::new(Positive.softmax(Orthogonal.draw(8, 64, 5)?)?)?;
    /// let near = features.clone().window(32, 0)?;
    /// assert!(error(&near)? < 0.5 * error(&features)?);
    /// // All keys in the window.
    /// assert!(error(&features.window(200, 0)?)? < 1e-10);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # References
    /// Exact neighbours inside the normaliser of unbiased features: new.
    pub fn window(mut self, before: usize, after: usize) -> Result<Self> {
        let window = Window { before, after };
        if !window.is_none() {
            self.check_softmax("exact neighbours: it does not estimate the softmax kernel with one lengthscale for all coordinates")?;
        }
        self.window = window;
        Ok(self.prepared())
    }

    /// The neighbours of queries, causally or not, and how the keys of a head are read for exact logits, which are products with the
    /// points of queries; `None` if there are no neighbours.
    pub(super) fn near(&self, head: usize, causal: bool) -> Option<(Window, Reading)> {
        let window = Window { after: if causal { 0 } else { self.window.after }, ..self.window };
        let inverse = self.inverse(head).filter(|_| !window.is_none())?;
        Some((window, Reading { factor: self.reading.factor * inverse * inverse, ..self.reading }))
    }
}

/// The keys of a sequence that are neighbours of some query, in blocks that begin at multiples of [`CHUNK`].
#[derive(Clone, Debug)]
pub(super) struct Neighbours<T> {
    window: Window,
    blocks: Vec<KeyBlock<T>>,
    /// The multiple at which the first block begins.
    first: usize,
}

impl<T: Real> Neighbours<T> {
    /// Those among some keys of a sequence, of which the first is at place `first`; `reading` makes logits of them.
    pub fn new(window: Window, reading: &Reading, keys: KeyRun<'_, T>, first: usize) -> Self {
        let block = |run: Range<usize>| {
            KeyBlock::new(reading, keys.rows(run.start - first..run.end - first), run.start)
        };
        let end = first + keys.len();
        let open = first..end.min(first.next_multiple_of(CHUNK));
        let rest = open.end..end;
        let runs: Vec<Range<usize>> = cuts(open, CHUNK).chain(cuts(rest, CHUNK)).collect();
        Neighbours { window, blocks: threads::map(runs, block), first: first / CHUNK }
    }

    /// Which keys are neighbours.
    pub fn window(&self) -> Window {
        self.window
    }

    /// What queries make of their neighbours: those with these points, the first of which is at place `place`.
    pub fn attend(&self, points: &[T], count: usize, place: usize, targets: usize, run: &mut ExactRun<T>) {
        run.begin(count, targets);
        if count == 0 {
            return;
        }
        let sees = |i: usize| self.window.places(place + i);
        let block = |place: usize| place.saturating_sub(self.first * CHUNK).min(self.blocks.len() * CHUNK);
        let (from, to) = (block(sees(0).start), block(sees(count - 1).end));
        let blocks = &self.blocks[from / CHUNK..to.div_ceil(CHUNK).max(from / CHUNK)];
        blocks.iter().for_each(|block| run.add(points, block, sees));
    }
}
