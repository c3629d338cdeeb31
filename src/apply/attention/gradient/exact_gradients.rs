//! Gradients of exact attention, block by block.

use std::ops::Range;

use ndarray::{Array2, ArrayRef, Ix4};

use super::super::input::{Element, Heads, Job, Member, Reading};
use super::super::pairs::{ExactAttention, KeyBlock, Ring, blocks, check_packed};
use super::backward::{Backward, KeySums, Summed, pulls_of_keys};
use super::gradients::{Gradients, check_upstream};
use super::pair_pulls::pull_pairs;
use super::pulls::{KEPT, Pulls, Role};
use crate::Real;
use crate::error::Result;
use crate::once::once;
use crate::{progress, threads};

impl ExactAttention {
    /// Gradients of [bidirectional](ExactAttention::bidirectional) attention: from those of a loss with respect to the output, of the output's
    /// shape \[batch, heads, queries, d_v\], to those with respect to queries, keys and values. Nothing of the forward pass is needed, weights
    /// are computed again, block by block.
    ///
    /// With weights p and gradients gᵢ with respect to outputs oᵢ: ∂/∂vⱼ is Σᵢ pᵢⱼ gᵢ, ∂/∂qᵢ is s Σⱼ pᵢⱼ (gᵢ·vⱼ − gᵢ·oᵢ) kⱼ, and ∂/∂kⱼ is
    /// s Σᵢ pᵢⱼ (gᵢ·vⱼ − gᵢ·oᵢ) qᵢ; through lengths too after [`cosine`](ExactAttention::cosine). A query that sees no key has no part in any.
    ///
    /// # Cost
    /// Some four times that of the forward pass, O(n l (d + d_v)) time for each head, O((n + l) (d + d_v)) memory.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the output gradients are not of the output's shape, [`Memory`](crate::Error::Memory) if there is none
    /// for the gradients, [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    ///
    /// # Example
    /// ```
    /// use ndarray::Array4;
    /// use random_features::apply::attention::{ExactAttention, Heads};
    /// let q = Array4::<f64>::zeros((1, 1, 1, 4));
    /// let (k, v) = (Array4::from_elem((1, 1, 2, 4), 0.5), Array4::from_shape_fn((1, 1, 2, 1), |(_, _, j, _)| j as f64));
    /// let ones = Array4::ones((1, 1, 1, 1));
    /// let gradients = ExactAttention::new().bidirectional_backward(&Heads::new(&q, &k, &v)?, &ones)?;
    /// // A query of zeros has the mean of the values.
    /// assert!(gradients.values.iter().all(|v| (v - 0.5).abs() < 1e-12));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn bidirectional_backward<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        check_upstream(heads, output_gradients)?;
        self.run_backward(heads, output_gradients, false)
    }

    /// As [`bidirectional_backward`](ExactAttention::bidirectional_backward), of [causal](ExactAttention::causal) attention.
    ///
    /// # Errors
    /// As [`bidirectional_backward`](ExactAttention::bidirectional_backward); [`Shape`](crate::Error::Shape) if a sequence has another
    /// number of keys than of queries.
    pub fn causal_backward<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        check_upstream(heads, output_gradients)?;
        heads.check_causal()?;
        self.run_backward(heads, output_gradients, true)
    }

    fn run_backward<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Result<Gradients<T>> {
        let mut gradients = Gradients::zeros(heads)?;
        check_packed::<T, E>(heads)?;
        let jobs = Backward::jobs(heads, output_gradients.view(), &mut gradients);
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
fn pull_back<T: Real>(backward: Backward<'_, '_, T>, [of_queries, of_keys]: [Reading; 2], causal: bool) {
    let Backward { job: Job { keys, members, .. }, upstream, of_keys: gradients, of_values } = backward;
    let mut sums = KeySums { of_keys: gradients, of_values, fresh: true };
    let key_blocks = blocks(&of_keys, keys.reborrow());
    for (Member { queries, mut out, .. }, upstream) in members.into_iter().zip(&upstream) {
        let mut kept = Array2::zeros((queries.nrows(), KEPT));
        let role = Role::Queries { upstream: upstream.view(), others: None, kept: kept.view_mut() };
        let pulls = Pulls { tokens: queries.reborrow(), gradients: out.view_mut(), role, record: None };
        pull_pairs((&of_queries, true), pulls, |_: &mut Ring<T>, rows: Range<usize>, see| {
            let sees = |i: usize| 0..if causal { rows.start + i + 1 } else { usize::MAX };
            going_on(&key_blocks).for_each(|block| see(block, &sees));
        });
        let summed = Summed::new(queries.reborrow(), upstream.view(), &kept);
        let query_blocks = blocks(&of_queries, summed.run());
        sums.add(|out| {
            let pulls = pulls_of_keys(keys.reborrow(), out, None);
            pull_pairs((&of_keys, false), pulls, |_: &mut Ring<T>, rows: Range<usize>, see| {
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
