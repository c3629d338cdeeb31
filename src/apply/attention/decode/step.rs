//! [`CausalState::step`]: the next token of each sequence.

use ndarray::{Array3, ArrayRef3, ArrayView2, Axis, CowArray, Ix2, Ix3};

use super::super::features::Setup;
use super::super::input::{Attended, KeyRun, Numbers, QueryRun, TokenElement, check_multiple, check_shape};
use super::super::linear::Worker;
use super::head::{CausalPairs, Head};
use super::state::CausalState;
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::slice_of_mut;
use crate::once::once;
use crate::threads;
use crate::whole::all_or_none;

/// Multiplications of a step from which on threads share its heads.
pub(in super::super) const SHARED: usize = 1 << 20;

/// Queries of a step: `group` for each head of keys.
#[derive(Clone, Copy)]
struct Queries<'a, T> {
    rows: Numbers<'a, T>,
    group: usize,
}

impl<T: Real> CausalState<T> {
    /// Takes in the next token of each sequence and gives the outputs of its queries, which see it.
    ///
    /// Queries are \[batch, heads, d\], keys \[batch, heads of keys, d\] and values \[batch, heads of keys, d_v\]. The
    /// number of heads of queries is a multiple of the number of heads of keys. Arguments are references to arrays or
    /// to views with any strides: token t of an array \[batch, heads, length, d\] is `&q.slice(s![.., .., t, ..])`. A
    /// step is a [`push`](CausalState::push) and then a [`query`](CausalState::query).
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) or [`Multiple`](crate::Error::Multiple) if a size does not fit,
    /// [`Memory`](crate::Error::Memory) if there is no memory for the outputs; nothing has been taken in then.
    pub fn step<E: TokenElement<T>>(
        &mut self,
        queries: &ArrayRef3<E>,
        keys: &ArrayRef3<E>,
        values: &ArrayRef3<E>,
    ) -> Result<Attended<T, Ix3>> {
        self.check_step(queries, keys, values)?;
        Ok(self.take_step(queries, keys, values))
    }

    /// Refuses a step whose sizes do not fit, or for whose outputs there is no memory.
    pub(in super::super) fn check_step<E>(
        &self,
        queries: &ArrayRef3<E>,
        keys: &ArrayRef3<E>,
        values: &ArrayRef3<E>,
    ) -> Result<()> {
        self.check_tokens(keys, values)?;
        self.check_queries(queries).map(drop)
    }

    /// A step that was [checked](CausalState::check_step).
    pub(in super::super) fn take_step<E: TokenElement<T>>(
        &mut self,
        queries: &ArrayRef3<E>,
        keys: &ArrayRef3<E>,
        values: &ArrayRef3<E>,
    ) -> Attended<T, Ix3> {
        let group = queries.len_of(Axis(1)) / self.shape[1].max(1);
        let (queries, keys, values) = (rows(queries), rows(keys), rows(values));
        let tokens = KeyRun::new(E::numbers(keys.view()), E::numbers(values.view()));
        self.outputs(Some(tokens), Queries { rows: E::numbers(queries.view()), group })
    }

    /// Takes in the next token's keys, \[batch, heads of keys, d\], and values, \[batch, heads of keys, d_v\].
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a size does not fit; nothing has been taken in then.
    pub fn push<E: TokenElement<T>>(&mut self, keys: &ArrayRef3<E>, values: &ArrayRef3<E>) -> Result<()> {
        self.check_tokens(keys, values)?;
        let (keys, values) = (rows(keys), rows(values));
        let tokens = KeyRun::new(E::numbers(keys.view()), E::numbers(values.view()));
        self.advance(Some(tokens), None, &mut []);
        Ok(())
    }

    /// The outputs of queries, \[batch, heads, d\], that see all tokens so far. The number of heads is a multiple of
    /// the number of heads of keys.
    ///
    /// # Errors
    /// The errors of [`step`](CausalState::step).
    pub fn query<E: TokenElement<T>>(&mut self, queries: &ArrayRef3<E>) -> Result<Attended<T, Ix3>> {
        let group = self.check_queries(queries)?;
        Ok(self.outputs(None, Queries { rows: E::numbers(rows(queries).view()), group }))
    }

    fn check_tokens<E>(&self, keys: &ArrayRef3<E>, values: &ArrayRef3<E>) -> Result<()> {
        let [batch, heads, d_v] = self.shape;
        check_shape(
            ["the batch size of the keys", "the number of heads of the keys", "the dimension of the keys"],
            keys.shape(),
            [batch, heads, self.dim()],
        )?;
        check_shape(
            [
                "the batch size of the values",
                "the number of heads of the values",
                "the dimension of the values",
            ],
            values.shape(),
            [batch, heads, d_v],
        )
    }

    /// Queries for each head of keys.
    fn check_queries<E>(&self, queries: &ArrayRef3<E>) -> Result<usize> {
        let [batch, heads, d_v] = self.shape;
        let count = queries.len_of(Axis(1));
        check_multiple(heads, count)?;
        check_shape(
            [
                "the batch size of the queries",
                "the number of heads of the queries",
                "the dimension of the queries",
            ],
            queries.shape(),
            [batch, count, self.dim()],
        )?;
        // Queries whose rows do not follow each other are copied.
        let each = d_v.saturating_add(self.dim()).saturating_mul(size_of::<T>());
        check_memory("outputs", batch.max(1).saturating_mul(count), each)?;
        Ok(count / heads.max(1))
    }

    /// Takes in a token for each head, if there are tokens, and gives the outputs of queries.
    #[inline(never)]
    fn outputs(&mut self, tokens: Option<KeyRun<'_, T>>, queries: Queries<'_, T>) -> Attended<T, Ix3> {
        let [batch, heads, d_v] = self.shape;
        let count = heads * queries.group;
        let mut output = Array3::zeros((batch, count, d_v));
        let rows = self.advance(tokens, Some(queries), slice_of_mut(&mut output));
        let place = |row: usize| [row / count, row % count, 0];
        Attended::new(output, rows.into_iter().map(place).collect())
    }

    /// Takes in a token for each head, if there are tokens, and writes the outputs of queries, if there are any. Gives the rows whose
    /// normaliser is not positive, in order.
    #[inline(never)]
    fn advance(
        &mut self,
        tokens: Option<KeyRun<'_, T>>,
        queries: Option<Queries<'_, T>>,
        out: &mut [T],
    ) -> Vec<usize> {
        let own = self.attention.is_own();
        all_or_none(self, own, |state| state.advance_heads(tokens, queries, out))
    }

    fn advance_heads(
        &mut self,
        tokens: Option<KeyRun<'_, T>>,
        queries: Option<Queries<'_, T>>,
        out: &mut [T],
    ) -> Vec<usize> {
        let group = queries.map_or(0, |queries| queries.group);
        let (step, of_maps, [_, all, d_v]) = (self.share(group), self.run(), self.shape);
        let (attention, parts) = (&self.attention, self.heads.chunks_mut(step));
        self.workers.resize_with(self.workers.len().max(parts.len()), Worker::default);
        let mut outs = out.chunks_mut((step * group * d_v).max(1));
        let outs = std::iter::repeat_with(|| outs.next().unwrap_or_default());
        let parts = parts.zip(&mut self.workers).zip(outs);
        let rows = threads::map(parts.enumerate(), |(part, ((heads, worker), mut out))| {
            let mut rows = Vec::new();
            for (run, heads) in heads.chunks_mut(of_maps).enumerate() {
                let (first, count) = (part * step + run * of_maps, heads.len());
                let setup = attention.setup(first % all);
                let pairs = attention.causal_pairs(setup.of_pairs);
                if let Some(tokens) = tokens {
                    push(setup, pairs, heads, tokens.rows(first..first + count), worker);
                }
                if let Some(queries) = queries {
                    let own = queries.rows.rows(first * group..(first + count) * group);
                    worker.read_queries(setup, QueryRun::new(own, [0; 3]));
                    let (own, rest) = out.split_at_mut(count * group * d_v);
                    let lost = answers(setup, pairs, heads, worker, own);
                    rows.extend(lost.into_iter().map(|i| first * group + i));
                    out = rest;
                }
            }
            rows
        });
        rows.concat()
    }

    /// Heads that a thread takes, for so many queries each: all if they are not worth another thread.
    fn share(&self, group: usize) -> usize {
        self.heads.len().div_ceil(if self.is_worth_threads(group) { threads::count() } else { 1 }).max(1)
    }

    /// Whether a step with so many queries of each head is worth more threads than one.
    fn is_worth_threads(&self, group: usize) -> bool {
        self.multiplications(group) >= SHARED
    }

    /// About how many multiplications a step with so many queries of each head takes.
    pub(in super::super) fn multiplications(&self, group: usize) -> usize {
        let attention = &self.attention;
        let width = attention.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let exact = self.longest().min(attention.window.before).saturating_add(attention.exact.count());
        let of_head = (group + 1).saturating_mul(width).saturating_add(group.saturating_mul(exact));
        self.heads.len().saturating_mul(of_head).saturating_mul(self.dim() + self.shape[2])
    }

    /// Heads next to each other that share a map.
    fn run(&self) -> usize {
        if self.attention.maps.len() == 1 { self.heads.len().max(1) } else { 1 }
    }
}

