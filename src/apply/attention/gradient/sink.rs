//! [`GradientSink`]: the sink of the backward pass.

use super::super::features::{LogBuffers, Setup, Tokens};
use super::super::input::{LogScale, SplitRows, Undivided};
use super::super::linear::{BoxedSink, ChunkRead, Sink};
use super::cotangents::Cotangents;
use super::roles::Role;
use super::rows::TokenGradients;
use crate::Real;
use crate::engine::Scratch;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::{Loan, Pool};

/// Makes gradients of what tokens read.
pub(super) struct GradientSink<'a, T: Real, R> {
    tokens: TokenGradients<'a, T, R>,
    /// Whether outputs are divided by their normaliser.
    normalised: bool,
    /// Buffers of sinks that are done.
    pool: &'a Pool<Cotangents<T>>,
    cotangents: Option<Loan<'a, Cotangents<T>>>,
}

impl<'a, T: Real, R> GradientSink<'a, T, R> {
    pub fn new(tokens: TokenGradients<'a, T, R>, normalised: bool, pool: &'a Pool<Cotangents<T>>) -> Self {
        GradientSink { tokens, normalised, pool, cotangents: None }
    }
}

impl<T: Real, R: Role<T>> GradientSink<'_, T, R> {
    fn take_any<U: Real>(&mut self, i: usize, sum: Undivided<'_, U>, of_features: LogScale) -> bool {
        if let Some(loan) = &mut self.cotangents {
            loan.buffer.take(self.normalised, (sum, of_features), i, &mut self.tokens);
        }
        true
    }
}

impl<T: Real, R: Role<T>> Sink<T> for GradientSink<'_, T, R> {
    fn targets(&self) -> usize {
        self.tokens.role.targets()
    }

    fn begin(&mut self, count: usize) {
        let (pool, targets) = (self.pool, self.targets());
        self.cotangents.get_or_insert_with(|| pool.lend()).buffer.begin(count, targets);
    }

    /// Also features that are all 0 have slopes.
    fn scale_of(&self, queries: &Tokens<T>, i: usize) -> f64 {
        queries.gradient_scale(i)
    }

    fn take(&mut self, i: usize, sum: Undivided<'_, T>, of_features: LogScale) -> bool {
        self.take_any(i, sum, of_features)
    }

    fn take_wide(&mut self, i: usize, sum: Undivided<'_, f64>, of_features: LogScale) -> bool {
        self.take_any(i, sum, of_features)
    }

    fn see_chunk(&mut self, setup: Setup<'_, T>, read: ChunkRead<'_, T>, scratch: &mut Scratch<T>) {
        if let Some(loan) = &mut self.cotangents {
            loan.buffer.pull_from_chunk(setup, read, &mut self.tokens.rows, scratch);
        }
    }

    fn see_sums(
        &mut self,
        setup: Setup<'_, T>,
        sums: &RunSums<T>,
        queries: &Tokens<T>,
        scratch: &mut Scratch<T>,
    ) {
        if let Some(loan) = &mut self.cotangents {
            loan.buffer.pull_from_sums(setup, sums, queries, &mut self.tokens.rows, scratch);
        }
    }

    fn see_logarithms(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        queries: (&Tokens<T>, usize),
        i: usize,
        buffers: &mut LogBuffers<T>,
    ) {
        if let Some(loan) = &mut self.cotangents {
            loan.buffer.pull_from_logarithms(setup, state, queries, i, &mut self.tokens.rows, buffers);
        }
    }

    fn split<'b>(self: Box<Self>, at: usize) -> (BoxedSink<'b, T>, BoxedSink<'b, T>)
    where
        Self: 'b,
    {
        let GradientSink { tokens, normalised, pool, .. } = *self;
        let (first, rest) = tokens.split_rows(at);
        (
            Box::new(GradientSink::new(first, normalised, pool)),
            Box::new(GradientSink::new(rest, normalised, pool)),
        )
    }
}
