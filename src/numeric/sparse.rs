//! Loops over the non-zero entries of a sparse vector. They are bit-identical to the dense loops, since a product with 0
//! changes no sum.

use std::ops::Range;

use super::Lane;
use super::packed::{Panels, panel_width};
use super::reduce::{LANES, folded};
use super::zip;
use crate::Real;

/// The columns of entries, in integers of either width.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "sparse"), allow(dead_code, reason = "made of the types of a feature"))]
pub enum Columns<'a> {
    Wide(&'a [usize]),
    Narrow(&'a [u32]),
}

impl<'a> Columns<'a> {
    /// The columns of some entries.
    pub fn range(self, entries: Range<usize>) -> Self {
        match self {
            Columns::Wide(all) => Columns::Wide(&all[entries]),
            Columns::Narrow(all) => Columns::Narrow(&all[entries]),
        }
    }

    /// All columns, in the order of the entries.
    pub fn iter(self) -> impl Iterator<Item = usize> + 'a {
        let (wide, narrow): (&[usize], &[u32]) = match self {
            Columns::Wide(all) => (all, &[]),
            Columns::Narrow(all) => (&[], all),
        };
        wide.iter().copied().chain(narrow.iter().map(|k| *k as usize))
    }
}

/// Non-negative numbers as unsigned ones.
#[cfg(any(feature = "sparse", test))]
pub fn unsigned(numbers: &[i32]) -> &[u32] {
    // SAFETY: both types have the same size and alignment, and every pattern of bits is a number of either.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
}

/// A column in integers of one width.
trait Column: Copy {
    fn place(self) -> usize;
}

impl Column for usize {
    #[inline(always)]
    fn place(self) -> usize {
        self
    }
}

impl Column for u32 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// At least the width of any panel.
const EDGE: usize = 32;

#[inline(always)]
fn sparse_product_body<T: Lane, const FMA: bool>(
    columns: Columns<'_>,
    x: &[T],
    w: Panels<'_, T>,
    out: &mut [T],
) {
    match columns {
        Columns::Wide(columns) => product_of_columns::<T, _, FMA>(columns, x, w, out),
        Columns::Narrow(columns) => product_of_columns::<T, _, FMA>(columns, x, w, out),
    }
}

#[inline(always)]
fn product_of_columns<T: Lane, C: Column, const FMA: bool>(
    columns: &[C],
    x: &[T],
    w: Panels<'_, T>,
    out: &mut [T],
) {
    let width = const {
        assert!(panel_width::<T>() <= EDGE);
        panel_width::<T>()
    };
    for (panel, out) in zip((w.panels.chunks(w.panel.max(1)), out[..w.rows].chunks_mut(width))) {
        let mut sums = [T::zero(); EDGE];
        for (&k, &x) in zip((columns, x)) {
            let lanes = &panel[k.place() * width..][..width];
            zip((&mut sums[..width], lanes)).for_each(|(sum, w)| *sum = x.madd::<FMA>(*w, *sum));
        }
        out.copy_from_slice(&sums[..out.len()]);
    }
}

multiversion! {
    /// out[j] ← Σₖ xₖ W[j, columns[k]] for all rows j of W, with the bits of [`product`](super::product) if columns ascend.
    ///
    /// # Panics
    /// If a column is not one of W, or `out` is too short.
    pub fn sparse_product<T>(columns: Columns<'_>, x: &[T], w: Panels<'_, T>, out: &mut [T]) = sparse_product_body;
}

#[inline(always)]
fn sparse_squared_norm_body<T: Real, const FMA: bool>(
    columns: Columns<'_>,
    x: &[T],
    scale: f64,
    scales: &[f64],
) -> f64 {
    match columns {
        Columns::Wide(columns) => squared_norm_of_columns::<T, _, FMA>(columns, x, scale, scales),
        Columns::Narrow(columns) => squared_norm_of_columns::<T, _, FMA>(columns, x, scale, scales),
    }
}

#[inline(always)]
fn squared_norm_of_columns<T: Real, C: Column, const FMA: bool>(
    columns: &[C],
    x: &[T],
    scale: f64,
    scales: &[f64],
) -> f64 {
    let mut lanes = [0.0; LANES];
    for (k, x) in zip((columns, x)) {
        let k = k.place();
        let v = x.widen() * if scales.is_empty() { scale } else { scales[k] };
        lanes[k % LANES] = v.madd::<FMA>(v, lanes[k % LANES]);
    }
    folded(lanes)
}

multiversion! {
    /// Σ (sₖ xₖ)² with the bits of [`squared_norm`](super::squared_norm), from the entries `x` in these ascending `columns`.
    pub fn sparse_squared_norm<T>(columns: Columns<'_>, x: &[T], scale: f64, scales: &[f64]) -> f64 = sparse_squared_norm_body;
}

#[cfg(test)]
mod tests {
    use super::super::{Isa, Packed, product, squared_norm};
    use super::*;

    fn against_dense<T: Real>(isa: Isa, depth: usize, rows: usize, step: usize) {
        let value = |i: usize| T::narrow(((i * 7919) % 1009) as f64 / 1009.0 - 0.5);
        let columns: Vec<usize> = (step / 2..depth).step_by(step).collect();
        let x: Vec<T> = columns.iter().map(|k| value(*k)).collect();
        let mut dense = vec![T::zero(); depth];
        columns.iter().zip(&x).for_each(|(k, x)| dense[*k] = *x);
        let w = Packed::new(rows, depth, |j, k| value(3 * (j * depth + k) + 1));
        let (mut expected, mut found) = (vec![T::nan(); rows], vec![T::nan(); rows]);
        product(isa, &dense, depth, w.all(), &mut expected, rows);
        let narrow: Vec<i32> = columns.iter().map(|k| *k as i32).collect();
        let widths = [Columns::Wide(&columns), Columns::Narrow(unsigned(&narrow))];
        for columns in widths {
            found.fill(T::nan());
            sparse_product(isa, columns, &x, w.all(), &mut found);
            assert_eq!(found, expected, "{isa:?} {depth}x{rows}");
        }
        let scales: Vec<f64> = (0..depth).map(|k| 0.5 + k as f64).collect();
        for scales in [&scales[..], &[]] {
            let expected = squared_norm(isa, &dense, 0.3, scales);
            for columns in widths {
                assert_eq!(sparse_squared_norm(isa, columns, &x, 0.3, scales), expected);
            }
        }
    }

    #[test]
    fn the_bits_of_dense_loops() {
        for isa in Isa::available() {
            for (depth, rows, step) in [(1, 1, 1), (7, 33, 2), (100, 70, 9), (2100, 31, 13), (50, 64, 100)] {
                // Under an interpreter a large matrix takes minutes.
                if cfg!(miri) && depth * rows > 8_000 {
                    continue;
                }
                against_dense::<f32>(isa, depth, rows, step);
                against_dense::<f64>(isa, depth, rows, step);
            }
        }
    }
}
