//! [`Sequence`]: what causal attention of one head keeps of the tokens so far, be they read one by one or many at once.

use std::ops::Range;
use std::sync::Arc;

use ndarray::ArrayView1;

use super::super::features::{Chunk, Setup, Tokens};
use super::super::input::{CHUNK, KeyRun, NonPositive, Numbers};
use super::request::{PrefixSums, Request, SlowPath, VisibleKeys};
use super::scan::Scan;
use super::segment::{SEGMENT, Segment, add_keys};
use super::worker::Worker;
use crate::Real;
#[cfg(feature = "serde")]
use crate::numeric::matrix_view;
use crate::progress;
use crate::reduce::{RunSums, WeightedSums};

/// The tokens of a head so far: sums over whole segments, over the chunks since, and the last chunk, which grows until it is full
/// and is summed up when the next token comes.
#[derive(Clone, Debug)]
pub(in super::super) struct Sequence<T: Real> {
    length: usize,
    /// Clones share sums until one of them changes.
    before: Arc<WeightedSums<T>>,
    last: Arc<WeightedSums<T>>,
    tokens: Tokens<T>,
    chunk: Chunk<T>,
    /// The sums of both states, until one of them changes.
    ready: Arc<RunSums<T>>,
    is_ready: bool,
    /// Sums for queries whose features do not fit `T`.
    prefix: PrefixSums<T>,
}

impl<T: Real> Sequence<T> {
    /// Without tokens.
    pub fn new(features: usize, targets: usize) -> Self {
        let nothing = Arc::new(WeightedSums::new(features, targets));
        Sequence {
            length: 0,
            before: Arc::clone(&nothing),
            last: nothing,
            tokens: Tokens::default(),
            chunk: Chunk::default(),
            ready: Arc::default(),
            is_ready: false,
            prefix: PrefixSums::default(),
        }
    }

    /// The bytes that a head keeps, in sums and in the last chunk, for points and targets of these dimensions; the largest number if
    /// these are too many to be counted.
    pub fn bytes(features: usize, [d, targets]: [usize; 2]) -> usize {
        let lanes = WeightedSums::<T>::lanes(targets);
        // Both sums in f64, with weights and references; the ones that queries are multiplied with in T.
        let of_sums = lanes.saturating_add(2).saturating_mul(2 * size_of::<f64>());
        let of_run = lanes.saturating_mul(size_of::<T>()).saturating_add(size_of::<f64>());
        let shared = of_sums.saturating_add(of_run).saturating_mul(features);
        shared.saturating_add(Self::bytes_of_fork(features, [d, targets]))
    }

    /// The bytes of them that clones do not share: of the last chunk.
    pub fn bytes_of_fork(features: usize, [d, targets]: [usize; 2]) -> usize {
        let lanes = WeightedSums::<T>::lanes(targets);
        let of_run = lanes.saturating_mul(size_of::<T>()).saturating_add(size_of::<f64>());
        // Features as they were read and packed; points, and values as they were read, packed and weighted.
        let of_feature = of_run.saturating_add(2 * CHUNK * size_of::<T>());
        let of_token = lanes.saturating_mul(3).saturating_add(d).saturating_mul(size_of::<T>());
        of_feature.saturating_mul(features).saturating_add(of_token.saturating_mul(CHUNK))
    }

    /// The number of tokens so far.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many of them are in the last chunk.
    pub fn open(&self) -> usize {
        self.chunk.len()
    }

    /// Takes in a key and its value: row `i` of those whose keys the worker has [read](Worker::tokens).
    pub fn push(&mut self, setup: Setup<'_, T>, i: usize, run: KeyRun<'_, T>, worker: &mut Worker<T>) {
        self.make_room(setup, worker);
        self.tokens.push(&worker.tokens, i, CHUNK);
        let token = run.rows(i..i + 1);
        self.take_in(token.values, token.mask);
    }

    /// Takes in the next keys: those of a whole chunk, or fewer that fit into the last one.
    pub fn read(&mut self, setup: Setup<'_, T>, run: KeyRun<'_, T>, worker: &mut Worker<T>) {
        self.make_room(setup, worker);
        let count = run.len();
        if count == CHUNK {
            self.tokens.read_keys(setup, run, &mut worker.logs.scratch);
        } else {
            worker.read_keys(setup, run);
            (0..count).for_each(|i| self.tokens.push(&worker.tokens, i, CHUNK));
        }
        self.take_in(run.values, run.mask);
    }

