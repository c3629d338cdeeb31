//! The encoder again, in plain loops in `f64`: what the tests compare with.

use std::collections::HashMap;
use std::path::Path;

use candle_core::cpu::erf::erf_f64;
use candle_core::{DType, Device, Tensor};
use random_features::ndarray::{Array1, Array2, Axis, s};

use crate::config::Config;
use crate::outcome::Outcome;

/// A model's weights and sizes.
pub struct Reference {
    weights: HashMap<String, Tensor>,
    config: Config,
}

impl Reference {
    pub fn read(folder: &Path) -> Outcome<Self> {
        let weights = candle_core::safetensors::load(folder.join("model.safetensors"), &Device::Cpu)?;
        Ok(Reference { weights, config: Config::read(folder)? })
    }

    fn numbers(&self, name: &str) -> Outcome<Vec<f64>> {
        let tensor = self.weights.get(name).ok_or_else(|| format!("{name} is missing"))?;
        Ok(tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
    }

    fn vector(&self, name: &str) -> Outcome<Array1<f64>> {
        Ok(self.numbers(name)?.into())
    }

    fn matrix(&self, name: &str, columns: usize) -> Outcome<Array2<f64>> {
        let numbers = self.numbers(name)?;
        Ok(Array2::from_shape_vec((numbers.len() / columns, columns), numbers)?)
    }

    fn linear(&self, name: &str, x: &Array2<f64>) -> Outcome<Array2<f64>> {
        let weights = self.matrix(&format!("{name}.weight"), x.ncols())?;
        Ok(x.dot(&weights.t()) + self.vector(&format!("{name}.bias"))?)
    }

    fn norm(&self, name: &str, x: Array2<f64>) -> Outcome<Array2<f64>> {
        let mut x = x;
        for mut row in x.rows_mut() {
            let mean = row.sum() / row.len() as f64;
            row -= mean;
            let variance = row.dot(&row) / row.len() as f64;
            row /= (variance + self.config.epsilon).sqrt();
        }
        let of = |part: &str| self.vector(&format!("{name}.LayerNorm.{part}"));
        Ok(x * of("weight")? + of("bias")?)
    }

    fn embedded(&self, tokens: &[u32]) -> Outcome<Array2<f64>> {
        let table =
            |name: &str| self.matrix(&format!("embeddings.{name}_embeddings.weight"), self.config.hidden);
        let words: Vec<usize> = tokens.iter().map(|token| *token as usize).collect();
        let places: Vec<usize> = (0..words.len()).collect();
        let sum = table("word")?.select(Axis(0), &words)
            + table("position")?.select(Axis(0), &places)
            + table("token_type")?.row(0);
        self.norm("embeddings", sum)
    }

    fn attended(&self, layer: &str, x: &Array2<f64>) -> Outcome<Array2<f64>> {
        let of = |name: &str| self.linear(&format!("{layer}.attention.self.{name}"), x);
        let (q, k, v) = (of("query")?, of("key")?, of("value")?);
        let dim = self.config.hidden / self.config.heads;
        let mut outputs = Array2::zeros(x.dim());
        for first in (0..self.config.hidden).step_by(dim) {
            let head = s![.., first..first + dim];
            let mut weights = q.slice(head).dot(&k.slice(head).t()) / (dim as f64).sqrt();
            weights.mapv_inplace(f64::exp);
            for mut row in weights.rows_mut() {
                row /= row.sum();
            }
            outputs.slice_mut(head).assign(&weights.dot(&v.slice(head)));
        }
        Ok(outputs)
    }

    fn layer(&self, layer: &str, x: &Array2<f64>) -> Outcome<Array2<f64>> {
        let attended = self.linear(&format!("{layer}.attention.output.dense"), &self.attended(layer, x)?)?;
        let x = self.norm(&format!("{layer}.attention.output"), x + &attended)?;
        let wide = self.linear(&format!("{layer}.intermediate.dense"), &x)?;
        let wide = wide.mapv(|v| 0.5 * v * (1.0 + erf_f64(v * std::f64::consts::FRAC_1_SQRT_2)));
        self.norm(&format!("{layer}.output"), &x + &self.linear(&format!("{layer}.output.dense"), &wide)?)
    }

    /// The hidden states behind the last layer, a row for each token.
    pub fn states(&self, tokens: &[u32]) -> Outcome<Array2<f64>> {
        let mut x = self.embedded(tokens)?;
        for number in 0..self.config.layers {
            x = self.layer(&format!("encoder.layer.{number}"), &x)?;
        }
        Ok(x)
    }

    /// The embedding of a text.
    pub fn embedding(&self, tokens: &[u32]) -> Outcome<Array1<f64>> {
        let sum = self.states(tokens)?.sum_axis(Axis(0));
        Ok(&sum / sum.dot(&sum).sqrt())
    }
}
