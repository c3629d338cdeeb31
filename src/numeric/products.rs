//! [`products`]: rows of a sum of products, from rows of all factors.

use std::ops::Range;

use super::window::{Window, write_multiple};
use super::{Lane, Vector};
use crate::Real;

/// Blocks of a row that are left ⊗ right, with aₚ times all of b for every p in order.
#[derive(Clone, Debug)]
pub struct Product {
    /// The left factor.
    pub left: Left,
    /// The columns of the right factor.
    pub right: Range<usize>,
    /// The place of its log scale.
    pub right_scale: usize,
    /// Half the logarithm of the weight's magnitude.
    pub half_weight: f64,
    /// Whether the weight is negative: rows of the second side carry its sign.
    pub negative: bool,
}

/// The left factor of a [`Product`].
#[derive(Clone, Debug)]
pub enum Left {
    /// 1.
    One,
    /// These columns, with the log scale in this place.
    Block(Range<usize>, usize),
    /// Each of these columns holds a sign and gives two blocks, 1 ⊗ right for + and for −; that of the other sign is absent,
    /// with the log scale −∞.
    Signs(Range<usize>, usize, Turned),
}

/// Whether the signs of the second side are turned.
pub type Turned = bool;

impl Product {
    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        match &self.left {
            Left::One | Left::Block(..) => 1,
            Left::Signs(columns, ..) => 2 * columns.len(),
        }
    }

    /// The number of features of each block.
    pub fn width(&self) -> usize {
        match &self.left {
            Left::One | Left::Signs(..) => self.right.len(),
            // Saturates; the check of the facts refuses such sizes.
            Left::Block(columns, _) => columns.len().saturating_mul(self.right.len()),
        }
    }

    /// The log scale of its present blocks in a row of factors with these.
    #[inline(always)]
    pub fn scale(&self, of: &[f64]) -> f64 {
        let left = match self.left {
            Left::One => 0.0,
            Left::Block(_, place) | Left::Signs(_, place, _) => of[place],
        };
        left + of[self.right_scale] + self.half_weight
    }

    /// The sign of the weight, as a side sees it.
    #[inline(always)]
    pub fn sign<T: Real>(&self, second: bool) -> T {
        if second && self.negative { -T::one() } else { T::one() }
    }
}

/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn products_body<T: Lane, V: Vector<T>>(
    (out, scales): (Window<&mut [T]>, Window<&mut [f64]>),
    (factors, of): (Window<&[T]>, Window<&[f64]>),
    products: &[Product],
    second: bool,
) {
    let (mut first, mut first_block) = (0, 0);
    // A product for all rows: what it is made of is looked up once.
    for product in products {
        let (width, blocks) = (product.width(), product.blocks());
        let sign = product.sign(second);
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
                    Left::One => write_block::<T, V>(out, scales, (&[T::one()], right), (sign, scale)),
                    Left::Block(left, _) => {
                        write_block::<T, V>(out, scales, (&row[left.clone()], right), (sign, scale));
                    }
                    Left::Signs(left, _, turned) => {
                        let signs = (&row[left.clone()], second && *turned);
                        write_shares::<T, V>(out, scales, (signs, right), (sign, scale));
                    }
                }
            }
        }
        (first, first_block) = (first + width * blocks, first_block + blocks);
    }
}

/// A tensor product, unless it is absent.
///
/// # Safety
/// As [`products_body`].
#[inline(always)]
unsafe fn write_block<T: Lane, V: Vector<T>>(
    out: &mut [T],
    scales: &mut [f64],
    (left, right): (&[T], &[T]),
    (sign, scale): (T, f64),
) {
    scales[0] = scale;
    if scale != f64::NEG_INFINITY {
        for (p, a) in left.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { write_multiple::<T, V>(&mut out[p * right.len()..][..right.len()], sign * *a, right) };
        }
    }
}

