//! Independent frequencies.

use ndarray::ArrayViewMut2;
use rand::Rng;

use super::Coupling;
use super::radius::{chi, fill_normal};
use crate::error::Result;
use crate::theory::{Block, Dependence, Radius};

/// Independent frequencies ω ~ N(0, I).
///
/// # Definition
/// ω = r·u with r ~ χ_d and u uniform on the unit sphere, all independent.
///
/// # Variance
/// Closed forms for every map; the baseline that other couplings improve on.
///
/// # Exact where
/// The law is exact.
///
/// # Cost
/// O(md) to draw.
///
/// # Example
/// ```
/// use random_features::frequency::{Independent, draw};
/// let omega = draw(8, 32, &Independent, &mut random_features::rng(1))?;
/// assert_eq!(omega.rows().dim(), (32, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Independent;

impl Coupling for Independent {
    fn capacity(&self, _: usize) -> usize {
        usize::MAX
    }

    fn draw_block(&self, mut rows: ArrayViewMut2<'_, f64>, rng: &mut dyn Rng) -> Result<Block> {
        let (size, d) = rows.dim();
        let radii = chi(d, size, rng)?;
        let mut direction = vec![0.0; d];
        for (mut row, radius) in rows.rows_mut().into_iter().zip(radii) {
            let norm = loop {
                fill_normal(&mut direction, rng);
                let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
                if norm > 0.0 {
                    break norm;
                }
            };
            row.iter_mut().zip(&direction).for_each(|(out, v)| *out = radius * (v / norm));
        }
        Ok(Block { size, dependence: Dependence::Independent, radius: Radius::Chi, antithetic: false })
    }
}