    /// Adds the keys that were read to the chunk, with their values.
    fn take_in(&mut self, values: Numbers<'_, T>, mask: Option<ArrayView1<'_, bool>>) {
        if self.chunk.len() == 0 {
            self.chunk.seen_before = self.before.has_seen() || self.last.has_seen();
        }
        self.length = self.length.saturating_add(values.nrows());
        self.chunk.extend(&mut self.tokens, values, mask);
    }

    /// Sums up the last chunk, if it is full.
    fn make_room(&mut self, setup: Setup<'_, T>, worker: &mut Worker<T>) {
        if !self.chunk.is_full() {
            return;
        }
        let last = Arc::make_mut(&mut self.last);
        self.chunk.add_to(setup, &mut self.tokens, last, &mut worker.logs);
        self.chunk.clear();
        self.tokens.clear();
        if self.length.is_multiple_of(SEGMENT) {
            Arc::make_mut(&mut self.before).merge(last);
            last.clear();
        }
        self.forget_sums();
    }

    /// Forgets what was made of the sums before the chunk, which have changed.
    fn forget_sums(&mut self) {
        self.is_ready = false;
        self.prefix.clear();
    }

    /// Takes in many keys with so many threads: whole segments at once where one begins, so that what is left is a chunk. It is of no use
    /// if the work was stopped.
    pub fn extend(&mut self, setup: Setup<'_, T>, keys: KeyRun<'_, T>, threads: usize) {
        let (mut worker, mut at) = (Worker::default(), 0);
        while at < keys.len() && !progress::is_stopped() {
            self.make_room(setup, &mut worker);
            let left = keys.len() - at;
            let count = if self.length.is_multiple_of(SEGMENT) && left > SEGMENT {
                let count = (left - 1) / SEGMENT * SEGMENT;
                add_keys(setup, keys.rows(at..at + count), Arc::make_mut(&mut self.before), threads);
                self.length = self.length.saturating_add(count);
                self.forget_sums();
                count
            } else {
                let count = left.min(CHUNK - self.chunk.len());
                self.read(setup, keys.rows(at..at + count), &mut worker);
                count
            };
            at += count;
        }
    }

    /// Takes in the keys of a scan, and answers its queries: chunk after chunk, or segment after segment where there are so many
    /// `threads` to share the chunks of one. A sequence that is not `kept` ends in an invalid state, which saves a copy; so does one whose
    /// work was stopped.
    pub fn scan(
        &mut self,
        setup: Setup<'_, T>,
        mut scan: Scan<'_, T>,
        kept: bool,
        threads: usize,
    ) -> NonPositive {
        let (mut worker, mut shared, mut non_positive) = (Worker::default(), None, NonPositive::new());
        let mut at = 0;
        while at < scan.keys.len() && !progress::is_stopped() {
            self.make_room(setup, &mut worker);
            let left = scan.keys.len() - at;
            let count = if threads > 1 && self.length.is_multiple_of(SEGMENT) && left > CHUNK {
                // The last chunk of a sequence that goes on stays open.
                let whole = if kept { (left - 1) / CHUNK * CHUNK } else { left };
                let keys = at..at + whole.min(SEGMENT);
                let (features, targets) = (setup.program.width(), scan.keys.values.ncols());
                let segment = shared.get_or_insert_with(|| Segment::new(features, targets));
                non_positive.extend(segment.answer(setup, &mut scan, &self.before, keys.clone()));
                if kept || keys.end < scan.keys.len() {
                    self.add_segment(segment, keys.len());
                }
                keys.len()
            } else {
                let run = at..at + left.min(CHUNK - self.chunk.len());
                non_positive.extend(self.scan_chunk(setup, &mut scan, run.clone(), &mut worker));
                run.len()
            };
            at += count;
        }
        non_positive
    }

    /// Takes in the keys of a segment that is summed up, of which the chunks are full.
    fn add_segment(&mut self, segment: &Segment<T>, length: usize) {
        if length == SEGMENT {
            Arc::make_mut(&mut self.before).merge(segment.sums());
        } else {
            self.last = Arc::new(segment.sums().clone());
        }
        self.length = self.length.saturating_add(length);
        self.forget_sums();
    }

