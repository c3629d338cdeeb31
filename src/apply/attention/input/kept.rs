//! [`KeptTokens`]: what one pass has computed of tokens, for the passes that follow. [`KeptRows`] goes with rows of these tokens.

use std::sync::{Arc, OnceLock};

use super::job::CHUNK;
use crate::Real;
use crate::engine::Batch;
use crate::numeric::LINE;
use crate::reduce::Precision;

/// Features of a run of tokens.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Lifted<T> {
    /// The features, with one scale for all blocks of a row.
    pub features: Batch<T>,
    /// How well `T` holds the features of each row.
    pub precision: Vec<Precision>,
}

/// What a run of queries has read by products of features.
#[derive(Debug)]
pub(in super::super) struct Estimated<T> {
    /// The sums of each query, queries × targets.
    pub sums: Vec<T>,
    /// ln of the scale and the normaliser of each query.
    pub estimates: Vec<(f64, f64)>,
}

/// Room for what is computed of a run of tokens. What is there is never changed.
#[derive(Debug)]
pub(in super::super) struct KeptRun<T> {
    pub lifted: OnceLock<Arc<Lifted<T>>>,
    pub estimated: OnceLock<Estimated<T>>,
}

/// Room for what is computed of the tokens of one head, run by run; tokens behind the last run have none.
#[derive(Debug)]
pub(in super::super) struct KeptTokens<T> {
    /// The tokens of the first run, if that is shorter than a chunk; else 0.
    first: usize,
    runs: Box<[KeptRun<T>]>,
}

/// The room of tokens that are read row by row.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct KeptRows<'a, T> {
    tokens: Option<&'a KeptTokens<T>>,
    /// The token of the first row.
    first: usize,
    /// Whether the token of each row stands before that of the row above.
    backwards: bool,
    /// Whether estimates are kept beside features.
    estimates: bool,
}

impl<T: Real> KeptRun<T> {
    /// The bytes of a run beside those of its tokens.
    pub const BYTES: usize = size_of::<Self>() + size_of::<Lifted<T>>() + 2 * LINE;

    /// The bytes of the features of a token: D numbers, and its scale in each block.
    pub fn bytes_of_features(width: usize, blocks: usize) -> usize {
        let scales = blocks.saturating_mul(size_of::<f64>());
        width.saturating_mul(size_of::<T>()).saturating_add(scales).saturating_add(size_of::<Precision>())
    }

    /// The bytes of the estimate of a query.
    pub fn bytes_of_estimate(targets: usize) -> usize {
        targets.saturating_mul(size_of::<T>()).saturating_add(size_of::<(f64, f64)>())
    }

    /// The bytes that are in use.
    fn bytes(&self) -> usize {
        let of_features = self.lifted.get().map_or(0, |lifted| {
            let rows = lifted.precision.len();
            rows * Self::bytes_of_features(
                lifted.features.width(),
                lifted.features.log_scales().len() / rows.max(1),
            )
        });
        let of_estimates = self
            .estimated
            .get()
            .map_or(0, |estimated| size_of_val(&estimated.sums[..]) + size_of_val(&estimated.estimates[..]));
        Self::BYTES + of_features + of_estimates
    }
}

impl<T: Real> KeptTokens<T> {
    /// No fewer bytes than are kept of `count` tokens, each of so many.
    pub fn most(count: usize, each: usize) -> usize {
        let of_runs = (count / CHUNK + 2).saturating_mul(KeptRun::<T>::BYTES);
        count.saturating_mul(each).saturating_add(of_runs)
    }

    /// Room for as many of the first runs of `count` tokens as there are bytes for, which it takes from `room`; each token has so many.
    /// The first run ends where the number of a token is `first` modulo [`CHUNK`].
    pub fn new(count: usize, first: usize, each: usize, room: &mut usize) -> Self {
        let first = first % CHUNK;
        let ends = (first..count).step_by(CHUNK).skip(usize::from(first == 0)).chain([count]);
        let mut start = 0;
        let fits = |end: usize| {
            let bytes = (end - std::mem::replace(&mut start, end)).saturating_mul(each);
            let rest = room.checked_sub(bytes.saturating_add(KeptRun::<T>::BYTES))?;
            *room = rest;
            Some(KeptRun { lifted: OnceLock::new(), estimated: OnceLock::new() })
        };
        KeptTokens { first, runs: ends.map_while(fits).collect() }
    }

    /// The bytes that are in use.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(KeptRun::bytes).sum()
    }

    /// The run of a token, how many tokens a run at this place may have, and which of them it is.
    fn place(&self, token: usize) -> (usize, usize, usize) {
        match token.checked_sub(self.first) {
            None => (0, self.first, token),
            Some(beyond) => (usize::from(self.first > 0) + beyond / CHUNK, CHUNK, beyond % CHUNK),
        }
    }
}

impl<T> Default for KeptRows<'_, T> {
    /// No room.
    fn default() -> Self {
        KeptRows { tokens: None, first: 0, backwards: false, estimates: false }
    }
}

impl<'a, T: Real> KeptRows<'a, T> {
    /// The room of all tokens of a head, for their features.
    pub fn features(tokens: &'a KeptTokens<T>) -> Self {
        KeptRows { tokens: Some(tokens), ..KeptRows::default() }
    }

    /// The room of all queries of a head, for their features and what they read.
    pub fn with_estimates(tokens: &'a KeptTokens<T>) -> Self {
        KeptRows { estimates: true, ..KeptRows::features(tokens) }
    }

    /// The room for features alone.
    pub fn without_estimates(self) -> Self {
        KeptRows { estimates: false, ..self }
    }

    /// The rows from a row on.
    pub fn skip(self, row: usize) -> Self {
        KeptRows { first: self.token(row), ..self }
    }

    /// The first `count` rows, from the last to the first. They keep no estimates.
    pub fn reversed(self, count: usize) -> Self {
        let first = self.token(count.saturating_sub(1));
        KeptRows { first, backwards: !self.backwards, ..self.without_estimates() }
    }

    /// The token of a row.
    fn token(self, row: usize) -> usize {
        if self.backwards { self.first.saturating_sub(row) } else { self.first.saturating_add(row) }
    }

    /// The room of the first `count` rows, if they are a run or begin one.
    pub fn run(self, count: usize) -> Option<&'a KeptRun<T>> {
        let tokens = self.tokens.filter(|_| !self.backwards)?;
        let (run, most, place) = tokens.place(self.first);
        let run = tokens.runs.get(run).filter(|_| place == 0 && (1..=most).contains(&count))?;
        run.lifted.get().is_none_or(|lifted| lifted.precision.len() >= count).then_some(run)
    }

    /// The room for the estimates of the first `count` rows, if they are a run.
    pub fn estimated(self, count: usize) -> Option<&'a OnceLock<Estimated<T>>> {
        self.run(count).filter(|_| self.estimates).map(|run| &run.estimated)
    }

    /// Features that are kept of a row, and which row of them it is.
    pub fn lifted(self, row: usize) -> Option<(&'a Lifted<T>, usize)> {
        let (tokens, token) = (self.tokens?, self.token(row));
        let (run, _, place) = tokens.place(token);
        let lifted = tokens.runs.get(run)?.lifted.get()?;
        (place < lifted.precision.len()).then_some((lifted, place))
    }
}
