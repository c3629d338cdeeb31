//! Frequencies from cells of the unit interval.

use crate::generator::Generator;
use ndarray::{Array2, ArrayViewMut2};

use crate::error::Result;
use crate::frequency::any_coupling::PlainCoupling;
use crate::frequency::coupling::{Coupling, Rows};
use crate::frequency::radii::draw_radii;
use crate::frequency::shape::check_memory;
use crate::kernel::{Radii, Radius};
use crate::numeric::special::normal_quantile;
use crate::theory::{BlockLaw, Dependence};

/// 2⁶⁴, the number of cells.
pub(super) const CELLS: f64 = (1u128 << 64) as f64;

/// A randomised point set in the unit cube: each of its points is uniform.
pub trait Net: Coupling {
    /// Fills a block, size × d, with the `quantile` of the cell of each coordinate.
    fn fill(
        &self,
        rows: ArrayViewMut2<'_, f64>,
        quantile: &dyn Fn(u64) -> f64,
        rng: &mut Generator,
    ) -> Result<()>;

    /// A block of rows, `size` × d.
    fn rows(
        &self,
        size: usize,
        d: usize,
        quantile: &dyn Fn(u64) -> f64,
        rng: &mut Generator,
    ) -> Result<Array2<f64>> {
        check_memory(d, size)?;
        let mut rows = Array2::zeros((size, d));
        self.fill(rows.view_mut(), quantile, rng)?;
        Ok(rows)
    }

    /// A block of Gaussian rows, rescaled if the radii are not χ.
    fn draw_gaussian(&self, size: usize, d: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        let mut rows = self.rows(size, d, &gaussian, rng)?;
        if radii.law() != Radius::Chi {
            for (mut row, radius) in rows.rows_mut().into_iter().zip(draw_radii(radii, d, size, size, rng)?) {
                // No coordinate is 0, since no cell's centre is ½.
                let norm = row.dot(&row).sqrt();
                row.mapv_inplace(|v| radius * (v / norm));
            }
        }
        Ok(Rows::Dense(rows))
    }

    /// The coupling of these points with coordinates of a law that has a name.
    fn product(&self, law: Radius) -> PlainCoupling;
}

/// Φ⁻¹ at the centre of a cell. Mirrored cells have opposite values; the largest is 9.2.
pub(super) fn gaussian(cell: u64) -> f64 {
    from_cell(cell, normal_quantile)
}

/// The quantile of a symmetric law at the centre of a cell, from its quantile function below ½.
pub(in crate::frequency) fn from_cell(cell: u64, lower_quantile: impl Fn(f64) -> f64) -> f64 {
    // The distance is taken from the nearer end of the interval, where centres are accurate.
    let tail = cell.min(!cell);
    let omega = lower_quantile((tail as f64 + 0.5) / CELLS);
    if tail == cell { omega } else { -omega }
}

/// The law of the rows of a net: dependent without a closed form, unless there is only one row.
pub(super) fn law(size: usize, radius: Radius) -> BlockLaw {
    let dependence = if size == 1 { Dependence::Independent } else { Dependence::Unknown };
    BlockLaw::new(size, dependence, radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_finite_and_symmetric() {
        let exact = |cell: u64, omega: f64| assert!((gaussian(cell) / omega - 1.0).abs() < 1e-14, "{cell}");
        // Φ⁻¹ of 2⁻⁶⁵, ¼ and 3/32, by scipy.
        exact(0, -9.155_293_772_686_072);
        exact(1 << 62, -0.674_489_750_196_081_7);
        exact(3 << 59, -1.318_010_897_303_537);
        for cell in [0, 1, 12_345, 1 << 33, 1 << 62, (1 << 63) - 1] {
            assert!(gaussian(cell).is_finite() && gaussian(cell) <= 0.0);
            assert_eq!(gaussian(!cell), -gaussian(cell));
        }
    }
}
