//! What radii that are stratified over a whole draw change for two rows with independent directions.
//!
//! Rows whose directions are independent have the radii of two different strata of m. With G(r) the mean of a feature over
//! directions and gₐ its integral over stratum a, the covariance of their features is −m/(m − 1) Σₐ (gₐ − ḡ)²: it is 0 for
//! independent radii, and never above. Source: new.

use std::sync::{Arc, Mutex, PoisonError};

use super::radial_nodes::{RadiusNode, RadiusNodes};
use super::radial_pairs::{Probes, probes};
use super::sphere_mean::SphereMean;
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
static KEPT: Mutex<Vec<(Key, Arc<OverallStrata>)>> = Mutex::new(Vec::new());

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
        let key = (probes(quantile)?, d, m);
        let known = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, strata)) = known().iter().find(|(known, _)| *known == key) {
            return Some(strata.clone());
        }
        let radius = |p: f64| quantile(p).unwrap_or(f64::NAN);
        let (nodes, edge) = (RadiusNodes::new(&radius, m), |a: usize| a as f64 / m as f64);
        let strata = (0..m).map(|a| nodes.between(edge(a), edge(a + 1))).collect();
        let strata = Arc::new(OverallStrata { dim: d as f64, strata, mean: SphereMean::new(d) });
        let mut all = known();
        if all.len() >= KEPT_STRATA {
            all.remove(0);
        }
        all.push((key, strata.clone()));
        Some(strata)
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
