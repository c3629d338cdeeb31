//! [`ExactKeys`]: keys whose weights are computed exactly, beside those that features estimate.

use ndarray::Array1;

use super::super::Attention;
use super::super::features::Setup;
use super::super::input::{Job, KeyRows, KeyRun, Numbers, Reading};
use super::super::judge::softmax_lengthscale;
use super::super::linear::cuts;
use super::blocks::{KeyBlock, See};
use super::heaviest::{finite_softmax, heaviest};
use super::window::Neighbours;
use crate::Real;
use crate::data::spread::spread;
use crate::error::{Error, Result};
use crate::kernel::Lengthscale;
use crate::map::{Map, Recipe, Target};
use crate::numeric;
#[cfg(feature = "serde")]
use crate::tagged::named;

/// Which keys of a sequence get exact weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum KeyChoice {
    /// None.
    #[default]
    None,
    /// So many with the largest total weight.
    Heaviest(usize),
    /// Those in these rows, ascending.
    At(Vec<usize>),
}

impl KeyChoice {
    /// How many keys, if there are so many.
    pub fn count(&self) -> usize {
        match self {
            KeyChoice::None => 0,
            KeyChoice::Heaviest(count) => *count,
            KeyChoice::At(rows) => rows.len(),
        }
    }

    /// The bytes that the choice takes for each key of dimension d.
    pub fn bytes_of_key<T>(&self, d: usize) -> usize {
        match self {
            KeyChoice::None => 0,
            KeyChoice::At(_) => size_of::<bool>(),
            // Points in `T` and in `f64`, and weights.
            KeyChoice::Heaviest(_) => d.saturating_add(3).saturating_mul(size_of::<T>() + size_of::<f64>()),
        }
    }

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

#[cfg(feature = "serde")]
named!(KeyChoice, "a choice of keys" {
    "none" => None,
    "heaviest" => Heaviest(count: usize),
    "at" => At(rows: Vec<usize>),
});

/// Queries whose exact weights choose the heaviest keys.
const SAMPLE: usize = 64;
/// Keys of a block.
const BLOCK: usize = 256;

impl<T: Real> Attention<T> {
    /// The same with exact weights for `count` keys of each sequence, those with the largest weights; the weights of the other keys
    /// are estimated from features, and all are divided by one normaliser. For bidirectional attention only, since the choice of
    /// the keys depends on all tokens.
    ///
    /// Keys are chosen by their exact weights for up to 64 queries, which are spread evenly over a sequence and the heads that share
    /// its keys: `AttentionShaping::heaviest_keys` gives the same keys for one head. Costs O(64 l d) once
    /// and O(count (d + d_v)) for each query. A key that has no weight for these queries is not chosen. The estimated rest may
    /// have a larger relative error than the estimate of all keys: exact keys help features that are shaped by the data, and may
    /// hurt positive ones at large norms.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) unless every map estimates, at least approximately, the softmax kernel with the same
    /// lengthscale in all coordinates.
    pub fn with_heaviest_keys_exact(self, count: usize) -> Result<Self> {
        self.exactly(KeyChoice::Heaviest(count))
    }

    /// As [`with_heaviest_keys_exact`](Attention::with_heaviest_keys_exact), for the keys in these rows of each sequence: for example
    /// the first ones, where many models have their heaviest keys. For causal attention too, and token by token. Rows beyond
    /// the end of a sequence and masked keys are ignored.
    ///
    /// # Errors
    /// As [`with_heaviest_keys_exact`](Attention::with_heaviest_keys_exact).
    pub fn with_keys_exact(self, rows: &[usize]) -> Result<Self> {
        self.exactly(KeyChoice::At(rows.to_vec()))
    }

    pub(in super::super) fn exactly(mut self, mut choice: KeyChoice) -> Result<Self> {
        if let KeyChoice::At(rows) = &mut choice {
            rows.sort_unstable();
            rows.dedup();
        }
        let none = match &choice {
            KeyChoice::None => true,
            KeyChoice::Heaviest(count) => *count == 0,
            KeyChoice::At(rows) => rows.is_empty(),
        };
        self.exact = if none { KeyChoice::None } else { choice };
        if !none {
            self.check_softmax(
                "exact keys beside a map that does not estimate the softmax kernel with one lengthscale for all coordinates",
            )?;
        }
        Ok(self.prepared())
    }

    /// Refuses maps that have no exact weights of one lengthscale.
    pub(in super::super) fn check_softmax(&self, what: &'static str) -> Result<()> {
        match (0..self.maps.len()).all(|head| self.inverse(head).is_some()) {
            true => Ok(()),
            false => Err(Error::Unsupported { what }),
        }
    }

