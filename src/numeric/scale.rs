//! Scales by which numbers are divided so that they, their squares and their sums stay in range.

use super::exp::Exp;
use super::zip;
use crate::Real;

/// The largest power of two that is at most `largest`: dividing by it is exact. It is always a normal number of `f64`, also
/// for 0, denormal and infinite numbers.
pub fn power_of_two_below(largest: f64) -> f64 {
    let (_, exponent) = libm::frexp(largest.clamp(f64::MIN_POSITIVE, f64::MAX));
    libm::ldexp(1.0, exponent - 1)
}

/// Raises a scale, which is a logarithm, to `other` if that is larger. Returns the factors by which numbers relative to the old
/// scale and to `other` become relative to the result. If both scales are −∞, the scale stays.
pub fn raise_scale(scale: &mut f64, other: f64) -> (f64, f64) {
    let (top, own, their) = raised(*scale, other);
    *scale = top;
    // One logarithm is 0, unless both scales are −∞ or one is NaN.
    let exp = |log: f64| if log == 0.0 { 1.0 } else { log.exp() };
    (exp(own), exp(their))
}

/// The larger scale, and the logarithms of the factors of [`raise_scale`].
#[inline(always)]
fn raised<T: Real>(scale: T, other: T) -> (T, T, T) {
    let top = scale.max(other);
    if top == T::neg_infinity() {
        // The sum is NaN if one of both is.
        return (scale + other, T::zero(), scale + other);
    }
    (top, scale - top, other - top)
}

#[inline(always)]
fn raise_scales_body<T: Exp, const FMA: bool>(scales: &mut [T], keep: &mut [T], add: &mut [T]) {
    for (scale, keep, add) in zip((scales, keep, add)) {
        let (top, own, their) = raised(*scale, *add);
        *scale = top;
        *keep = own.fast_exp::<FMA, false>();
        *add = their.fast_exp::<FMA, false>();
    }
}

multiversion! {
    /// Raises many scales to those in `add` by [`raise_scale`]; `keep` and `add` become the factors.
    pub fn raise_scales<T>(scales: &mut [T], keep: &mut [T], add: &mut [T]) = raise_scales_body;
}

/// The entries of `length` · x/‖x‖, at any norm; zeros for x = 0.
pub fn with_length(x: impl Iterator<Item = f64> + Clone, length: f64) -> impl Iterator<Item = f64> {
    let largest = x.clone().fold(0.0, |a: f64, v| a.max(v.abs()));
    let largest = if largest == 0.0 { 1.0 } else { largest };
    let norm = x.clone().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt();
    let factor = length / if norm == 0.0 { 1.0 } else { norm };
    x.map(move |v| v / largest * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn powers_are_normal_and_near() {
        for v in [1.0, 1.999, 2.0, 3.7e-300, 1e308, f64::MIN_POSITIVE] {
            let power = power_of_two_below(v);
            assert!(power <= v && v < 2.0 * power && libm::frexp(power).0 == 0.5, "{v}");
        }
        assert!([0.0, 5e-324, f64::INFINITY].iter().all(|v| power_of_two_below(*v).is_normal()));
    }

    #[test]
    fn sums_become_relative_to_the_larger_scale() {
        let nothing = f64::NEG_INFINITY;
        let cases = [
            (nothing, nothing, (1.0, 0.0), nothing),
            (nothing, -800.0, (0.0, 1.0), -800.0),
            (3.0, nothing, (1.0, 0.0), 3.0),
            (1e5, 1e5 + 1.0, ((-1.0f64).exp(), 1.0), 1e5 + 1.0),
            (0.0, -900.0, (1.0, 0.0), 0.0),
        ];
        for (own, other, factors, raised) in cases {
            let mut scale = own;
            assert_eq!((raise_scale(&mut scale, other), scale), (factors, raised));
        }
        assert!(raise_scale(&mut 0.0, f64::NAN).1.is_nan() && raise_scale(&mut { f64::NAN }, 0.0).0.is_nan());
        for isa in Isa::available() {
            let (mut scales, mut add) = (cases.map(|case| case.0), cases.map(|case| case.1));
            let mut keep = [f64::NAN; 5];
            raise_scales(isa, &mut scales, &mut keep, &mut add);
            for (i, (_, _, (own, their), raised)) in cases.into_iter().enumerate() {
                let near = |a: f64, b: f64| (a - b).abs() <= 4e-16 * b;
                assert!(scales[i] == raised && near(keep[i], own) && near(add[i], their), "{isa:?} {i}");
            }
            let (mut scales, mut keep, mut add) =
                ([0.0, f64::NAN, f64::NAN, nothing], [0.0; 4], [f64::NAN, 0.0, nothing, f64::NAN]);
            raise_scales(isa, &mut scales, &mut keep, &mut add);
            assert!(add[0].is_nan() && keep[1].is_nan(), "{isa:?}");
            assert!(scales[2].is_nan() && scales[3].is_nan() && add[3].is_nan(), "{isa:?}");
        }
    }

    #[test]
    fn vectors_of_any_norm_get_the_length() {
        for size in [1e-300, 1.0, 1e300] {
            let x: Vec<f64> = with_length([3.0 * size, -4.0 * size].into_iter(), 10.0).collect();
            assert!((x[0] - 6.0).abs() < 1e-14 && (x[1] + 8.0).abs() < 1e-14, "{size}");
        }
        assert!(with_length([0.0, 0.0].into_iter(), 2.0).eq([0.0, 0.0]));
    }
}
