//! Radii ‖ω‖ and uniform directions: the two halves of the polar form.

use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::{Error, Result};

/// Draws `count` radii from χ_d, the law of the norm of N(0, I) in ℝᵈ.
pub(super) fn chi(d: usize, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>> {
    let squared = ChiSquared::new(d as f64).map_err(|_| Error::Parameter {
        name: "the dimension d",
        value: d as f64,
        domain: "at least 1",
    })?;
    Ok((0..count).map(|_| squared.sample(rng).sqrt()).collect())
}

/// Fills `v` with independent standard normal numbers.
pub(super) fn fill_normal(v: &mut [f64], rng: &mut dyn Rng) {
    v.fill_with(|| StandardNormal.sample(rng));
}
