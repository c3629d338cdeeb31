//! [`CausalState`]: causal attention token by token.

use ndarray::{Array3, ArrayRef, ArrayRef3, ArrayView2, Axis, CowArray, Ix2, Ix4};

use super::element::{Element, Numbers};
use super::exact_keys::KeyChoice;
use super::heads::{KeyRun, check_multiple};
use super::recent::Head;
use super::sequence::Sequence;
use super::setup::Setup;
use super::worker::Worker;
use super::{Attention, check_shape};
use crate::Real;
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::{matrix_view, slice_of_mut};
use crate::once::once;
use crate::threads;

/// Causal attention step by step: [`push`](CausalState::push) a key and a value for every head, then
/// [`query`](CausalState::query). Approximate, as [`Attention`] is, whose causal outputs these are, to the bit.
///
/// Of the tokens so far it keeps sums of O(m d_v) numbers for each head of keys, and the features of the last few tokens,
/// up to 64, whatever the length; with [neighbours](Attention::window) the keys and values of the window too. With the feature `serde` it can be stored, with its maps, and goes on to the bit.
///
/// # Cost
/// O(m (d + d_v)) for each head and token, and O(w (d + d_v)) with a window of w tokens.
///
/// # Example
/// ```
/// use ndarray::{Array3, Array4, s};
/// use random_features::apply::attention::{Attention, Heads};
/// use random_features::frequency::{Coupling, Orthogonal};
/// use random_features::Positive;
/// let omega = Orthogonal.draw(8, 32, 5)?;
/// let attention = Attention::new(Positive.softmax::<f64>(omega)?)?;
/// let token = |(_, h, i, k): (usize, usize, usize, usize)| ((2 * h + 3 * i + 5 * k) % 7) as f64 / 7.0;
/// let x = Array4::from_shape_fn((1, 2, 30, 8), token);
/// let whole = attention.causal(&Heads::new(&x, &x, &x)?)?.output;
///
/// let mut state = attention.state(1, 2, 8)?;
/// state.prefill(&x.slice(s![.., .., ..20, ..]), &x.slice(s![.., .., ..20, ..]))?; // the prompt
/// for i in 20..30 {
///     let token = x.slice(s![.., .., i, ..]);
///     state.push(&token, &token)?;
///     let out = state.query(&token)?.output;
///     assert!((&out - &whole.slice(s![.., .., i, ..])).iter().all(|error: &f64| error.abs() < 1e-12));
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Debug)]
pub struct CausalState<T: Real> {
    attention: Attention<T>,
    /// Batch, heads of keys and d_v.
    shape: [usize; 3],
    /// For each sequence and head of keys.
    heads: Vec<Head<T>>,
    /// One for each thread.
    workers: Vec<Worker<T>>,
}

impl<T: Real> Clone for CausalState<T> {
    #[inline(never)]
    fn clone(&self) -> Self {
        let (attention, heads) = (self.attention.clone(), self.heads.clone());
        CausalState { attention, shape: self.shape, heads, workers: Vec::new() }
    }
}

/// Multiplications of a step from which on threads share its heads.
const SHARED: usize = 1 << 20;

/// What a step of causal attention gives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step<T> {
    /// \[batch, heads, d_v\].
    pub output: Array3<T>,
    /// Batch and head of queries whose normaliser was not positive, in order; their output is 0.
    pub non_positive: Vec<[usize; 2]>,
}