/// The two blocks of each sign, unless all are absent.
///
/// # Safety
/// As [`products_body`].
#[inline(always)]
unsafe fn write_shares<T: Lane, V: Vector<T>>(
    out: &mut [T],
    scales: &mut [f64],
    ((signs, turned), right): ((&[T], Turned), &[T]),
    (sign, scale): (T, f64),
) {
    if scale == f64::NEG_INFINITY {
        return scales.fill(scale);
    }
    let width = right.len();
    for (k, value) in signs.iter().enumerate() {
        // Where the present block is, is computed, not branched on: signs are as random as coins.
        let present = 2 * k + usize::from((*value < T::zero()) != turned);
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
        out: (Window<&mut [T]>, Window<&mut [f64]>),
        factors: (Window<&[T]>, Window<&[f64]>),
        products: &[Product],
        second: bool,
    ) = products_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    /// A row of three factors of 3, `len` and 2 columns, and their scales.
    fn factors(len: usize, signs: [f64; 2], scales: [f64; 3]) -> (Vec<f64>, Vec<f64>) {
        let right = (0..len).map(|k| ((k * 7) % 11) as f64 - 5.0);
        ([3.0, 0.0, -1.0].into_iter().chain(right).chain(signs).collect(), scales.to_vec())
    }

    /// The definition, block by block: the left factor's value, and whether the block is present.
    fn naive(product: &Product, row: &[f64], of: &[f64], second: bool) -> Vec<(f64, Vec<f64>)> {
        let right = &row[product.right.clone()];
        let sign = if second && product.negative { -1.0 } else { 1.0 };
        let times = |a: f64| right.iter().map(move |b| sign * a * b);
        let scale = of[product.right_scale] + product.half_weight;
        match &product.left {
            Left::One => vec![(scale, times(1.0).collect())],
            Left::Block(columns, place) => {
                vec![(of[*place] + scale, row[columns.clone()].iter().flat_map(|a| times(*a)).collect())]
            }
            Left::Signs(columns, place, turned) => {
                let flip = if second && *turned { -1.0 } else { 1.0 };
                let own = |value: f64, of_block: f64| flip * value * of_block < 0.0;
                let block = |value: f64, of_block: f64| {
                    let scale = if own(value, of_block) { f64::NEG_INFINITY } else { of[*place] + scale };
                    (scale, times(1.0).collect())
                };
                row[columns.clone()].iter().flat_map(|v| [block(*v, 1.0), block(*v, -1.0)]).collect()
            }
        }
    }

    fn whole(values: &[f64], width: usize) -> Window<&[f64]> {
        Window { values, rows: 5, stride: width, width }
    }

    #[test]
    fn agree_with_the_definition() {
        for isa in Isa::available() {
            for len in 1..70 {
                let product = |left, negative| Product {
                    left,
                    right: 3..3 + len,
                    right_scale: 1,
                    half_weight: -0.25,
                    negative,
                };
                let signs = |turned| Left::Signs(3 + len..5 + len, 2, turned);
                let products = [
                    product(Left::Block(0..3, 0), true),
                    product(Left::One, true),
                    product(signs(false), false),
                    product(signs(true), true),
                ];
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
                let blocks = products.iter().map(Product::blocks).sum::<usize>();
                for second in [false, true] {
                    let (stride, gap) = (width + 3, 7.5);
                    let (mut out, mut of_out) = (vec![gap; 5 * stride], vec![gap; 5 * blocks]);
                    super::products(
                        isa,
                        (
                            Window { values: &mut out, rows: 5, stride, width },
                            Window { values: &mut of_out, rows: 5, stride: blocks, width: blocks },
                        ),
                        (whole(&values, 5 + len), whole(&scales, 3)),
                        &products,
                        second,
                    );
                    for (i, (row, of)) in rows.iter().enumerate() {
                        let expected = products.iter().flat_map(|p| naive(p, row, of, second));
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
