//! The samplers, the maps, and the errors of their estimates over many draws.

use ndarray::Array1;
use random_features::frequency::{
    Antithetic, Coupling, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Partial,
    RotationLaw, Simplex, SimplexPlus, Sobol, draw,
};
use random_features::{Map, Positive, Result, Trigonometric, rng};
use rayon::prelude::*;

/// The samplers that are compared, with the names that they get.
fn samplers() -> Vec<(&'static str, Box<dyn Coupling>)> {
    let hadamard = Hadamard::default();
    vec![
        ("independent", Box::new(Independent)),
        ("antithetic", Box::new(Antithetic(Independent))),
        ("orthogonal", Box::new(Orthogonal)),
        ("hadamard", Box::new(hadamard)),
        ("givens", Box::new(Givens::default())),
        ("simplex, fitted", Box::new(Simplex::default())),
        ("simplex, truncated", Box::new(Simplex::default().with_partial(Partial::Truncated))),
        ("simplex on hadamard", Box::new(Simplex::on(RotationLaw::Hadamard(hadamard)))),
        ("simplex+", Box::new(SimplexPlus::default())),
        ("halton", Box::new(Halton)),
        ("sobol", Box::new(Sobol)),
    ]
}

/// A feature map and where its errors are sampled.
struct Case {
    name: &'static str,
    make: fn(Frequencies) -> Result<Map<f64>>,
    /// The values of ‖x+y‖.
    grid: &'static [f64],
    /// Up to this ‖x+y‖ samples are compared with the closed form.
    tested: f64,
}

/// The squared error of a positive estimate has moments that grow like exp(‖x+y‖²) to a high power: soon
/// rare large estimates, which a sample may not hold, decide its mean and its standard error. Trigonometric
/// features are bounded.
const MAPS: [Case; 2] = [
    Case {
        name: "positive",
        make: |omega| Positive.gaussian(omega, 1.0),
        grid: &[0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5],
        tested: 0.75,
    },
    Case {
        name: "trigonometric",
        make: |omega| Trigonometric.gaussian(omega, 1.0),
        grid: &[0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0],
        tested: f64::INFINITY,
    },
];

/// The values of ‖x+y‖ through which closed forms are drawn.
const LINE: [f64; 2] = [0.2, 3.0];

/// The size of the experiment.
pub struct Setup {
    pub d: usize,
    pub m: usize,
    pub draws: u64,
    pub seed: u64,
}

/// All samplers with one map.
pub struct Panel {
    pub map: &'static str,
    /// Samples are compared with closed forms up to this ‖x+y‖.
    pub tested: f64,
    /// Each value of ‖x+y‖, with the closed form for independent frequencies.
    pub baseline: Vec<(f64, f64)>,
    pub curves: Vec<Curve>,
}

/// A sampler's errors over ‖x+y‖.
pub struct Curve {
    pub sampler: &'static str,
    pub points: Vec<Point>,
    /// The closed form, if there is one.
    pub line: Vec<(f64, f64)>,
}

/// Samples with larger relative standard errors are vague.
pub const VAGUE: f64 = 0.2;

/// A sampled mean squared error.
pub struct Point {
    pub v: f64,
    pub mse: f64,
    /// The standard error of `mse`, relative to it.
    pub error: f64,
    /// The distance from the closed form in standard errors, if there is one and it is tested here.
    pub z: Option<f64>,
}

impl Point {
    /// Whether the sample says little: not tested, not in the picture.
    pub fn vague(&self) -> bool {
        self.error > VAGUE
    }
}

/// x and y of equal norms, orthogonal, with ‖x+y‖ = `v`.
fn pair(directions: &Frequencies, v: f64) -> [Array1<f64>; 2] {
    [0, 1].map(|side| {
        let direction = directions.rows().row(side).to_owned();
        let norm = direction.dot(&direction).sqrt();
        direction * (v * 0.5f64.sqrt() / norm)
    })
}

/// The squared errors of one draw: a value for each map and each v.
fn squared_errors(setup: &Setup, coupling: &dyn Coupling, number: u64) -> Result<Vec<f64>> {
    let mut rng = rng(setup.seed);
    rng.set_stream(number);
    let directions = draw(setup.d, 2, &Orthogonal, &mut rng)?;
    let omega = draw(setup.d, setup.m, coupling, &mut rng)?;
    let mut errors = Vec::new();
    for Case { make, grid, .. } in &MAPS {
        let map = make(omega.clone())?;
        for &v in *grid {
            let [x, y] = pair(&directions, v);
            errors.push((map.estimate(&x, &y)? - (-0.5 * v * v).exp()).powi(2));
        }
    }
    Ok(errors)
}

