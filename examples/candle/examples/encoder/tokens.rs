//! Queries, keys and values of a layer as arrays, and how tensors become such arrays.

use candle_core::{Device, Tensor};
use random_features::apply::attention::Heads;
use random_features::ndarray::{Array2, Array4, ArrayView2, ArrayView4, s};

use crate::outcome::Outcome;

/// Queries, keys and values of all heads, \[batch, heads, length, dim\], and which places hold tokens.
pub struct Tokens {
    pub queries: Array4<f32>,
    pub keys: Array4<f32>,
    pub values: Array4<f32>,
    /// \[batch, length\]; false where a text has ended.
    pub mask: Array2<bool>,
}

impl Tokens {
    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.queries.dim().1
    }

    /// The number of texts.
    pub fn texts(&self) -> usize {
        self.queries.dim().0
    }

    /// One head for one text, without what fills the text up.
    pub fn head(&self, head: usize, text: usize) -> HeadTokens<'_> {
        let length = self.mask.row(text).iter().filter(|seen| **seen).count();
        let [queries, keys, values] = [&self.queries, &self.keys, &self.values]
            .map(|x| x.slice(s![text..=text, head..=head, ..length, ..]));
        HeadTokens { queries, keys, values }
    }
}

/// Queries, keys and values of one head for one text, \[1, 1, length, dim\].
pub struct HeadTokens<'a> {
    pub queries: ArrayView4<'a, f32>,
    pub keys: ArrayView4<'a, f32>,
    pub values: ArrayView4<'a, f32>,
}

impl HeadTokens<'_> {
    /// The input of attention.
    pub fn input(&self) -> Outcome<Heads<'_, f32>> {
        Ok(Heads::new(&self.queries, &self.keys, &self.values)?)
    }

    /// The dimension of queries and keys.
    pub fn dim(&self) -> usize {
        self.queries.dim().3
    }

    /// Queries, keys and values, each \[length, dim\].
    pub fn rows(&self) -> [ArrayView2<'_, f32>; 3] {
        [&self.queries, &self.keys, &self.values].map(|x| x.slice(s![0, 0, .., ..]))
    }
}

/// Tokens \[batch, length, heads · dim\] as an array \[batch, heads, length, dim\].
pub fn split(x: &Tensor, heads: usize) -> Outcome<Array4<f32>> {
    let (batch, length, hidden) = x.dims3()?;
    let numbers = x.flatten_all()?.to_vec1::<f32>()?;
    let array = Array4::from_shape_vec((batch, length, heads, hidden / heads), numbers)?;
    Ok(array.permuted_axes([0, 2, 1, 3]))
}

/// An array \[batch, heads, length, dim\] as tokens \[batch, length, heads · dim\].
pub fn merge(outputs: &Array4<f32>) -> Outcome<Tensor> {
    let (batch, heads, length, dim) = outputs.dim();
    let numbers: Vec<f32> = outputs.view().permuted_axes([0, 2, 1, 3]).iter().copied().collect();
    Ok(Tensor::from_vec(numbers, (batch, length, heads * dim), &Device::Cpu)?)
}
