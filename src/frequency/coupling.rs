//! [`Coupling`] and [`draw`].

use ndarray::{Array2, s};
use rand::Rng;

use super::structured::{Rotated, Structured};
use super::{Chi, Frequencies, Radii};
use crate::error::{Error, Result, check_positive, check_size};
use crate::theory::{Block, Law};

/// How the frequencies of a map depend on each other.
///
/// A coupling draws one block of mutually dependent rows at a time; [`draw`] puts independent blocks together. It
/// promises that each row on its own has a uniform direction and a radius of the law that it is given, which alone
/// makes every estimate unbiased; [`Hadamard`](super::Hadamard) and [`Givens`](super::Givens) keep that approximately.
pub trait Coupling: std::fmt::Debug + Send + Sync {
    /// The most rows that a block for points in ℝᵈ can hold; 0 if the coupling does not exist there.
    fn capacity(&self, d: usize) -> usize;

    /// Draws one block of `size` rows in ℝᵈ: at least one row, at most the capacity. Radii come before directions.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a parameter of the coupling is outside its domain, or the coupling or the
    /// radii do not exist in this dimension.
    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn>;
}

impl<C: Coupling + ?Sized> Coupling for Box<C> {
    fn capacity(&self, d: usize) -> usize {
        (**self).capacity(d)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        (**self).draw_block(d, size, radii, rng)
    }
}

/// A block as it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The rows.
    pub rows: Rows,
    /// What is known of their joint law.
    pub law: Block,
}

/// The rows of a block: written out, or as a product.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// A matrix with a frequency in each row.
    Dense(Array2<f64>),
    /// A structured block in the padded dimension N.
    Structured {
        /// N ≥ d.
        padded: usize,
        /// The block.
        block: Rotated,
    },
}

/// Draws `m` frequencies in ℝᵈ for the Gaussian or the softmax kernel, each ~ N(0, I), in independent blocks of the
/// coupling; the last block may be partial.
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
pub fn draw<C, R>(d: usize, m: usize, coupling: &C, rng: &mut R) -> Result<Frequencies>
where
    C: Coupling + ?Sized,
    R: Rng + ?Sized,
{
    draw_with(d, m, coupling, &Chi, rng)
}

/// As [`draw`], with radii of another law and thus for another kernel.
///
/// ```
/// use random_features::frequency::{Orthogonal, draw_with};
/// use random_features::kernel::Smoothness;
/// let omega = draw_with(16, 40, &Orthogonal, &Smoothness::ThreeHalves, &mut random_features::rng(7))?;
/// assert_eq!(omega.count(), 40);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// As [`draw`]; and those of the radii.
pub fn draw_with<C, R>(
    d: usize,
    m: usize,
    coupling: &C,
    radii: &dyn Radii,
    mut rng: &mut R,
) -> Result<Frequencies>
where
    C: Coupling + ?Sized,
    R: Rng + ?Sized,
{
    check_shape(d, m)?;
    let capacity = coupling.capacity(d);
    if capacity == 0 {
        let domain = "one in which the coupling exists";
        return Err(Error::Parameter { name: "the dimension d", value: d as f64, domain });
    }
    let (mut blocks, mut start) = (Vec::new(), 0);
    while start < m {
        let size = capacity.min(m - start);
        blocks.push(coupling.draw_block(d, size, radii, &mut rng)?);
        start += size;
    }
    assemble(d, m, blocks)
}

/// Refuses sizes for which there is no matrix of m × d numbers.
pub(super) fn check_shape(d: usize, m: usize) -> Result<()> {
    check_positive("the dimension d", d)?;
    check_positive("the number of frequencies m", m)?;
    let most = isize::MAX as usize / size_of::<f64>() / 2;
    if d.checked_mul(m).is_none_or(|size| size > most) || d > most {
        let domain = "small enough for m × d numbers to be addressed";
        return Err(Error::Parameter { name: "the number of frequencies m", value: m as f64, domain });
    }
    Ok(())
}

/// One set of frequencies from the blocks of a draw: structured if all of them are.
fn assemble(d: usize, m: usize, drawn: Vec<Drawn>) -> Result<Frequencies> {
    let (rows, blocks): (Vec<Rows>, Vec<Block>) = drawn.into_iter().map(|b| (b.rows, b.law)).unzip();
    let law = Law { blocks };
    let Some(padded) = rows.iter().try_fold(0, |widest, rows| match rows {
        Rows::Dense(_) => None,
        Rows::Structured { padded, .. } => Some((*padded).max(widest)),
    }) else {
        return Frequencies::from_parts(written_out(d, m, rows)?, law);
    };
    let block = |rows| match rows {
        Rows::Structured { block, .. } => Some(block),
        Rows::Dense(_) => None,
    };
    let blocks = rows.into_iter().filter_map(block).collect();
    Frequencies::from_structured(Structured::new(d, padded, blocks)?, law)
}

/// All rows of all blocks in one matrix.
fn written_out(d: usize, m: usize, rows: Vec<Rows>) -> Result<Array2<f64>> {
    let dense = |rows| match rows {
        Rows::Dense(rows) => Ok(rows),
        Rows::Structured { padded, block } => Ok(Structured::new(d, padded, vec![block])?.to_rows()),
    };
    let mut blocks = rows.into_iter().map(dense).collect::<Result<Vec<_>>>()?;
    let mut matrix = if blocks.len() == 1 { blocks.remove(0) } else { Array2::zeros((m, d)) };
    let mut start = 0;
    for block in blocks {
        check_size("the number of columns of a block", d, block.ncols())?;
        let end = start + block.nrows();
        if end <= m {
            matrix.slice_mut(s![start..end, ..]).assign(&block);
        }
        start = end;
    }
    check_size("the number of columns of a block", d, matrix.ncols())?;
    Ok(matrix)
}
