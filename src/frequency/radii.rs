//! Drawing radii ‖ω‖ and scaling directions by them. The laws of radii are defined with their kernels.

use crate::generator::Generator;
use ndarray::{Array2, s};
use rand_distr::{Distribution, StandardNormal};

use super::shape::check_memory;
use crate::error::{Error, Result, check_size};
use crate::kernel::Radii;

/// Draws the radii of a block of a coupling whose blocks hold up to `capacity` rows.
pub(super) fn draw_radii(
    radii: &dyn Radii,
    d: usize,
    size: usize,
    capacity: usize,
    rng: &mut Generator,
) -> Result<Vec<f64>> {
    if size == 0 || size > capacity {
        let (name, domain) = ("the number of rows of a block", "from 1 to the capacity of the coupling");
        return Err(Error::Parameter { name, value: size as f64, domain });
    }
    check_memory(1, size)?;
    let lengths = radii.draw(d, size, rng)?;
    check_size("the number of radii that were drawn", size, lengths.len())?;
    Ok(lengths)
}

/// ωᵢ = rᵢ uᵢ: multiplies the first directions, one in each row, by their radii.
pub(super) fn assemble(radii: &[f64], directions: Array2<f64>) -> Array2<f64> {
    let mut directions = directions.slice_move(s![..radii.len(), ..]);
    for (mut row, radius) in directions.rows_mut().into_iter().zip(radii) {
        row *= *radius;
    }
    directions
}

/// Fills `v` with independent standard normal numbers and returns their norm, which is not 0.
pub(super) fn fill_normal(v: &mut [f64], rng: &mut Generator) -> f64 {
    loop {
        v.fill_with(|| StandardNormal.sample(rng));
        let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm > 0.0 {
            return norm;
        }
    }
}
