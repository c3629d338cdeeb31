//! A way of attending that has been chosen for all layers.

use random_features::ndarray::{Array2, Array4};

use crate::batch::Batch;
use crate::bert::Bert;
use crate::head::{Head, attend};
use crate::outcome::Outcome;
use crate::tokens::Tokens;
use crate::ways::{Settings, Way};

/// How the heads of all layers attend.
pub struct Choice {
    pub name: &'static str,
    pub layers: Vec<Vec<Head>>,
}

impl Choice {
    /// Chooses for each layer by its tokens in a pass with exact attention.
    pub fn new(way: &Way, calibration: &Pass, settings: Settings) -> Outcome<Self> {
        let of_layer = |(number, layer): (usize, &Attended)| {
            let seed = random_features::rng_of_step(settings.seed, number as u64).next_u64();
            (way.choose)(&layer.tokens, Settings { seed, ..settings })
        };
        let layers = calibration.layers.iter().enumerate().map(of_layer);
        let layers = layers.collect::<Outcome<_>>().map_err(|error| format!("{}: {error}", way.name))?;
        Ok(Choice { name: way.name, layers })
    }

    /// The outputs of the attention of a layer.
    pub fn attend(&self, layer: usize, tokens: &Tokens) -> Outcome<Array4<f32>> {
        attend(&self.layers[layer], tokens)
    }

    /// The embeddings of texts, one in each row.
    pub fn embed(&self, bert: &Bert, batch: &Batch) -> Outcome<Array2<f32>> {
        bert.embed(batch, &mut |layer, tokens| self.attend(layer, &tokens))
    }
}

/// The tokens of a layer and the outputs of its attention.
pub struct Attended {
    pub tokens: Tokens,
    pub outputs: Array4<f32>,
}

/// What a pass with exact attention has seen.
pub struct Pass {
    pub batch: Batch,
    /// The embeddings of the texts.
    pub embeddings: Array2<f32>,
    pub layers: Vec<Attended>,
}

impl Pass {
    pub fn new(bert: &Bert, texts: &[Vec<u32>]) -> Outcome<Self> {
        let (batch, mut layers) = (Batch::new(texts)?, Vec::new());
        let exact: Vec<Head> = (0..bert.config().heads).map(|_| Head::Exact).collect();
        let embeddings = bert.embed(&batch, &mut |_, tokens| {
            let outputs = attend(&exact, &tokens)?;
            layers.push(Attended { tokens, outputs: outputs.clone() });
            Ok(outputs)
        })?;
        Ok(Pass { batch, embeddings, layers })
    }
}
