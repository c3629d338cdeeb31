//! [`draw`]: draws frequencies from a coupling.

use ndarray::{Array2, Axis};
use rand::Rng;

use super::coupling::{Coupling, Rows};
use super::frequencies::Frequencies;
use super::radii::{Chi, Radii};
use super::shape::{check_shape, too_many};
use super::structured::Structured;
use crate::error::{Error, Result, check_size};
use crate::theory::Law;

/// Draws `m` frequencies in ℝᵈ for the Gaussian or the softmax kernel, each ~ N(0, I), in independent blocks of the
/// coupling; the last block may be partial.
///
/// The same as [`coupling.draw(d, m, rng)`](Coupling::draw). `rng` may be any generator; [`rng(seed)`](crate::rng) is a
/// portable one.
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

/// As [`draw`], with radii of another law, for another kernel.
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
/// As [`draw`], and the errors of the radii.
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
        let domain = match d {
            1 => "at least 2 for this coupling",
            _ => "one in which the coupling exists: Sobol' points end at 1111 dimensions",
        };
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

/// Adds a block to those of a draw of `m` rows. Dense rows are appended to the preceding matrix immediately, so that
/// the next block can reuse their memory.
fn push(blocks: &mut Vec<Rows>, block: Rows, m: usize) -> Result<()> {
    match (blocks.last_mut(), block) {
        (Some(Rows::Dense(matrix)), Rows::Dense(block)) => append(matrix, block, m),
        (_, block) => {
            blocks.push(block);
            Ok(())
        }
    }
}

/// Appends rows to a matrix that will have `m` rows.
fn append(matrix: &mut Array2<f64>, block: Array2<f64>, m: usize) -> Result<()> {
    check_size("the number of columns of a block", matrix.ncols(), block.ncols())?;
    if matrix.is_empty() {
        *matrix = block;
        return Ok(());
    }
    let room = matrix.reserve_rows(m.saturating_sub(matrix.nrows()));
    room.and_then(|()| matrix.append(Axis(0), block.view())).map_err(|_| too_many(m))
}

/// Frequencies from the blocks of a draw: structured if all blocks are, otherwise dense.
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

/// The rows of all blocks in one matrix.
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
    use crate::frequency::{Drawn, Hadamard, Independent};

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
