//! Functions f of one number over slices, which are applied to projections for features f(ω·x).
//!
//! erf uses the crate `libm` in `f64`, rounded, one element at a time; the others are vectorised.
//! Errors (tested): only rounding for polynomials and signs, at most 3 ulp for the sigmoid and tanh, 2 ulp for erf, and
//! 7 + u² ulp for u Φ(u), which is 0 below −37.6.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::exp::{Exp, TOGETHER, exp_m1_of, last_together, write_last};
use super::{Isa, Lane, Submatrix, cos_sin, zip};
use crate::Real;

#[inline(always)]
fn each<T: Real>(x: &mut [T], f: impl Fn(T) -> T) {
    x.iter_mut().for_each(|v| *v = f(*v));
}

#[inline(always)]
fn scale_body<T: Lane, const FMA: bool>(x: &mut [T], factor: T) {
    each(x, |v| v * factor);
}

multiversion! {
    /// x ← factor · x.
    pub fn scale<T>(x: &mut [T], factor: T) = scale_body;
}

#[inline(always)]
fn affine_body<T: Lane, const FMA: bool>(x: &mut [T], factor: T, constant: T, least: T) {
    each(x, |v| v.madd::<FMA>(factor, constant).max(least));
}

multiversion! {
    /// x ← max(factor · x + constant, least).
    pub fn affine<T>(x: &mut [T], factor: T, constant: T, least: T) = affine_body;
}

#[inline(always)]
fn sign_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each(x, |v| if v >= T::zero() { T::one() } else { -T::one() });
}

multiversion! {
    /// x ← sgn x, with sgn 0 = 1.
    pub fn sign<T>(x: &mut [T]) = sign_body;
}

#[inline(always)]
fn signs_body<T: Lane, const FMA: bool>(x: Submatrix<&mut [T]>) {
    for row in x.into_rows() {
        sign_body::<T, FMA>(row);
    }
}

multiversion! {
    /// [`sign`] of each row.
    pub fn signs<T>(x: Submatrix<&mut [T]>) = signs_body;
}

#[inline(always)]
fn step_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    let half = T::narrow(0.5);
    let at = |reached: bool| if reached { half } else { T::zero() };
    each(x, |v| at(v >= T::zero()) + at(v > T::zero()));
}

multiversion! {
    /// x ← 0 below 0, 1 above, ½ at 0.
    pub fn step<T>(x: &mut [T]) = step_body;
}

#[inline(always)]
fn abs_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each(x, T::abs);
}

multiversion! {
    /// x ← |x|.
    pub fn abs<T>(x: &mut [T]) = abs_body;
}

#[inline(always)]
fn square_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each(x, |v| v * v);
}

multiversion! {
    /// x ← x².
    pub fn square<T>(x: &mut [T]) = square_body;
}

#[inline(always)]
fn relu_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each(x, |v| if v > T::zero() { v } else { T::zero() });
}

multiversion! {
    /// x ← max(x, 0).
    pub fn relu<T>(x: &mut [T]) = relu_body;
}

#[inline(always)]
fn sigmoid_body<T: Exp, const FMA: bool>(x: &mut [T]) {
    each(x, |v| {
        let small = (-v.abs()).fast_exp::<FMA, false>();
        let numerator = if v >= T::zero() { T::one() } else { small };
        numerator / (T::one() + small)
    });
}

multiversion! {
    /// x ← 1/(1 + e⁻ˣ).
    pub fn sigmoid<T>(x: &mut [T]) = sigmoid_body;
}

#[inline(always)]
fn sigmoid_slope_body<T: Exp, const FMA: bool>(x: &mut [T]) {
    each(x, |v| {
        let small = (-v.abs()).fast_exp::<FMA, false>();
        small / ((T::one() + small) * (T::one() + small))
    });
}

multiversion! {
    /// x ← the slope of [`sigmoid`].
    pub fn sigmoid_slope<T>(x: &mut [T]) = sigmoid_slope_body;
}

