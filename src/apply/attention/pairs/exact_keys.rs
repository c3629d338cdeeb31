//! [`ExactKeys`]: keys whose weights are computed exactly, beside those that features estimate.

use ndarray::Array1;

use super::super::input::{Attention, Job, KeyChoice, KeyRows, KeyRun, Numbers, QueryRun, Reading, cuts};
use super::blocks::{KeyBlock, See};
use super::heaviest::{finite_softmax, heaviest};
use crate::Real;
use crate::data::spread::spread;
use crate::numeric;

/// Queries whose exact weights choose the heaviest keys.
const SAMPLE: usize = 64;
/// Keys of a block.
const BLOCK: usize = 256;

impl KeyChoice {
    /// The rows of the keys of a job that get exact weights, ascending, by the reading and 1/ℓ of the head.
    pub fn rows<T: Real>(&self, (reading, inverse): (&Reading, f64), job: &Job<'_, T>) -> Vec<usize> {
        let mut rows = match self {
            KeyChoice::None => Vec::new(),
            KeyChoice::At(rows) => rows.clone(),
            KeyChoice::Heaviest(count) => heaviest(&total_weights(reading, inverse, job), *count),
        };
        rows.retain(|row| *row < job.keys.len() && job.keys.sees(*row));
        rows.sort_unstable();
        rows
    }
}

/// The keys of a job: those with exact weights, and which are left to features and neighbours.
pub(in super::super) struct KeySplit<T> {
    pub exact: Option<ExactKeys<T>>,
    /// The mask of the keys that are left; `None` if the job's own mask is.
    rest: Option<Array1<bool>>,
}

impl<T: Real> KeySplit<T> {
    /// The keys of a job as the options of attention split them.
    pub fn new(attention: &Attention<T>, job: &Job<'_, T>) -> Self {
        let exact = attention
            .exact_inverse(job.head)
            .map(|inverse| ExactKeys::new(&attention.exact, (&attention.reading, inverse), job));
        let rest = exact.as_ref().and_then(|exact| exact.rest(&job.keys, 0));
        KeySplit { exact, rest }
    }

    /// The job with the keys that are left.
    pub fn rest<'a, 'b>(&'b self, job: Job<'a, T>) -> Job<'b, T>
    where
        'a: 'b,
    {
        let mask = self.rest.as_ref().map(|rest| rest.view()).or(job.keys.mask);
        job.masked(mask)
    }
}

/// The exact keys of a sequence.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ExactKeys<T> {
    /// Rows of the exact keys in the sequence, ascending.
    rows: Vec<usize>,
    tokens: KeyRows<T>,
    /// The exact keys, packed; the positions of a block count exact keys alone.
    blocks: Vec<KeyBlock<T>>,
}

impl<T: Real> ExactKeys<T> {
    /// The [chosen](KeyChoice::rows) keys of a job.
    pub fn new(choice: &KeyChoice, (reading, inverse): (&Reading, f64), job: &Job<'_, T>) -> Self {
        let mut exact = ExactKeys::default();
        let (rows, [_, of_keys]) = (choice.rows((reading, inverse), job), reading.of_pairs(inverse));
        exact.take(&rows, &of_keys, job.keys.reborrow(), 0);
        exact
    }

    /// Takes in those of some tokens that are in `rows`, which ascend, and not masked; the first token is in row `first`, behind
    /// all that were taken in. Keys are read for exact logits.
    pub fn take(&mut self, rows: &[usize], reading: &Reading, tokens: KeyRun<'_, T>, first: usize) {
        let own = &rows[rows.partition_point(|row| *row < first)..];
        let own = own.iter().map(|row| row - first).take_while(|j| *j < tokens.len());
        let own: Vec<usize> = own.filter(|j| tokens.sees(*j)).collect();
        if !own.is_empty() {
            self.rows.extend(own.iter().map(|j| first + j));
            let [keys, values] = [tokens.keys.select(&own), tokens.values.select(&own)];
            self.tokens.extend(KeyRun::new(Numbers::Own(keys.view()), Numbers::Own(values.view())));
            self.pack(reading);
        }
    }

    /// Packs the keys that are not packed yet.
    fn pack(&mut self, reading: &Reading) {
        // The last block may have had room.
        self.blocks.pop();
        for run in cuts(self.blocks.len() * BLOCK..self.rows.len(), BLOCK) {
            let mut block = KeyBlock::default();
            block.read(reading, self.tokens.run().rows(run.clone()), run.start, &mut Vec::new());
            self.blocks.push(block);
        }
    }