impl<T: Real> Attention<T> {
    /// The state of causal attention before the first token, for so many sequences and heads of keys.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `d_v` is 0, [`Shape`](crate::Error::Shape) if there is a map for each of
    /// another number of heads, [`Unsupported`](crate::Error::Unsupported) with [exact
    /// keys](Attention::with_keys_exact), [`Memory`](crate::Error::Memory) if there is no memory for the state.
    #[inline(never)]
    pub fn state(&self, batch: usize, heads: usize, d_v: usize) -> Result<CausalState<T>> {
        check_positive("the dimension of the values", d_v)?;
        self.check_steps()?;
        if self.maps.len() > 1 {
            check_size(super::HEADS_WITH_MAPS, self.maps.len(), heads)?;
        }
        let width = self.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let bytes = Sequence::<T>::bytes(width, d_v).saturating_add(size_of::<Head<T>>());
        check_memory(
            "bytes of the state of causal attention",
            batch.saturating_mul(heads).max(1).saturating_mul(bytes),
            1,
        )?;
        let dims = [self.maps[0].input_dim(), d_v];
        let head = |i: usize| Head::new(self.setup(i % heads).program.width(), dims);
        let all = (0..batch * heads).map(head).collect();
        Ok(CausalState {
            attention: self.clone(),
            shape: [batch, heads, d_v],
            heads: all,
            workers: Vec::new(),
        })
    }
}

impl<T: Real> Attention<T> {
    /// Refuses keys that have exact weights, of which no sums are kept.
    fn check_steps(&self) -> Result<()> {
        match self.exact {
            KeyChoice::None => Ok(()),
            _ => Err(Error::Unsupported {
                what: "token-by-token state with exact keys: use causal on whole sequences, or attention without them",
            }),
        }
    }
}

impl<T: Real> CausalState<T> {
    /// The attention that this is the state of.
    pub fn attention(&self) -> &Attention<T> {
        &self.attention
    }

    /// The number of tokens so far.
    pub fn length(&self) -> usize {
        self.heads.first().map_or(0, Head::length)
    }

    /// Takes in the next token's keys, \[batch, heads of keys, d\], and values, \[batch, heads of keys, d_v\].
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a size does not fit; nothing has been taken in then.
    pub fn push<E: Element<T>>(&mut self, keys: &ArrayRef3<E>, values: &ArrayRef3<E>) -> Result<()> {
        let [batch, heads, d_v] = self.shape;
        check_shape(
            ["the batch size of the keys", "the number of heads of the keys", "the dimension of the keys"],
            keys.shape(),
            [batch, heads, self.input_dim()],
        )?;
        check_shape(
            [
                "the batch size of the values",
                "the number of heads of the values",
                "the dimension of the values",
            ],
            values.shape(),
            [batch, heads, d_v],
        )?;
        self.take_in(E::numbers(rows(keys).view()), E::numbers(rows(values).view()));
        Ok(())
    }

    /// Takes in a key and a value for each head.
    #[inline(never)]
    fn take_in(&mut self, keys: Numbers<'_, T>, values: Numbers<'_, T>) {
        let (step, of_maps, all) = (self.step(1), self.run(), self.shape[1]);
        let (attention, parts) = (&self.attention, self.heads.chunks_mut(step));
        self.workers.resize_with(self.workers.len().max(parts.len()), Worker::default);
        threads::for_each(parts.zip(&mut self.workers).enumerate(), |(part, (heads, worker))| {
            for (run, heads) in heads.chunks_mut(of_maps).enumerate() {
                let first = part * step + run * of_maps;
                let (setup, rows) = (attention.setup(first % all), first..first + heads.len());
                let (keys, values) = (keys.rows(rows.clone()).reborrow(), values.rows(rows).reborrow());
                let tokens = KeyRun::new(keys, values);
                push(setup, attention.window.before, heads, tokens, worker);
            }
        });
    }

    /// The outputs of queries, \[batch, heads, d\], that see all tokens so far; a multiple of the heads of keys.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a size does not fit, [`Memory`](crate::Error::Memory) if there is no memory for the
    /// outputs.
    pub fn query<E: Element<T>>(&mut self, queries: &ArrayRef3<E>) -> Result<Step<T>> {
        let [batch, heads, d_v] = self.shape;
        let count = queries.len_of(Axis(1));
        let group = count / heads.max(1);
        check_multiple(heads, count)?;
        check_shape(
            [
                "the batch size of the queries",
                "the number of heads of the queries",
                "the dimension of the queries",
            ],
            queries.shape(),
            [batch, count, self.input_dim()],
        )?;
        check_memory("outputs", batch.max(1).saturating_mul(count), d_v.saturating_mul(size_of::<T>()))?;
        let mut output = Array3::zeros((batch, count, d_v));
        let rows = self.answer(E::numbers(rows(queries).view()), group, slice_of_mut(&mut output));
        let place = |row: usize| [row / count, row % count];
        Ok(Step { output, non_positive: rows.into_iter().map(place).collect() })
    }

