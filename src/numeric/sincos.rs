//! cos x and sin x over slices, for `f32` and `f64`.
//!
//! Method: x = q π/2 + r with |r| ≤ π/4 by subtracting π/2 in parts (Cody and Waite), minimax polynomials for cos r and
//! sin r, then the quadrant q determines their order and signs. Error at most 2.5 ulp for |x| ≤ 1e5 (tested). Larger
//! elements use the standard library, which is accurate for every finite x; ±∞ and NaN give NaN.

use super::exp::{Exp, TOGETHER, last_together, write_last};
use super::lane::Lane;
use super::submatrix::Submatrix;
use super::zip;

/// The largest |x| for which the fast path is accurate.
pub const COS_SIN_LIMIT: f64 = 1e5;

/// An element with sine and cosine.
trait CosSin: Lane {
    /// (cos x, sin x) for |x| ≤ [`COS_SIN_LIMIT`], without a branch.
    fn fast_cos_sin<const FMA: bool>(self) -> (Self, Self);
}

impl CosSin for f32 {
    #[inline(always)]
    fn fast_cos_sin<const FMA: bool>(self) -> (f32, f32) {
        single::<FMA>(self)
    }
}

impl CosSin for f64 {
    #[inline(always)]
    fn fast_cos_sin<const FMA: bool>(self) -> (f64, f64) {
        double::<FMA>(self)
    }
}

/// The number of elements whose range is checked together for the fast path.
const CHUNK: usize = 64;

#[inline(always)]
fn cos_sin_body<T: CosSin, const FMA: bool>(cos: &mut [T], sin: &mut [T]) {
    for (cos, sin) in zip((cos.chunks_mut(CHUNK), sin.chunks_mut(CHUNK))) {
        let (mut fast, limit) = (true, T::narrow(COS_SIN_LIMIT));
        for x in cos.iter() {
            fast &= x.abs() <= limit;
        }
        if fast {
            small_cos_sin_body::<T, FMA>(cos, sin);
        } else {
            with_outliers::<T, FMA>(cos, sin);
        }
    }
}

/// The slow path, for a chunk with an element that is beyond the limit, infinite or NaN.
#[cold]
#[inline(never)]
fn with_outliers<T: CosSin, const FMA: bool>(cos: &mut [T], sin: &mut [T]) {
    for (c, s) in zip((cos, sin)) {
        (*c, *s) =
            if c.abs() <= T::narrow(COS_SIN_LIMIT) { c.fast_cos_sin::<FMA>() } else { (c.cos(), c.sin()) };
    }
}

multiversion! {
    /// With x in `cos`: cos ← cos x, sin ← sin x.
    pub fn cos_sin<T>(cos: &mut [T], sin: &mut [T]) = cos_sin_body;
}

#[inline(always)]
fn small_cos_sin_body<T: CosSin, const FMA: bool>(cos: &mut [T], sin: &mut [T]) {
    let last = last_together(cos);
    for (cos, sin) in zip((cos.as_chunks_mut::<TOGETHER>().0, sin.as_chunks_mut::<TOGETHER>().0)) {
        (*cos, *sin) = cos_sin_together::<T, FMA>(*cos);
    }
    if let Some(last) = last {
        let (of_cos, of_sin) = cos_sin_together::<T, FMA>(last);
        write_last(cos, &of_cos);
        write_last(sin, &of_sin);
    }
}

#[inline(always)]
fn cos_sin_together<T: CosSin, const FMA: bool>(x: [T; TOGETHER]) -> ([T; TOGETHER], [T; TOGETHER]) {
    let (mut cos, mut sin) = (x, x);
    for (c, s) in zip((&mut cos[..], &mut sin[..])) {
        (*c, *s) = c.fast_cos_sin::<FMA>();
    }
    (cos, sin)
}

#[inline(always)]
fn small_cos_sin_rows_body<T: CosSin, const FMA: bool>(x: Submatrix<&mut [T]>) {
    for row in x.into_rows() {
        let (cos, sin) = row.split_at_mut(row.len() / 2);
        small_cos_sin_body::<T, FMA>(cos, sin);
    }
}

multiversion! {
    /// Computes [`cos_sin`] of the halves of each row, to the bit if no |x| exceeds [`COS_SIN_LIMIT`]; otherwise unspecified.
    pub fn small_cos_sin<T>(x: Submatrix<&mut [T]>) = small_cos_sin_rows_body;
}

#[inline(always)]
fn exp_polar_body<T: CosSin + Exp, const FMA: bool>(first: &mut [T], second: &mut [T], shift: T, sign: T) {
    for (first, second) in zip((first.chunks_mut(CHUNK), second.chunks_mut(CHUNK))) {
        let mut sines = [T::zero(); CHUNK];
        let sines = &mut sines[..second.len()];
        cos_sin_body::<T, FMA>(second, sines);
        for (first, second, sine) in zip((first, second, &*sines)) {
            let size = (*first - shift).fast_exp::<FMA, false>();
            (*first, *second) = (size * *second, sign * size * *sine);
        }
    }
}

