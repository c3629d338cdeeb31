//! Errors of estimates over many draws, beside their closed forms.

use ndarray::{Array1, Array2, Axis};
use random_features::frequency::{Orthogonal, draw};
use random_features::{Result, rng};
use rayon::prelude::*;

use crate::methods::{Cost, METHODS, Method, SIZED_FOR, Size};

/// The norms of the points.
pub const NORMS: [f64; 3] = [1.0, 1.25, 1.5];

/// The angles between them, in degrees.
pub const ANGLES: [f64; 13] =
    [0.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0, 135.0, 150.0, 165.0, 180.0];

/// Positive and hyperbolic estimates are sums of exponentials: their squared errors have moments that grow like
/// exp(‖x+y‖²) to a high power, and soon rare large errors, which a sample may not hold, decide its mean and its
/// standard error. Up to this ‖x+y‖² samples are compared with closed forms; trigonometric ones are bounded, and
/// always compared.
pub const TESTED: f64 = 1.0;

/// Up to this ‖x+y‖² samples are worth a place in the picture.
const SHOWN: f64 = 2.0;

/// Samples with larger relative standard errors are vague.
pub const VAGUE: f64 = 0.2;

/// Below this the relative error is 0 but for rounding.
const EXACT: f64 = 1e-6;

/// The size of the experiment.
pub struct Setup {
    pub d: usize,
    /// The number of positive features whose cost all methods have.
    pub features: usize,
    pub draws: u64,
    pub seed: u64,
}

/// All methods at one cost.
pub struct Block {
    pub cost: Cost,
    pub sizes: Vec<(Method, Size)>,
    /// For each norm.
    pub panels: Vec<Panel>,
}

/// All methods at one norm.
pub struct Panel {
    pub r: f64,
    /// For each method, its points over the angle.
    pub columns: Vec<Vec<Point>>,
}

/// A sampled error.
pub struct Point {
    pub degrees: f64,
    /// The relative error √MSE/K by the closed form.
    pub closed: f64,
    /// The same of the sample.
    pub sampled: f64,
    /// The standard error of the sampled MSE, relative to it.
    pub error: f64,
    /// The distance of the sampled MSE from its closed form in standard errors, where they are compared.
    pub z: Option<f64>,
    /// Whether the sample is worth a place in the picture.
    pub shown: bool,
}

impl Point {
    pub fn exact(&self) -> bool {
        self.closed < EXACT
    }
}

/// x and, in rows, y at all angles from it, for a norm.
struct Points {
    r: f64,
    x: Array2<f64>,
    y: Array2<f64>,
}

impl Points {
    /// Points in the plane of two orthogonal directions: which, is the same to independent frequencies.
    fn new(setup: &Setup, r: f64) -> Result<Self> {
        let directions = draw(setup.d, 2, &Orthogonal, &mut rng(setup.seed))?;
        let unit = |side: usize| -> Array1<f64> {
            let direction = directions.rows().row(side).to_owned();
            let norm = direction.dot(&direction).sqrt();
            direction / norm
        };
        let (u, v) = (unit(0), unit(1));
        let mut y = Array2::zeros((ANGLES.len(), setup.d));
        for (mut y, degrees) in y.rows_mut().into_iter().zip(ANGLES) {
            let (sin, cos) = degrees.to_radians().sin_cos();
            y.assign(&(&u * (r * cos) + &v * (r * sin)));
        }
        Ok(Points { r, x: (u * r).insert_axis(Axis(0)), y })
    }
}

/// The squared relative errors of one draw: a value for each method, norm and angle.
fn squared_errors(
    setup: &Setup,
    sizes: &[(Method, Size)],
    points: &[Points],
    number: u64,
) -> Result<Vec<f64>> {
    let mut rng = rng(setup.seed);
    // Stream 0 has the directions.
    rng.set_stream(number + 1);
    let mut errors = Vec::with_capacity(sizes.len() * points.len() * ANGLES.len());
    for (method, size) in sizes {
        let maps = method.draw(setup.d, &NORMS, *size, &mut rng)?;
        for (map, Points { x, y, .. }) in maps.iter().zip(points) {
            let estimates = map.gram(x, y)?;
            let kernel = y.dot(&x.row(0)).mapv(f64::exp);
            errors.extend(estimates.iter().zip(&kernel).map(|(e, k)| (e / k - 1.0).powi(2)));
        }
    }
    Ok(errors)
}

/// Draws of a task: large enough that a task is worth its overhead, and fixed, so that sums have one order on any
/// number of threads.
const CHUNK: u64 = 64;

