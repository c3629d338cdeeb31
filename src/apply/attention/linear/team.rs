//! [`Team`]: threads that share the chunks of a segment, so that one head keeps all of them busy.
//!
//! Each chunk's keys are summed up on their own; prefix sums over chunks then give the sums over all keys before each of them, so
//! no key is read twice. Where a chunk needs more than matrix products, one thread computes the sums before each chunk, in
//! order, and threads share the outputs again.

use std::ops::Range;

use super::super::features::{Chunk, Setup};
use super::super::input::{CHUNK, KeyRun, Places, cuts};
use super::drive::{SEGMENT, Summand, add_chunks, read_keys};
use super::scan::{Asker, Scan};
use super::sight::{Asked, Logged, Rest, Sight};
use super::worker::Worker;
use crate::Real;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::Pool;

/// The buffers of some threads for the chunks of a segment.
pub(super) struct Team<T: Real> {
    /// The keys of each chunk.
    chunks: Vec<Chunk<T>>,
    workers: Pool<Worker<T>>,
    /// The sums over the keys of the segment.
    last: WeightedSums<T>,
}

/// The queries and outputs of a chunk, for each head that shares its keys.
type Questions<'a, T> = Vec<Question<'a, T>>;

/// Those of one head.
struct Question<'a, T> {
    asker: Asker<'a, T>,
    /// How many keys of the chunk the first of the queries sees.
    sees: usize,
}

impl<T: Real> Question<'_, T> {
    /// Answers it. False where `sight` does not suffice.
    fn answer(
        &mut self,
        setup: Setup<'_, T>,
        sight: Sight<'_, T>,
        worker: &mut Worker<T>,
        places: &mut Places,
    ) -> bool {
        let Question { asker, sees } = self;
        let Asker { queries, origin: [b, h, first], place, .. } = *asker;
        worker.read_queries(setup, queries);
        let report = &mut |i| places.push([b, h, first + i]);
        let count = queries.nrows();
        let asked = Asked { queries: 0..count, sees: *sees, place, out: asker.out.rows(0..count), report };
        worker.answer(setup, sight, asked)
    }
}

impl<T: Real> Team<T> {
    /// For sums of so many features and targets.
    pub fn new(features: usize, targets: usize) -> Self {
        let mut chunks = Vec::new();
        chunks.resize_with(SEGMENT / CHUNK, Chunk::default);
        Team { chunks, workers: Pool::default(), last: WeightedSums::new(features, targets) }
    }

    /// Adds the keys of a segment to a state.
    pub fn add_keys(
        &mut self,
        setup: Setup<'_, T>,
        keys: KeyRun<'_, T>,
        state: &mut WeightedSums<T>,
        segment: Range<usize>,
    ) {
        if !self.sum(setup, keys, state, &segment) {
            self.walk(setup, keys, segment, |_| {});
        }
        state.merge(&self.last);
    }

    /// The sums over the keys of the last segment.
    pub fn sums(&self) -> &WeightedSums<T> {
        &self.last
    }

    /// The outputs of the queries whose last key is in a segment, which see `state` and the keys up to that. Sums up the keys of the
    /// segment.
    pub fn answer(
        &mut self,
        setup: Setup<'_, T>,
        scan: &mut Scan<'_, T>,
        state: &WeightedSums<T>,
        segment: Range<usize>,
    ) -> Places {
        let summed = self.sum(setup, scan.keys, state, &segment);
        let places = if summed { self.answers(setup, scan, &segment) } else { None };
        places.unwrap_or_else(|| self.answers_one_by_one(setup, scan, state, segment))
    }

    /// Sums up the keys of a segment, chunk by chunk, and gives each chunk the sums over all keys before it. False where a key
    /// cannot be added by matrix products.
    fn sum(
        &mut self,
        setup: Setup<'_, T>,
        keys: KeyRun<'_, T>,
        before: &WeightedSums<T>,
        segment: &Range<usize>,
    ) -> bool {
        self.last.clear();
        let chunks = &mut self.chunks[..segment.len().div_ceil(CHUNK)];
        let runs = cuts(segment.clone(), CHUNK);
        self.workers.for_each(chunks.iter_mut().zip(runs), |worker, (chunk, run)| {
            read_keys(setup, keys.rows(run), worker, chunk);
            chunk.sum(&worker.tokens);
            chunk.pack(&worker.tokens);
        });
        let mut seen = before.has_seen();
        for chunk in &mut *chunks {
            chunk.seen_before = seen;
            if chunk.has_any(chunk.len()) {
                self.last.see();
                seen = true;
            }
        }
        let easy = chunks.iter().all(Chunk::is_easy);
        let mut parts: Vec<_> = chunks.iter_mut().map(Chunk::part_mut).collect();
        easy && before.prefixes(&mut self.last, &mut parts)
    }

