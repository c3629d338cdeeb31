//! Vectorised loops: exponentials, sines, products, sums.
//!
//! All performance-critical loops of this crate are here. They are written once, in portable Rust that the compiler
//! vectorises, and compiled for each instruction set by [`isa`]. Other modules call safe functions. This is the only folder
//! with `unsafe` code.
//!
//! The order of operations never depends on the length of a slice, on the position of an element, or on the number of
//! threads, so results are bit-identical for one row and for a million. Between instruction sets results may differ by
//! the rounding of fused multiply-adds.

#![allow(unsafe_code)]

#[macro_use]
mod isa;
mod arrays;
mod buffer;
mod elementwise;
mod exp;
mod exp_m1;
mod hadamard;
mod lane;
mod ln;
mod order;
mod packed;
mod pages;
#[cfg(feature = "testing")]
mod peak;
mod planes;
pub mod pointwise;
mod product;
mod products;
mod reduce;
mod scale;
mod sets;
mod sincos;
mod sparse;
pub mod special;
mod submatrix;
mod twofold;
mod vector;
mod zip;

pub use arrays::{
    copy_row, into_slice_of, matrix_of, matrix_times, matrix_view, row_products, slice_of, slice_of_mut,
    without_repeats,
};
pub use buffer::{Buffer, Fence, LINE, Stream, spread};
pub use elementwise::{
    add_minus, add_two, add_weighted, affine, divide, magnitudes, move_multiples, multiply, quotients, raise,
    scale_products, scale_twice, scaled, simplex, softmax, subtract, weigh,
};
pub use exp::{exp_minus, exp_pair_minus, small_exp_minus, small_exp_pair_minus};
pub use exp_m1::{cosh_m1, exp_m1};
pub use hadamard::hadamard_rounds;
pub use isa::Isa;
use lane::Lane;
pub use ln::ln;
pub(crate) use order::descending;
pub use packed::{Packed, Panels, panel_width};
pub use pages::{aligned_zeros, prefetch, zeros};
#[cfg(feature = "testing")]
pub use peak::multiply_adds;
pub use planes::{POINTS, Plane, rotate_planes};
pub use product::{add_product, panel_product, product, transposed_product};
pub use products::{LeftFactor, TensorProduct, products};
pub use reduce::{
    PrefixFactors, ROWS, add_multiples, add_rows, add_scaled, add_squares, dot, dots, max, max_abs, max_sum,
    min_abs, nearest, plain_sum, prefix_step, scale_and_add, scale_and_add_each, scale_and_add_rows,
    squared_distance, squared_norm, squared_norms, weighted_sum,
};
pub use scale::{power_of_two_below, raise_scale, raise_scales, with_length};
pub use sets::{negate_odd, negative_and_zero, replace_meeting};
pub use sincos::{COS_SIN_LIMIT, cos_sin, exp_polar, small_cos_sin};
#[cfg(feature = "sparse")]
pub use sparse::unsigned;
pub use sparse::{Columns, sparse_product, sparse_squared_norm};
pub use submatrix::{ScaledRows, Submatrix, copy_rows};
pub use twofold::Twofold;
use vector::Vector;
use zip::zip;

#[cfg(test)]
mod test_support {
    /// |y − reference| in units of the last place of the reference in single precision.
    pub fn ulps32(y: f32, reference: f64) -> f64 {
        let near = (reference as f32).abs();
        let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
        (f64::from(y) - reference).abs() / ulp
    }

    /// |y − reference| in units of the last place of the reference in double precision.
    pub fn ulps64(y: f64, reference: f64) -> f64 {
        let near = reference.abs();
        (y - reference).abs() / (f64::from_bits(near.to_bits() + 1) - near)
    }
}
