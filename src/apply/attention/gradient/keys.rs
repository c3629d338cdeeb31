//! [`KeyPart`]: the gradients of keys and of their values, which read sums over queries.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, s};

use super::super::features::Setup;
use super::super::input::{KeyRun, Numbers, QueryRun, Window};
use super::super::linear::{Reader, Scan, Visible, read, read_prefixes};
use super::super::pairs::{Neighbours, Ring, See};
use super::pairs::pull_pairs;
use super::residuals::{Parameters, ResidualRows, Residuals, add_residuals, residuals};
use super::roles::{Keys, term_of};
use super::rows::{GradientRows, GradientTerm, TokenGradients};
use super::sink::GradientSink;
use crate::Real;
use crate::threads::Pool;

/// The part of one head of queries in the gradients of keys, which read sums over these queries.
pub(super) struct KeyPart<'s, 'a, T> {
    /// How queries read keys.
    pub setup: Setup<'s, T>,
    pub keys: KeyRun<'a, T>,
    /// The queries as they are summed up.
    pub queries: KeyRun<'a, T>,
    pub threads: usize,
}

/// The order in which keys read queries.
#[derive(Clone, Copy)]
enum Order {
    Forwards,
    /// From the last to the first.
    Backwards,
}

impl<T: Real> KeyPart<'_, '_, T> {
    /// Adds the gradients through features. The estimate of key j is in the outputs of queries i ≥ j + before and, not causally, of
    /// queries i < j − after.
    pub fn through_features(
        &self,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        let Window { before, after } = self.setup.window();
        let (queries, keys) = (self.queries.len(), self.keys.len());
        if !self.setup.causal && self.setup.near.is_none() {
            return self.through_visible(None, Order::Forwards, sums, parameters);
        }
        let last = Visible { ahead: queries + 1, behind: keys.saturating_add(before) };
        self.through_visible(Some(last), Order::Backwards, sums, parameters);
        if !self.setup.causal {
            let first = Visible { ahead: 0, behind: after };
            self.through_visible(Some(first), Order::Forwards, sums, parameters);
        }
    }

    /// Adds the gradients through features of the queries that are visible to keys in an order, or of all queries.
    fn through_visible(
        &self,
        visible: Option<Visible>,
        order: Order,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        let setup = Setup { swapped: true, ..self.setup.beside(None, None) };
        self.with_residuals(setup.program.width(), parameters, |residuals| {
            sums.add(|out| {
                let (keys, queries) = (self.keys.reborrow(), self.queries.reborrow());
                let (keys, queries, out, residuals) = match order {
                    Order::Forwards => (keys, queries, out, residuals.as_mut().map(Residuals::all)),
                    Order::Backwards => {
                        let out = out.map(|rows| rows.slice_move(s![..;-1, ..]));
                        let residuals = residuals.as_mut().map(Residuals::reversed);
                        (keys.reversed(), queries.reversed(), out, residuals)
                    }
                };
                let pool = Pool::default();
                let gradients = key_gradients(keys.reborrow(), out, residuals);
                let reader = Reader {
                    queries: QueryRun { kept: keys.kept, ..QueryRun::new(keys.keys.reborrow(), [0; 3]) },
                    others: None,
                    sink: Box::new(GradientSink::new(gradients, setup.normalised, &pool)),
                };
                let scan = |visible| Scan { keys: queries.reborrow(), readers: vec![reader], visible };
                match visible {
                    Some(visible) => read_prefixes(setup, scan(visible), self.threads),
                    None => read(setup, scan(Visible::CAUSAL), self.threads),
                };
            });
        });
    }

    /// Lets `write` leave residuals of the keys, and adds these to the gradients of parameters.
    fn with_residuals(
        &self,
        features: usize,
        parameters: &mut Option<&mut Parameters<'_, T>>,
        write: impl FnOnce(&mut Option<Residuals<T>>),
    ) {
        let mut own = residuals(&self.keys.keys, features, parameters);
        write(&mut own);
        add_residuals(Setup { swapped: true, ..self.setup }, self.keys.keys, &own, parameters);
    }

