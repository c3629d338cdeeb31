//! [`Backward`]: the gradients of a job, part by part: of queries through features and through pairs with exact weights, and then of keys.

use ndarray::{Array2, ArrayView2, ArrayView4, ArrayViewMut2, s};

use super::super::features::Setup;
use super::super::input::{Heads, Job, QueryRun, TokenElement};
use super::super::linear::{Reader, Scan, Visible, estimates_after, read, read_suffixes};
use super::super::pairs::Ring;
use super::cotangents::Cotangents;
use super::gradients::Gradients;
use super::kept_job::KeptJob;
use super::keys::{KeyPart, KeySums, Summed};
use super::pairs::pull_pairs;
use super::residuals::{Parameters, Residuals, add_residuals, residuals};
use super::roles::{KnownQueries, NewQueries, summaries};
use super::rows::{GradientRows, TokenGradients};
use super::sink::GradientSink;
use crate::Real;
use crate::threads::Pool;

/// A job with the gradients of its outputs, and where the gradients of its tokens go.
pub(super) struct Backward<'j, 'a, T> {
    pub job: Job<'j, T>,
    /// Gradients with respect to the outputs of each head of queries.
    pub upstream: Vec<ArrayView2<'a, T>>,
    /// Gradients with respect to the queries of each head.
    pub of_queries: Vec<ArrayViewMut2<'a, T>>,
    pub of_keys: ArrayViewMut2<'a, T>,
    pub of_values: ArrayViewMut2<'a, T>,
}

impl<'a, T: Real> Backward<'a, 'a, T> {
    /// The jobs of all heads, in order, with what is kept of each, if anything is.
    pub fn jobs<E: TokenElement<T>>(
        heads: &'a Heads<'_, E>,
        output_gradients: ArrayView4<'a, T>,
        kept: &'a [KeptJob<T>],
        Gradients { queries, keys, values }: &'a mut Gradients<T>,
    ) -> Vec<Self> {
        let [of_keys, of_values] = [keys, values].map(|all| heads.parts_of_keys(all.view_mut()));
        let of_queries = heads.parts_of_queries(queries.view_mut());
        let upstream = |queries: &QueryRun<'a, T>| {
            let ([b, h, first], count) = (queries.origin, queries.len());
            output_gradients.slice_move(s![b, h, first..first + count, ..])
        };
        let parts = of_queries.into_iter().zip(of_keys.into_iter().zip(of_values));
        let jobs = heads.jobs().into_iter().zip(parts);
        jobs.enumerate()
            .map(|(i, (mut job, (of_queries, (of_keys, of_values))))| {
                if let Some(kept) = kept.get(i) {
                    kept.lend(&mut job, true);
                }
                let upstream = job.queries.iter().map(upstream).collect();
                Backward { job, upstream, of_queries, of_keys, of_values }
            })
            .collect()
    }
}

impl<T: Real> Backward<'_, '_, T> {
    /// Writes the gradients through linear attention, with so many threads. Gives what keys need of each query, for each head.
    pub fn run(
        mut self,
        setup: Setup<'_, T>,
        threads: usize,
        mut parameters: Option<&mut Parameters<'_, T>>,
    ) -> Vec<Array2<f64>> {
        let summaries = self.pull_queries(setup, threads, &mut parameters);
        let Backward { job: Job { keys, queries, .. }, upstream, of_keys, of_values, .. } = self;
        let mut sums = KeySums { of_keys, of_values, fresh: true };
        for ((queries, upstream), summaries) in queries.into_iter().zip(upstream).zip(&summaries) {
            let summed = Summed::new(queries.reborrow(), upstream, summaries);
            let part = KeyPart { setup, keys: keys.reborrow(), queries: summed.run(), threads };
            part.through_features(&mut sums, &mut parameters);
            part.through_neighbours(&mut sums, &mut parameters);
            part.through_exact_keys(&mut sums, &mut parameters);
        }
        summaries
    }

