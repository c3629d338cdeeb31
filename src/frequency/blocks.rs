//! The rows of a draw, block by block, and their law.

use crate::generator::Generator;
use ndarray::{Array2, Axis};

use super::coupling::{Coupling, Rows};
use super::frequencies::FrequencyForm;
use super::shape::{check_memory, check_shape, too_many};
use super::structured::Structured;
use crate::error::{Error, Result, check_size};
use crate::kernel::{Radii, Radius};
use crate::memory;
use crate::theory::Law;

/// The law of `m` rows in ℝᵈ whose radii have this law: known before anything is drawn.
pub(super) fn law(d: usize, m: usize, coupling: &dyn Coupling, radius: Radius) -> Law {
    match coupling.capacity(d) {
        0 => Law::unknown(m),
        capacity => Law::in_blocks(m, capacity, |size| coupling.block_law(d, size, radius)),
    }
}

/// Draws `m` rows in ℝᵈ, in independent blocks of the coupling; the last block may be partial. The result is structured if
/// all blocks are, otherwise dense.
pub(super) fn draw_rows(
    d: usize,
    m: usize,
    coupling: &dyn Coupling,
    radii: &dyn Radii,
    rng: &mut Generator,
) -> Result<FrequencyForm> {
    check_shape(d, m)?;
    let capacity = existing(d, coupling)?;
    // Rows of any form have a radius each.
    check_memory(1, m)?;
    let (mut blocks, mut start) = (Vec::new(), 0);
    while start < m {
        let size = capacity.min(m - start);
        let block = coupling.draw_block(d, size, radii, rng)?;
        if start == 0 && size < m {
            check_all(&block, m.div_ceil(size))?;
        }
        push(&mut blocks, block, m)?;
        start += size;
    }
    assemble(d, m, blocks)
}

/// Rejects so many blocks like the first if there is no memory for all of them.
fn check_all(block: &Rows, count: usize) -> Result<()> {
    let bytes = match block {
        Rows::Dense(rows) => rows.len().saturating_mul(size_of::<f64>()),
        Rows::Structured { block, .. } => size_of::<Rows>() + block.bytes(),
    };
    memory::check_memory("blocks of frequencies", count, bytes)
}

/// The capacity of a block in ℝᵈ; an error where the coupling does not exist.
fn existing(d: usize, coupling: &dyn Coupling) -> Result<usize> {
    let domain = match (d, coupling.recipe()) {
        (1, Some(_)) => "at least 2 for this coupling: take Orthogonal or Independent in one dimension",
        (_, Some(_)) => "one in which the coupling exists: Sobol' points end at 1111 dimensions",
        (_, None) => "one in which the coupling exists: its capacity there is 0",
    };
    match coupling.capacity(d) {
        0 => Err(Error::Parameter { name: "the dimension d", value: d as f64, domain }),
        capacity => Ok(capacity),
    }
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
    let columns = matrix.ncols();
    let room = matrix.reserve_rows(m.saturating_sub(matrix.nrows()));
    room.and_then(|()| matrix.append(Axis(0), block.view())).map_err(|_| too_many(columns, m))
}

fn assemble(d: usize, m: usize, blocks: Vec<Rows>) -> Result<FrequencyForm> {
    let Some(padded) = blocks.iter().try_fold(0, |widest, block| match block {
        Rows::Dense(_) => None,
        Rows::Structured { padded, .. } => Some((*padded).max(widest)),
    }) else {
        return written_out(d, m, blocks).map(FrequencyForm::Dense);
    };
    let block = |rows| match rows {
        Rows::Structured { block, .. } => Some(block),
        Rows::Dense(_) => None,
    };
    let blocks = blocks.into_iter().filter_map(block).collect();
    Structured::new(d, padded, blocks).map(FrequencyForm::Structured)
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
    use crate::frequency::{Hadamard, Independent};
    use crate::kernel::Chi;

    /// Blocks of two rows, every third one structured.
    #[derive(Debug)]
    struct Mixed(std::sync::atomic::AtomicUsize);

    impl Coupling for Mixed {
        fn capacity(&self, _: usize) -> usize {
            2
        }

        fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 {
                2 => Hadamard::default().draw_block(d, size, radii, rng),
                _ => Independent.draw_block(d, size, radii, rng),
            }
        }
    }

    #[test]
    fn blocks_of_both_kinds_are_written_out_in_order() {
        let (d, m) = (4, 9);
        let form = draw_rows(d, m, &Mixed(0.into()), &Chi, &mut crate::rng(5)).unwrap();
        let FrequencyForm::Dense(matrix) = form else { panic!("{form:?}") };
        let (mut rng, mixed) = (crate::rng(5), Mixed(0.into()));
        for (rows, size) in matrix.axis_chunks_iter(Axis(0), 2).zip([2, 2, 2, 2, 1]) {
            let drawn = mixed.draw_block(d, size, &Chi, &mut rng).unwrap();
            assert_eq!(rows, written_out(d, size, vec![drawn]).unwrap());
        }
    }
}
