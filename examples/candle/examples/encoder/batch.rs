//! Texts of tokens, side by side.

use random_features::ndarray::Array2;

use candle_core::{Device, Result, Tensor};

/// Texts of tokens, filled up to the longest.
pub struct Batch {
    /// \[texts · length\].
    pub tokens: Tensor,
    /// \[texts, length\]; false where a text has ended.
    pub mask: Array2<bool>,
}

impl Batch {
    /// Texts of any lengths. What fills them up is token 0, which no place sees.
    pub fn new(texts: &[Vec<u32>]) -> Result<Self> {
        let length = texts.iter().map(Vec::len).max().unwrap_or_default();
        let mask = Array2::from_shape_fn((texts.len(), length), |(text, place)| place < texts[text].len());
        let padded = |text: &Vec<u32>| {
            let mut padded = text.clone();
            padded.resize(length, 0);
            padded
        };
        let tokens: Vec<u32> = texts.iter().flat_map(padded).collect();
        Ok(Batch { tokens: Tensor::from_vec(tokens, texts.len() * length, &Device::Cpu)?, mask })
    }

    /// 1 where there is a token and 0 elsewhere, \[texts, length, 1\].
    pub fn weights(&self) -> Result<Tensor> {
        let (texts, length) = self.mask.dim();
        let weights: Vec<f32> = self.mask.iter().map(|seen| f32::from(u8::from(*seen))).collect();
        Tensor::from_vec(weights, (texts, length, 1), &Device::Cpu)
    }
}
