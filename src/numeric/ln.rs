//! ln x over slices, in `f64` and rounded to the element.
//!
//! Method: x = 2ᵏ m with m between √½ and √2, and the series of ln m in s = (m − 1)/(m + 1) with minimax coefficients.
//! Error below 1 ulp of `f64` (tested).

use super::{Lane, zip};

#[inline(always)]
fn ln_body<T: Lane, const FMA: bool>(out: &mut [T], x: &[f64]) {
    for (out, x) in zip((out, x)) {
        *out = T::narrow(ln_of::<FMA>(*x));
    }
}

multiversion! {
    /// out ← ln x for positive normal x; other results are unspecified.
    pub fn ln<T>(out: &mut [T], x: &[f64]) = ln_body;
}

#[inline(always)]
#[allow(clippy::excessive_precision)]
fn ln_of<const FMA: bool>(x: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    // The bias makes the exponent non-negative, so that a logical shift can be used.
    const BIAS: u64 = 1024;
    const INTEGER: f64 = 4_503_599_627_370_496.0; // 2⁵², whose low bits are an integer
    const LN2_HI: f64 = 6.931_471_803_691_238_16e-1; // 32 bits: its product with k is exact
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

    let bits = x.to_bits();
    let biased = bits.wrapping_sub(ROOT_HALF).wrapping_add(BIAS << 52) >> 52;
    let k = f64::from_bits(INTEGER.to_bits() | biased) - (INTEGER + BIAS as f64);
    let m = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(BIAS) << 52));
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = 1.479_819_860_511_658_591e-1_f64
        .madd::<FMA>(z, 1.531_383_769_920_937_332e-1)
        .madd::<FMA>(z, 1.818_357_216_161_805_012e-1)
        .madd::<FMA>(z, 2.222_219_843_214_978_396e-1)
        .madd::<FMA>(z, 2.857_142_874_366_239_149e-1)
        .madd::<FMA>(z, 3.999_999_999_940_941_908e-1)
        .madd::<FMA>(z, 6.666_666_666_666_735_13e-1)
        * z;
    let half = 0.5 * f * f;
    k * LN2_HI - ((half - (s * (half + r) + k * LN2_LO)) - f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;
    use crate::numeric::test_support::{ulps32, ulps64};

    #[test]
    fn agrees_with_libm_everywhere() {
        let sweep = (0..if cfg!(miri) { 200 } else { 400_000 }).map(|i| (i as f64 * 0.00354 - 708.0).exp());
        let near_one = (-2000..2000).map(|i| 1.0 + f64::from(i) * 1e-7);
        let ends = [f64::MIN_POSITIVE, f64::MAX, 1.0, 2.0, 0.5, std::f64::consts::FRAC_1_SQRT_2];
        let x: Vec<f64> = sweep.chain(near_one).chain(ends).collect();
        for isa in Isa::available() {
            let (mut wide, mut narrow) = (vec![0.0f64; x.len()], vec![0.0f32; x.len()]);
            ln(isa, &mut wide, &x);
            ln(isa, &mut narrow, &x);
            for ((x, wide), narrow) in x.iter().zip(wide).zip(narrow) {
                let exact = libm::log(*x);
                assert!(ulps64(wide, exact) <= 1.0 || wide == exact, "{isa:?} ln {x}: {wide}, {exact}");
                assert!(ulps32(narrow, exact) <= 0.51 || exact == 0.0, "{isa:?} ln {x}: {narrow}");
            }
        }
    }
}
