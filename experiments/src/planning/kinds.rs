//! Kinds of queries and keys with one property each, in halves: plans are made on one and judged on the other.

use ndarray::{Array2, Axis, s};
use rand_distr::{Distribution, Poisson, StandardNormal, StudentT};
use random_features::Result;
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::Planner;
use random_features::rng;

/// Queries and keys of one kind.
pub struct Kind {
    pub name: &'static str,
    pub queries: Array2<f64>,
    pub keys: Array2<f64>,
}

impl Kind {
    /// Rows of a table as queries and keys, with logits of standard deviation ½: x·y has the variance d·s⁴.
    pub fn of_table(name: &'static str, x: &Array2<f64>) -> Self {
        let deviation = (0.25 / x.ncols() as f64).powf(0.25);
        let x = standardised(x, deviation);
        // Tables are sorted by class, and neighbours are alike.
        let part = |first: usize| {
            let rows: Vec<usize> = (0..x.nrows()).filter(|i| (i / 2) % 2 == first).collect();
            x.select(Axis(0), &rows)
        };
        Kind { name, queries: part(0), keys: part(1) }
    }

    /// Planners over points to plan with, and over others to judge on: with the softmax or the Gaussian kernel.
    pub fn planners(&self, softmax: bool) -> Result<[Planner; 2]> {
        Ok([self.planner(0, softmax)?, self.planner(1, softmax)?])
    }

    fn planner(&self, first: usize, softmax: bool) -> Result<Planner> {
        let (queries, keys) = (half(&self.queries, first), half(&self.keys, first));
        match softmax {
            true => Ok(Planner::new(&queries, &keys)?.with_kernel(Softmax::default())),
            // All points as one set, as a regression has them.
            false => {
                let all = ndarray::concatenate![Axis(0), queries, keys];
                Ok(Planner::of_one_set(&all)?.with_kernel(Gaussian::default()))
            }
        }
    }
}

/// Six kinds, the same in every run.
pub fn synthetic() -> Vec<Kind> {
    type Make = fn(usize, u64) -> Array2<f64>;
    let all: [(&'static str, Make); 6] = [
        ("small", |n, seed| normal(n, 8, 0.12, seed)),
        ("large", |n, seed| normal(n, 8, 1.2, seed)),
        ("equal-norms", |n, seed| opposite(n, 8, 1.5, seed)),
        ("clustered", |n, seed| clustered(n, 8, seed)),
        ("counts", |n, seed| counts(n, 16, seed)),
        ("heavy-tailed", |n, seed| heavy_tailed(n, 8, seed)),
    ];
    let kind = |(k, (name, make)): (u64, (&'static str, Make))| Kind {
        name,
        queries: make(600, 100 + 2 * k),
        keys: make(800, 101 + 2 * k),
    };
    (0..).zip(all).map(kind).collect()
}

/// Normal coordinates of this standard deviation.
pub fn normal(n: usize, d: usize, deviation: f64, seed: u64) -> Array2<f64> {
    drawn((n, d), StandardNormal, seed) * deviation
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
    x.rows_mut().into_iter().enumerate().for_each(|(i, mut row)| row += &centres.row((i / 2) % 4));
    x
}

/// Counts, most of which are zero.
fn counts(n: usize, d: usize, seed: u64) -> Array2<f64> {
    Poisson::new(0.2).map_or_else(|_| Array2::zeros((n, d)), |law| 0.5 * drawn((n, d), law, seed))
}

/// Coordinates with a finite variance and no third moment.
fn heavy_tailed(n: usize, d: usize, seed: u64) -> Array2<f64> {
    StudentT::new(3.0).map_or_else(|_| Array2::zeros((n, d)), |law| 0.25 * drawn((n, d), law, seed))
}

fn drawn<D: Distribution<f64>>(shape: (usize, usize), law: D, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn(shape, || law.sample(&mut rng))
}

/// Coordinates of mean 0 and this standard deviation; constant ones are only centred.
pub fn standardised(x: &Array2<f64>, deviation: f64) -> Array2<f64> {
    let mean = x.mean_axis(Axis(0)).unwrap_or_default();
    let spread = x.std_axis(Axis(0), 0.0).mapv(|s| if s > 1e-12 { s } else { 1.0 });
    deviation * (x - &mean) / &spread
}

/// Every second row, from this one on.
pub fn half(x: &Array2<f64>, first: usize) -> Array2<f64> {
    x.slice(s![first..;2, ..]).to_owned()
}
