//! [`Head`]: what causal attention keeps of a head token by token: the last keys and values, whose weights are exact, the exact
//! keys, and the sums over those before.

use ndarray::{Array1, ArrayViewMut1, Axis};

use super::super::features::Setup;
use super::super::input::{
    Attention, Job, KeyChoice, KeyRows, KeyRun, NonPositive, Reading, SeenValues, Window,
};
use super::super::linear::{
    JobWithOutputs, Outputs, Request, Scan, Sequence, Shrinking, Visible, Worker, continue_sequence,
};
use super::super::pairs::{ExactKeys, Neighbours};
use crate::Real;

/// The tokens of a head so far.
#[derive(Clone, Debug)]
pub(super) struct Head<T: Real> {
    /// Tokens that have left the window, and are no exact keys.
    pub sequence: Sequence<T>,
    recent: Recent<T>,
    exact: ExactKeys<T>,
    /// The share of the mean of the values in outputs.
    share: f64,
    /// The values so far, if the share is above 0.
    seen: SeenValues,
}

/// Which pairs of a head of keys have exact weights, causally.
#[derive(Clone, Copy)]
pub(super) struct CausalPairs<'a> {
    /// The window of each query, and how its keys are read for logits.
    near: Option<(Window, Reading)>,
    /// Rows of the exact keys, ascending, and how they are read for logits.
    keys: Option<(&'a [usize], Reading)>,
}

/// The keys and values that are still in the window.
#[derive(Clone, Debug, Default)]
struct Recent<T> {
    rows: KeyRows<T>,
    /// Rows at the front that have left, and have not been dropped yet.
    left: usize,
}

impl<T: Real> Attention<T> {
    /// The pairs of a head of keys with exact weights, which are read so.
    pub(super) fn causal_pairs(&self, of_pairs: [Reading; 2]) -> CausalPairs<'_> {
        let keys = match &self.exact {
            KeyChoice::At(rows) => Some((&rows[..], of_pairs[1])),
            _ => None,
        };
        CausalPairs { near: self.near(of_pairs, true), keys }
    }
}

impl CausalPairs<'_> {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.near.is_none() && self.keys.is_none()
    }

    /// Tokens of a full window.
    fn window(&self) -> usize {
        self.near.map_or(0, |(window, _)| window.before)
    }
}

impl<T: Real> Recent<T> {
    fn len(&self) -> usize {
        self.rows.len() - self.left
    }

    /// The tokens.
    fn tokens(&self) -> KeyRun<'_, T> {
        self.rows.run().rows(self.left..self.rows.len())
    }

    /// Lets the first one go.
    fn leave(&mut self) {
        self.left += 1;
        // Moves the others only where these are no more than those that have gone: once for each token.
        if self.left >= self.len() {
            self.rows.drop_first(self.left);
            self.left = 0;
        }
    }
}

impl<T: Real> Head<T> {
    /// Without tokens, of so many features and targets, for outputs with a `share` of the mean of the values.
    pub fn new([features, targets]: [usize; 2], share: f64) -> Self {
        Head {
            sequence: Sequence::new(features, targets),
            recent: Recent::default(),
            exact: ExactKeys::default(),
            share,
            seen: SeenValues::default(),
        }
    }

    /// The number of tokens so far.
    pub fn length(&self) -> usize {
        self.sequence.length().saturating_add(self.recent.len())
    }

    /// Takes in those of the next tokens that are exact keys; the mask of the others, if there are any such keys.
    fn take_exact(&mut self, pairs: CausalPairs<'_>, tokens: KeyRun<'_, T>) -> Option<Array1<bool>> {
        let first = self.length();
        let (rows, reading) = pairs.keys?;
        self.exact.take(rows, &reading, tokens.reborrow(), first);
        self.exact.rest(&tokens, first)
    }

    /// Sees the value of a token, row `i` of some, for the mean.
    pub fn see(&mut self, tokens: &KeyRun<'_, T>, i: usize) {
        if self.share > 0.0 {
            self.seen.see(tokens, i, &mut Vec::new());
        }
    }

    /// Takes in a token. True where one leaves the window for it, which is appended to `leaving`.
    pub fn push(&mut self, pairs: CausalPairs<'_>, token: KeyRun<'_, T>, leaving: &mut KeyRows<T>) -> bool {
        let rest = self.take_exact(pairs, token.reborrow());
        let token = token.masked(rest.as_ref().map(|rest| rest.view()).or(token.mask));
        if pairs.window() == 0 {
            leaving.extend(token);
            return true;
        }
        self.recent.rows.extend(token);
        let full = self.recent.len() > pairs.window();
        if full {
            leaving.extend(self.recent.tokens().rows(0..1));
            self.recent.leave();
        }
        full
    }

    /// Takes in the keys of a job, and writes the outputs of its queries, if there are any, with so many threads.
    pub fn prefill(
        &mut self,
        setup: Setup<'_, T>,
        pairs: CausalPairs<'_>,
        (job, mut outputs): JobWithOutputs<'_, T>,
        threads: usize,
    ) -> NonPositive {
        let shrinking = Shrinking::of_job(self.share, &job, true);
        let views = outputs.iter_mut().map(Outputs::view).collect();
        let non_positive = self.scan(setup, pairs, job, views, threads);
        if let Some(shrinking) = shrinking {
            shrinking.apply(&mut self.seen, outputs, &non_positive);
        }
        non_positive
    }

