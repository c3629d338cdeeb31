//! What radii that are stratified over a whole draw change for two rows with independent directions.
//!
//! Rows whose directions are independent have the radii of two different strata of m. With G(r) the mean of a feature over
//! directions and gₐ its integral over stratum a, the covariance of their features is −m/(m − 1) Σₐ (gₐ − ḡ)²: it is 0 for
//! independent radii, and never above. Source: new.

use std::sync::Arc;

use super::radial_nodes::{Quantile, RadiusNode, RadiusNodes};
use super::radial_pairs::{Probes, probes};
use super::sphere_mean::SphereMean;
use crate::kept::Kept;
use crate::numeric::special::ln_0f1;

/// The strata of a law of radii, as nodes.
#[derive(Debug)]
pub(super) struct OverallStrata {
    dim: f64,
    strata: Vec<Vec<RadiusNode>>,
    mean: SphereMean,
}

/// Which strata are meant: the law, d, and m.
type Key = (Probes, usize, usize);

/// The strata that were asked for last.
static KEPT: Kept<Key, Arc<OverallStrata>> = Kept::new(KEPT_STRATA);

/// The number of strata that are kept.
const KEPT_STRATA: usize = 16;

/// The most rows, and the largest dimension.
const MOST: usize = 1 << 12;
const MOST_DIM: usize = 1 << 16;

/// The share by which the kernel may differ from that by the nodes.
const AGREEMENT: f64 = 2e-4;

/// The largest ‖x + y‖² at which the covariance counts: beyond it is below the rounding error of the other terms.
const LARGEST_SUM: f64 = 36.0;

impl OverallStrata {
    /// The strata of `m` rows in ℝᵈ; `None` where they are not known.
    pub fn of(quantile: &dyn Fn(f64) -> Option<f64>, d: usize, m: usize) -> Option<Arc<Self>> {
        if !(2..=MOST).contains(&m) || !(1..=MOST_DIM).contains(&d) {
            return None;
        }
        let new = || Arc::new(OverallStrata::new(&|p| quantile(p).unwrap_or(f64::NAN), d, m));
        Some(KEPT.get((probes(quantile)?, d, m), new))
    }

    fn new(quantile: &Quantile<'_>, d: usize, m: usize) -> Self {
        let (nodes, edge) = (RadiusNodes::new(quantile, m), |a: usize| a as f64 / m as f64);
        let strata = (0..m).map(|a| nodes.between(edge(a), edge(a + 1))).collect();
        OverallStrata { dim: d as f64, strata, mean: SphereMean::new(d) }
    }

    /// The covariance of trigonometric features at ‖x − y‖² = `z2`, where k − 1 is this deviation; `None` where the nodes do not
    /// meet it.
    pub fn trigonometric(&self, z2: f64, deviation: f64) -> Option<f64> {
        let distance = z2.sqrt();
        let parts = self.integrals(&|r| self.mean.at(distance * r).plain);
        let found: f64 = parts.iter().sum();
        let met = (found - deviation).abs() <= AGREEMENT * deviation.abs();
        met.then(|| covariance(&parts))
    }

    /// The covariance of positive and hyperbolic features at ‖x + y‖² = `v2`, relative to e^{v2}.
    pub fn exponential(&self, v2: f64) -> f64 {
        if v2 > LARGEST_SUM {
            return 0.0;
        }
        let scale = (-0.5 * v2).exp();
        let mean = |r: f64| scale * ln_0f1(0.5 * self.dim, 0.25 * v2 * r * r).exp_m1();
        covariance(&self.integrals(&mean))
    }

    /// The integrals of a function of the radius over each stratum.
    fn integrals(&self, f: &dyn Fn(f64) -> f64) -> Vec<f64> {
        let integral = |nodes: &Vec<RadiusNode>| nodes.iter().map(|node| node.weight * f(node.radius)).sum();
        self.strata.iter().map(integral).collect()
    }
}

/// −m/(m − 1) Σₐ (gₐ − ḡ)².
fn covariance(parts: &[f64]) -> f64 {
    let m = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / m;
    -m / (m - 1.0) * parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>()
}
