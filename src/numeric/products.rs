//! [`products`]: rows of tensor products, from rows of their factors.

use std::ops::Range;

use super::submatrix::{ScaledRows, write_multiple};
use super::{Lane, Vector};
use crate::Real;

/// Blocks of a row that are ±left ⊗ right: aₚ times all of b for every p in order.
#[derive(Clone, Debug)]
pub struct TensorProduct {
    /// The left factor.
    pub left: LeftFactor,
    /// The columns of the right factor.
    pub right: Range<usize>,
    /// The place of the right factor's log scale.
    pub right_scale: usize,
    /// The number that is added to the log scales of both factors.
    pub log_factor: f64,
    /// Whether the products are multiplied by −1.
    pub negative: bool,
}

/// The left factor of a [`TensorProduct`].
#[derive(Clone, Debug)]
pub enum LeftFactor {
    /// The number 1.
    One,
    /// The features of some columns.
    Columns {
        /// The columns.
        columns: Range<usize>,
        /// The place of their log scale.
        scale: usize,
    },
    /// Each of these columns holds a sign and gives two blocks, each 1 ⊗ right. One of them is absent, with the log scale −∞:
    /// the second where the sign is +, the first where it is −.
    Signs {
        /// The columns.
        columns: Range<usize>,
        /// The place of their log scale.
        scale: usize,
        /// Whether the opposite signs count instead.
        opposite: bool,
    },
}

impl TensorProduct {
    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        match &self.left {
            LeftFactor::One | LeftFactor::Columns { .. } => 1,
            LeftFactor::Signs { columns, .. } => 2 * columns.len(),
        }
    }

    /// The number of features of each block.
    pub fn width(&self) -> usize {
        match &self.left {
            LeftFactor::One | LeftFactor::Signs { .. } => self.right.len(),
            // The product saturates; the check of the facts refuses such sizes.
            LeftFactor::Columns { columns, .. } => columns.len().saturating_mul(self.right.len()),
        }
    }

    /// The log scale of the blocks that are present, from the log scales of a row of factors.
    #[inline(always)]
    pub fn scale(&self, log_scales: &[f64]) -> f64 {
        let left = match self.left {
            LeftFactor::One => 0.0,
            LeftFactor::Columns { scale, .. } | LeftFactor::Signs { scale, .. } => log_scales[scale],
        };
        left + log_scales[self.right_scale] + self.log_factor
    }

    /// The sign of the products: ±1.
    #[inline(always)]
    pub fn sign<T: Real>(&self) -> T {
        if self.negative { -T::one() } else { T::one() }
    }
}

/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn products_body<T: Lane, V: Vector<T>>(
    out: ScaledRows<&mut [T], &mut [f64]>,
    factors: ScaledRows<&[T], &[f64]>,
    products: &[TensorProduct],
) {
    let (ScaledRows { values: out, log_scales: scales }, ScaledRows { values: factors, log_scales: of }) =
        (out, factors);
    let (mut first, mut first_block) = (0, 0);
    // The outer loop is over products, so that each is looked up once for all rows.
    for product in products {
        let (width, blocks) = (product.width(), product.blocks());
        let sign = product.sign();
        for i in 0..out.rows {
            let out = &mut out.values[i * out.stride + first..][..width * blocks];
            let scales = &mut scales.values[i * scales.stride + first_block..][..blocks];
            let row = &factors.values[i * factors.stride..][..factors.width];
            let of = &of.values[i * of.stride..][..of.width];
            let scale = product.scale(of);
            let right = &row[product.right.clone()];
            // SAFETY: the caller's promise.
            unsafe {
                match &product.left {
                    LeftFactor::One => write_block::<T, V>(out, scales, &[T::one()], right, sign, scale),
                    LeftFactor::Columns { columns, .. } => {
                        write_block::<T, V>(out, scales, &row[columns.clone()], right, sign, scale);
                    }
                    LeftFactor::Signs { columns, opposite, .. } => {
                        let signs = &row[columns.clone()];
                        write_by_signs::<T, V>(out, scales, signs, *opposite, right, sign, scale);
                    }
                }
            }
        }
        (first, first_block) = (first + width * blocks, first_block + blocks);
    }
}

/// Writes a tensor product, unless it is absent.
///
/// # Safety
/// As [`products_body`].
#[inline(always)]
unsafe fn write_block<T: Lane, V: Vector<T>>(
    out: &mut [T],
    scales: &mut [f64],
    left: &[T],
    right: &[T],
    sign: T,
    scale: f64,
) {
    scales[0] = scale;
    if scale != f64::NEG_INFINITY {
        for (p, a) in left.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { write_multiple::<T, V>(&mut out[p * right.len()..][..right.len()], sign * *a, right) };
        }
    }
}

/// Writes two blocks for each of `signs`, of which one is present: [`LeftFactor::Signs`].
///
/// # Safety
/// As [`products_body`].
#[inline(always)]
unsafe fn write_by_signs<T: Lane, V: Vector<T>>(
    out: &mut [T],
    scales: &mut [f64],
    signs: &[T],
    opposite: bool,
    right: &[T],
    sign: T,
    scale: f64,
) {
    if scale == f64::NEG_INFINITY {
        return scales.iter_mut().for_each(|own| *own = scale);
    }
    let width = right.len();
    for (k, value) in signs.iter().enumerate() {
        // A branch would be mispredicted half of the time.
        let present = 2 * k + usize::from((*value < T::zero()) != opposite);
        let absent = present ^ 1;
        // SAFETY: the caller's promise.
        unsafe { write_multiple::<T, V>(&mut out[present * width..][..width], sign, right) };
        (scales[present], scales[absent]) = (scale, f64::NEG_INFINITY);
        if value.is_nan() {
            // A block of NaN is never absent.
            // SAFETY: as above.
            unsafe { write_multiple::<T, V>(&mut out[absent * width..][..width], sign, right) };
            scales[absent] = scale;
        }
    }
}