/// Sums of values and of their squares, side by side for many quantities.
#[derive(Default)]
struct Sums(Vec<(f64, f64)>);

impl Sums {
    fn add(&mut self, terms: impl ExactSizeIterator<Item = (f64, f64)>) {
        self.0.resize(terms.len(), (0.0, 0.0));
        for (sum, term) in self.0.iter_mut().zip(terms) {
            *sum = (sum.0 + term.0, sum.1 + term.1);
        }
    }

    /// Mean and relative standard error of quantity `k` over `n` draws.
    fn mean(&self, k: usize, n: u64) -> (f64, f64) {
        let (n, (sum, squares)) = (n as f64, self.0[k]);
        let mean = sum / n;
        let variance = (squares - n * mean * mean).max(0.0) / (n - 1.0);
        (mean, (variance / n).sqrt() / mean)
    }
}

/// Draws of a task: large enough that a task is worth its overhead, and fixed, so that sums have one order
/// on any number of threads.
const CHUNK: u64 = 128;

/// The sums of squared errors over all draws.
fn sample(setup: &Setup, coupling: &dyn Coupling) -> Result<Sums> {
    let chunk = |k: u64| {
        let mut sums = Sums::default();
        for number in k * CHUNK..setup.draws.min((k + 1) * CHUNK) {
            sums.add(squared_errors(setup, coupling, number)?.iter().map(|e| (*e, e * e)));
        }
        Ok(sums)
    };
    let chunks: Vec<Sums> =
        (0..setup.draws.div_ceil(CHUNK)).into_par_iter().map(chunk).collect::<Result<_>>()?;
    let mut total = Sums::default();
    chunks.into_iter().for_each(|sums| total.add(sums.0.into_iter()));
    Ok(total)
}

/// The closed form of the mean squared error for each v, or `None`. It depends on the norms only.
fn closed(setup: &Setup, map: &Case, coupling: &dyn Coupling, v: &[f64]) -> Result<Option<Vec<f64>>> {
    let mut rng = rng(setup.seed);
    let directions = draw(setup.d, 2, &Orthogonal, &mut rng)?;
    let map = (map.make)(draw(setup.d, setup.m, coupling, &mut rng)?)?;
    let mse = |v: &f64| {
        let [x, y] = pair(&directions, *v);
        Ok(map.log_variance(&x, &y)?.map(f64::exp))
    };
    v.iter().map(mse).collect()
}

/// Runs every sampler with every map.
pub fn run(setup: &Setup) -> Result<Vec<Panel>> {
    let samplers = samplers();
    let sums = samplers.iter().map(|(_, coupling)| sample(setup, coupling)).collect::<Result<Vec<_>>>()?;
    let dense: Vec<f64> = (0..=100).map(|k| LINE[0] + (LINE[1] - LINE[0]) * f64::from(k) / 100.0).collect();
    let mut panels = Vec::new();
    let mut start = 0;
    for map in &MAPS {
        let independent = closed(setup, map, &Independent, map.grid)?.unwrap_or_default();
        let mut curves = Vec::new();
        for ((sampler, coupling), sums) in samplers.iter().zip(&sums) {
            let expected = closed(setup, map, coupling, map.grid)?;
            let point = |(k, &v): (usize, &f64)| {
                let (mse, error) = sums.mean(start + k, setup.draws);
                // Relative on both sides: a sample that misses the rare large errors has too small a mean and
                // too small a standard error, and their quotient hides that least.
                let z = expected.as_ref().map(|expected| (mse / expected[k] - 1.0) / error);
                let point = Point { v, mse, error, z: None };
                if v > map.tested || point.vague() { point } else { Point { z, ..point } }
            };
            let points = map.grid.iter().enumerate().map(point).collect();
            let line = closed(setup, map, coupling, &dense)?.unwrap_or_default();
            curves.push(Curve { sampler, points, line: dense.iter().copied().zip(line).collect() });
        }
        let baseline = map.grid.iter().copied().zip(independent).collect();
        panels.push(Panel { map: map.name, tested: map.tested, baseline, curves });
        start += map.grid.len();
    }
    Ok(panels)
}