/// Takes in a token for each head of some that share a map; those that leave windows, in all heads at once, are summed up.
fn push<T: Real>(
    setup: Setup<'_, T>,
    pairs: CausalPairs<'_>,
    heads: &mut [Head<T>],
    tokens: KeyRun<'_, T>,
    worker: &mut Worker<T>,
) {
    heads.iter_mut().enumerate().for_each(|(i, head)| head.see(&tokens, i));
    if pairs.are_none() {
        worker.read_keys(setup, tokens);
        for (i, head) in heads.iter_mut().enumerate() {
            head.sequence.push(setup, i, tokens, worker);
        }
        return;
    }
    let (mut leaving, mut whose) = std::mem::take(&mut worker.leaving);
    leaving.clear();
    whose.clear();
    for (i, head) in heads.iter_mut().enumerate() {
        if head.push(pairs, tokens.rows(i..i + 1), &mut leaving) {
            whose.push(i);
        }
    }
    if !whose.is_empty() {
        worker.read_keys(setup, leaving.run());
        for (row, i) in whose.iter().enumerate() {
            heads[*i].sequence.push(setup, row, leaving.run(), worker);
        }
    }
    worker.leaving = (leaving, whose);
}

/// Writes the outputs of as many queries of each head, which the worker has read; gives those whose normaliser is not positive.
fn answers<T: Real>(
    setup: Setup<'_, T>,
    pairs: CausalPairs<'_>,
    heads: &mut [Head<T>],
    worker: &mut Worker<T>,
    out: &mut [T],
) -> Vec<usize> {
    let mut lost = Vec::new();
    let queries = worker.queries();
    let (group, d_v) = (queries / heads.len().max(1), out.len() / queries.max(1));
    for (i, out) in out.chunks_exact_mut(d_v.max(1)).enumerate() {
        if i % group == 0 {
            worker.forget();
        }
        if !heads[i / group].answer(setup, pairs, i, worker, out) {
            lost.push(i);
        }
    }
    lost
}

/// All tokens, one after the other.
fn rows<E: Copy>(x: &ArrayRef3<E>) -> CowArray<'_, E, Ix2> {
    let (batch, heads, width) = x.dim();
    let rows = x.to_shape((batch * heads, width));
    assert!(rows.is_ok(), "a shape of as many elements");
    rows.unwrap_or_else(|_| CowArray::from(ArrayView2::from(&[[]; 0])))
}

once!(CausalState::<T>::outputs, CausalState::<T>::advance);
