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
    /// Room that is taken from so many bytes: for lists and sums, then for keys and for the queries of one head after the other. `None` if
    /// there are too few for the lists.
    pub fn new(attention: &Attention<T>, job: &Job<'_, T>, causal: bool, room: &mut usize) -> Option<Self> {
        let [of_key, of_query] = bytes_of_tokens(attention, job);
        *room = room.checked_sub(Self::bytes_of_lists(job.queries.len()))?;
        let rest = bytes_of_sums(attention, job, causal).and_then(|bytes| room.checked_sub(bytes));
        let sums = rest.map(|rest| {
            *room = rest;
            OnceLock::new()
        });
        let keys = KeptTokens::new(job.keys.len(), 0, of_key, room);
        // The queries before the end of a window read no features.
        let first = attention.window.before;
        let of_head = |count: usize| KeptTokens::new(count, first, of_query, &mut *room);
        let queries = job.queries.iter().map(|queries| queries.len()).map(of_head).collect();
        Some(KeptJob { keys, sums, queries })
    }

    /// No fewer bytes than are kept of a job.
    pub fn most(attention: &Attention<T>, job: &Job<'_, T>, causal: bool) -> usize {
        let [of_key, of_query] = bytes_of_tokens(attention, job);
        let of_queries = job.queries.iter().map(|queries| KeptTokens::<T>::most(queries.len(), of_query));
        let of_sums = bytes_of_sums(attention, job, causal).unwrap_or(0);
        let others = [Self::bytes_of_lists(job.queries.len()), of_sums];
        let of_keys = KeptTokens::<T>::most(job.keys.len(), of_key);
        of_queries.chain(others).fold(of_keys, usize::saturating_add)
    }

    /// The bytes of a job with so many heads of queries, of which nothing is kept yet.
    fn bytes_of_lists(heads: usize) -> usize {
        size_of::<Self>().saturating_add(heads.saturating_mul(size_of::<KeptTokens<T>>()))
    }

    /// Gives a job this room, and its queries too unless their features are others.
    pub fn lend<'a>(&'a self, job: &mut Job<'a, T>, queries: bool) {
        job.keys.kept = KeptRows::features(&self.keys);
        job.keys.sums = self.sums.as_ref();
        let pairs = job.queries.iter_mut().zip(&self.queries).filter(|_| queries);
        pairs.for_each(|(run, kept)| run.kept = KeptRows::with_estimates(kept));
    }

    /// The bytes that are in use.
    pub fn bytes(&self) -> usize {
        let of_sums = self.sums.as_ref().and_then(OnceLock::get).map_or(0, WeightedSums::bytes);
        let own = of_sums + Self::bytes_of_lists(self.queries.len());
        own + self.keys.bytes() + self.queries.iter().map(KeptTokens::bytes).sum::<usize>()
    }
}

/// The bytes of a key and of a query.
fn bytes_of_tokens<T: Real>(attention: &Attention<T>, job: &Job<'_, T>) -> [usize; 2] {
    let program = attention.setup(job.head).program;
    let of_features = KeptRun::<T>::bytes_of_features(program.width(), program.blocks().len());
    let of_estimate = KeptRun::<T>::bytes_of_estimate(job.keys.values.ncols());
    [of_features, of_features.saturating_add(of_estimate)]
}

/// The bytes of the sums over all keys. `None` if no query reads them, or if they take more than the keys, whose features are worth more.
fn bytes_of_sums<T: Real>(attention: &Attention<T>, job: &Job<'_, T>, causal: bool) -> Option<usize> {
    let [of_key, _] = bytes_of_tokens(attention, job);
    let width = attention.setup(job.head).program.width();
    let bytes = WeightedSums::<T>::bytes_of(width, job.keys.values.ncols());
    let are_read = !causal && attention.window.is_none();
    Some(bytes).filter(|bytes| are_read && *bytes < of_key.saturating_mul(job.keys.len()))
}