#[inline(always)]
fn tanh_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each(x, |v| {
        let u = v.widen();
        // tanh |u| is e^(2|u|) − 1 over e^(2|u|) + 1.
        let q = exp_m1_of::<FMA>(2.0 * u.abs());
        let tanh = if q == f64::INFINITY { 1.0 } else { q / (q + 2.0) };
        T::narrow(tanh.copysign(u))
    });
}

multiversion! {
    /// x ← tanh x.
    pub fn tanh<T>(x: &mut [T]) = tanh_body;
}

#[inline(always)]
fn tanh_slope_body<T: Exp, const FMA: bool>(x: &mut [T]) {
    let four = T::narrow(4.0);
    each(x, |v| {
        let small = (-(v.abs() + v.abs())).fast_exp::<FMA, false>();
        four * small / ((T::one() + small) * (T::one() + small))
    });
}

multiversion! {
    /// x ← the slope of [`tanh`].
    pub fn tanh_slope<T>(x: &mut [T]) = tanh_slope_body;
}

/// x ← erf x.
pub fn erf<T: Real>(x: &mut [T]) {
    each(x, |v| T::narrow(libm::erf(v.widen())));
}

/// (1 + 2a) e^(a²) erfc(a) by powers of t = (a − K)/(a + K): the Chebyshev series of Shepherd and Laframboise (1981), computed
/// with 60 digits; the rest of the series is below 1e-16.
#[allow(clippy::excessive_precision)]
const SCALED_ERFC: [f64; 24] = [
    1.237_512_630_837_827_53,
    -0.140_240_598_585_546_962,
    0.003_585_415_485_479_025_64,
    0.082_276_738_490_145_207_7,
    -0.108_803_930_142_444_613,
    0.092_304_321_160_377_477_8,
    -0.058_693_398_576_649_338_4,
    0.028_362_277_418_956_404_3,
    -0.009_746_579_683_265_262_23,
    0.001_755_625_852_895_295_36,
    0.000_293_714_378_044_958_03,
    -0.000_290_154_080_540_841_71,
    0.000_051_646_529_741_774_160_8,
    0.000_022_384_239_155_082_227_9,
    -0.000_011_438_048_033_346_892_6,
    -9.735_598_967_367_715_57e-7,
    1.741_982_158_622_480_44e-6,
    -5.721_823_060_322_795_64e-8,
    -2.485_712_624_801_665_6e-7,
    2.326_350_870_886_189_73e-8,
    3.197_926_671_666_767_56e-8,
    -3.744_210_080_963_148_16e-9,
    -2.623_107_347_133_408_97e-9,
    3.111_433_381_981_918_71e-10,
];
const K: f64 = 3.75;

/// x ← x Φ(x), with the distribution function Φ of N(0, 1), or its slope, which also needs e^(−x²/2).
#[inline(always)]
fn gelu_together<T: Lane, const FMA: bool, const SLOPE: bool>(x: &mut [T; TOGETHER]) {
    // Closures would not be compiled for the instruction set, so there are loops.
    let (mut a, mut t, mut scaled) = ([0.0; TOGETHER], [0.0; TOGETHER], [0.0; TOGETHER]);
    for (x, a, t) in zip((&x[..], &mut a[..], &mut t[..])) {
        // The limit of Φ is reached long before the bound, beyond which t would be NaN.
        *a = (x.widen().abs() * FRAC_1_SQRT_2).min(1e30);
        *t = (*a - K) / (*a + K);
    }
    for coefficient in SCALED_ERFC.iter().rev() {
        for (sum, t) in zip((&mut scaled[..], &t[..])) {
            *sum = sum.madd::<FMA>(*t, *coefficient);
        }
    }
    let density = 1.0 / (2.0 * PI).sqrt();
    for (x, a, scaled) in zip((&mut x[..], &a[..], &scaled[..])) {
        let u = x.widen();
        let bell = (-0.5 * u * u).fast_exp::<FMA, false>();
        let tail = 0.5 * bell * (scaled / (1.0 + 2.0 * a));
        let below = if u < 0.0 { tail } else { 1.0 - tail };
        // If the bell is 0, so is its product, also at infinity.
        let beside = if bell == 0.0 { 0.0 } else { u * (density * bell) };
        *x = T::narrow(if SLOPE { below + beside } else { u * below });
    }
}

