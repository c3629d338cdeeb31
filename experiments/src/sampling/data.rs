//! Synthetic embeddings.

use ndarray::{Array1, Array2};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// The dimension of embeddings.
pub const D: usize = 64;

/// Directions that embeddings gather around, and the cosine to them.
const TOPICS: usize = 50;
const COSINE: f64 = 0.85;

/// A law of norms: `middle` · e^(spread · N(0, 1)).
#[derive(Clone, Copy)]
pub struct Law {
    pub name: &'static str,
    pub middle: f64,
    pub spread: f64,
}

/// The paper regularises norms to be near 1 on WikiText2 and multiplies logits by 6, so that points are multiplied by √6 here. On
/// Penn Treebank norms are free; the paper shows them as a picture only, and the second law is one such.
pub const LAWS: [Law; 2] = [
    Law { name: "norms near 1, logits times 6", middle: 2.449_489_742_783_178, spread: 0.05 },
    Law { name: "free norms", middle: 2.5, spread: 0.3 },
];

pub fn normal(rows: usize, columns: usize, rng: &mut impl Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(rng))
}

fn unit(x: Array1<f64>) -> Array1<f64> {
    let norm = x.dot(&x).sqrt();
    x / norm
}

/// Directions to gather around, in rows.
pub fn topics(rng: &mut impl Rng) -> Array2<f64> {
    let mut topics = normal(TOPICS, D, rng);
    for mut row in topics.rows_mut() {
        let direction = unit(row.to_owned());
        row.assign(&direction);
    }
    topics
}

/// Embeddings in rows, each around a topic of its own, of norms of a law.
pub fn embeddings(count: usize, topics: &Array2<f64>, law: Law, rng: &mut impl Rng) -> Array2<f32> {
    let mut out = normal(count, D, rng);
    for mut row in out.rows_mut() {
        let topic = topics.row(rng.random_range(0..TOPICS));
        let own = unit(row.to_owned());
        let direction = unit(&topic * COSINE + own * (1.0 - COSINE * COSINE).sqrt());
        let deviate: f64 = StandardNormal.sample(rng);
        row.assign(&(direction * (law.middle * (law.spread * deviate).exp())));
    }
    out.mapv(|v| v as f32)
}
