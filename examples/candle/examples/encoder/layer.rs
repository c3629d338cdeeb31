//! A layer of the encoder: attention and a perceptron, each followed by a layer norm.

use candle_core::Tensor;
use candle_nn::{LayerNorm, Linear, Module, VarBuilder, layer_norm, linear};
use random_features::ndarray::{Array2, Array4};

use crate::config::Config;
use crate::outcome::Outcome;
use crate::tokens::{Tokens, merge, split};

pub struct Layer {
    /// To queries, keys and values.
    inputs: [Linear; 3],
    output: Linear,
    perceptron: [Linear; 2],
    norms: [LayerNorm; 2],
    heads: usize,
}

impl Layer {
    pub fn new(config: &Config, vb: &VarBuilder<'_>) -> Outcome<Self> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        let input = |name: &str| linear(hidden, hidden, vb.pp("attention.self").pp(name));
        let norm = |name: &str| layer_norm(hidden, config.epsilon, vb.pp(name).pp("LayerNorm"));
        Ok(Layer {
            inputs: [input("query")?, input("key")?, input("value")?],
            output: linear(hidden, hidden, vb.pp("attention.output.dense"))?,
            perceptron: [
                linear(hidden, wide, vb.pp("intermediate.dense"))?,
                linear(wide, hidden, vb.pp("output.dense"))?,
            ],
            norms: [norm("attention.output")?, norm("output")?],
            heads: config.heads,
        })
    }

    /// The layer's outputs of tokens \[texts, length, hidden\]; `attend` gives those of its attention.
    pub fn forward(
        &self,
        x: &Tensor,
        mask: &Array2<bool>,
        attend: &mut dyn FnMut(Tokens) -> Outcome<Array4<f32>>,
    ) -> Outcome<Tensor> {
        let attended = merge(&attend(self.tokens(x, mask)?)?)?;
        let x = self.norms[0].forward(&(x + self.output.forward(&attended)?)?)?;
        let wide = self.perceptron[0].forward(&x)?.gelu_erf()?;
        Ok(self.norms[1].forward(&(&x + self.perceptron[1].forward(&wide)?)?)?)
    }

    fn tokens(&self, x: &Tensor, mask: &Array2<bool>) -> Outcome<Tokens> {
        let [queries, keys, values] =
            self.inputs.each_ref().map(|input| split(&input.forward(x)?, self.heads));
        Ok(Tokens { queries: queries?, keys: keys?, values: values?, mask: mask.clone() })
    }
}