#[inline(always)]
fn gelu_body<T: Lane, const FMA: bool, const SLOPE: bool>(x: &mut [T]) {
    let last = last_together(x);
    for x in x.as_chunks_mut::<TOGETHER>().0 {
        gelu_together::<T, FMA, SLOPE>(x);
    }
    if let Some(mut last) = last {
        gelu_together::<T, FMA, SLOPE>(&mut last);
        write_last(x, &last);
    }
}

multiversion! {
    /// x ← x Φ(x).
    pub fn gelu<T>(x: &mut [T]) = gelu_body[false];
}

multiversion! {
    /// x ← the slope of [`gelu`].
    pub fn gelu_slope<T>(x: &mut [T]) = gelu_body[true];
}

/// The number of elements that are computed together; of sine and cosine the unused one is kept on the stack.
const CHUNK: usize = 64;

/// x ← cos x.
pub fn cos<T: Real>(isa: Isa, x: &mut [T]) {
    let mut sine = [T::zero(); CHUNK];
    x.chunks_mut(CHUNK).for_each(|x| cos_sin(isa, x, &mut sine[..x.len()]));
}

/// x ← sin x.
pub fn sin<T: Real>(isa: Isa, x: &mut [T]) {
    let mut sine = [T::zero(); CHUNK];
    for x in x.chunks_mut(CHUNK) {
        let sine = &mut sine[..x.len()];
        cos_sin(isa, x, sine);
        x.copy_from_slice(sine);
    }
}

#[cfg(test)]
#[allow(clippy::excessive_precision)]
mod tests {
    use super::*;
    use crate::numeric::test_support::{ulps32, ulps64};

    fn normal_cdf(u: f64) -> f64 {
        0.5 * libm::erfc(-u * FRAC_1_SQRT_2)
    }

    /// Both signs of zero, both signs of numbers from 1e-10 to 1e10, and lengths that leave a remainder.
    fn numbers<T: Real>(len: usize) -> Vec<T> {
        let number = |i: usize| match i % 7 {
            0 => 0.0,
            1 => -0.0,
            k => [1.0, -1.0][i % 2] * 10f64.powf((i * 37 % 201) as f64 * 0.1 - 10.0 + k as f64 * 1e-3),
        };
        (0..len).map(|i| T::narrow(number(i))).collect()
    }

    fn is_exact<T: Real>(apply: impl Fn(Isa, &mut [T]), definition: impl Fn(T) -> T) {
        for isa in Isa::available() {
            for len in [0, 1, 63, 64, 65, 500] {
                let x = numbers::<T>(len);
                let mut y = x.clone();
                apply(isa, &mut y);
                assert!(x.iter().zip(&y).all(|(x, y)| *y == definition(*x)), "{isa:?}");
            }
        }
    }

