//! [`KeptJob`]: what the passes of a job keep for each other.

use std::sync::OnceLock;

use super::super::input::{Attention, Job, KeptRows, KeptRun, KeptTokens};
use crate::Real;
use crate::reduce::WeightedSums;

/// Room for what the passes of a job compute of its keys and queries.
#[derive(Debug)]
pub(super) struct KeptJob<T> {
    keys: KeptTokens<T>,
    /// The sums over all keys, where all queries may read them and there is room.
    sums: Option<OnceLock<WeightedSums<T>>>,
    /// The queries of each head.
    queries: Vec<KeptTokens<T>>,
}

impl<T: Real> KeptJob<T> {
    /// Room that is taken from so many bytes: for sums first, then for keys and for the queries of one head after the other.
    pub fn new(attention: &Attention<T>, job: &Job<'_, T>, causal: bool, room: &mut usize) -> Self {
        let program = attention.setup(job.head).program;
        let (targets, blocks) = (job.keys.values.ncols(), program.blocks().len());
        let of_key = KeptRun::<T>::bytes_of_features(program.width(), blocks);
        let of_query = of_key.saturating_add(KeptRun::<T>::bytes_of_estimate(targets));
        let rest = room.checked_sub(WeightedSums::<T>::bytes_of(program.width(), targets));
        let sums = rest.filter(|_| !causal && attention.window.is_none()).map(|rest| {
            *room = rest;
            OnceLock::new()
        });
        let keys = KeptTokens::new(job.keys.len(), 0, of_key, room);
        // The queries before the end of a window read no features.
        let first = attention.window.before;
        let of_head = |count: usize| KeptTokens::new(count, first, of_query, &mut *room);
        let queries = job.queries.iter().map(|queries| queries.len()).map(of_head).collect();
        KeptJob { keys, sums, queries }
    }

    /// The job with this room, for its queries too unless their features are others.
    pub fn lend<'a>(&'a self, mut job: Job<'a, T>, queries: bool) -> Job<'a, T> {
        job.keys.kept = KeptRows::features(&self.keys);
        job.keys.sums = self.sums.as_ref();
        let pairs = job.queries.iter_mut().zip(&self.queries).filter(|_| queries);
        pairs.for_each(|(run, kept)| run.kept = KeptRows::with_estimates(kept));
        job
    }

    /// The bytes that are in use.
    pub fn bytes(&self) -> usize {
        let of_sums = self.sums.as_ref().and_then(OnceLock::get).map_or(0, WeightedSums::bytes);
        of_sums + self.keys.bytes() + self.queries.iter().map(KeptTokens::bytes).sum::<usize>()
    }
}
