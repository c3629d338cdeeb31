//! [`Coupling`] and [`draw`].

use ndarray::{Array2, Axis};
use rand::Rng;

use super::structured::{Rotated, Structured};
use super::{Chi, Frequencies, Radii};
use crate::error::{Error, Result, check_positive, check_size};
use crate::theory::{BlockLaw, Law};

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
    pub law: BlockLaw,
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
    let (mut blocks, mut law, mut start) = (Vec::new(), Law { blocks: Vec::new() }, 0);
    while start < m {
        let size = capacity.min(m - start);
        let block = coupling.draw_block(d, size, radii, &mut rng)?;
        push(&mut blocks, block.rows, m)?;
        law.blocks.push(block.law);
        start += size;
    }
    assemble(d, m, blocks, law)
}

/// Refuses sizes for which there is no matrix of m × d numbers.
pub(super) fn check_shape(d: usize, m: usize) -> Result<()> {
    check_positive("the dimension d", d)?;
    check_positive("the number of frequencies m", m)?;
    let most = isize::MAX as usize / size_of::<f64>() / 2;
    if d.checked_mul(m).is_none_or(|size| size > most) || d > most { Err(too_many(m)) } else { Ok(()) }
}

fn too_many(m: usize) -> Error {
    let domain = "small enough for m × d numbers to be addressed";
    Error::Parameter { name: "the number of frequencies m", value: m as f64, domain }
}

/// Adds a block to those of a draw of `m` rows. Rows that are written out join the matrix before them at once, so that
/// the next block can have their memory.
fn push(blocks: &mut Vec<Rows>, block: Rows, m: usize) -> Result<()> {
    match (blocks.last_mut(), block) {
        (Some(Rows::Dense(matrix)), Rows::Dense(block)) => append(matrix, block, m),
        (_, block) => {
            blocks.push(block);
            Ok(())
        }
    }
}

/// Adds rows to a matrix that will have `m`.
fn append(matrix: &mut Array2<f64>, block: Array2<f64>, m: usize) -> Result<()> {
    check_size("the number of columns of a block", matrix.ncols(), block.ncols())?;
    if matrix.is_empty() {
        *matrix = block;
        return Ok(());
    }
    let room = matrix.reserve_rows(m.saturating_sub(matrix.nrows()));
    room.and_then(|()| matrix.append(Axis(0), block.view())).map_err(|_| too_many(m))
}

/// One set of frequencies from the blocks of a draw: structured if all of them are.
fn assemble(d: usize, m: usize, blocks: Vec<Rows>, law: Law) -> Result<Frequencies> {
    let Some(padded) = blocks.iter().try_fold(0, |widest, block| match block {
        Rows::Dense(_) => None,
        Rows::Structured { padded, .. } => Some((*padded).max(widest)),
    }) else {
        return Frequencies::from_parts(written_out(d, m, blocks)?, law);
    };
    let block = |rows| match rows {
        Rows::Structured { block, .. } => Some(block),
        Rows::Dense(_) => None,
    };
    let blocks = blocks.into_iter().filter_map(block).collect();
    Frequencies::from_structured(Structured::new(d, padded, blocks)?, law)
}

/// All rows of all blocks in one matrix.
fn written_out(d: usize, m: usize, blocks: Vec<Rows>) -> Result<Array2<f64>> {
    let mut matrix = Array2::zeros((0, d));
    for block in blocks {
        let rows = match block {
            Rows::Dense(rows) => rows,
            Rows::Structured { padded, block } => Structured::new(d, padded, vec![block])?.to_rows(),
        };
        append(&mut matrix, rows, m)?;
    }
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{Hadamard, Independent};

    /// Blocks of two rows, every third one structured.
    #[derive(Debug)]
    struct Mixed(std::sync::atomic::AtomicUsize);

    impl Coupling for Mixed {
        fn capacity(&self, _: usize) -> usize {
            2
        }

        fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 {
                2 => Hadamard::default().draw_block(d, size, radii, rng),
                _ => Independent.draw_block(d, size, radii, rng),
            }
        }
    }

    #[test]
    fn blocks_of_both_kinds_are_written_out_in_order() {
        let (d, m) = (4, 9);
        let omega = draw(d, m, &Mixed(0.into()), &mut crate::rng(5)).unwrap();
        assert!(omega.structured().is_none() && omega.law().blocks.len() == 5);
        let (mut rng, mixed) = (crate::rng(5), Mixed(0.into()));
        for (rows, size) in omega.rows().axis_chunks_iter(Axis(0), 2).zip([2, 2, 2, 2, 1]) {
            let drawn = mixed.draw_block(d, size, &Chi, &mut rng).unwrap();
            assert_eq!(rows, written_out(d, size, vec![drawn.rows]).unwrap());
        }
    }
}