    #[test]
    fn elementary_ones_are_their_definitions() {
        is_exact::<f32>(sign, |v| if v < 0.0 { -1.0 } else { 1.0 });
        is_exact::<f64>(sign, |v| if v < 0.0 { -1.0 } else { 1.0 });
        is_exact::<f64>(step, |v| if v == 0.0 { 0.5 } else { f64::from(u8::from(v > 0.0)) });
        is_exact::<f32>(abs, f32::abs);
        is_exact::<f32>(square, |v| v * v);
        is_exact::<f64>(relu, |v| v.max(0.0));
        is_exact::<f64>(|isa, x| scale(isa, x, -0.25), |v| -0.25 * v);
        is_exact::<f64>(|isa, x| affine(isa, x, 0.5, 0.0, -1.0), |v| (0.5 * v).max(-1.0));
        let wave = |f: fn(f64) -> f64| move |v: f64| f(v);
        let close = |apply: fn(Isa, &mut [f64]), f: &dyn Fn(f64) -> f64| {
            for isa in Isa::available() {
                let (x, mut y) = (numbers::<f64>(500), numbers::<f64>(500));
                apply(isa, &mut y);
                assert!(x.iter().zip(&y).all(|(x, y)| (y - f(*x)).abs() < 1e-15), "{isa:?}");
            }
        };
        close(cos, &wave(f64::cos));
        close(sin, &wave(f64::sin));
    }

    /// Values to 20 digits, from arbitrary-precision arithmetic.
    #[test]
    fn reference_values() {
        let of = |apply: &dyn Fn(&mut [f64]), u: f64| {
            let mut x = [u];
            apply(&mut x);
            x[0]
        };
        let sigmoid = |u| of(&|x| super::sigmoid(Isa::best(), x), u);
        for (value, reference) in REFERENCE_SIGMOID.map(|(u, r)| (sigmoid(u), r)) {
            assert!(ulps64(value, reference) <= 3.0, "{value} {reference}");
        }
        for (value, reference) in REFERENCE_TANH.map(|(u, r)| (of(&|x| tanh(Isa::best(), x), u), r)) {
            assert!(ulps64(value, reference) <= 2.0, "{value} {reference}");
        }
        for (value, reference) in REFERENCE_ERF.map(|(u, r)| (of(&|x| erf(x), u), r)) {
            assert!(ulps64(value, reference) <= 2.0, "{value} {reference}");
        }
        for (u, reference) in REFERENCE_GELU {
            let value = of(&|x| gelu(Isa::best(), x), u);
            assert!(ulps64(value, reference) <= 4.0 + u * u, "{u}: {value} {reference}");
        }
    }

    /// In single precision against the same functions in double precision.
    #[test]
    fn single_precision_is_rounded_double_precision() {
        let check = |single: &dyn Fn(&mut [f32]), double: &dyn Fn(f64) -> f64, limit: f64| {
            let x: Vec<f32> = (0..100_001).map(|i| -20.0 + 4e-4 * i as f32).collect();
            let mut y = x.clone();
            single(&mut y);
            for (x, y) in x.iter().zip(&y) {
                assert!(ulps32(*y, double(f64::from(*x))) <= limit, "{x}: {y}");
            }
        };
        for isa in Isa::available() {
            check(&|x| sigmoid(isa, x), &|u| 1.0 / (1.0 + (-u).exp()), 3.0);
            check(&|x| tanh(isa, x), &f64::tanh, 0.51);
            check(&|x| gelu(isa, x), &|u| u * normal_cdf(u), 0.51);
        }
        check(&|x| erf(x), &libm::erf, 0.51);
    }

