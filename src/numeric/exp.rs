//! eˣ over slices, for `f32` and `f64`.
//!
//! Method: x = n ln 2 + r with |r| ≤ ½ ln 2, a minimax polynomial for eʳ, and n added to the exponent field. Error at
//! most 1.5 ulp (tested). Results below the smallest normal number are flushed to zero, which avoids slow denormal
//! arithmetic. Overflow gives +∞; exp(±∞) and NaN follow IEEE 754.

use super::{Lane, Submatrix, zip};

/// An element with an exponential.
pub trait Exp: Lane {
    /// eˣ, without a branch; if `SMALL`, only for x whose eˣ is a normal number.
    fn fast_exp<const FMA: bool, const SMALL: bool>(self) -> Self;
}

impl Exp for f32 {
    #[inline(always)]
    fn fast_exp<const FMA: bool, const SMALL: bool>(self) -> f32 {
        single::<FMA, SMALL>(self)
    }
}

impl Exp for f64 {
    #[inline(always)]
    fn fast_exp<const FMA: bool, const SMALL: bool>(self) -> f64 {
        double::<FMA, SMALL>(self)
    }
}

/// The number of elements that are computed together, so that rows of few elements are as fast as others.
pub(super) const TOGETHER: usize = 16;

#[inline(always)]
fn exp_minus_body<T: Exp, const FMA: bool, const SMALL: bool>(x: &mut [T], shift: T) {
    let last = last_together(x);
    for x in x.as_chunks_mut::<TOGETHER>().0 {
        exp_together::<T, FMA, SMALL, false>(x, shift);
    }
    if let Some(mut last) = last {
        exp_together::<T, FMA, SMALL, false>(&mut last, shift);
        write_last(x, &last);
    }
}

#[inline(always)]
fn exp_pair_minus_body<T: Exp, const FMA: bool, const SMALL: bool>(
    plus: &mut [T],
    minus: &mut [T],
    shift: T,
) {
    let last = last_together(plus);
    for (plus, minus) in zip((plus.as_chunks_mut::<TOGETHER>().0, minus.as_chunks_mut::<TOGETHER>().0)) {
        let (mut of_plus, mut of_minus) = (*plus, *plus);
        exp_together::<T, FMA, SMALL, false>(&mut of_plus, shift);
        exp_together::<T, FMA, SMALL, true>(&mut of_minus, shift);
        (*plus, *minus) = (of_plus, of_minus);
    }
    if let Some(mut of_plus) = last {
        let mut of_minus = of_plus;
        exp_together::<T, FMA, SMALL, false>(&mut of_plus, shift);
        exp_together::<T, FMA, SMALL, true>(&mut of_minus, shift);
        write_last(plus, &of_plus);
        write_last(minus, &of_minus);
    }
}

/// x ← exp(x − shift), or exp(−x − shift).
#[inline(always)]
fn exp_together<T: Exp, const FMA: bool, const SMALL: bool, const NEGATIVE: bool>(
    x: &mut [T; TOGETHER],
    shift: T,
) {
    for v in x {
        let u = if NEGATIVE { -*v } else { *v };
        *v = (u - shift).fast_exp::<FMA, SMALL>();
    }
}

/// The last elements, if whole chunks leave some over: as many as a chunk has, or all elements and zeros. They are read before
/// the chunks are written, since the last elements and the last chunk may overlap.
#[inline(always)]
pub(super) fn last_together<T: Lane>(x: &[T]) -> Option<[T; TOGETHER]> {
    if x.len().is_multiple_of(TOGETHER) {
        return None;
    }
    Some(x.last_chunk().copied().unwrap_or_else(|| {
        let mut all = [T::zero(); TOGETHER];
        all[..x.len()].copy_from_slice(x);
        all
    }))
}

/// Writes the results for [`last_together`] in their place.
#[inline(always)]
pub(super) fn write_last<T: Lane>(x: &mut [T], last: &[T; TOGETHER]) {
    match x.last_chunk_mut() {
        Some(own) => *own = *last,
        None => x.copy_from_slice(&last[..x.len()]),
    }
}

multiversion! {
    /// x ← exp(x − shift).
    pub fn exp_minus<T>(x: &mut [T], shift: T) = exp_minus_body[false];
}