    /// 1/ℓ of a head's map, if that estimates the softmax kernel, truncated or not.
    pub(in super::super) fn inverse(&self, head: usize) -> Option<f64> {
        meant_lengthscale(&self.maps[head % self.maps.len()]).map(f64::recip)
    }

    /// 1/ℓ of a head's map, if some keys get exact weights.
    pub(in super::super) fn exact_inverse(&self, head: usize) -> Option<f64> {
        if self.exact == KeyChoice::None { None } else { self.inverse(head) }
    }

    /// Runs a job, in which the exact keys are masked for the features and for neighbours.
    pub(in super::super) fn with_exact<A>(
        &self,
        setup: Setup<'_, T>,
        job: Job<'_, T>,
        run: impl FnOnce(Setup<'_, T>, Job<'_, T>) -> A,
    ) -> A {
        match self.exact_inverse(job.head) {
            None => self.with_near(setup, None, job, run),
            Some(inverse) => {
                let exact = ExactKeys::new(&self.exact, (&self.reading, inverse), &job);
                let rest = exact.rest(&job.keys, 0);
                let mask = rest.as_ref().map(|rest| rest.view()).or(job.keys.mask);
                self.with_near(setup, Some(&exact), job.masked(mask), run)
            }
        }
    }

    /// Runs a job with the neighbours of its queries.
    fn with_near<A>(
        &self,
        setup: Setup<'_, T>,
        exact: Option<&ExactKeys<T>>,
        job: Job<'_, T>,
        run: impl FnOnce(Setup<'_, T>, Job<'_, T>) -> A,
    ) -> A {
        let near = self.near(job.head, setup.causal);
        let near = near.map(|near| Neighbours::new(near, job.keys.reborrow(), 0));
        run(setup.beside(exact, near.as_ref()), job)
    }

    /// Refuses a choice of keys that depends on later tokens.
    pub(in super::super) fn check_causal(&self) -> Result<()> {
        match &self.exact {
            KeyChoice::Heaviest(_) => Err(Error::Unsupported {
                what: "causal attention with the heaviest keys, which later tokens choose: see Attention::with_keys_exact",
            }),
            _ => Ok(()),
        }
    }
}

/// The exact keys of a sequence.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ExactKeys<T> {
    /// Their rows, ascending.
    rows: Vec<usize>,
    tokens: KeyRows<T>,
    /// The same, packed; places are those among these keys.
    blocks: Vec<KeyBlock<T>>,
}

impl<T: Real> ExactKeys<T> {
    /// The [chosen](KeyChoice::rows) keys of a job.
    pub fn new(choice: &KeyChoice, (reading, inverse): (&Reading, f64), job: &Job<'_, T>) -> Self {
        let mut exact = ExactKeys::default();
        let rows = choice.rows((reading, inverse), job);
        exact.take(&rows, &reading.of_pairs(inverse), job.keys.reborrow(), 0);
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

    /// Their rows, ascending.
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
    let all: usize = job.members.iter().map(|member| member.queries.nrows()).sum();
    let of = |x: Numbers<'_, T>| numeric::matrix_of(x.nrows(), x.ncols(), scaled(reading, x, inverse));
    let (asked, keys) = (spread(all, SAMPLE), of(job.keys.keys));
    let (mut totals, mut first) = (Array1::zeros(keys.nrows()), 0);
    for member in &job.members {
        let end = first + member.queries.nrows();
        let own: Vec<usize> = asked.iter().filter(|i| (first..end).contains(i)).map(|i| i - first).collect();
        first = end;
        let queries = of(Numbers::Own(member.queries.select(&own).view()));
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

/// ℓ of a map that estimates the softmax kernel, truncated or not, if it is the same for all coordinates.
pub(in super::super) fn meant_lengthscale<T: Real>(map: &Map<T>) -> Option<f64> {
    let intended = || intended_lengthscale(&map.recipe()?)?.isotropic();
    softmax_lengthscale(map).or_else(intended)
}

/// The lengthscale of the softmax kernel that a map estimates, or would without truncation.
pub(in super::super) fn intended_lengthscale(recipe: &Recipe) -> Option<Lengthscale> {
    match recipe {
        Recipe::Plain(plain) if plain.matrix.is_none() => match &plain.target {
            Target::Softmax(softmax) => Some(softmax.lengthscale().clone()),
            _ => None,
        },
        // Of what a map is made of the last part is a base.
        composite => intended_lengthscale(composite.children().last()?),
    }
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
            // Those that count are here, and no others.
            let all = (0..exact.rows.len()).all(|j| exact.tokens.run().sees(j));
            reading.into_iter().for_each(|reading| exact.pack(reading));
            all.then_some(exact)
        }
    }
}
