//! The orthogonal factor of a QR decomposition, by Householder reflections.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Axis, s};

use crate::numeric::{Isa, add_scaled, dot, slice_of, slice_of_mut};
use crate::threads;

/// Rows that a thread transforms at a time: enough to pay for packing a block.
const RUN: usize = 64;
/// Rows up to which starting threads costs more than it saves.
const SMALL: usize = 128;

/// The first `count` ≤ d columns of the d × d factor Q of a QR decomposition, as rows; R has a positive diagonal.
///
/// For k = 0, 1, …, `column` writes the last d − k entries of column k of the matrix as the reflections before have
/// left them, and returns their norm, which must not be 0. R is not formed.
///
/// Cost O(count · d²) at most. Few reflections are applied one by one, many in blocks, by products of matrices. The
/// result does not depend on the number of threads.
pub(crate) fn orthonormal_rows(
    count: usize,
    d: usize,
    mut column: impl FnMut(&mut [f64]) -> f64,
) -> Array2<f64> {
    let size = block_size(count);
    let mut rows = Array2::zeros((count, d));
    let mut blocks = Vec::with_capacity(count.div_ceil(size));
    for first in (0..count).step_by(size) {
        let signs = rows.slice_mut(s![first..count.min(first + size), first..]);
        let block = Block::new(first, signs, &mut column);
        blocks.push(if size < count { block.joined() } else { block });
    }
    // Row i meets reflections up to its own, and those only from their first coordinate on: the rest is 0.
    let transform = |start: usize, mut rows: ArrayViewMut2<'_, f64>| {
        let end = start + rows.nrows();
        for block in blocks.iter().rev().filter(|block| block.first < end) {
            block.apply(rows.slice_mut(s![block.first.saturating_sub(start).., block.first..]));
        }
    };
    if count <= SMALL {
        transform(0, rows.view_mut());
    } else {
        let runs = rows.axis_chunks_iter_mut(Axis(0), RUN).enumerate();
        threads::for_each(runs, |(i, run)| transform(i * RUN, run));
    }
    rows
}

/// The number of reflections in a block of the compact WY form, whose forming takes a share of size/count of the work.
/// Fewer than 32 reflections are a single block, which is applied one by one.
fn block_size(count: usize) -> usize {
    if (32..256).contains(&count) { 16 } else { 32 }
}

/// Successive reflections I − βₖ vₖ vₖᵀ, where vₖ is 0 before coordinate k.
struct Block {
    /// The first k.
    first: usize,
    /// vₖ from the first coordinate of the block on, in rows.
    vectors: Array2<f64>,
    /// βₖ.
    betas: Vec<f64>,
    /// Tᵀ, lower triangular, if the block is joined.
    factor: Option<Array2<f64>>,
}

impl Block {
    /// The reflections that take columns to multiples of their first axes, and on the diagonal of `signs` the signs
    /// that make these positive.
    fn new(
        first: usize,
        mut signs: ArrayViewMut2<'_, f64>,
        column: &mut impl FnMut(&mut [f64]) -> f64,
    ) -> Self {
        let (mut vectors, mut betas) = (Array2::zeros(signs.dim()), vec![0.0; signs.nrows()]);
        for (k, (mut vector, beta)) in vectors.rows_mut().into_iter().zip(&mut betas).enumerate() {
            let v = &mut slice_of_mut(&mut vector)[k..];
            let norm = column(v);
            // v − R e₁ with R = −sgn(v₁)‖v‖: the sign that does not cancel.
            let sign = if v[0] >= 0.0 { -1.0 } else { 1.0 };
            *beta = 1.0 / (norm * (norm + v[0].abs()));
            v[0] -= sign * norm;
            signs[[k, k]] = sign;
        }
        Block { first, vectors, betas, factor: None }
    }

    /// Joins the reflections to one matrix I + V T Vᵀ: the compact WY form of Schreiber and Van Loan, *A
    /// storage-efficient WY representation for products of Householder transformations*. Row j of Tᵀ is
    /// −βⱼ (eⱼ + Σ (vⱼ·vᵢ) Tᵀᵢ) with the rows i < j.
    fn joined(self) -> Self {
        let gram = self.vectors.dot(&self.vectors.t());
        let mut factor = Array2::eye(self.betas.len());
        for (j, beta) in self.betas.iter().enumerate() {
            let (before, mut rest) = factor.view_mut().split_at(Axis(0), j);
            let mut row = rest.row_mut(0);
            row += &gram.slice(s![j, ..j]).dot(&before);
            row *= -beta;
        }
        Block { factor: Some(factor), ..self }
    }

    /// Transforms every row, by the last reflection first. If the block is not joined, row i is 0 before coordinate i.
    fn apply(&self, mut rows: ArrayViewMut2<'_, f64>) {
        let Some(factor) = &self.factor else { return self.apply_each(rows) };
        let weights = rows.dot(&self.vectors.t()).dot(factor);
        general_mat_mul(1.0, &weights, &self.vectors, 1.0, &mut rows);
    }

    fn apply_each(&self, mut rows: ArrayViewMut2<'_, f64>) {
        let isa = Isa::best();
        for (k, (v, beta)) in self.vectors.rows().into_iter().zip(&self.betas).enumerate().rev() {
            for mut row in rows.rows_mut().into_iter().skip(k) {
                let (row, v) = (&mut slice_of_mut(&mut row)[k..], &slice_of(&v)[k..]);
                add_scaled(isa, row, -beta * dot(isa, row, v), v);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of numbers in (−1, 1), the same ones for the same seed.
    fn columns(mut seed: u32) -> impl FnMut(&mut [f64]) -> f64 {
        move |v| {
            v.fill_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(seed as i32) / 2f64.powi(31)
            });
            v.iter().map(|v| v * v).sum::<f64>().sqrt()
        }
    }

    /// The definition: every reflection on every row, on its own.
    fn one_by_one(count: usize, d: usize, seed: u32) -> Array2<f64> {
        let mut rows = Array2::zeros((count, d));
        Block::new(0, rows.view_mut(), &mut columns(seed)).apply_each(rows.view_mut());
        rows
    }

    #[test]
    fn blocks_are_their_reflections() {
        let square = [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130, 255, 256, 257].map(|d| (d, d));
        let wide = [(1, 5), (3, 300), (33, 34), (65, 130), (129, 257), (257, 300), (288, 301)];
        for (count, d) in square.into_iter().chain(wide) {
            let seed = (1000 * count + d) as u32;
            let (rows, expected) = (orthonormal_rows(count, d, columns(seed)), one_by_one(count, d, seed));
            let error = (&rows - &expected).iter().fold(0.0, |largest: f64, e| largest.max(e.abs()));
            assert!(error <= f64::EPSILON * d as f64, "{count} of {d}: {error:e}");
        }
    }

    /// Rₖₖ = qₖ·aₖ = ‖aₖ‖ for the column aₖ that was given, as the reflections before have left it: for k = 0 it is
    /// the column itself.
    #[test]
    fn the_first_row_is_the_first_column() {
        for (count, d) in [(1, 1), (4, 7), (70, 90)] {
            let mut first = vec![0.0; d];
            let norm = columns(9)(&mut first);
            let rows = orthonormal_rows(count, d, columns(9));
            for (q, a) in rows.row(0).iter().zip(first) {
                assert!((q - a / norm).abs() < 4.0 * f64::EPSILON, "{count} of {d}");
            }
        }
    }

    #[test]
    fn threads_do_not_change_bits() {
        let on = |threads| threads::with(threads, || orthonormal_rows(257, 300, columns(4))).unwrap();
        assert_eq!(on(1), on(2));
    }
}