    /// The outputs of the queries of a segment whose keys are summed up; `None` where one cannot be computed by matrix products.
    fn answers(
        &mut self,
        setup: Setup<'_, T>,
        scan: &mut Scan<'_, T>,
        segment: &Range<usize>,
    ) -> Option<Places> {
        let all = self.workers.map(
            self.chunks.iter().zip(questions(scan, segment)),
            |worker, (chunk, questions)| {
                let mut places = Places::new();
                let answer = |mut question: Question<'_, T>| {
                    let sight = Sight { chunk, before: chunk.part(), rest: None };
                    question.answer(setup, sight, worker, &mut places)
                };
                questions.into_iter().all(answer).then_some(places)
            },
        );
        all.into_iter().collect::<Option<Vec<Places>>>().map(|places| places.concat())
    }

    /// As [`answers`](Team::answers), for any keys and queries.
    #[cold]
    fn answers_one_by_one(
        &mut self,
        setup: Setup<'_, T>,
        scan: &mut Scan<'_, T>,
        before: &WeightedSums<T>,
        segment: Range<usize>,
    ) -> Places {
        let (keys, mut seen) = (scan.keys, Vec::new());
        self.walk(setup, keys, segment.clone(), |last| seen.push(last.clone()));
        let chunks = self.chunks.iter_mut().zip(questions(scan, &segment));
        let items = chunks.zip(seen.iter().zip(cuts(segment, CHUNK)));
        let of_chunk = |worker: &mut Worker<T>, ((chunk, questions), (since, run))| {
            answers_of_chunk(setup, (keys.rows(run), questions), [before, since], chunk, worker)
        };
        self.workers.map(items, of_chunk).concat()
    }

    /// Sums up a segment on one thread, and shows the sums before each chunk.
    #[cold]
    fn walk(
        &mut self,
        setup: Setup<'_, T>,
        keys: KeyRun<'_, T>,
        segment: Range<usize>,
        show: impl FnMut(&WeightedSums<T>),
    ) {
        self.last.clear();
        add_chunks(setup, keys.rows(segment), &mut Summand::default(), &mut self.last, show);
    }
}

/// The outputs of the queries of a chunk from its keys and the states before it.
fn answers_of_chunk<T: Real>(
    setup: Setup<'_, T>,
    (keys, questions): (KeyRun<'_, T>, Questions<'_, T>),
    past: [&WeightedSums<T>; 2],
    chunk: &mut Chunk<T>,
    worker: &mut Worker<T>,
) -> Places {
    read_keys(setup, keys, worker, chunk);
    chunk.pack(&worker.tokens);
    let (mut places, mut ready, mut logged) = (Places::new(), RunSums::default(), Logged::default());
    chunk.seen_before = past.iter().any(|state| state.has_seen());
    past[0].ready(past[1], &mut ready);
    let mut tokens = std::mem::take(&mut worker.tokens);
    for mut question in questions {
        let rest = Rest { tokens: &mut tokens, past, logged: &mut logged };
        let sight = Sight { chunk, before: &ready, rest: Some(rest) };
        question.answer(setup, sight, worker, &mut places);
    }
    worker.tokens = tokens;
    places
}

/// The queries whose last key is in a segment, chunk by chunk.
fn questions<'b, T: Real>(scan: &'b mut Scan<'_, T>, segment: &Range<usize>) -> Vec<Questions<'b, T>> {
    let runs: Vec<(Range<usize>, usize)> = cuts(segment.clone(), CHUNK)
        .map(|run| (scan.queries_of(&run), run.start))
        .map(|(queries, start)| (queries.clone(), scan.sees(queries.start, start)))
        .collect();
    let mut chunks: Vec<Questions<'b, T>> = runs.iter().map(|_| Vec::new()).collect();
    let all = scan.queries_of(segment);
    for asker in &mut scan.askers {
        let mut rest = asker.rows(all.clone());
        for (chunk, (queries, sees)) in chunks.iter_mut().zip(&runs) {
            let (own, later) = rest.split(queries.len());
            rest = later;
            if !queries.is_empty() {
                chunk.push(Question { asker: own, sees: *sees });
            }
        }
    }
    chunks
}
