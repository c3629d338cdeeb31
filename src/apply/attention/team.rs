//! [`Team`]: threads that share the chunks of a segment, so that one head keeps all of them busy.
//!
//! Each chunk's keys are summed up on their own; prefix sums over chunks then give the sums over all keys before each of them, so
//! no key is read twice. Where a chunk needs more than matrix products, one thread computes the sums before each chunk, in
//! order, and threads share the outputs again.

use std::ops::Range;

use ndarray::{ArrayViewMut2, Axis};

use super::chunk::Chunk;
use super::drive::{Places, Summand, add_chunks, cuts, read_keys};
use super::element::Numbers;
use super::heads::{Job, KeyRun};
use super::setup::{CHUNK, SEGMENT, Setup};
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
    queries: Numbers<'a, T>,
    out: ArrayViewMut2<'a, T>,
    /// Batch, head and row of the first of them.
    place: [usize; 3],
    /// How many keys of the sequence the first of them sees.
    sees_of_all: usize,
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
        let [b, h, first] = self.place;
        worker.read_queries(setup, self.queries);
        let (queries, out) = (0..self.queries.nrows(), self.out.view_mut());
        let report = &mut |i| places.push([b, h, first + i]);
        worker.answer(setup, sight, Asked { queries, sees: 1, sees_of_all: self.sees_of_all, out, report })
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

    /// The outputs of the queries of a segment, which see `state` and the keys up to their own row; then adds the keys to
    /// the state.
    pub fn causal(
        &mut self,
        setup: Setup<'_, T>,
        job: &mut Job<'_, T>,
        state: &mut WeightedSums<T>,
        segment: Range<usize>,
    ) -> Places {
        let summed = self.sum(setup, job.keys, state, &segment);
        let places = if summed { self.answers(setup, job, &segment) } else { None };
        let places = places.unwrap_or_else(|| self.answers_one_by_one(setup, job, state, segment));
        state.merge(&self.last);
        places
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
        job: &mut Job<'_, T>,
        segment: &Range<usize>,
    ) -> Option<Places> {
        let all = self.workers.map(
            self.chunks.iter().zip(questions(job, segment)),
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
        job: &mut Job<'_, T>,
        before: &WeightedSums<T>,
        segment: Range<usize>,
    ) -> Places {
        let (keys, mut seen) = (job.keys, Vec::new());
        self.walk(setup, keys, segment.clone(), |last| seen.push(last.clone()));
        let chunks = self.chunks.iter_mut().zip(questions(job, &segment));
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

/// The queries of a segment, chunk by chunk.
fn questions<'b, T: Real>(job: &'b mut Job<'_, T>, segment: &Range<usize>) -> Vec<Questions<'b, T>> {
    let mut chunks: Vec<Questions<'b, T>> = cuts(segment.clone(), CHUNK).map(|_| Vec::new()).collect();
    for member in &mut job.members {
        let [b, h, first] = member.place;
        let mut out = member.out.slice_axis_mut(Axis(0), segment.clone().into());
        for (chunk, run) in chunks.iter_mut().zip(cuts(segment.clone(), CHUNK)) {
            let (own, rest) = out.split_at(Axis(0), run.len());
            let (place, sees_of_all) = ([b, h, first + run.start], run.start + 1);
            chunk.push(Question {
                queries: member.queries.rows(run).reborrow(),
                out: own,
                place,
                sees_of_all,
            });
            out = rest;
        }
    }
    chunks
}