#[inline(always)]
fn small_exp_minus_body<T: Exp, const FMA: bool>(x: Submatrix<&mut [T]>, shifts: &[f64]) {
    for (row, shift) in zip((x, shifts)) {
        exp_minus_body::<T, FMA, true>(row, T::narrow(*shift));
    }
}

multiversion! {
    /// Computes [`exp_minus`] of each row, to the bit where eˣ⁻ˢʰⁱᶠᵗ is a normal number; other results are unspecified.
    pub fn small_exp_minus<T>(x: Submatrix<&mut [T]>, shifts: &[f64]) = small_exp_minus_body;
}

multiversion! {
    /// With x in `plus`: plus ← exp(x − shift), minus ← exp(−x − shift).
    pub fn exp_pair_minus<T>(plus: &mut [T], minus: &mut [T], shift: T) = exp_pair_minus_body[false];
}

#[inline(always)]
fn small_exp_pair_minus_body<T: Exp, const FMA: bool>(x: Submatrix<&mut [T]>, shifts: &[f64]) {
    for (row, shift) in zip((x, shifts)) {
        let (plus, minus) = row.split_at_mut(row.len() / 2);
        exp_pair_minus_body::<T, FMA, true>(plus, minus, T::narrow(*shift));
    }
}

multiversion! {
    /// Computes [`exp_pair_minus`] of the halves of each row, to the bit where all results are normal numbers; others are
    /// unspecified.
    pub fn small_exp_pair_minus<T>(x: Submatrix<&mut [T]>, shifts: &[f64]) = small_exp_pair_minus_body;
}

/// eˣ in single precision; if `SMALL`, the result must be a normal number.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn single<const FMA: bool, const SMALL: bool>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: adding it rounds to an integer, kept in the low bits
    const LN2_HI: f32 = 0.693_145_751_953_125; // 15 bits: its product with n is exact
    const LN2_LO: f32 = 1.428_606_820e-6;
    const LOW: f32 = -87.336_540; // below it eˣ < 2⁻¹²⁶
    const HIGH: f32 = 88.722_831; // above it eˣ > MAX

    let shifted = x.madd::<FMA>(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.madd::<FMA>(-LN2_LO, n.madd::<FMA>(-LN2_HI, x));
    let q = 1.381_459_865e-3_f32
        .madd::<FMA>(r, 8.368_716_880e-3)
        .madd::<FMA>(r, 4.166_838_805e-2)
        .madd::<FMA>(r, 1.666_652_063e-1)
        .madd::<FMA>(r, 4.999_999_345e-1);
    let p = q.madd::<FMA>(r * r, r) + 1.0;
    let y = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    if SMALL {
        return y;
    }
    let y = if x < LOW { 0.0 } else { y };
    // x + ∞ covers overflow (∞) and NaN with one selection.
    if x <= HIGH { y } else { x + f32::INFINITY }
}

/// eˣ in double precision; if `SMALL`, the result must be a normal number.
#[inline(always)]
fn double<const FMA: bool, const SMALL: bool>(x: f64) -> f64 {
    const LOW: f64 = -708.396_418_532_264; // below it eˣ < 2⁻¹⁰²² (1 + 1e-13)

    let (part, shifted) = reduced::<FMA>(x);
    let y = f64::from_bits((part + 1.0).to_bits().wrapping_add(shifted.to_bits() << 52));
    if SMALL {
        return y;
    }
    let y = if x < LOW { 0.0 } else { y };
    if x <= HIGH { y } else { x + f64::INFINITY }
}

/// eˣ − 1 in double precision, without a branch.
#[inline(always)]
pub(super) fn exp_m1_of<const FMA: bool>(x: f64) -> f64 {
    const LOW: f64 = -40.0; // below it the result rounds to −1

    let (part, shifted) = reduced::<FMA>(x);
    // Half of 2ⁿ overflows later than the result.
    let half = f64::from_bits(0.5f64.to_bits().wrapping_add(shifted.to_bits() << 52));
    let y = 2.0 * half.madd::<FMA>(part, half - 0.5);
    let y = if x < LOW { -1.0 } else { y };
    if x <= HIGH { y } else { x + f64::INFINITY }
}

