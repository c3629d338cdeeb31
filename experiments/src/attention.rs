//! Maps for attention, and the tokens that they are compared on.

use ndarray::{Array4, ArrayView2};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::Attention;
use random_features::data::{PairStatistics, Statistics};
use random_features::extend::Coupling;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::RootDim;
use random_features::{Gerf, Hyperbolic, Positive, Result, Trigonometric, rng_of_step};

/// A kind of map.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Trigonometric,
    Positive,
    Hyperbolic,
    Oprf,
    Regularised,
}

pub const KINDS: [(&str, Kind); 5] = [
    ("trigonometric", Kind::Trigonometric),
    ("positive", Kind::Positive),
    ("hyperbolic", Kind::Hyperbolic),
    ("OPRF", Kind::Oprf),
    ("regularised", Kind::Regularised),
];

/// The number of a generator's stream: every draw has its own.
#[derive(Clone, Copy)]
pub struct Stream {
    pub seed: u64,
    pub number: u64,
}

impl Stream {
    pub fn new(seed: u64, parts: [usize; 3]) -> Self {
        Stream { seed, number: parts.iter().fold(0, |number, part| (number << 21) | *part as u64) }
    }
}

/// Attention with m frequencies of a kind. `squared_sum`, the mean of ‖x+y‖² over pairs of scaled tokens, is what OPRF
/// takes from the data.
pub fn attention(
    kind: Kind,
    coupling: &dyn Coupling,
    (d, m): (usize, usize),
    squared_sum: f64,
    stream: Stream,
) -> Result<Attention<f32>> {
    let mut rng = rng_of_step(stream.seed, stream.number);
    let omega = match kind {
        Kind::Regularised => coupling.with_radii(RootDim).draw(d, m, rng.next_u64())?,
        _ => coupling.draw(d, m, rng.next_u64())?,
    };
    match kind {
        // Its weights may be negative.
        Kind::Trigonometric => Attention::signed(vec![Trigonometric.softmax(omega)?]),
        Kind::Positive | Kind::Regularised => Attention::new(Positive.softmax(omega)?),
        Kind::Hyperbolic => Attention::new(Hyperbolic.softmax(omega)?),
        Kind::Oprf => Attention::new(Gerf::optimal(d, squared_sum)?.softmax(omega)?),
    }
}

/// The mean of ‖x+y‖² over pairs of a query and a key, both times d^(−¼).
pub fn squared_sum(queries: ArrayView2<'_, f32>, keys: ArrayView2<'_, f32>) -> Result<f64> {
    let (x, y) = (Statistics::of(&queries)?, Statistics::of(&keys)?);
    let sum = PairStatistics::new(&x, &y)?.mean_squared_sum(GerfSign::Plus);
    Ok(sum / (queries.ncols() as f64).sqrt())
}

/// Random tokens with entries N(0, size²), as one head. Nothing but them is allocated.
pub fn tokens((length, d): (usize, usize), size: f64, stream: Stream) -> Array4<f32> {
    let mut rng = rng_of_step(stream.seed, stream.number);
    let entry = || (size * Distribution::<f64>::sample(&StandardNormal, &mut rng)) as f32;
    Array4::from_shape_simple_fn((1, 1, length, d), entry)
}

/// Σ (a − b)².
pub fn square_distance(a: &Array4<f32>, b: &Array4<f32>) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}