/// The sums of squared errors and of their squares over all draws.
fn sample(setup: &Setup, sizes: &[(Method, Size)], points: &[Points]) -> Result<Vec<[f64; 2]>> {
    let empty = || vec![[0.0; 2]; sizes.len() * points.len() * ANGLES.len()];
    let add = |sum: &mut [f64; 2], [a, b]: [f64; 2]| *sum = [sum[0] + a, sum[1] + b];
    let chunk = |k: u64| {
        let mut sums = empty();
        for number in k * CHUNK..setup.draws.min((k + 1) * CHUNK) {
            let errors = squared_errors(setup, sizes, points, number)?;
            sums.iter_mut().zip(errors).for_each(|(sum, e)| add(sum, [e, e * e]));
        }
        Ok(sums)
    };
    let chunks: Vec<Vec<[f64; 2]>> =
        (0..setup.draws.div_ceil(CHUNK)).into_par_iter().map(chunk).collect::<Result<_>>()?;
    let mut total = empty();
    for sums in chunks {
        total.iter_mut().zip(sums).for_each(|(total, sum)| add(total, sum));
    }
    Ok(total)
}

/// A sampled point from its sums over the draws.
fn point(setup: &Setup, (method, size): (Method, Size), r: f64, degrees: f64, sums: [f64; 2]) -> Point {
    let angle = degrees.to_radians();
    let closed = method.ln_relative_error(angle, r, size).exp();
    let (n, [sum, squares]) = (setup.draws as f64, sums);
    let mean = sum / n;
    let variance = (squares - n * mean * mean).max(0.0) / (n - 1.0);
    let error = (variance / n).sqrt() / mean;
    // Relative on both sides: a sample that misses the rare large errors has too small a mean and too small a
    // standard error, and their quotient hides that least.
    let z = (mean / (closed * closed) - 1.0) / error;
    let sum = (2.0 * r * (0.5 * angle).cos()).powi(2);
    // The angles are such that the sum is at the bound, but for rounding.
    let within = |bound: f64| method == Method::Trigonometric || sum <= bound + 1e-9;
    let clear = closed >= EXACT && error <= VAGUE;
    let z = (clear && within(TESTED)).then_some(z);
    Point { degrees, closed, sampled: mean.sqrt(), error, z, shown: clear && within(SHOWN) }
}

/// Samples every method at every cost.
pub fn run(setup: &Setup) -> Result<Vec<Block>> {
    let points = NORMS.iter().map(|r| Points::new(setup, *r)).collect::<Result<Vec<_>>>()?;
    let block = |cost: Cost| {
        let size = |method: Method| Some((method, cost.size(method, setup.d, setup.features, SIZED_FOR)?));
        let sizes: Vec<_> = METHODS.into_iter().filter_map(size).collect();
        let sums = sample(setup, &sizes, &points)?;
        let column = |k: usize, p: usize| {
            let start = (k * points.len() + p) * ANGLES.len();
            let sums = ANGLES.iter().zip(&sums[start..]);
            sums.map(|(degrees, sums)| point(setup, sizes[k], points[p].r, *degrees, *sums)).collect()
        };
        let panel =
            |p: usize| Panel { r: points[p].r, columns: (0..sizes.len()).map(|k| column(k, p)).collect() };
        let panels = (0..points.len()).map(panel).collect();
        Ok(Block { cost, sizes, panels })
    };
    [Cost::Features, Cost::Work].into_iter().map(block).collect()
}

/// The largest difference between the closed forms of relative errors and those that the maps give of the points
/// themselves, relative to the error.
pub fn disagreement(setup: &Setup, blocks: &[Block]) -> Result<f64> {
    let points = NORMS.iter().map(|r| Points::new(setup, *r)).collect::<Result<Vec<_>>>()?;
    let mut largest = 0.0f64;
    for (method, size) in blocks.iter().flat_map(|block| &block.sizes) {
        let maps = method.draw(setup.d, &NORMS, *size, &mut rng(setup.seed))?;
        for (map, Points { r, x, y }) in maps.iter().zip(&points) {
            for (y, degrees) in y.rows().into_iter().zip(ANGLES) {
                let closed = method.ln_relative_error(degrees.to_radians(), *r, *size);
                let variance = map.log_variance(&x.row(0), &y)?.unwrap_or(f64::NAN);
                let difference = (0.5 * variance - x.row(0).dot(&y) - closed).exp_m1().abs();
                if closed >= EXACT.ln() {
                    // What is not a number is as bad as any difference.
                    largest = largest.max(if difference.is_nan() { f64::INFINITY } else { difference });
                }
            }
        }
    }
    Ok(largest)
}