    /// As [`prefill`](Head::prefill), without the share of the mean.
    fn scan(
        &mut self,
        setup: Setup<'_, T>,
        pairs: CausalPairs<'_>,
        job: Job<'_, T>,
        outputs: Vec<Outputs<'_, T>>,
        threads: usize,
    ) -> NonPositive {
        let (first, held) = (self.length(), self.recent.len());
        let rest = self.take_exact(pairs, job.keys.reborrow());
        let Head { sequence, recent, exact, .. } = self;
        let mask = rest.as_ref().map(|rest| rest.view()).or(job.keys.mask);
        let job = job.masked(mask);
        let mut rows = KeyRows::default();
        rows.extend(recent.tokens());
        let all = if held == 0 {
            job.keys.reborrow()
        } else {
            rows.extend(job.keys);
            rows.run()
        };
        let leaving = all.rows(0..all.len().saturating_sub(pairs.window()));
        let near = pairs.near.map(|near| Neighbours::new(near, all, first - held));
        let setup = setup.beside(pairs.keys.map(|_| &*exact), near.as_ref());
        let non_positive = if job.queries.iter().all(|queries| queries.len() == 0) {
            sequence.extend(setup, leaving, threads);
            NonPositive::new()
        } else {
            // A sequence has tokens only if the window is full, so that every query sees one more of its keys.
            let visible = Visible { ahead: held + 1, behind: pairs.window() };
            let scan = Scan { keys: leaving, ..Scan::of_job(job.at(first), outputs, visible, []) };
            continue_sequence(setup, scan, sequence, true, threads)
        };
        let mut kept = KeyRows::default();
        kept.extend(all.rows(leaving.len()..all.len()));
        *recent = Recent { rows: kept, left: 0 };
        non_positive
    }

    /// Writes the output of a query that sees all tokens so far: row `i` of those that the worker, which has
    /// [forgotten](Worker::forget) all other tokens, has read. False if its normaliser is not positive although it has seen a key.
    pub fn answer(
        &mut self,
        setup: Setup<'_, T>,
        pairs: CausalPairs<'_>,
        i: usize,
        worker: &mut Worker<T>,
        out: &mut [T],
    ) -> bool {
        let (length, first) = (self.length(), self.sequence.length());
        let Head { sequence, recent, exact, .. } = self;
        let near = pairs.near.map(|near| Neighbours::new(near, recent.tokens(), first));
        let rows = ArrayViewMut1::from(&mut *out).insert_axis(Axis(0));
        let mut positive = true;
        let request = Request {
            queries: i..i + 1,
            sees: sequence.open(),
            position: length.saturating_sub(1),
            others: None,
            estimated: None,
            sink: &mut Outputs { rows, normalised: setup.normalised },
            report: &mut |_| positive = false,
        };
        let exact = pairs.keys.map(|_| &*exact);
        sequence.answer(setup.beside(exact, near.as_ref()), request, worker);
        if self.share > 0.0 {
            self.seen.shrink(if positive { self.share } else { 1.0 }, out.into());
        }
        positive
    }
}

/// The stored form of a head.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::super::super::input::StoredKeyRows;
    use super::super::super::linear::StoredSequence;
    use super::super::super::pairs::StoredExactKeys;
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "Head", bound = "")]
    pub struct StoredHead<T: Real> {
        sequence: StoredSequence<T>,
        recent: StoredKeyRows,
        exact: StoredExactKeys,
        seen: SeenValues,
    }

    impl<T: Real> From<&Head<T>> for StoredHead<T> {
        fn from(head: &Head<T>) -> Self {
            let Head { sequence, recent, exact, seen, .. } = head;
            let recent = StoredKeyRows::of(recent.tokens());
            StoredHead { sequence: sequence.into(), recent, exact: exact.into(), seen: seen.clone() }
        }
    }

    impl<T: Real> StoredHead<T> {
        /// The numbers of tokens before the window and in it.
        pub fn length(&self) -> [usize; 2] {
            [self.sequence.length, self.recent.len()]
        }

        /// The head; `None` if sizes are not those of the map, of these pairs and of so many targets, for a share of the mean.
        pub fn restored(
            self,
            setup: Setup<'_, T>,
            pairs: CausalPairs<'_>,
            (targets, share): (usize, f64),
        ) -> Option<Head<T>> {
            let ([before, held], window) = (self.length(), pairs.window());
            let StoredHead { sequence, recent, exact, seen } = self;
            let dims = [setup.program.facts().dim, targets];
            // Nothing leaves a window before it is full.
            let full = if before == 0 { held <= window } else { held == window };
            let keys = pairs.keys.as_ref().map_or((&[][..], None), |(rows, reading)| (*rows, Some(reading)));
            let length = before.saturating_add(held);
            let exact = exact.restored(keys, dims, length)?;
            let seen = Some(seen).filter(|seen| seen.fits(targets, if share > 0.0 { length } else { 0 }))?;
            let recent = Recent { rows: recent.restored(dims).filter(|_| full)?, left: 0 };
            Some(Head { sequence: sequence.restored(setup, targets)?, recent, exact, share, seen })
        }
    }
}
