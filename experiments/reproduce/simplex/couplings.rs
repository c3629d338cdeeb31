//! The errors of all samplers of frequencies over many draws, beside their closed forms where there are some.
//!
//! Points x ⟂ y of equal norm, so that ‖x+y‖ = ‖x−y‖ = v and the Gaussian kernel is exp(−v²/2). The directions of x and y are drawn
//! anew, uniformly, for each draw: the errors of some samplers depend on them, and an average over all is a fair comparison. Every
//! sampler gets the same ones.

use ndarray::Array1;
use random_features::extend::Coupling;
use random_features::frequency::{
    Antithetic, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex, SimplexPlus, Sobol,
};
use random_features::workbench::RotationLaw;
use random_features::{Map, Positive, Result, Trigonometric, rng_of_step};
use rayon::prelude::*;

use crate::mean::Mean;

/// The samplers that are compared, with the names that they get.
pub fn samplers() -> Vec<(&'static str, Box<dyn Coupling>)> {
    let hadamard = Hadamard::default();
    vec![
        ("independent", Box::new(Independent)),
        ("antithetic", Box::new(Antithetic(Independent))),
        ("orthogonal", Box::new(Orthogonal)),
        ("hadamard", Box::new(hadamard)),
        ("givens", Box::new(Givens::default())),
        ("simplex, truncated", Box::new(Simplex::default().with_truncated_blocks())),
        ("simplex, fitted", Box::new(Simplex::default())),
        ("simplex on hadamard", Box::new(Simplex::on(RotationLaw::Hadamard(hadamard)))),
        ("simplex+", Box::new(SimplexPlus::default())),
        ("halton", Box::new(Halton)),
        ("sobol", Box::new(Sobol)),
    ]
}

/// A feature map and where its errors are sampled.
pub struct Case {
    pub name: &'static str,
    make: fn(Frequencies) -> Result<Map<f64>>,
    /// The values of ‖x+y‖.
    pub grid: &'static [f64],
    /// Up to this ‖x+y‖ samples are compared with the closed form.
    tested: f64,
}

/// The squared error of a positive estimate has moments that grow like exp(‖x+y‖²) to a high power: soon
/// rare large estimates, which a sample may not hold, decide its mean and its standard error. Trigonometric
/// features are bounded.
pub const MAPS: [Case; 2] = [
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

/// Samples with larger relative standard errors say little: they are not compared, and not in the picture.
const VAGUE: f64 = 0.2;

/// The size of a run.
pub struct Setup {
    pub d: usize,
    pub m: usize,
    pub draws: u64,
    pub seed: u64,
}

impl Setup {
    /// The mean squared errors of a sampler: for each map and each v, the mean and its standard error.
    pub fn sample(&self, coupling: &dyn Coupling) -> Result<Vec<f64>> {
        let chunk = |k: u64| {
            let mut sums = Sums::default();
            for number in k * CHUNK..self.draws.min((k + 1) * CHUNK) {
                sums.add(self.squared_errors(coupling, number)?.iter().map(|e| (*e, e * e)));
            }
            Ok(sums)
        };
        let chunks: Vec<Sums> =
            (0..self.draws.div_ceil(CHUNK)).into_par_iter().map(chunk).collect::<Result<_>>()?;
        let mut total = Sums::default();
        chunks.into_iter().for_each(|sums| total.add(sums.0.into_iter()));
        Ok(total.means(self.draws))
    }

    /// The squared errors of one draw: a value for each map and each v.
    fn squared_errors(&self, coupling: &dyn Coupling, number: u64) -> Result<Vec<f64>> {
        let mut rng = rng_of_step(self.seed, number);
        let directions = Orthogonal.draw(self.d, 2, rng.next_u64())?;
        let omega = coupling.draw(self.d, self.m, rng.next_u64())?;
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

    /// The closed form of the mean squared error for each v, or `None`. It depends on the norms only.
    pub fn closed(&self, case: &Case, coupling: &dyn Coupling, v: &[f64]) -> Result<Option<Vec<f64>>> {
        let mut rng = rng_of_step(self.seed, 0);
        let directions = Orthogonal.draw(self.d, 2, rng.next_u64())?;
        let map = (case.make)(coupling.draw(self.d, self.m, rng.next_u64())?)?;
        let mse = |v: &f64| {
            let [x, y] = pair(&directions, *v);
            Ok(map.log_variance(&x, &y)?.map(f64::exp))
        };
        v.iter().map(mse).collect()
    }
}

impl Case {
    /// How far samples are from the closed forms, in standard errors, where they are compared.
    ///
    /// Relative on both sides: a sample that misses the rare large errors has too small a mean and too small a standard error, and
    /// their quotient hides that least.
    pub fn distances<'a>(&'a self, sampled: &'a [Mean], closed: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let compared = |v: &f64, mean: &Mean| *v <= self.tested && !vague(mean);
        let all = self.grid.iter().zip(sampled).zip(closed);
        all.filter(move |((v, mean), _)| compared(v, mean))
            .map(|((_, mean), closed)| (mean.value / closed - 1.0) / (mean.error / mean.value))
    }
}

/// Whether a sample says little.
pub fn vague(mean: &Mean) -> bool {
    mean.error > VAGUE * mean.value
}

/// x and y of equal norms, orthogonal, with ‖x+y‖ = `v`.
fn pair(directions: &Frequencies, v: f64) -> [Array1<f64>; 2] {
    [0, 1].map(|side| {
        let direction = directions.rows().row(side).to_owned();
        let norm = direction.dot(&direction).sqrt();
        direction * (v * 0.5f64.sqrt() / norm)
    })
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

    /// Mean and standard error of each quantity over `n` draws.
    fn means(&self, n: u64) -> Vec<f64> {
        let n = n as f64;
        let mean = |(sum, squares): &(f64, f64)| {
            let mean = sum / n;
            let variance = (squares - n * mean * mean).max(0.0) / (n - 1.0);
            [mean, (variance / n).sqrt()]
        };
        self.0.iter().flat_map(mean).collect()
    }
}

/// Draws of a task: large enough that a task is worth its overhead, and fixed, so that sums have one order
/// on any number of threads.
const CHUNK: u64 = 128;