multiversion! {
    /// With u in `first` and v in `second`: first ← e^(u − shift) cos v, second ← sign · e^(u − shift) sin v.
    pub fn exp_polar<T>(first: &mut [T], second: &mut [T], shift: T, sign: T) = exp_polar_body;
}

/// (cos x, sin x) in single precision, |x| ≤ 1e5.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn single<const FMA: bool>(x: f32) -> (f32, f32) {
    let (q, r) = if FMA { reduce_f32(x) } else { reduce_f32_in_f64(x) };
    let z = r * r;
    let s = (-1.951_723_469e-4_f32).madd::<FMA>(z, 8.332_177_686e-3).madd::<FMA>(z, -1.666_665_494e-1);
    let sin = s.madd::<FMA>(z * r, r);
    let c = 2.443_308_269e-5_f32
        .madd::<FMA>(z, -1.388_731_562e-3)
        .madd::<FMA>(z, 4.166_664_567e-2)
        .madd::<FMA>(z, -0.5);
    let cos = c.madd::<FMA>(z, 1.0);
    let (cos, sin) = if q & 1 == 0 { (cos, sin) } else { (sin, cos) };
    let cos_sign = (q.wrapping_add(1) & 2) << 30;
    let sin_sign = (q & 2) << 30;
    (f32::from_bits(cos.to_bits() ^ cos_sign), f32::from_bits(sin.to_bits() ^ sin_sign))
}

/// Quadrant and remainder with three 24-bit parts of π/2; requires fused multiply-adds.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn reduce_f32(x: f32) -> (u32, f32) {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    let shifted = x.mul_add(std::f32::consts::FRAC_2_PI, ROUND);
    let q = shifted - ROUND;
    let r = q.mul_add(-1.570_796_370_506_286_621_094, x);
    let r = q.mul_add(4.371_138_828_673_792_886_548e-8, r);
    let r = q.mul_add(1.715_124_510_005_881_872_804e-15, r);
    (shifted.to_bits(), r)
}

/// Quadrant and remainder through `f64`, for machines without fused multiply-adds, where 24 bits are not enough.
#[inline(always)]
fn reduce_f32_in_f64(x: f32) -> (u32, f32) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND;
    let q = shifted - ROUND;
    let r = (x - q * PIO2_1) - q * PIO2_2;
    (shifted.to_bits() as u32, r as f32)
}

// π/2 in parts. The first two have 33 bits: their products with a quadrant number below 2²⁰ are exact, fused or
// not. The third carries the sum to 119 bits, for arguments next to a multiple of π/2.
#[allow(clippy::excessive_precision)]
const PIO2_1: f64 = 1.570_796_326_734_125_614_166;
#[allow(clippy::excessive_precision)]
const PIO2_2: f64 = 6.077_100_506_303_965_976_596e-11;
#[allow(clippy::excessive_precision)]
const PIO2_3: f64 = 2.022_266_248_795_950_63e-21;