    /// The mask of those of some tokens that are left to features and neighbours; `None` if these are all that were seen before. The
    /// first token is in row `first`.
    pub fn rest(&self, tokens: &KeyRun<'_, T>, first: usize) -> Option<Array1<bool>> {
        let own = &self.rows[self.rows.partition_point(|row| *row < first)..];
        if own.is_empty() {
            return None;
        }
        let mut rest =
            tokens.mask.map_or_else(|| Array1::from_elem(tokens.len(), true), |mask| mask.to_owned());
        own.iter().for_each(|row| rest[row - first] = false);
        Some(rest)
    }

    /// Shows the blocks of keys, with the places in them of those before row `end(i)`, which the i-th query sees.
    pub fn visit(&self, end: impl Fn(usize) -> usize, see: &mut See<'_, T>) {
        let sees = |i: usize| 0..self.rows.partition_point(|row| *row < end(i));
        self.blocks.iter().for_each(|block| see(block, &sees));
    }

    /// Rows of the exact keys in the sequence, ascending.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The keys and values themselves.
    pub fn tokens(&self) -> KeyRun<'_, T> {
        self.tokens.run()
    }
}

/// Each key's weights in exact attention, summed over queries that are spread evenly over all heads that share the keys.
fn total_weights<T: Real>(reading: &Reading, inverse: f64, job: &Job<'_, T>) -> Vec<f64> {
    let all: usize = job.queries.iter().map(QueryRun::len).sum();
    let of = |x: Numbers<'_, T>| numeric::matrix_of(x.nrows(), x.ncols(), scaled(reading, x, inverse));
    let (sample, keys) = (spread(all, SAMPLE), of(job.keys.keys));
    let (mut totals, mut first) = (Array1::zeros(keys.nrows()), 0);
    for queries in &job.queries {
        let end = first + queries.len();
        let own: Vec<usize> = sample.iter().filter(|i| (first..end).contains(i)).map(|i| i - first).collect();
        first = end;
        let queries = of(Numbers::Own(queries.rows.select(&own).view()));
        for query in queries.rows() {
            let mut weights = keys.dot(&query);
            if let Some(mask) = &job.keys.mask {
                weights.zip_mut_with(mask, |logit, seen| {
                    *logit = if *seen { *logit } else { f64::NEG_INFINITY }
                });
            }
            finite_softmax(weights.view_mut());
            totals += &weights;
        }
    }
    totals.to_vec()
}

/// The points of tokens times `factor`, in `f64`, one after the other.
fn scaled<T: Real>(reading: &Reading, x: Numbers<'_, T>, factor: f64) -> Vec<f64> {
    let mut points: Vec<T> = Vec::new();
    reading.points(x, &mut points);
    points.into_iter().map(|v| factor * v.widen()).collect()
}

/// The stored form of exact keys.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::super::super::input::StoredKeyRows;
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "ExactKeys")]
    pub struct StoredExactKeys {
        rows: Vec<usize>,
        tokens: StoredKeyRows,
    }

    impl<T: Real> From<&ExactKeys<T>> for StoredExactKeys {
        fn from(exact: &ExactKeys<T>) -> Self {
            StoredExactKeys { rows: exact.rows.clone(), tokens: StoredKeyRows::of(exact.tokens.run()) }
        }
    }

    impl StoredExactKeys {
        /// The keys, read for exact logits; `None` unless they are of these dimensions, and in some of `rows` before row `end`.
        pub fn restored<T: Real>(
            self,
            (rows, reading): (&[usize], Option<&Reading>),
            dims: [usize; 2],
            end: usize,
        ) -> Option<ExactKeys<T>> {
            let own = |row: &usize| *row < end && rows.binary_search(row).is_ok();
            let StoredExactKeys { rows: stored, tokens } = self;
            let fits =
                stored.is_sorted_by(|a, b| a < b) && stored.iter().all(own) && stored.len() == tokens.len();
            let tokens: KeyRows<T> = tokens.restored(dims).filter(|_| fits)?;
            let mut exact = ExactKeys { rows: stored, tokens, blocks: Vec::new() };
            // The keys that count are here, and no others.
            let all = (0..exact.rows.len()).all(|j| exact.tokens.run().sees(j));
            reading.into_iter().for_each(|reading| exact.pack(reading));
            all.then_some(exact)
        }
    }
}