    /// In double precision against `libm`, at the stated errors, and slopes relative to the largest of their terms.
    #[test]
    fn double_precision_is_within_the_stated_errors() {
        let mut x: Vec<f64> = (0..400_003).map(|i| -37.0 + 1.4e-4 * f64::from(i)).collect();
        x.extend(numbers::<f64>(2000).into_iter().filter(|u| u.abs() < 19.0));
        let bell = |u: f64| (-0.5 * u * u).exp() / (2.0 * PI).sqrt();
        for isa in Isa::available() {
            let of = |apply: fn(Isa, &mut [f64])| {
                let mut y = x.clone();
                apply(isa, &mut y);
                y
            };
            let (values, slopes) = (of(gelu), of(gelu_slope));
            for ((u, value), slope) in x.iter().zip(values).zip(slopes) {
                // The reference has this error too: its argument is rounded.
                assert!(ulps64(value, u * normal_cdf(*u)) <= 6.0 + 2.0 * u * u, "{isa:?} {u}: {value}");
                let (below, beside) = (normal_cdf(*u), u * bell(*u));
                let size = below.max(beside.abs()).max(f64::MIN_POSITIVE);
                assert!(
                    (slope - below - beside).abs() <= (2e-15 + 4e-16 * u * u) * size,
                    "{isa:?} {u}: {slope}"
                );
            }
            let (values, slopes) = (of(tanh), of(tanh_slope));
            for ((u, value), slope) in x.iter().zip(values).zip(slopes) {
                assert!(ulps64(value, u.tanh()) <= 3.0, "{isa:?} {u}: {value}");
                assert!((slope * u.cosh() * u.cosh() - 1.0).abs() <= 1e-14, "{isa:?} {u}: {slope}");
            }
            for (u, slope) in x.iter().zip(of(sigmoid_slope)) {
                let expected = 0.25 / (0.5 * u).cosh().powi(2);
                assert!((slope / expected - 1.0).abs() <= 1e-14, "{isa:?} {u}: {slope}");
            }
        }
    }

    #[test]
    fn far_arguments_are_limits() {
        let far = [1e30f32, -1e30];
        let of = |apply: &dyn Fn(&mut [f32])| {
            let mut x = far;
            apply(&mut x);
            x
        };
        assert_eq!(of(&|x| sigmoid(Isa::best(), x)), [1.0, 0.0]);
        assert_eq!(of(&|x| tanh(Isa::best(), x)), [1.0, -1.0]);
        assert_eq!(of(&|x| erf(x)), [1.0, -1.0]);
        assert_eq!(of(&|x| gelu(Isa::best(), x)), [1e30, 0.0]);
        assert_eq!(of(&|x| gelu_slope(Isa::best(), x)), [1.0, 0.0]);
        assert_eq!(of(&|x| tanh_slope(Isa::best(), x)), [0.0, 0.0]);
        for apply in [tanh, gelu, gelu_slope, tanh_slope, sigmoid_slope] {
            let mut x = [f64::NAN, 1.0];
            apply(Isa::best(), &mut x);
            assert!(x[0].is_nan() && x[1].is_finite());
        }
    }

    const REFERENCE_SIGMOID: [(f64, f64); 7] = [
        (-30.0, 9.3576229688392989538e-14),
        (-3.0, 0.047425873177566780879),
        (-0.5, 0.37754066879814543536),
        (-1e-9, 0.49999999975),
        (0.25, 0.56217650088579810403),
        (2.0, 0.88079707797788244406),
        (15.0, 0.99999969409777307438),
    ];
    const REFERENCE_TANH: [(f64, f64); 7] = [
        (-30.0, -1.0),
        (-3.0, -0.99505475368673045133),
        (-0.5, -0.4621171572600097585),
        (-1e-9, -1.0000000000000000619e-9),
        (0.25, 0.24491866240370912928),
        (2.0, 0.96402758007581688395),
        (15.0, 0.99999999999981284754),
    ];
    const REFERENCE_ERF: [(f64, f64); 5] = [
        (-3.0, -0.99997790950300141456),
        (-0.5, -0.52049987781304653768),
        (-1e-9, -1.1283791670955126438e-9),
        (0.25, 0.27632639016823693299),
        (2.0, 0.99532226501895273416),
    ];
    const REFERENCE_GELU: [(f64, f64); 8] = [
        (-30.0, -1.4720141781444561179e-196),
        (-3.0, -4.04969409489028358e-3),
        (-0.5, -0.15426876936299344818),
        (-1e-9, -4.9999999960105775074e-10),
        (0.25, 0.14967658142073093106),
        (2.0, 1.9544997361036415856),
        (15.0, 15.0),
        (-10.0, -7.619853024160526066e-23),
    ];
}