multiversion! {
    /// Writes the products of the factors in each row one after the other, and their log scales. Absent blocks are left
    /// unchanged.
    ///
    /// # Panics
    /// If the distance between rows is less than their products take.
    pub fn products<T, vector>(
        out: ScaledRows<&mut [T], &mut [f64]>,
        factors: ScaledRows<&[T], &[f64]>,
        products: &[TensorProduct],
    ) = products_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{Isa, Submatrix};

    /// A row of three factors of 3, `len` and 2 columns, and their scales.
    fn factors(len: usize, signs: [f64; 2], scales: [f64; 3]) -> (Vec<f64>, Vec<f64>) {
        let right = (0..len).map(|k| ((k * 7) % 11) as f64 - 5.0);
        ([3.0, 0.0, -1.0].into_iter().chain(right).chain(signs).collect(), scales.to_vec())
    }

    /// The definition, block by block: the log scale and the values.
    fn naive(product: &TensorProduct, row: &[f64], of: &[f64]) -> Vec<(f64, Vec<f64>)> {
        let right = &row[product.right.clone()];
        let sign = if product.negative { -1.0 } else { 1.0 };
        let times = |a: f64| right.iter().map(move |b| sign * a * b);
        let scale = of[product.right_scale] + product.log_factor;
        match &product.left {
            LeftFactor::One => vec![(scale, times(1.0).collect())],
            LeftFactor::Columns { columns, scale: place } => {
                vec![(of[*place] + scale, row[columns.clone()].iter().flat_map(|a| times(*a)).collect())]
            }
            LeftFactor::Signs { columns, scale: place, opposite } => {
                let flip = if *opposite { -1.0 } else { 1.0 };
                let absent = |value: f64, of_block: f64| flip * value * of_block < 0.0;
                let block = |value: f64, of_block: f64| {
                    let scale = if absent(value, of_block) { f64::NEG_INFINITY } else { of[*place] + scale };
                    (scale, times(1.0).collect())
                };
                row[columns.clone()].iter().flat_map(|v| [block(*v, 1.0), block(*v, -1.0)]).collect()
            }
        }
    }

    fn whole(values: &[f64], width: usize) -> Submatrix<&[f64]> {
        Submatrix { values, rows: 5, stride: width, width }
    }

    #[test]
    fn agree_with_the_definition() {
        for isa in Isa::available() {
            for len in (1..70).step_by(if cfg!(miri) { 34 } else { 1 }) {
                let product = |left, negative| TensorProduct {
                    left,
                    right: 3..3 + len,
                    right_scale: 1,
                    log_factor: -0.25,
                    negative,
                };
                let signs = |opposite| LeftFactor::Signs { columns: 3 + len..5 + len, scale: 2, opposite };
                let of_side = |second| {
                    [
                        product(LeftFactor::Columns { columns: 0..3, scale: 0 }, second),
                        product(LeftFactor::One, second),
                        product(signs(false), false),
                        product(signs(second), second),
                    ]
                };
                let products = of_side(true);
                // Absent factors, and rows of NaN.
                let rows = [
                    factors(len, [1.0, -1.0], [0.5, 2.0, 0.0]),
                    factors(len, [-1.0, -1.0], [f64::NEG_INFINITY, 1.0, 0.0]),
                    factors(len, [1.0, 1.0], [0.0, f64::NEG_INFINITY, 0.0]),
                    factors(len, [f64::NAN, -1.0], [0.5, 2.0, f64::NAN]),
                    factors(len, [-1.0, 1.0], [0.5, 2.0, 0.0]),
                ];
                let (values, scales): (Vec<_>, Vec<_>) = rows.iter().cloned().unzip();
                let (values, scales) = (values.concat(), scales.concat());
                let width = products.iter().map(|p| p.width() * p.blocks()).sum::<usize>();
                let blocks = products.iter().map(TensorProduct::blocks).sum::<usize>();
                for products in [of_side(false), products] {
                    let (stride, gap) = (width + 3, 7.5);
                    let (mut out, mut of_out) = (vec![gap; 5 * stride], vec![gap; 5 * blocks]);
                    super::products(
                        isa,
                        ScaledRows {
                            values: Submatrix { values: &mut out, rows: 5, stride, width },
                            log_scales: Submatrix {
                                values: &mut of_out,
                                rows: 5,
                                stride: blocks,
                                width: blocks,
                            },
                        },
                        ScaledRows { values: whole(&values, 5 + len), log_scales: whole(&scales, 3) },
                        &products,
                    );
                    for (i, (row, of)) in rows.iter().enumerate() {
                        let expected = products.iter().flat_map(|p| naive(p, row, of));
                        let (mut rest, mut of_rest) = (&out[i * stride..], &of_out[i * blocks..]);
                        for (scale, block) in expected {
                            let (own, later) = rest.split_at(block.len());
                            assert!(of_rest[0] == scale || of_rest[0].is_nan() && scale.is_nan(), "{isa:?}");
                            let absent = vec![gap; block.len()];
                            assert_eq!(own, if scale == f64::NEG_INFINITY { &absent } else { &block });
                            (rest, of_rest) = (later, &of_rest[1..]);
                        }
                        assert_eq!(rest[..3], [gap; 3]);
                    }
                }
            }
        }
    }
}
