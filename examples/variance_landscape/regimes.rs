//! The regimes: laws of queries and keys, and points drawn from them.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use random_features::rng;

use crate::dataset::Dataset;

/// The ratio of the largest to the smallest scale of a coordinate in the heterogeneous regime.
const SCALES: f64 = 8.0;

/// Queries and keys; row i of one and row i of the other are a pair.
pub struct Regime {
    pub name: &'static str,
    pub description: &'static str,
    pub queries: Array2<f64>,
    pub keys: Array2<f64>,
}

/// How many points are drawn, of what dimension, and from which seed.
pub struct Setup {
    pub d: usize,
    pub pairs: usize,
    pub seed: u64,
}

impl Regime {
    /// Draws all regimes, each scaled so that the mean square norm of its points is 1.
    pub fn all(setup: &Setup) -> Result<Vec<Self>, String> {
        let banknote = real(setup, 4, "banknote", include_str!("../data/banknote.txt"))?;
        let wifi = real(setup, 5, "wifi", include_str!("../data/wifi.txt"))?;
        let regimes = [
            ("normal", "x, y ~ N(0, σ²I)", normal(setup, 0)),
            ("sphere", "x, y uniform on a sphere", sphere(setup, 1)),
            ("shifted", "x ~ N(0, σ²I), y ~ N(σ1, σ²I)", shifted(setup, 2)),
            ("heterogeneous", "x, y normal, scales of coordinates from σ to 8σ", heterogeneous(setup, 3)),
            ("banknote", "real data: x from the training part, y from the test part", banknote),
            ("wifi", "real data: x from the training part, y from the test part", wifi),
        ];
        let regime = |(name, description, [queries, keys]): (_, _, [Array2<f64>; 2])| {
            let squares: f64 = queries.iter().chain(&keys).map(|v| v * v).sum();
            let root = (squares / (queries.nrows() + keys.nrows()) as f64).sqrt();
            Regime { name, description, queries: queries / root, keys: keys / root }
        };
        Ok(regimes.into_iter().map(regime).collect())
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.queries.ncols()
    }
}

/// A generator for one regime: its points do not depend on what others draw.
fn generator(setup: &Setup, stream: u64) -> impl Rng {
    let mut rng = rng(setup.seed);
    rng.set_stream(stream);
    rng
}

fn gaussian(setup: &Setup, rng: &mut impl Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn((setup.pairs, setup.d), || StandardNormal.sample(rng))
}

fn normal(setup: &Setup, stream: u64) -> [Array2<f64>; 2] {
    let mut rng = generator(setup, stream);
    [(); 2].map(|()| gaussian(setup, &mut rng))
}

fn sphere(setup: &Setup, stream: u64) -> [Array2<f64>; 2] {
    normal(setup, stream).map(|mut points| {
        for mut row in points.rows_mut() {
            let norm = row.dot(&row).sqrt();
            row /= norm;
        }
        points
    })
}

fn shifted(setup: &Setup, stream: u64) -> [Array2<f64>; 2] {
    let [queries, keys] = normal(setup, stream);
    [queries, keys + 1.0]
}

/// The same scales for both sides, log-uniform, which the coordinates of each side get in an order of its own:
/// neither the products nor the ratios of the two sides' scales are equal.
fn heterogeneous(setup: &Setup, stream: u64) -> [Array2<f64>; 2] {
    let mut rng = generator(setup, stream);
    let last = setup.d as f64 - 1.0;
    [(); 2].map(|()| {
        let mut scales: Vec<f64> = (0..setup.d).map(|l| SCALES.powf(l as f64 / last)).collect();
        scales.shuffle(&mut rng);
        gaussian(setup, &mut rng) * &ndarray::Array1::from(scales)
    })
}

/// Points of a data set whose attributes have mean 0 and deviation 1 over its training part, drawn with
/// replacement.
fn real(setup: &Setup, stream: u64, name: &str, text: &str) -> Result<[Array2<f64>; 2], String> {
    let split = Dataset::parse(name, text)?.split(setup.seed)?;
    let mut rng = generator(setup, stream);
    Ok([split.train.points, split.test.points].map(|points| {
        let rows: Vec<usize> = (0..setup.pairs).map(|_| rng.random_range(0..points.nrows())).collect();
        points.select(Axis(0), &rows)
    }))
}
