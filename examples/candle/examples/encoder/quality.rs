//! How far a way of attending is from exact attention on segments that it was not chosen on.

use random_features::ndarray::{Array3, Array4, Axis};

use crate::bert::Bert;
use crate::choice::{Attended, Choice, Pass};
use crate::head::{Head, attend};
use crate::outcome::Outcome;

/// What is measured of a way of attending.
pub struct Quality {
    /// The number of features of a token, on average over heads.
    pub features: f64,
    /// The number of pairs of a query whose weights are exact, on average over heads, segments and queries.
    pub pairs: f64,
    /// The cosine between embeddings by this way and by exact attention, on average over segments.
    pub cosine: f64,
    /// ‖outputs − exact outputs‖/‖exact outputs‖ of each layer's attention, on average over heads and segments.
    pub errors: Vec<f64>,
}

impl Quality {
    /// Compares with passes of exact attention, one for each segment.
    pub fn new(bert: &Bert, choice: &Choice, segments: &[Pass]) -> Outcome<Self> {
        let cosine = |pass: &Pass| -> Outcome<f64> {
            let found = choice.embed(bert, &pass.batch)?;
            Ok((&found * &pass.embeddings).iter().map(|product| f64::from(*product)).sum())
        };
        let cosines = segments.iter().map(cosine).collect::<Outcome<Vec<_>>>()?;
        let error = |(number, heads): (usize, &Vec<Head>)| {
            let of_segment = |pass: &Pass| error_of_layer(heads, &pass.layers[number]);
            Ok(mean(&segments.iter().map(of_segment).collect::<Outcome<Vec<_>>>()?))
        };
        let features = choice.layers.iter().flatten().map(|head| head.features() as f64);
        Ok(Quality {
            features: mean(&features.collect::<Vec<_>>()),
            pairs: mean(&pairs(choice, segments)?),
            cosine: mean(&cosines),
            errors: choice.layers.iter().enumerate().map(error).collect::<Outcome<_>>()?,
        })
    }
}

/// The number of exact pairs of a query for each head of each layer and segment.
fn pairs(choice: &Choice, segments: &[Pass]) -> Outcome<Vec<f64>> {
    let mut all = Vec::new();
    for pass in segments {
        for (heads, layer) in choice.layers.iter().zip(&pass.layers) {
            for (number, head) in heads.iter().enumerate() {
                all.push(head.pairs(&layer.tokens.head(number, 0))?);
            }
        }
    }
    Ok(all)
}

/// The error of a layer for its tokens in the pass with exact attention, on average over heads.
fn error_of_layer(heads: &[Head], layer: &Attended) -> Outcome<f64> {
    let outputs = attend(heads, &layer.tokens)?;
    let of_head = |number: usize| {
        let of = |x: &Array4<f32>| x.index_axis(Axis(1), number).mapv(f64::from);
        let (found, exact) = (of(&outputs), of(&layer.outputs));
        norm(&(&found - &exact)) / norm(&exact)
    };
    Ok(mean(&(0..heads.len()).map(of_head).collect::<Vec<_>>()))
}

fn norm(x: &Array3<f64>) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
