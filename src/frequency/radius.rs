//! Radii ‖ω‖ and uniform directions: the two halves of the polar form.

use ndarray::{Array2, ArrayViewMut2};
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

/// ωᵢ = rᵢ uᵢ: writes the directions, one in each row, times their radii.
pub(super) fn assemble(mut rows: ArrayViewMut2<'_, f64>, radii: &[f64], directions: &Array2<f64>) {
    for ((mut row, direction), radius) in rows.rows_mut().into_iter().zip(directions.rows()).zip(radii) {
        row.zip_mut_with(&direction, |out, v| *out = radius * v);
    }
}

/// Fills `v` with independent standard normal numbers.
pub(super) fn fill_normal(v: &mut [f64], rng: &mut dyn Rng) {
    v.fill_with(|| StandardNormal.sample(rng));
}
