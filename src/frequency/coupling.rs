//! [`Coupling`] and [`draw`].

use ndarray::{Array2, ArrayViewMut2, s};
use rand::Rng;

use super::Frequencies;
use crate::error::{Error, Result, check_positive};
use crate::theory::{Block, Law};

/// How the frequencies of a map depend on each other.
///
/// A coupling draws one block of mutually dependent rows at a time; [`draw`] puts independent blocks
/// together. It promises that each row on its own follows N(0, I), which alone makes every estimate unbiased.
pub trait Coupling: std::fmt::Debug + Send + Sync {
    /// The most rows that a block in ℝᵈ can hold; 0 if the coupling does not exist there.
    fn capacity(&self, d: usize) -> usize;

    /// Fills `rows` (at least one row, at most the capacity) with one block and says what its law is.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the coupling does not exist in this dimension.
    fn draw_block(&self, rows: ArrayViewMut2<'_, f64>, rng: &mut dyn Rng) -> Result<Block>;
}

impl<C: Coupling + ?Sized> Coupling for Box<C> {
    fn capacity(&self, d: usize) -> usize {
        (**self).capacity(d)
    }

    fn draw_block(&self, rows: ArrayViewMut2<'_, f64>, rng: &mut dyn Rng) -> Result<Block> {
        (**self).draw_block(rows, rng)
    }
}

/// Draws `m` frequencies in ℝᵈ, in independent blocks of the coupling; the last block may be partial.
///
/// `rng` may be any generator; [`rng(seed)`](crate::rng) is a named, portable one.
///
/// ```
/// use random_features::frequency::{Antithetic, Orthogonal, draw};
/// let mut rng = random_features::rng(7);
/// let omega = draw(16, 40, &Antithetic(Orthogonal), &mut rng)?;
/// assert_eq!((omega.count(), omega.dim()), (40, 16));
/// assert_eq!(omega.rows().row(1), -&omega.rows().row(0));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Parameter`](Error::Parameter) if `d` or `m` is 0, their product does not fit in memory, or the coupling
/// does not exist in dimension `d`.
pub fn draw<C, R>(d: usize, m: usize, coupling: &C, mut rng: &mut R) -> Result<Frequencies>
where
    C: Coupling + ?Sized,
    R: Rng + ?Sized,
{
    check_positive("the dimension d", d)?;
    check_positive("the number of frequencies m", m)?;
    if d.checked_mul(m).is_none_or(|size| size > isize::MAX as usize / size_of::<f64>()) {
        return Err(Error::Parameter {
            name: "the number of frequencies m",
            value: m as f64,
            domain: "small enough for m × d numbers to be addressed",
        });
    }
    let capacity = coupling.capacity(d);
    if capacity == 0 {
        return Err(Error::Parameter {
            name: "the dimension d",
            value: d as f64,
            domain: "one in which the coupling exists",
        });
    }
    let mut rows = Array2::zeros((m, d));
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < m {
        let end = start.saturating_add(capacity).min(m);
        blocks.push(coupling.draw_block(rows.slice_mut(s![start..end, ..]), &mut rng)?);
        start = end;
    }
    Frequencies::from_parts(rows, Law { blocks })
}
