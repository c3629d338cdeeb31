//! Points of all kinds, in halves: plans are made on one and judged on the other.

use ndarray::{Array2, Axis, s};
use rand::RngExt;
use rand_distr::{Distribution, Poisson, StandardNormal, StudentT};
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::Planner;
use random_features::rng;

/// Normal coordinates of this standard deviation.
pub fn normal(n: usize, d: usize, deviation: f64, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn((n, d), || deviation * rng.sample::<f64, _>(StandardNormal))
}

/// Points of equal norm near ± one direction.
fn opposite(n: usize, d: usize, norm: f64, seed: u64) -> Array2<f64> {
    let mut x = normal(n, d, 0.1, seed);
    for (i, mut row) in x.rows_mut().into_iter().enumerate() {
        row[0] += if i.is_multiple_of(3) { -1.0 } else { 1.0 };
        let size = row.dot(&row).sqrt();
        row.mapv_inplace(|v| norm * v / size);
    }
    x
}

/// Points around four centres, which queries and keys share.
fn clustered(n: usize, d: usize, seed: u64) -> Array2<f64> {
    let centres = normal(4, d, 0.6, 999);
    let mut x = normal(n, d, 0.15, seed);
    x.rows_mut().into_iter().enumerate().for_each(|(i, mut row)| row += &centres.row((i * i) % 4));
    x
}

/// Mostly zeros.
fn counts(n: usize, d: usize, seed: u64) -> Array2<f64> {
    let (mut rng, law) = (rng(seed), Poisson::new(0.2).unwrap());
    Array2::from_shape_simple_fn((n, d), || 0.5 * law.sample(&mut rng))
}

/// Coordinates with a finite variance and no third moment.
fn heavy(n: usize, d: usize, seed: u64) -> Array2<f64> {
    let (mut rng, law) = (rng(seed), StudentT::new(3.0).unwrap());
    Array2::from_shape_simple_fn((n, d), || 0.25 * law.sample(&mut rng))
}

/// The attributes of a table, without the class at the end of each line.
fn table(text: &str, separator: char) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = (text.lines().filter(|line| !line.is_empty()))
        .map(|line| line.split(separator).map(|v| v.trim().parse().unwrap()).collect())
        .collect();
    Array2::from_shape_fn((rows.len(), rows[0].len() - 1), |(i, k)| rows[i][k])
}

pub fn banknote() -> Array2<f64> {
    table(include_str!("../../../examples/data/banknote.txt"), ',')
}

pub fn wifi() -> Array2<f64> {
    table(include_str!("../../../examples/data/wifi.txt"), '\t')
}

/// Two heads of a trained transformer, head × token × dim, in the layout of NumPy's files: 128 bytes, then numbers.
pub fn tokens(bytes: &[u8]) -> ndarray::Array3<f64> {
    let numbers = bytes[128..].chunks_exact(4).map(|v| f64::from(f32::from_le_bytes(v.try_into().unwrap())));
    ndarray::Array3::from_shape_vec((2, 122, 64), numbers.collect()).unwrap()
}

pub fn queries() -> ndarray::Array3<f64> {
    tokens(include_bytes!("../../../examples/attention/data/q.npy"))
}

pub fn keys() -> ndarray::Array3<f64> {
    tokens(include_bytes!("../../../examples/attention/data/k.npy"))
}

/// Coordinates of mean 0 and this standard deviation.
pub fn standardised(x: &Array2<f64>, deviation: f64) -> Array2<f64> {
    let (mean, spread) = (x.mean_axis(Axis(0)).unwrap(), x.std_axis(Axis(0), 0.0));
    deviation * (x - &mean) / &spread
}

/// Every second row, from this one on.
pub fn half(x: &Array2<f64>, first: usize) -> Array2<f64> {
    x.slice(s![first..;2, ..]).to_owned()
}

/// Queries and keys of one kind.
pub struct Kind {
    pub name: &'static str,
    pub queries: Array2<f64>,
    pub keys: Array2<f64>,
}

impl Kind {
    /// A plan of one half.
    fn planner(&self, first: usize, softmax: bool) -> Planner {
        let (queries, keys) = (half(&self.queries, first), half(&self.keys, first));
        match softmax {
            true => Planner::new(&queries, &keys).unwrap().kernel(Softmax::default()),
            // All points as one set, as a regression has them.
            false => {
                let all = ndarray::concatenate![Axis(0), queries, keys];
                Planner::of_one_set(&all).unwrap().kernel(Gaussian::default())
            }
        }
    }

    /// Planners over points to plan with, and over others to judge on: with the softmax or the Gaussian kernel.
    pub fn planners(&self, softmax: bool) -> [Planner; 2] {
        [0, 1].map(|first| self.planner(first, softmax))
    }
}

/// Six kinds of synthetic data and three sets that are bundled.
pub fn kinds() -> Vec<Kind> {
    type Make = fn(usize, u64) -> Array2<f64>;
    let synthetic: [(&'static str, Make); 6] = [
        ("small norms", |n, seed| normal(n, 8, 0.12, seed)),
        ("large norms", |n, seed| normal(n, 8, 1.2, seed)),
        ("equal norms, extreme angles", |n, seed| opposite(n, 8, 1.5, seed)),
        ("clustered", |n, seed| clustered(n, 8, seed)),
        ("sparse counts", |n, seed| counts(n, 16, seed)),
        ("heavy-tailed", |n, seed| heavy(n, 8, seed)),
    ];
    let make = |(k, (name, make)): (u64, (&'static str, Make))| Kind {
        name,
        queries: make(600, 100 + 2 * k),
        keys: make(800, 101 + 2 * k),
    };
    let mut kinds: Vec<Kind> = (0..).zip(synthetic).map(make).collect();
    for (name, x) in [("banknote", banknote()), ("wifi", wifi())] {
        // Logits of standard deviation 1/2 for softmax: x·y has variance d·s⁴.
        let deviation = (0.25 / x.ncols() as f64).powf(0.25);
        let x = standardised(&x, deviation);
        // Halves of the rows are queries and keys: the sets are sorted by class, and neighbours are alike.
        let part = |first: usize| {
            let rows: Vec<usize> = (0..x.nrows()).filter(|i| (i / 2) % 2 == first).collect();
            x.select(Axis(0), &rows)
        };
        kinds.push(Kind { name, queries: part(0), keys: part(1) });
    }
    // As attention scales them: logits q·k/√d.
    let scaled = |x: ndarray::Array3<f64>| x.slice(s![0, .., ..]).mapv(|v| v * 64f64.powf(-0.25));
    kinds.push(Kind { name: "attention", queries: scaled(queries()), keys: scaled(keys()) });
    kinds
}