    /// Writes the outputs of `group` queries for each head, and gives the rows whose normaliser is not positive, in order.
    #[inline(never)]
    fn answer(&mut self, queries: Numbers<'_, T>, group: usize, out: &mut [T]) -> Vec<usize> {
        let (step, of_maps, [_, all, d_v]) = (self.step(group), self.run(), self.shape);
        let (attention, parts) = (&self.attention, self.heads.chunks_mut(step));
        self.workers.resize_with(self.workers.len().max(parts.len()), Worker::default);
        let parts = parts.zip(&mut self.workers).zip(out.chunks_mut((step * group * d_v).max(1)));
        let rows = threads::map(parts.enumerate(), |(part, ((heads, worker), out))| {
            let (mut rows, mut out) = (Vec::new(), out.chunks_exact_mut(d_v));
            for (run, heads) in heads.chunks_mut(of_maps).enumerate() {
                let first = part * step + run * of_maps;
                let setup = attention.setup(first % all);
                let near = attention.near(first % all, true);
                worker.read_queries(setup, queries.rows(first * group..(first + heads.len()) * group));
                for (i, out) in (0..heads.len() * group).zip(&mut out) {
                    if i % group == 0 {
                        worker.forget();
                    }
                    if !heads[i / group].answer(setup, near, i, worker, out) {
                        rows.push(first * group + i);
                    }
                }
            }
            rows
        });
        rows.concat()
    }

    /// Heads that a thread takes, for so many queries each: all if they are not worth another thread.
    fn step(&self, group: usize) -> usize {
        let width = self.attention.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let of_head = group.saturating_mul(width).saturating_mul(self.input_dim() + self.shape[2]);
        let alone = self.heads.len().saturating_mul(of_head) < SHARED;
        self.heads.len().div_ceil(if alone { 1 } else { threads::count() }).max(1)
    }

    /// Heads next to each other that share a map.
    fn run(&self) -> usize {
        if self.attention.maps.len() == 1 { self.heads.len().max(1) } else { 1 }
    }

    /// Takes in many tokens at once, such as a prompt: keys \[batch, heads of keys, length, d\] and values
    /// \[batch, heads of keys, length, d_v\].
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a size does not fit; nothing has been taken in then.
    pub fn prefill<E: Element<T>>(
        &mut self,
        keys: &ArrayRef<E, Ix4>,
        values: &ArrayRef<E, Ix4>,
    ) -> Result<()> {
        let ([batch, heads, d_v], length) = (self.shape, keys.len_of(Axis(2)));
        let what = [
            "the batch size of the keys",
            "the number of heads of the keys",
            "the number of keys",
            "the dimension of the keys",
        ];
        check_shape(what, keys.shape(), [batch, heads, length, self.input_dim()])?;
        let what = [
            "the batch size of the values",
            "the number of heads of the values",
            "the number of values",
            "the dimension of the values",
        ];
        check_shape(what, values.shape(), [batch, heads, length, d_v])?;
        let of_head = |i: usize| {
            let (keys, values) = (E::numbers(head(keys, i)), E::numbers(head(values, i)));
            KeyRun::new(keys, values)
        };
        self.take_in_all((0..self.heads.len()).map(of_head).collect());
        Ok(())
    }

    /// Takes in the tokens of each head.
    #[inline(never)]
    fn take_in_all(&mut self, tokens: Vec<KeyRun<'_, T>>) {
        let (attention, ways, all) = (&self.attention, super::ways(self.heads.len()), self.shape[1]);
        threads::for_each(self.heads.iter_mut().zip(tokens).enumerate(), |(i, (head, tokens))| {
            head.prefill(attention.setup(i % all), attention.window.before, tokens, ways);
        });
    }