    /// Adds the gradients through the weights of neighbours.
    pub fn through_neighbours(
        &self,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        if self.setup.near.is_none() {
            return;
        }
        let (Window { before, after }, [reading, read]) = (self.setup.window(), self.setup.of_pairs);
        let queries = Neighbours::new((self.setup.window(), read), self.queries, 0);
        let visit = |ring: &mut Ring<T>, rows: Range<usize>, see: &mut See<'_, T>| {
            let sees = |i: usize| {
                let position = rows.start + i;
                position.saturating_sub(after)..position.saturating_add(before)
            };
            queries.visit(ring, rows.len(), &sees, see);
        };
        self.with_residuals(0, parameters, |residuals| {
            sums.add(|out| {
                let residuals = residuals.as_mut().map(Residuals::all);
                let gradients = key_gradients(self.keys.reborrow(), out, residuals);
                pull_pairs((&reading, false), gradients, visit);
            });
        });
    }

    /// Adds the gradients through the weights of keys that are exact for all queries.
    pub fn through_exact_keys(
        &self,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Option<&mut Parameters<'_, T>>,
    ) {
        let Some(exact) = self.setup.exact.filter(|exact| !exact.rows().is_empty()) else { return };
        let (rows, tokens, [reading, read]) = (exact.rows(), exact.tokens(), self.setup.of_pairs);
        let queries = Neighbours::new((Window::default(), read), self.queries, 0);
        let mut own =
            [tokens.keys.ncols(), tokens.values.ncols()].map(|dim| Array2::zeros((rows.len(), dim)));
        let mut left = residuals(&tokens.keys, 0, parameters);
        let out = own.each_mut().map(|own| own.view_mut());
        let gradients = key_gradients(tokens.reborrow(), out, left.as_mut().map(Residuals::all));
        pull_pairs((&reading, false), gradients, |ring: &mut Ring<T>, run: Range<usize>, see| {
            let first = |i: usize| if self.setup.causal { rows[run.start + i] } else { 0 };
            queries.visit(ring, run.len(), &|i| first(i)..usize::MAX, see);
        });
        add_residuals(self.setup, tokens.keys, &left, parameters);
        for (e, row) in rows.iter().enumerate() {
            sums.of_keys.row_mut(*row).zip_mut_with(&own[0].row(e), |sum, v| *sum += *v);
            sums.of_values.row_mut(*row).zip_mut_with(&own[1].row(e), |sum, v| *sum += *v);
        }
    }
}

/// Gradients of keys and of values, to which one part after the other is added.
pub(super) struct KeySums<'a, T> {
    pub of_keys: ArrayViewMut2<'a, T>,
    pub of_values: ArrayViewMut2<'a, T>,
    /// Whether all are 0 yet.
    pub fresh: bool,
}

impl<T: Real> KeySums<'_, T> {
    /// Adds a part that `write` writes over zeros; the first part is written in place.
    pub fn add(&mut self, write: impl FnOnce([ArrayViewMut2<'_, T>; 2])) {
        let KeySums { of_keys, of_values, fresh } = self;
        if std::mem::take(fresh) {
            return write([of_keys.view_mut(), of_values.view_mut()]);
        }
        let mut part = [of_keys.dim(), of_values.dim()].map(Array2::zeros);
        write(part.each_mut().map(|part| part.view_mut()));
        *of_keys += &part[0];
        *of_values += &part[1];
    }
}

/// Queries as keys that are summed up: with the features φ/N and the values \[g, −g·o\]. Values are multiplied by what the scale of φ/N
/// has lost of N to rounding.
pub(super) struct Summed<'a, T> {
    queries: QueryRun<'a, T>,
    values: Array2<T>,
    /// Whether queries have an output.
    mask: Array1<bool>,
    summaries: &'a Array2<f64>,
}

impl<'a, T: Real> Summed<'a, T> {
    pub fn new(queries: QueryRun<'a, T>, upstream: ArrayView2<'_, T>, summaries: &'a Array2<f64>) -> Self {
        let targets = upstream.ncols();
        let mut values = Array2::<T>::zeros((upstream.nrows(), targets + 1));
        values.slice_mut(s![.., ..targets]).assign(&upstream);
        let mut mask = Array1::from_elem(upstream.nrows(), false);
        for (i, summary) in summaries.rows().into_iter().enumerate() {
            let Some(GradientTerm { weight, log, .. }) = term_of(summary) else { continue };
            mask[i] = true;
            values[[i, targets]] = T::narrow(weight);
            if log != 0.0 {
                let factor = log.exp();
                values.row_mut(i).mapv_inplace(|v| T::narrow(factor * v.widen()));
            }
        }
        Summed { queries, values, mask, summaries }
    }

    /// The queries in place of keys.
    pub fn run(&self) -> KeyRun<'_, T> {
        let (mask, divisors) = (Some(self.mask.view()), Some(self.summaries.slice(s![.., ..2])));
        let QueryRun { rows, kept, .. } = self.queries.reborrow();
        let run = KeyRun::new(rows, Numbers::Own(self.values.view()));
        KeyRun { mask, divisors, kept: kept.without_estimates(), ..run }
    }
}

/// Where the gradients with respect to keys and their values go.
pub(super) fn key_gradients<'a, T: Real>(
    keys: KeyRun<'a, T>,
    [gradients, of_values]: [ArrayViewMut2<'a, T>; 2],
    residuals: Option<ResidualRows<'a, T>>,
) -> TokenGradients<'a, T, Keys<'a, T>> {
    let role = Keys { values: keys.values, mask: keys.mask, of_values };
    TokenGradients { rows: GradientRows { tokens: keys.keys, gradients, residuals }, role }
}