    /// Takes in keys of a scan that fit into the last chunk, and answers the queries whose last key is one of these.
    fn scan_chunk(
        &mut self,
        setup: Setup<'_, T>,
        scan: &mut Scan<'_, T>,
        run: Range<usize>,
        worker: &mut Worker<T>,
    ) -> NonPositive {
        let (mut non_positive, open) = (NonPositive::new(), self.chunk.len());
        self.read(setup, scan.keys.rows(run.clone()), worker);
        let (readers, sees) = scan.take_of(&run);
        for mut reader in readers {
            let [b, h, first] = reader.queries.origin;
            worker.read_queries(setup, reader.queries.reborrow());
            let report = &mut |i| non_positive.push([b, h, first + i]);
            self.answer(setup, reader.request(open + sees, report), worker);
        }
        non_positive
    }

    /// Answers queries that see the keys so far.
    pub fn answer(&mut self, setup: Setup<'_, T>, request: Request<'_, T>, worker: &mut Worker<T>) {
        let Sequence { before, last, tokens, chunk, ready, prefix, .. } = self;
        if !std::mem::replace(&mut self.is_ready, true) {
            before.ready(last, Arc::make_mut(ready));
        }
        chunk.pack(tokens);
        let slow = Some(SlowPath { keys: tokens, past: [before, last], prefix });
        worker.answer(setup, VisibleKeys { chunk, before: ready, slow }, request);
    }
}

/// The stored form of a sequence. The features of the last chunk are computed again when it is read.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "Sequence", bound = "")]
    pub struct StoredSequence<T: Real> {
        pub length: usize,
        before: WeightedSums<T>,
        last: WeightedSums<T>,
        #[serde(with = "crate::exact")]
        points: Vec<f64>,
        #[serde(with = "crate::exact")]
        values: Vec<f64>,
        /// Which of them are not masked.
        mask: Vec<bool>,
    }

    /// The most tokens of a stored state, so that counting on does not overflow.
    const MOST: usize = isize::MAX as usize;

    impl<T: Real> From<&Sequence<T>> for StoredSequence<T> {
        fn from(sequence: &Sequence<T>) -> Self {
            StoredSequence {
                length: sequence.length,
                before: WeightedSums::clone(&sequence.before),
                last: WeightedSums::clone(&sequence.last),
                points: sequence.tokens.points().iter().map(|v| v.widen()).collect(),
                values: sequence.chunk.all_values().map(T::widen).collect(),
                mask: sequence.chunk.mask().collect(),
            }
        }
    }

    impl<T: Real> StoredSequence<T> {
        /// The sequence; `None` if sizes are not those of the map and of so many targets.
        pub fn restored(self, setup: Setup<'_, T>, targets: usize) -> Option<Sequence<T>> {
            let (features, d) = (setup.program.width(), setup.program.facts().dim);
            let StoredSequence { length, before, last, points, values, mask } = self;
            let open = if length == 0 { 0 } else { (length - 1) % CHUNK + 1 };
            let fits = before.fits(features, targets)
                && last.fits(features, targets)
                && length <= MOST
                && open.checked_mul(d) == Some(points.len())
                && open.checked_mul(targets) == Some(values.len())
                && open == mask.len();
            if !fits {
                return None;
            }
            let narrow = |numbers: Vec<f64>| -> Vec<T> { numbers.into_iter().map(T::narrow).collect() };
            let (points, values) = (narrow(points), narrow(values));
            let (mut worker, mut sequence) = (Worker::default(), Sequence::new(features, targets));
            (sequence.length, sequence.before, sequence.last) =
                (length - open, Arc::new(before), Arc::new(last));
            worker.tokens.fill_points(setup, setup.summed_side(), &points, &mut worker.logs.scratch);
            (0..open).for_each(|i| sequence.tokens.push(&worker.tokens, i, CHUNK));
            let values = Numbers::Own(matrix_view(open, targets, &values));
            sequence.take_in(values, Some(ArrayView1::from(&mask)));
            Some(sequence)
        }
    }
}