    fn input_dim(&self) -> usize {
        self.attention.maps[0].input_dim()
    }
}

/// Takes in a token for each head of some that share a map; those that leave a window of `before` tokens, in all heads at once, are
/// summed up.
fn push<T: Real>(
    setup: Setup<'_, T>,
    before: usize,
    heads: &mut [Head<T>],
    tokens: KeyRun<'_, T>,
    worker: &mut Worker<T>,
) {
    let [mut keys, mut values] = std::mem::take(&mut worker.leaving);
    let leaving = if before == 0 {
        tokens.reborrow()
    } else {
        keys.clear();
        values.clear();
        for (i, head) in heads.iter_mut().enumerate() {
            let own = tokens.rows(i..i + 1);
            head.push(before, own, [&mut keys, &mut values]);
        }
        let (d_v, d) = (tokens.values.ncols(), tokens.keys.ncols());
        let rows = values.len() / d_v;
        let (keys, values) = (matrix_view(rows, d, &keys), matrix_view(rows, d_v, &values));
        KeyRun::new(Numbers::Own(keys), Numbers::Own(values))
    };
    if leaving.len() > 0 {
        worker.read_keys(setup, leaving);
        for (i, head) in heads.iter_mut().enumerate() {
            head.sequence.push(setup, i, leaving.values.rows(i..i + 1), worker);
        }
    }
    worker.leaving = [keys, values];
}

/// The tokens of head `i` of all sequences.
fn head<E>(x: &ArrayRef<E, Ix4>, i: usize) -> ArrayView2<'_, E> {
    let heads = x.len_of(Axis(1));
    x.index_axis(Axis(0), i / heads).index_axis_move(Axis(0), i % heads)
}

/// All tokens, one after the other.
fn rows<E: Copy>(x: &ArrayRef3<E>) -> CowArray<'_, E, Ix2> {
    let (batch, heads, width) = x.dim();
    let rows = x.to_shape((batch * heads, width));
    debug_assert!(rows.is_ok(), "a shape of as many elements");
    rows.unwrap_or_else(|_| CowArray::from(ArrayView2::from(&[[]; 0])))
}

once!(
    Attention::<T>::state,
    CausalState::<T>::take_in,
    CausalState::<T>::answer,
    CausalState::<T>::take_in_all,
    <CausalState<T> as Clone>::clone,
);

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::super::recent::stored::StoredHead;
    use super::{Attention, CausalState, Real};
    use crate::sealed::sealed;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "CausalState", bound = "")]
    struct StoredState<T: Real> {
        attention: Attention<T>,
        shape: [usize; 3],
        heads: Vec<StoredHead<T>>,
    }

    sealed!(CausalState<T>, StoredState<T>, T, [T: Real]);

    impl<T: Real> From<&CausalState<T>> for StoredState<T> {
        fn from(state: &CausalState<T>) -> Self {
            let heads = state.heads.iter().map(StoredHead::from).collect();
            StoredState { attention: state.attention.clone(), shape: state.shape, heads }
        }
    }

    impl<T: Real> TryFrom<StoredState<T>> for CausalState<T> {
        type Error = String;

        fn try_from(stored: StoredState<T>) -> Result<Self, String> {
            let StoredState { attention, shape, heads } = stored;
            attention.check_steps().map_err(|error| error.to_string())?;
            let ([batch, count, d_v], maps) = (shape, attention.maps.len());
            let whole = d_v > 0
                && (maps == 1 || maps == count)
                && batch.checked_mul(count) == Some(heads.len())
                && heads.iter().all(|head| head.length() == heads[0].length());
            let before = attention.window.before;
            let restored =
                |(i, head): (usize, StoredHead<T>)| head.restored(attention.setup(i % count), before, d_v);
            let heads = if whole { heads.into_iter().enumerate().map(restored).collect() } else { None };
            match heads {
                Some(heads) => Ok(CausalState { attention, shape, heads, workers: Vec::new() }),
                None => Err("sums of another shape than that of the maps and the heads".into()),
            }
        }
    }
}
