//! [`LinearSelfAttention`]: the operation between projections.

use candle_core::{Result, Tensor, bail};
use candle_nn::{Linear, Module, VarBuilder, linear_no_bias};
use random_features::apply::attention::Attention;

use crate::{Cache, LinearAttention, Precision};

/// Projections of tokens to queries, keys and values of heads, and of outputs back to tokens; without biases.
#[derive(Clone, Debug)]
pub struct Projections {
    /// To queries, keys and values.
    inputs: [Linear; 3],
    output: Linear,
    heads: usize,
}

impl Projections {
    /// Between tokens of dimension `model` and so many heads of dimension `dim`. Their weights are `q_proj`, `k_proj`, `v_proj` and
    /// `o_proj`.
    ///
    /// # Errors
    /// If weights are missing or have another shape, or a size is 0.
    pub fn new(model: usize, heads: usize, dim: usize, vb: VarBuilder<'_>) -> Result<Self> {
        if model == 0 || heads == 0 || dim == 0 {
            bail!(
                "attention with {heads} heads of dimension {dim} for tokens of dimension {model} has no numbers"
            );
        }
        let all = heads * dim;
        let input = |name| linear_no_bias(model, all, vb.pp(name));
        let inputs = [input("q_proj")?, input("k_proj")?, input("v_proj")?];
        Ok(Projections { inputs, output: linear_no_bias(all, model, vb.pp("o_proj"))?, heads })
    }

    /// Queries, keys and values, \[batch, heads, length, dim\], of tokens \[batch, length, model\].
    ///
    /// # Errors
    /// If the tokens have another shape.
    pub fn split(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        let (batch, length, _) = x.dims3()?;
        // Heads are read as they lie: what follows takes any strides.
        let split =
            |input: &Linear| input.forward(x)?.reshape((batch, length, self.heads, ()))?.transpose(1, 2);
        let [q, k, v] = self.inputs.each_ref().map(split);
        Ok([q?, k?, v?])
    }

    /// Tokens \[batch, length, model\] of outputs \[batch, heads, length, dim\].
    ///
    /// # Errors
    /// If the outputs have another shape.
    pub fn merge(&self, outputs: &Tensor) -> Result<Tensor> {
        self.output.forward(&outputs.transpose(1, 2)?.flatten_from(2)?)
    }
}

/// Self-attention in linear time: a layer from tokens \[batch, length, model\] to tokens, with a cache for decoding. Approximate.
#[derive(Clone, Debug)]
pub struct LinearSelfAttention<T: Precision> {
    projections: Projections,
    attention: LinearAttention<T>,
}

impl<T: Precision> LinearSelfAttention<T> {
    /// With the weights of [`Projections`], for tokens of dimension `model` and so many heads, whose dimension is that of the features.
    ///
    /// # Errors
    /// If weights are missing or have another shape, or a size is 0.
    pub fn new(
        attention: LinearAttention<T>,
        model: usize,
        heads: usize,
        vb: VarBuilder<'_>,
    ) -> Result<Self> {
        Ok(LinearSelfAttention {
            projections: Projections::new(model, heads, attention.dim(), vb)?,
            attention,
        })
    }

    /// Goes on with other features: see [`LinearAttention::redrawn`].
    ///
    /// # Errors
    /// If these are of another dimension.
    pub fn redraw(&mut self, attention: Attention<T>) -> Result<()> {
        self.attention = self.attention.redrawn(attention)?;
        Ok(())
    }

    /// The cache for decoding so many sequences.
    ///
    /// # Errors
    /// If attention is not causal, or there is no memory for it.
    pub fn cache(&self, batch: usize) -> Result<Cache<T>> {
        self.attention.cache(batch, self.projections.heads, self.attention.dim())
    }

    /// The outputs of tokens \[batch, length, model\] that follow those in the cache, be it a prompt or one token. Attention is
    /// that of [`forward`](Module::forward) over all tokens so far, to the bit; projections of other numbers of tokens are rounded in
    /// another order. Without gradients of what is in the cache, as of anything that decodes.
    ///
    /// # Errors
    /// As [`forward`](Module::forward); nothing has been taken in then.
    pub fn decode(&self, x: &Tensor, cache: &mut Cache<T>) -> Result<Tensor> {
        let [q, k, v] = self.projections.split(x)?;
        self.projections.merge(&cache.attend(&q, &k, &v)?)
    }
}

impl<T: Precision> Module for LinearSelfAttention<T> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [q, k, v] = self.projections.split(x)?;
        self.projections.merge(&self.attention.apply(&q, &k, &v)?)
    }
}
