//! What the integration tests share: the maps, the couplings, the naive loops, and the statistics of a sample.
#![allow(dead_code)]

use ndarray::{Array1, Array2};
use random_features::frequency::simplex::{Partial, Rotation};
use random_features::frequency::{
    Antithetic, Coupling, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex,
    SimplexPlus, Sobol, draw,
};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::Target;
use random_features::{FeatureMap, Hyperbolic, Positive, Real, Trigonometric, rng};

/// A map by name: how to make it, and its definition as a naive loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name {
    Trigonometric,
    Positive,
    Hyperbolic,
}

pub const MAPS: [Name; 3] = [Name::Trigonometric, Name::Positive, Name::Hyperbolic];

impl Name {
    pub fn make<T: Real>(self, omega: Frequencies, target: Target) -> Box<dyn FeatureMap<T>> {
        match self {
            Name::Trigonometric => Box::new(Trigonometric::new(omega, target).unwrap()),
            Name::Positive => Box::new(Positive::new(omega, target).unwrap()),
            Name::Hyperbolic => Box::new(Hyperbolic::new(omega, target).unwrap()),
        }
    }

    /// The features of one point for the softmax kernel, straight from the definition, in `f64`.
    pub fn naive(self, omega: &Frequencies, x: &[f64]) -> Vec<f64> {
        let m = omega.count() as f64;
        let half_norm = 0.5 * x.iter().map(|v| v * v).sum::<f64>();
        let projections: Vec<f64> =
            omega.rows().rows().into_iter().map(|w| w.iter().zip(x).map(|(w, v)| w * v).sum()).collect();
        let each = |f: &dyn Fn(f64) -> f64| projections.iter().map(|p| f(*p)).collect::<Vec<_>>();
        match self {
            Name::Trigonometric => {
                let scale = half_norm.exp() / m.sqrt();
                [each(&|p| scale * p.cos()), each(&|p| scale * p.sin())].concat()
            }
            Name::Positive => each(&|p| (p - half_norm).exp() / m.sqrt()),
            Name::Hyperbolic => {
                let scale = (2.0 * m).sqrt();
                [each(&|p| (p - half_norm).exp() / scale), each(&|p| (-p - half_norm).exp() / scale)].concat()
            }
        }
    }
}

pub fn couplings() -> Vec<Box<dyn Coupling>> {
    vec![
        Box::new(Independent),
        Box::new(Orthogonal),
        Box::new(Antithetic(Independent)),
        Box::new(Antithetic(Orthogonal)),
    ]
}

/// Those that exist in two dimensions and more, besides.
pub fn couplings_from_two_dimensions() -> Vec<Box<dyn Coupling>> {
    let truncated = Simplex { partial: Partial::Truncated, ..Simplex::default() };
    let mut all = couplings();
    all.extend([
        Box::new(Simplex::default()) as Box<dyn Coupling>,
        Box::new(truncated),
        Box::new(SimplexPlus::default()),
        Box::new(Antithetic(Simplex::default())),
    ]);
    all
}

/// Those without a closed form that are exact in law.
pub fn quasi_couplings() -> Vec<Box<dyn Coupling>> {
    vec![Box::new(Halton), Box::new(Sobol), Box::new(Antithetic(Sobol))]
}

/// Those whose law is approximate.
pub fn approximate_couplings() -> Vec<Box<dyn Coupling>> {
    let hadamard = Rotation::Hadamard(Hadamard::default());
    vec![
        Box::new(Hadamard::default()),
        Box::new(Hadamard { rounds: 1 }),
        Box::new(Antithetic(Hadamard::default())),
        Box::new(Antithetic(Antithetic(Hadamard::default()))),
        Box::new(Simplex::on(hadamard)),
        Box::new(Simplex { partial: Partial::Truncated, rotation: hadamard }),
        Box::new(Givens::default()),
        Box::new(Antithetic(Givens { rotations: Some(5) })),
        Box::new(Simplex::on(Rotation::Givens(Givens::default()))),
    ]
}

pub fn frequencies(d: usize, m: usize, coupling: &dyn Coupling, seed: u64) -> Frequencies {
    draw(d, m, coupling, &mut rng(seed)).unwrap()
}

pub fn softmax() -> Target {
    Softmax::default().into()
}

pub fn gaussian() -> Target {
    Gaussian::default().into()
}

/// Fixed pseudo-random points in [−1, 1], scaled.
pub fn points<T: Real>(n: usize, d: usize, scale: f64) -> Array2<T> {
    Array2::from_shape_fn((n, d), |(i, k)| {
        let u = ((i * 7919 + k * 104_729 + 13) % 10_007) as f64 / 10_007.0;
        T::narrow(scale * (2.0 * u - 1.0))
    })
}

pub fn point<T: Real>(d: usize, seed: usize, norm: f64) -> Array1<T> {
    let raw: Vec<f64> = (0..d).map(|k| (((k + 1) * (seed + 3) * 7919) % 101) as f64 / 50.0 - 1.0).collect();
    let size = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
    raw.iter().map(|v| T::narrow(v / size * norm)).collect()
}

/// Mean of a sample and its standard error.
pub struct Sample {
    pub mean: f64,
    pub error: f64,
}

impl Sample {
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Sample { mean, error: (variance / n).sqrt() }
    }

    /// Standard errors between the mean and what it should be.
    pub fn z(&self, expected: f64) -> f64 {
        (self.mean - expected) / self.error
    }
}