/// (cos x, sin x) in double precision, |x| ≤ 1e5.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn double<const FMA: bool>(x: f64) -> (f64, f64) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    let shifted = x.madd::<FMA>(std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let q = shifted.to_bits();
    let r = n.madd::<FMA>(-PIO2_3, n.madd::<FMA>(-PIO2_2, n.madd::<FMA>(-PIO2_1, x)));
    let z = r * r;
    let s = 1.589_679_568_470_822_98e-10_f64
        .madd::<FMA>(z, -2.505_075_811_584_396_08e-8)
        .madd::<FMA>(z, 2.755_731_369_192_191_68e-6)
        .madd::<FMA>(z, -1.984_126_982_980_781_85e-4)
        .madd::<FMA>(z, 8.333_333_333_322_413_13e-3)
        .madd::<FMA>(z, -1.666_666_666_666_663_24e-1);
    let sin = s.madd::<FMA>(z * r, r);
    let c = (-1.135_851_391_100_127_12e-11_f64)
        .madd::<FMA>(z, 2.087_570_041_526_392_49e-9)
        .madd::<FMA>(z, -2.755_731_417_623_365_72e-7)
        .madd::<FMA>(z, 2.480_158_728_884_137_68e-5)
        .madd::<FMA>(z, -1.388_888_888_887_304_06e-3)
        .madd::<FMA>(z, 4.166_666_666_666_659_50e-2)
        .madd::<FMA>(z, -0.5);
    let cos = c.madd::<FMA>(z, 1.0);
    let (cos, sin) = if q & 1 == 0 { (cos, sin) } else { (sin, cos) };
    let cos_sign = (q.wrapping_add(1) & 2) << 62;
    let sin_sign = (q & 2) << 62;
    (f64::from_bits(cos.to_bits() ^ cos_sign), f64::from_bits(sin.to_bits() ^ sin_sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{
        Isa,
        test_support::{ulps32, ulps64},
    };

    /// Whole chunks, what they leave over, and rows of a matrix: each element alone gives the same bits.
    #[test]
    fn lengths_change_no_bit() {
        for isa in Isa::available() {
            for len in 0..70 {
                let stride = 2 * len + 1;
                let x = |i: usize, k: usize| 0.7 * k as f32 - 11.0 + i as f32;
                let mut rows = vec![7.0; 3 * stride];
                for (i, row) in rows.chunks_mut(stride).enumerate() {
                    (0..len).for_each(|k| row[k] = x(i, k));
                }
                small_cos_sin(isa, Submatrix { values: &mut rows, rows: 3, stride, width: 2 * len });
                for (i, row) in rows.chunks(stride).enumerate() {
                    for k in 0..len {
                        let (mut cos, mut sin) = ([x(i, k)], [0.0]);
                        cos_sin(isa, &mut cos, &mut sin);
                        assert_eq!((row[k], row[len + k]), (cos[0], sin[0]), "{isa:?} {len}");
                    }
                    assert_eq!(row[2 * len], 7.0);
                }
            }
        }
    }

    #[test]
    fn f32_within_two_ulp_up_to_the_limit() {
        for isa in Isa::available() {
            let mut worst = 0.0f64;
            for sign in [0u32, 0x8000_0000] {
                let xs: Vec<f32> =
                    (0x2f00_0000..=0x47c3_5000u32).step_by(101).map(|b| f32::from_bits(b | sign)).collect();
                let (mut c, mut s) = (xs.clone(), vec![0.0; xs.len()]);
                cos_sin(isa, &mut c, &mut s);
                let mut small = [&xs[..], &s[..]].concat();
                small_cos_sin(isa, Submatrix::of_row(&mut small));
                assert_eq!(small, [&c[..], &s[..]].concat(), "{isa:?}");
                for (i, x) in xs.iter().enumerate() {
                    let (sin, cos) = f64::from(*x).sin_cos();
                    worst = worst.max(ulps32(c[i], cos)).max(ulps32(s[i], sin));
                }
            }
            assert!(worst <= 2.0, "{isa:?}: {worst} ulp");
        }
    }

    #[test]
    fn f64_within_two_and_a_half_ulp_up_to_the_limit() {
        for isa in Isa::available() {
            // Small, moderate and large arguments, and the doubles nearest to multiples of π/2.
            let mut xs: Vec<f64> = (0..200_000)
                .map(|i| (f64::from(i) * 0.618_033_988_749_895).fract() * 10f64.powf(f64::from(i % 14) - 8.0))
                .collect();
            xs.extend((1..63_600).step_by(7).map(|k| f64::from(k) * std::f64::consts::FRAC_PI_2));
            xs.extend(xs.clone().iter().map(|x| -x));
            let (mut c, mut s) = (xs.clone(), vec![0.0; xs.len()]);
            cos_sin(isa, &mut c, &mut s);
            for (i, x) in xs.iter().enumerate() {
                let (sin, cos) = x.sin_cos();
                let worst = ulps64(c[i], cos).max(ulps64(s[i], sin));
                // The standard library's values are within 0.55 ulp of the truth.
                assert!(worst <= 2.0, "{isa:?} {x}: {worst} ulp");
            }
        }
    }

    #[test]
    fn beyond_the_limit_and_special_values() {
        for isa in Isa::available() {
            let xs = [1.0e5f64, 1.000_001e5, -3.7e12, 1e300, f64::INFINITY, f64::NAN, 0.0, 1.0];
            let (mut c, mut s) = (xs, [0.0; 8]);
            cos_sin(isa, &mut c, &mut s);
            for i in 0..4 {
                assert!(
                    (c[i] - xs[i].cos()).abs() < 1e-15 && (s[i] - xs[i].sin()).abs() < 1e-15,
                    "{}",
                    xs[i]
                );
            }
            assert!(c[4].is_nan() && s[4].is_nan() && c[5].is_nan() && s[5].is_nan());
            assert_eq!((c[6], s[6]), (1.0, 0.0));
            // An outlier does not change the results of its neighbours.
            let (mut alone, mut sine) = ([1.0f64], [0.0]);
            cos_sin(isa, &mut alone, &mut sine);
            assert_eq!((c[7], s[7]), (alone[0], sine[0]));
        }
    }
}
