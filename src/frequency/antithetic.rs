//! Antithetic pairs over any coupling.

use ndarray::{Array2, ArrayViewMut2};
use rand::Rng;

use super::Coupling;
use crate::error::Result;
use crate::theory::{Block, Dependence};

/// Antithetic pairs ω, −ω over any coupling.
///
/// # Definition
/// Rows 0, 2, 4, … are drawn by the coupling inside; row 2i+1 is −(row 2i). With an odd number of rows the
/// last one is alone.
///
/// # Variance
/// For the positive map a pair is one hyperbolic projection, never worse than two independent rows. The
/// hyperbolic and trigonometric maps are even in ω: for them the second row of a pair adds nothing.
///
/// # Exact where
/// Each row's law is that of the coupling inside.
///
/// # Cost
/// Half the draws of the coupling inside.
///
/// # Example
/// ```
/// use random_features::frequency::{Antithetic, Independent, draw};
/// let omega = draw(8, 4, &Antithetic(Independent), &mut random_features::rng(1))?;
/// assert_eq!(omega.rows().row(3), -&omega.rows().row(2));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equation 3.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Antithetic<C>(pub C);

impl<C: Coupling> Coupling for Antithetic<C> {
    fn capacity(&self, d: usize) -> usize {
        self.0.capacity(d).saturating_mul(2)
    }

    fn draw_block(&self, mut rows: ArrayViewMut2<'_, f64>, rng: &mut dyn Rng) -> Result<Block> {
        let (size, d) = rows.dim();
        let mut half = Array2::zeros((size.div_ceil(2), d));
        let block = self.0.draw_block(half.view_mut(), rng)?;
        for (i, mut row) in rows.rows_mut().into_iter().enumerate() {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            row.zip_mut_with(&half.row(i / 2), |out, v| *out = sign * v);
        }
        // Pairs of pairs hold each row twice: a law that blocks do not speak of.
        let dependence = if block.antithetic { Dependence::Unknown } else { block.dependence };
        Ok(Block { size, antithetic: true, dependence, ..block })
    }
}