    /// Writes the gradients of queries; gives what keys need of each query, for each head.
    fn pull_queries(
        &mut self,
        setup: Setup<'_, T>,
        threads: usize,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) -> Vec<Array2<f64>> {
        let mut summaries: Vec<Array2<f64>> =
            self.job.queries.iter().map(|queries| summaries(queries.len())).collect();
        let mut after = estimates_after(setup, &self.job, threads);
        let mut others = after.iter_mut().flatten().map(|kept| kept.view_mut());
        let mut own = self.residuals_of_queries(setup.program.width(), parameters);
        let pool: Pool<Cotangents<T>> = Pool::default();
        let heads = self.job.queries.iter().zip(&mut self.of_queries).zip(&self.upstream);
        let heads = heads.zip(&mut summaries).zip(&mut own);
        let readers = heads.map(|((((queries, gradients), upstream), summaries), residuals)| {
            let role = NewQueries { upstream: upstream.view(), summaries: summaries.view_mut() };
            let rows = GradientRows {
                tokens: queries.rows.reborrow(),
                gradients: gradients.view_mut(),
                residuals: residuals.as_mut().map(Residuals::all),
            };
            let tokens = TokenGradients { rows, role };
            let sink = Box::new(GradientSink::new(tokens, setup.normalised, &pool));
            Reader { queries: queries.reborrow(), others: others.next(), sink }
        });
        let visible = Visible::before_window(setup.window().before);
        let scan = Scan { keys: self.job.keys.reborrow(), readers: readers.collect(), visible };
        read(setup, scan, threads);
        self.add_residuals(setup, &own, parameters);
        if after.is_some() {
            self.pull_queries_after(setup, &summaries, threads, parameters);
        }
        if setup.has_pairs() {
            self.pull_queries_of_pairs(setup, &summaries, parameters);
        }
        summaries
    }

    /// Where residuals of the queries of each head go.
    fn residuals_of_queries(
        &self,
        features: usize,
        parameters: &Option<&mut Parameters<'_, T>>,
    ) -> Vec<Option<Residuals<T>>> {
        self.job.queries.iter().map(|queries| residuals(&queries.rows, features, parameters)).collect()
    }

    fn add_residuals(
        &self,
        setup: Setup<'_, T>,
        residuals: &[Option<Residuals<T>>],
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        for (queries, residuals) in self.job.queries.iter().zip(residuals) {
            add_residuals(setup, queries.rows, residuals, parameters);
        }
    }

    /// Adds the part of the keys after windows, by their features.
    fn pull_queries_after(
        &mut self,
        setup: Setup<'_, T>,
        summaries: &[Array2<f64>],
        threads: usize,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        let mut own = self.residuals_of_queries(setup.program.width(), parameters);
        let mut parts: Vec<Array2<T>> =
            self.of_queries.iter().map(|gradients| Array2::zeros(gradients.dim())).collect();
        let pool: Pool<Cotangents<T>> = Pool::default();
        let heads = self.job.queries.iter().zip(&self.upstream).zip(summaries).zip(&mut parts).zip(&mut own);
        let readers = heads.map(|((((queries, upstream), summaries), part), residuals)| {
            let backwards = s![..;-1, ..];
            let role =
                KnownQueries { upstream: upstream.slice(backwards), summaries: summaries.slice(backwards) };
            let queries = queries.reversed();
            let rows = GradientRows {
                tokens: queries.rows,
                gradients: part.slice_mut(backwards),
                residuals: residuals.as_mut().map(Residuals::reversed),
            };
            let tokens = TokenGradients { rows, role };
            let sink = Box::new(GradientSink::new(tokens, setup.normalised, &pool));
            Reader { queries, others: None, sink }
        });
        read_suffixes(setup, self.job.keys.reborrow(), readers.collect(), threads);
        self.add_residuals(setup, &own, parameters);
        self.of_queries.iter_mut().zip(&parts).for_each(|(gradients, part)| *gradients += part);
    }

    /// Adds the part of the pairs with exact weights.
    fn pull_queries_of_pairs(
        &mut self,
        setup: Setup<'_, T>,
        summaries: &[Array2<f64>],
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        let heads = self.job.queries.iter().zip(&mut self.of_queries).zip(&self.upstream).zip(summaries);
        for (((queries, gradients), upstream), summaries) in heads {
            let mut part = Array2::zeros(gradients.dim());
            let role = KnownQueries { upstream: upstream.view(), summaries: summaries.view() };
            let mut own = residuals(&queries.rows, 0, parameters);
            let rows = GradientRows {
                tokens: queries.rows.reborrow(),
                gradients: part.view_mut(),
                residuals: own.as_mut().map(Residuals::all),
            };
            let tokens = TokenGradients { rows, role };
            pull_pairs((&setup.of_pairs[0], setup.normalised), tokens, |ring: &mut Ring<T>, rows, see| {
                setup.visit_pairs(ring, rows.start, rows.len(), see);
            });
            add_residuals(setup, queries.rows, &own, parameters);
            *gradients += &part;
        }
    }
}
