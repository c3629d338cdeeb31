//! Gradients of exact attention, block by block.

use std::ops::Range;

use ndarray::{ArrayRef, Ix4};

use super::super::input::{Heads, Job, Reading, TokenElement};
use super::super::pairs::{ExactAttention, KeyBlock, Ring, blocks, check_packed};
use super::backward::Backward;
use super::gradients::{Gradients, check_upstream};
use super::keys::{KeySums, Summed, key_gradients};
use super::pairs::pull_pairs;
use super::roles::{NewQueries, summaries};
use super::rows::{GradientRows, TokenGradients};
use crate::Real;
use crate::error::Result;
use crate::once::once;
use crate::{progress, threads};

impl ExactAttention {
    /// The gradients of a loss with respect to queries, keys and values of [bidirectional](ExactAttention::bidirectional) attention, from
    /// its gradient with respect to the output, \[b, h, n, d_v\].
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{ExactAttention, Heads};
    /// let x = Array4::<f64>::ones((1, 1, 2, 4));
    /// let heads = Heads::new(&x, &x, &x)?;
    /// // The loss is the sum of all outputs.
    /// let ones = Array4::ones((1, 1, 2, 4));
    /// let gradients = ExactAttention::new().bidirectional_backward(&heads, &ones)?;
    /// // Two queries, each of which has the mean of two values.
    /// assert!(gradients.values.iter().all(|v| (v - 1.0).abs() < 1e-12));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Nothing of the forward pass is needed: weights are computed again, block by block.
    ///
    /// # Definition
    /// With weights p and gradients gᵢ with respect to outputs oᵢ: ∂/∂vⱼ is Σᵢ pᵢⱼ gᵢ, ∂/∂qᵢ is s Σⱼ pᵢⱼ (gᵢ·vⱼ −
    /// gᵢ·oᵢ) kⱼ, and ∂/∂kⱼ is s Σᵢ pᵢⱼ (gᵢ·vⱼ − gᵢ·oᵢ) qᵢ. After [`with_cosine`](ExactAttention::with_cosine) the
    /// division by norms is differentiated too. A query that sees no key contributes to no gradient.
    ///
    /// # Cost
    /// The time is some four times that of the forward pass, O(n l (d + d_v)) for each head. Memory is O((n + l) (d +
    /// d_v)).
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the output gradients are not of the output's shape, [`Memory`](crate::Error::Memory) if there is
    /// none for the gradients, [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[doc(alias = "vjp")]
    pub fn bidirectional_backward<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        check_upstream(heads, output_gradients)?;
        self.run_backward(heads, output_gradients, false)
    }

    /// The gradients of a loss with respect to queries, keys and values of [causal](ExactAttention::causal) attention.
    ///
    /// # Errors
    /// The errors of [`bidirectional_backward`](ExactAttention::bidirectional_backward); [`Shape`](crate::Error::Shape) if a sequence has another
    /// number of keys than of queries.
    pub fn causal_backward<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        check_upstream(heads, output_gradients)?;
        heads.check_causal()?;
        self.run_backward(heads, output_gradients, true)
    }

    fn run_backward<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Result<Gradients<T>> {
        let mut gradients = Gradients::zeros(heads)?;
        check_packed::<T, E>(heads)?;
        let jobs = Backward::jobs(heads, output_gradients.view(), &[], &mut gradients);
        self.pull_back(jobs, self.scale_of(heads), causal);
        // What was stopped has left out the rest.
        progress::check().map(|()| gradients)
    }

    /// Writes the gradients of jobs.
    #[inline(never)]
    fn pull_back<T: Real>(&self, jobs: Vec<Backward<'_, '_, T>>, scale: f64, causal: bool) {
        threads::for_each(jobs, |job| pull_back(job, self.readings(scale), causal));
    }
}

/// Writes the gradients of a job.
fn pull_back<T: Real>(
    backward: Backward<'_, '_, T>,
    [query_reading, key_reading]: [Reading; 2],
    causal: bool,
) {
    let Backward { job: Job { keys, queries, .. }, upstream, of_queries, of_keys, of_values } = backward;
    let mut sums = KeySums { of_keys, of_values, fresh: true };
    let key_blocks = blocks(&key_reading, keys.reborrow());
    for ((queries, mut gradients), upstream) in queries.into_iter().zip(of_queries).zip(&upstream) {
        let mut summaries = summaries(queries.len());
        let role = NewQueries { upstream: upstream.view(), summaries: summaries.view_mut() };
        let tokens = queries.rows.reborrow();
        let rows = GradientRows { tokens, gradients: gradients.view_mut(), residuals: None };
        let tokens = TokenGradients { rows, role };
        pull_pairs((&query_reading, true), tokens, |_: &mut Ring<T>, rows: Range<usize>, see| {
            let sees = |i: usize| 0..if causal { rows.start + i + 1 } else { usize::MAX };
            going_on(&key_blocks).for_each(|block| see(block, &sees));
        });
        let summed = Summed::new(queries.reborrow(), upstream.view(), &summaries);
        let query_blocks = blocks(&query_reading, summed.run());
        sums.add(|out| {
            let tokens = key_gradients(keys.reborrow(), out, None);
            pull_pairs((&key_reading, false), tokens, |_: &mut Ring<T>, rows: Range<usize>, see| {
                let sees = |i: usize| if causal { rows.start + i } else { 0 }..usize::MAX;
                going_on(&query_blocks).for_each(|block| see(block, &sees));
            });
        });
    }
}

/// Blocks, one after the other until the work is stopped.
fn going_on<T>(blocks: &[KeyBlock<T>]) -> impl Iterator<Item = &KeyBlock<T>> {
    blocks.iter().take_while(|_| !progress::is_stopped())
}

once!(ExactAttention::pull_back::<T>);
