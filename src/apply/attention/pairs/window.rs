//! Exact neighbours: [`Neighbours`] are the keys among which queries have some, [`NearRun`] computes with them.

use super::super::Attention;
use super::super::features::CHUNK;
use super::super::input::Window;
use super::super::input::{KeyRun, Reading};
use super::blocks::{KeyBlock, See, Seen};
use crate::Real;
use crate::error::Result;

impl<T: Real> Attention<T> {
    /// The same with exact weights for neighbours: for the query at place i the keys at places j with
    /// i − `before` < j ≤ i + `after`. So `before` counts keys up to the query's own place, its own key first (1 is its own alone,
    /// 64 are it and the 63 before it), and `after` those behind it; `window(0, 0)` is attention without neighbours, to the bit.
    /// Places are rows in the sequence, of queries and keys alike, whatever is masked. Causally nothing comes after, whatever
    /// `after` says.
    ///
    /// # Definition
    /// out(q) = \[Σ_E exp(q·k s) v + Σ_¬E K̂(q, k) v\] / \[the same with v = 1\], with E the neighbours and the
    /// [exact keys](Attention::with_keys_exact), if there are any. Each pair counts once, so that numerator and normaliser are as
    /// unbiased as K̂: features of keys before the neighbours and of those behind them are summed up from either end, and
    /// nothing is subtracted. Windows that hold all keys are [exact attention](super::super::ExactAttention), to rounding. In
    /// [`CausalState`](super::super::CausalState) the last `before` keys and values are kept as they are, and enter the sums as they leave
    /// the window.
    ///
    /// # What it is worth
    /// Much where attention is local ([measured](crate::manual::shaped#neighbours) on trained heads and on long sequences): positive
    /// features add little to the neighbours alone at large norms, features that are shaped by the other pairs
    /// (`AttentionShaping::window`) add much. Where attention looks far it may cost: the errors
    /// of a query's estimates have much in common, which cancels in the normaliser only if all of its weights are estimates.
    ///
    /// # Accuracy
    /// Logits, exact weights and sums of values by them are computed in `T`, as in exact attention: a logit must fit it, and values must
    /// be some way below its largest number. Same bits on any number of threads; a causal output depends on no later token, not even in
    /// its last bit.
    ///
    /// # Cost
    /// O((before + after) (d + d_v)) for each query, in products of matrices: 64 neighbours make causal attention take 1.4 times
    /// as long (65,536 tokens, d = 64, D = 256, `f32`). Bidirectional attention sums up keys from both ends, so that their features are
    /// computed twice, and keeps as many numbers in `f64` as the output has.
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
            self.check_softmax(
                "exact neighbours beside a map that does not estimate the softmax kernel with one lengthscale for all coordinates",
            )?;
        }
        self.window = window;
        Ok(self.prepared())
    }

    /// The neighbours of queries, causally or not, and how the keys of a head are read for exact logits, which are products with the
    /// points of queries; `None` if there are no neighbours.
    pub(in super::super) fn near(&self, head: usize, causal: bool) -> Option<(Window, Reading)> {
        let window = self.window.of(causal);
        let inverse = self.inverse(head).filter(|_| !window.is_none())?;
        Some((window, self.reading.of_pairs(inverse)))
    }
}

/// The keys of a sequence among which queries have neighbours.
pub(in super::super) struct Neighbours<'a, T> {
    pub window: Window,
    /// How keys are read for exact logits.
    reading: Reading,
    keys: KeyRun<'a, T>,
    /// The place of the first.
    first: usize,
}

/// What a thread keeps of the neighbours of one run of queries for the next: their keys, packed in blocks that begin at multiples of
/// [`CHUNK`].
#[derive(Debug, Default)]
pub(in super::super) struct Ring<T> {
    blocks: Vec<KeyBlock<T>>,
    room: Vec<T>,
}

/// The most blocks that are kept.
const KEPT: usize = 16;

impl<'a, T: Real> Neighbours<'a, T> {
    /// Those among some keys, of which the first is at place `first`.
    pub fn new((window, reading): (Window, Reading), keys: KeyRun<'a, T>, first: usize) -> Self {
        Neighbours { window, reading, keys, first }
    }

    /// Shows the blocks that hold what so many queries see, the i-th the keys at places `sees(i)`, which ascend.
    pub fn visit(&self, ring: &mut Ring<T>, count: usize, sees: &Seen<'_>, see: &mut See<'_, T>) {
        let (first, end) = (self.first, self.first + self.keys.len());
        let (from, to) = (sees(0).start.max(first), sees(count.saturating_sub(1)).end.min(end));
        let slots = KEPT.min((to.saturating_sub(from)).div_ceil(CHUNK) + 1);
        let Ring { blocks, room } = ring;
        if blocks.len() < slots {
            blocks.resize_with(slots, KeyBlock::default);
        }
        let slots = blocks.len();
        for index in from / CHUNK..to.div_ceil(CHUNK).max(from / CHUNK) {
            let places = first.max(index * CHUNK)..end.min((index + 1) * CHUNK);
            let block = &mut blocks[index % slots];
            if !block.holds(&places) {
                let keys = self.keys.rows(places.start - first..places.end - first);
                block.read(&self.reading, keys, places.start, room);
            }
            see(block, sees);
        }
    }
}

impl<T: Real> Ring<T> {
    /// Forgets the keys, since the next are others.
    pub fn forget(&mut self) {
        self.blocks.iter_mut().for_each(KeyBlock::forget);
    }
}
