//! Laws of queries and keys, and points drawn from them.

use experiments::dataset::Dataset;
use ndarray::{Array1, Array2, Axis};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use random_features::rng_of_step;

use crate::item::Stop;

/// The dimension of random points.
const D: usize = 64;
/// The ratio of the largest to the smallest scale of a coordinate of heterogeneous points.
const SCALES: f64 = 8.0;

/// Names of laws, and whether they are data sets.
pub const LAWS: [(&str, bool); 8] = [
    ("normal", false),
    ("sphere", false),
    ("shifted", false),
    ("heterogeneous", false),
    ("abalone", true),
    ("banknote", true),
    ("car", true),
    ("wifi", true),
];

pub fn description(name: &str) -> &'static str {
    match name {
        "normal" => "x, y ~ N(0, σ²I), d = 64",
        "sphere" => "x, y uniform on a sphere, d = 64",
        "shifted" => "x ~ N(0, σ²I), y ~ N(σ1, σ²I), d = 64",
        "heterogeneous" => "x, y normal, scales of coordinates from σ to 8σ, d = 64",
        _ => "x from the training part, y from the test part",
    }
}

/// Queries and keys in rows, scaled so that the mean square norm of all points is 1.
pub struct Regime {
    pub queries: Array2<f64>,
    pub keys: Array2<f64>,
}

impl Regime {
    pub fn draw(name: &str, data: Option<&Dataset>, points: usize, seed: u64) -> Result<Self, Stop> {
        let place = LAWS.iter().position(|(law, _)| *law == name).unwrap_or_default();
        let mut rng = rng_of_step(seed, 1 + place as u64);
        let [queries, keys] = match (name, data) {
            (_, Some(data)) => real(data, points, seed, &mut rng)?,
            ("sphere", _) => normal(points, &mut rng).map(on_sphere),
            ("shifted", _) => {
                let [queries, keys] = normal(points, &mut rng);
                [queries, keys + 1.0]
            }
            ("heterogeneous", _) => heterogeneous(points, &mut rng),
            _ => normal(points, &mut rng),
        };
        let squares: f64 = queries.iter().chain(&keys).map(|v| v * v).sum();
        let root = (squares / (queries.nrows() + keys.nrows()) as f64).sqrt();
        Ok(Regime { queries: queries / root, keys: keys / root })
    }

    /// The dimension d of the points.
    pub fn dim(&self) -> usize {
        self.queries.ncols()
    }
}

fn normal(points: usize, rng: &mut impl Rng) -> [Array2<f64>; 2] {
    [(); 2].map(|()| Array2::from_shape_simple_fn((points, D), || StandardNormal.sample(rng)))
}

fn on_sphere(mut points: Array2<f64>) -> Array2<f64> {
    for mut row in points.rows_mut() {
        let norm = row.dot(&row).sqrt();
        row /= norm;
    }
    points
}

/// Points of both sides with equal log-uniform scales, which the coordinates of each side get in an order of its own: neither the
/// products nor the ratios of the two sides' scales are equal.
fn heterogeneous(points: usize, rng: &mut impl Rng) -> [Array2<f64>; 2] {
    normal(points, rng).map(|x| {
        let mut scales: Vec<f64> = (0..D).map(|l| SCALES.powf(l as f64 / (D as f64 - 1.0))).collect();
        scales.shuffle(rng);
        x * &Array1::from(scales)
    })
}

/// Points of a data set whose attributes have mean 0 and deviation 1 over its training part, drawn with replacement.
fn real(data: &Dataset, points: usize, seed: u64, rng: &mut impl Rng) -> Result<[Array2<f64>; 2], Stop> {
    let split = data.split(seed)?;
    Ok([split.train.points, split.test.points].map(|x| {
        let rows: Vec<usize> = (0..points).map(|_| rng.random_range(0..x.nrows())).collect();
        x.select(Axis(0), &rows)
    }))
}
