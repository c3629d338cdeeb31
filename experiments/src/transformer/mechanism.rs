//! A layer's attention: exact, exact within blocks, linear, or none.

use ndarray::{Array2, Array4, ArrayView2, ArrayView4, ArrayView5, Axis, s};
use random_features::apply::attention::{Attention, ExactAttention, Gradients, Heads};
use random_features::{Real, Result};

#[derive(Clone)]
pub enum Mechanism<T: Real> {
    Exact,
    /// Exact among so many characters at a time, which see none before them.
    Blocks(usize),
    Linear(Box<Attention<T>>),
    /// Linear, in double precision.
    Wide(Box<Attention<f64>>),
    /// Each token has its own value: what can be had at no cost.
    Values,
}

/// Queries, keys and values of each token in a row, as a batch of heads.
pub struct Tokens<'a, T> {
    parts: [ArrayView4<'a, T>; 3],
    width: usize,
}

impl<'a, T: Real> Tokens<'a, T> {
    /// Sequences of `length` tokens each, one after the other.
    pub fn new(rows: &'a Array2<T>, length: usize, heads: usize) -> Self {
        let width = rows.ncols() / 3;
        let shape = (rows.nrows() / length, length, 3, heads, width / heads);
        let all = ArrayView5::from_shape(shape, rows.as_slice().expect("a matrix product is contiguous"));
        let all = all.expect("rows hold queries, keys and values of all heads");
        let part = |part| all.index_axis_move(Axis(2), part).permuted_axes([0, 2, 1, 3]);
        Tokens { parts: [0, 1, 2].map(part), width }
    }

    /// Queries and keys of a sequence and a head.
    pub fn head(&self, sequence: usize, head: usize) -> [ArrayView2<'_, T>; 2] {
        let [queries, keys, _] = &self.parts;
        [queries, keys].map(|part| part.slice(s![sequence, head, .., ..]))
    }
}

/// [batch, heads, length, dim] as rows of tokens.
fn rows<T: Real>(heads: Array4<T>, width: usize) -> Array2<T> {
    let tokens = heads.permuted_axes([0, 2, 1, 3]);
    let count = tokens.len() / width;
    let rows = tokens.as_standard_layout().into_owned().into_shape_with_order((count, width));
    rows.expect("a row for each token")
}

fn widened<T: Real>(x: ArrayView4<'_, T>) -> Array4<f64> {
    x.mapv(T::widen)
}

fn narrowed<T: Real>(x: Array4<f64>) -> Array4<T> {
    x.mapv(T::narrow)
}

/// Where blocks begin and end.
fn offsets(length: usize, block: usize) -> Vec<usize> {
    (0..length).step_by(block).chain([length]).collect()
}

impl<T: Real> Mechanism<T> {
    pub fn forward(&self, tokens: &Tokens<'_, T>) -> Result<Array2<T>> {
        let [queries, keys, values] = &tokens.parts;
        let heads = Heads::new(queries, keys, values)?;
        let output = match self {
            Mechanism::Exact => ExactAttention::new().causal(&heads)?.output,
            Mechanism::Blocks(block) => {
                let offsets = offsets(queries.dim().2, *block);
                ExactAttention::new().causal(&heads.with_sequences(&offsets, &offsets)?)?.output
            }
            Mechanism::Linear(attention) => attention.causal(&heads)?.output,
            Mechanism::Wide(attention) => {
                let [queries, keys, values] = tokens.parts.map(widened);
                narrowed(attention.causal(&Heads::new(&queries, &keys, &values)?)?.output)
            }
            Mechanism::Values => values.to_owned(),
        };
        Ok(rows(output, tokens.width))
    }

    /// The gradient with respect to the rows of queries, keys and values.
    pub fn backward(&self, tokens: &Tokens<'_, T>, upstream: &Array2<T>) -> Result<Array2<T>> {
        let [queries, keys, values] = &tokens.parts;
        let (batch, heads, length, dim) = values.dim();
        let upstream = upstream.view().into_shape_with_order((batch, length, heads, dim));
        let upstream = upstream.expect("a row for each token").permuted_axes([0, 2, 1, 3]);
        let all = Heads::new(queries, keys, values)?;
        fn parts<T: Real>(gradients: Gradients<T>) -> [Array4<T>; 3] {
            [gradients.queries, gradients.keys, gradients.values]
        }
        let gradients = match self {
            Mechanism::Exact => parts(ExactAttention::new().causal_backward(&all, &upstream)?),
            Mechanism::Blocks(block) => {
                let offsets = offsets(length, *block);
                parts(
                    ExactAttention::new()
                        .causal_backward(&all.with_sequences(&offsets, &offsets)?, &upstream)?,
                )
            }
            Mechanism::Linear(attention) => parts(attention.causal_backward(&all, &upstream)?),
            Mechanism::Wide(attention) => {
                let [queries, keys, values] = tokens.parts.map(widened);
                let all = Heads::new(&queries, &keys, &values)?;
                parts(attention.causal_backward(&all, &widened(upstream))?).map(narrowed)
            }
            Mechanism::Values => {
                [Array4::zeros(queries.dim()), Array4::zeros(keys.dim()), upstream.to_owned()]
            }
        };
        let [queries, keys, values] = gradients.map(|part| rows(part, tokens.width));
        let parts = ndarray::concatenate(Axis(1), &[queries.view(), keys.view(), values.view()]);
        Ok(parts.expect("parts have the same number of rows"))
    }
}
