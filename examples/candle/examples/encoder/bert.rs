//! The encoder: embeddings of tokens and places, layers, and the mean of the last hidden states as the embedding of a text.

use std::path::Path;

use candle_core::{D, DType, Device, Tensor};
use candle_nn::{Embedding, LayerNorm, Module, VarBuilder, embedding, layer_norm};
use random_features::ndarray::{Array2, Array4};

use crate::batch::Batch;
use crate::config::Config;
use crate::layer::Layer;
use crate::outcome::Outcome;
use crate::tokens::Tokens;

/// How layers attend: the number of the layer and its tokens give the outputs, \[batch, heads, length, dim\].
pub type Attend<'a> = dyn FnMut(usize, Tokens) -> Outcome<Array4<f32>> + 'a;

/// A BERT encoder in `f32`, whose attention is given at each pass.
pub struct Bert {
    words: Embedding,
    places: Embedding,
    /// The embedding of the first kind of segments, which all tokens are of.
    kind: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    config: Config,
}

impl Bert {
    /// The encoder whose `config.json` and `model.safetensors` are in a folder.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let config = Config::read(folder)?;
        let path = folder.join("model.safetensors");
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let vb = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)?;
        Self::new(config, &vb)
    }

    fn new(config: Config, vb: &VarBuilder<'_>) -> Outcome<Self> {
        let of = vb.pp("embeddings");
        let table = |rows, name| embedding(rows, config.hidden, of.pp(name));
        let layer = |number| Layer::new(&config, &vb.pp("encoder.layer").pp(number));
        Ok(Bert {
            words: table(config.vocabulary, "word_embeddings")?,
            places: table(config.positions, "position_embeddings")?,
            kind: table(config.types, "token_type_embeddings")?.embeddings().narrow(0, 0, 1)?,
            norm: layer_norm(config.hidden, config.epsilon, of.pp("LayerNorm"))?,
            layers: (0..config.layers).map(layer).collect::<Outcome<_>>()?,
            config,
        })
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The hidden states behind the last layer, \[texts, length, hidden\].
    pub fn forward(&self, batch: &Batch, attend: &mut Attend<'_>) -> Outcome<Tensor> {
        let mut x = self.embedded(batch)?;
        for (number, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x, &batch.mask, &mut |tokens| attend(number, tokens))?;
        }
        Ok(x)
    }

    /// The embeddings of texts, one in each row, of length 1: the mean of the hidden states of their tokens.
    pub fn embed(&self, batch: &Batch, attend: &mut Attend<'_>) -> Outcome<Array2<f32>> {
        let (states, weights) = (self.forward(batch, attend)?, batch.weights()?);
        let means = states.broadcast_mul(&weights)?.sum(1)?.broadcast_div(&weights.sum(1)?)?;
        let unit = means.broadcast_div(&means.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?)?;
        Ok(Array2::from_shape_vec(unit.dims2()?, unit.flatten_all()?.to_vec1()?)?)
    }

    /// The embeddings of tokens and places. Places beyond the last that the model knows begin again with the first.
    fn embedded(&self, batch: &Batch) -> Outcome<Tensor> {
        let (texts, length) = batch.mask.dim();
        let words = self.words.forward(&batch.tokens)?.reshape((texts, length, self.config.hidden))?;
        let places =
            Tensor::from_iter((0..length).map(|i| (i % self.config.positions) as u32), &Device::Cpu)?;
        let rest = self.places.forward(&places)?.broadcast_add(&self.kind)?;
        Ok(self.norm.forward(&words.broadcast_add(&rest)?)?)
    }
}