const HIGH: f64 = 709.782_712_893_383_9; // above it eˣ > MAX (1 − 1e-13)

/// eʳ − 1 for x = n ln 2 + r, and a number whose low bits hold n.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn reduced<const FMA: bool>(x: f64) -> (f64, f64) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    const LN2_HI: f64 = 0.693_147_180_560_117_703_862_5; // 41 bits
    const LN2_LO: f64 = -1.723_944_452_561_082_611_706e-13;

    let shifted = x.madd::<FMA>(std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.madd::<FMA>(-LN2_LO, n.madd::<FMA>(-LN2_HI, x));
    let q = 2.500_006_162_455_484_85e-8_f64
        .madd::<FMA>(r, 2.763_024_838_494_850_68e-7)
        .madd::<FMA>(r, 2.755_758_637_378_689_51e-6)
        .madd::<FMA>(r, 2.480_149_309_888_854_24e-5)
        .madd::<FMA>(r, 1.984_126_950_657_872_31e-4)
        .madd::<FMA>(r, 1.388_888_894_363_013_35e-3)
        .madd::<FMA>(r, 8.333_333_333_494_461_27e-3)
        .madd::<FMA>(r, 4.166_666_666_653_015_55e-2)
        .madd::<FMA>(r, 1.666_666_666_666_641_32e-1)
        .madd::<FMA>(r, 5.000_000_000_000_011_10e-1);
    (q.madd::<FMA>(r * r, r), shifted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{
        Isa,
        test_support::{ulps32, ulps64},
    };

    #[test]
    fn f32_within_one_and_a_half_ulp() {
        // Every 97th float of the normal range, both signs.
        for isa in Isa::available() {
            let mut worst = 0.0f64;
            for base in [0u32, 0x8000_0000] {
                let xs: Vec<f32> = (0x2f00_0000..=0x42b1_7217u32)
                    .step_by(97)
                    .map(|b| f32::from_bits(b | base))
                    .filter(|x| *x > -87.336_54)
                    .collect();
                let mut ys = xs.clone();
                exp_minus(isa, &mut ys, 0.0);
                for (x, y) in xs.iter().zip(&ys) {
                    worst = worst.max(ulps32(*y, f64::from(*x).exp()));
                }
            }
            assert!(worst <= 1.5, "{isa:?}: {worst} ulp");
        }
    }

    #[test]
    fn f64_within_one_and_a_half_ulp() {
        // The standard library's exp is within 0.51 ulp, so a difference of one ulp bounds the error by 1.51.
        for isa in Isa::available() {
            let xs: Vec<f64> = (0..400_000).map(|i| -708.39 + 0.003_545_431 * f64::from(i)).collect();
            let mut ys = xs.clone();
            exp_minus(isa, &mut ys, 0.0);
            for (x, y) in xs.iter().zip(&ys) {
                assert!(ulps64(*y, x.exp()) <= 1.0, "{isa:?} {x}: {} ulp", ulps64(*y, x.exp()));
            }
        }
    }

    fn edges<T: crate::Real>(low: T, high: T) {
        for isa in Isa::available() {
            let (inf, nan) = (T::infinity(), T::nan());
            let mut x = [
                inf,
                -inf,
                nan,
                T::zero(),
                -T::zero(),
                T::max_value(),
                T::min_value(),
                high,
                low,
                T::min_positive_value(),
            ];
            exp_minus(isa, &mut x, T::zero());
            assert_eq!(x[0], inf);
            assert_eq!(x[1], T::zero());
            assert!(x[2].is_nan());
            assert_eq!((x[3], x[4], x[9]), (T::one(), T::one(), T::one()));
            assert_eq!((x[5], x[6]), (inf, T::zero()));
            assert_eq!((x[7], x[8]), (inf, T::zero()));
        }
    }

    #[test]
    fn edges_are_right() {
        edges::<f32>(-87.336_55, 88.722_84);
        edges::<f64>(-708.396_418_532_265, 709.782_712_893_385);
    }

    #[test]
    fn nothing_denormal_comes_out() {
        for isa in Isa::available() {
            let mut x: Vec<f32> = (0..100_000).map(|i| -104.0 + 2e-4 * i as f32).collect();
            exp_minus(isa, &mut x, 0.0);
            assert!(x.iter().all(|y| *y == 0.0 || *y >= f32::MIN_POSITIVE));
            let mut x: Vec<f64> = (0..100_000).map(|i| -750.0 + 5e-4 * f64::from(i)).collect();
            exp_minus(isa, &mut x, 0.0);
            assert!(x.iter().all(|y| *y == 0.0 || *y >= f64::MIN_POSITIVE));
        }
    }

    fn small_is_any<T: crate::Real>(low: f64, high: f64) {
        for isa in Isa::available() {
            let x: Vec<T> =
                (0..=9999).map(|i| T::narrow(low + (high - low) * f64::from(i) / 9999.0)).collect();
            let (mut any, mut small) = (x.clone(), x.clone());
            exp_minus(isa, &mut any, T::zero());
            small_exp_minus(isa, Submatrix::of_row(&mut small), &[0.0]);
            assert_eq!(any, small, "{isa:?}");
            let x: Vec<T> = x.into_iter().map(|x| x * T::narrow(0.4)).collect();
            let (mut any, mut small) = ([x.clone(), x.clone()], [x.clone(), x].concat());
            let [plus, minus] = &mut any;
            exp_pair_minus(isa, plus, minus, T::one());
            small_exp_pair_minus(isa, Submatrix::of_row(&mut small), &[1.0]);
            assert_eq!(any.concat(), small, "{isa:?}");
        }
    }

    #[test]
    fn promises_change_no_bit() {
        small_is_any::<f32>(-87.3, 88.7);
        small_is_any::<f64>(-708.3, 709.7);
    }

    /// Whole chunks, what they leave over, and rows of a matrix: each element alone gives the same bits.
    fn every_length<T: crate::Real>() {
        let alone = |isa, x: T, shift: T| {
            let mut alone = [x];
            exp_minus(isa, &mut alone, shift);
            alone[0]
        };
        for isa in Isa::available() {
            for len in 0..70 {
                let x: Vec<T> = (0..3 * len).map(|i| T::narrow(0.3 * i as f64 - 9.0)).collect();
                let shifts = [0.0, 1.5, -0.75];
                let mut minus = x.clone();
                small_exp_minus(
                    isa,
                    Submatrix { values: &mut minus, rows: 3, stride: len, width: len },
                    &shifts,
                );
                let stride = 2 * len + 1;
                let mut pairs = vec![T::one(); 3 * stride];
                for i in 0..3 {
                    pairs[i * stride..][..len].copy_from_slice(&x[i * len..][..len]);
                }
                let submatrix = Submatrix { values: &mut pairs[..], rows: 3, stride, width: 2 * len };
                small_exp_pair_minus(isa, submatrix, &shifts);
                for (i, shift) in shifts.into_iter().enumerate() {
                    let shift = T::narrow(shift);
                    for k in 0..len {
                        let x = x[i * len + k];
                        assert_eq!(minus[i * len + k], alone(isa, x, shift), "{isa:?} {len}");
                        assert_eq!(pairs[i * stride + k], alone(isa, x, shift), "{isa:?} {len}");
                        assert_eq!(pairs[i * stride + len + k], alone(isa, -x, shift), "{isa:?} {len}");
                    }
                    assert_eq!(pairs[i * stride + 2 * len], T::one());
                }
            }
        }
    }

    #[test]
    fn lengths_change_no_bit() {
        every_length::<f32>();
        every_length::<f64>();
    }

    #[test]
    fn pair_is_two_exponentials() {
        for isa in Isa::available() {
            let x: Vec<f64> = (0..37).map(|i| 0.3 * f64::from(i) - 5.0).collect();
            let (mut plus, mut minus) = (x.clone(), vec![f64::NAN; 37]);
            exp_pair_minus(isa, &mut plus, &mut minus, 1.5);
            let (mut p, mut m) = (x.clone(), x.iter().map(|v| -v).collect::<Vec<_>>());
            exp_minus(isa, &mut p, 1.5);
            exp_minus(isa, &mut m, 1.5);
            assert_eq!((plus, minus), (p, m));
        }
    }
}
