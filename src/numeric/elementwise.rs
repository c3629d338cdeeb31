//! Elementwise products and affine forms, and the product with a simplex matrix.

use ndarray::ArrayViewMut1;

use super::special::largest;
use super::{Lane, zip};
use crate::Real;

#[inline(always)]
fn multiply_body<T: Lane, const FMA: bool>(out: &mut [T], a: &[T], b: &[T]) {
    for (out, a, b) in zip((out, a, b)) {
        *out = *a * *b;
    }
}

multiversion! {
    /// out ← a ∘ b.
    pub fn multiply<T>(out: &mut [T], a: &[T], b: &[T]) = multiply_body;
}

#[inline(always)]
fn add_minus_body<T: Lane, const FMA: bool>(x: &mut [T], bias: &[f64], shift: f64) {
    for (v, b) in zip((x, bias)) {
        *v = T::narrow(v.widen() + b - shift);
    }
}

multiversion! {
    /// x ← x + bias − shift, computed in `f64` and rounded once.
    pub fn add_minus<T>(x: &mut [T], bias: &[f64], shift: f64) = add_minus_body;
}

#[inline(always)]
fn divide_body<T: Lane, const FMA: bool>(out: &mut [f64], x: &[T], by: &[f64]) {
    for (out, x, by) in zip((out, x, by)) {
        *out = x.widen() / by;
    }
}

multiversion! {
    /// out ← x / by.
    pub fn divide<T>(out: &mut [f64], x: &[T], by: &[f64]) = divide_body;
}

#[inline(always)]
fn quotients_body<T: Lane, const FMA: bool>(out: &mut [T], x: &[f64], by: f64) {
    for (out, x) in zip((out, x)) {
        *out = T::narrow(x / by);
    }
}

multiversion! {
    /// out ← x / by, rounded once more.
    pub fn quotients<T>(out: &mut [T], x: &[f64], by: f64) = quotients_body;
}

#[inline(always)]
fn magnitudes_body<T: Lane, const FMA: bool>(out: &mut [T], x: &[T], factors: &[T]) -> bool {
    let mut normal = true;
    for (out, x, factor) in zip((out, x, factors)) {
        *out = x.abs() * *factor;
        normal &= *out >= T::min_positive_value() && *out <= T::max_value();
    }
    normal
}

multiversion! {
    /// out ← |x| · factors; whether all of them are normal numbers.
    pub fn magnitudes<T>(out: &mut [T], x: &[T], factors: &[T]) -> bool = magnitudes_body;
}

#[inline(always)]
fn move_multiples_body<T: Lane, const FMA: bool>(to: &mut [T], from: &mut [T], grid: T) {
    for (to, from) in zip((to, from)) {
        // Adding `grid` rounds to the grid: the last place of the sum is one step of the grid.
        let part = (*from + grid) - grid;
        *to += part;
        *from -= part;
    }
}

multiversion! {
    /// Moves the part of each element that is a multiple of the last place of `grid` from one slice to the other, alike on all
    /// instruction sets.
    pub fn move_multiples<T>(to: &mut [T], from: &mut [T], grid: T) = move_multiples_body;
}

#[inline(always)]
fn weigh_body<T: Lane, const FMA: bool>(out: &mut [T], products: &[T], weight: f64, weights: &[f64]) -> T {
    let mut least = [T::infinity(); LANES];
    let weigh = |out: &mut T, product: &T, other: &f64, least: &mut T| {
        *out = T::narrow(product.widen() * (weight * other));
        let size = product.abs();
        // NaN is kept.
        *least = if size > *least { *least } else { size };
    };
    let len = out.len().min(products.len()).min(weights.len());
    let (whole, rest) = out[..len].as_chunks_mut::<LANES>();
    let (products, rest_of_products) = products[..len].as_chunks::<LANES>();
    let (weights, rest_of_weights) = weights[..len].as_chunks::<LANES>();
    for (out, products, weights) in zip((whole, products, weights)) {
        for l in 0..LANES {
            weigh(&mut out[l], &products[l], &weights[l], &mut least[l]);
        }
    }
    let rest = zip((rest, rest_of_products, rest_of_weights));
    rest.for_each(|(out, product, other)| weigh(out, product, other, &mut least[0]));
    least.into_iter().fold(T::infinity(), |a, b| if b > a { a } else { b })
}

multiversion! {
    /// out ← products · (weight · weights), computed in `f64` and rounded once. Returns the smallest magnitude of the
    /// products, NaN if one of them is NaN.
    pub fn weigh<T>(out: &mut [T], products: &[T], weight: f64, weights: &[f64]) -> T = weigh_body;
}

#[inline(always)]
fn affine_body<T: Lane, const FMA: bool>(x: &mut [T], slope: T, bias: &[T]) {
    if bias.is_empty() {
        x.iter_mut().for_each(|x| *x = slope * *x);
    } else {
        zip((x, bias)).for_each(|(x, bias)| *x = slope.madd::<FMA>(*x, *bias));
    }
}

#[inline(always)]
fn scale_twice_body<T: Real, const FMA: bool>(x: &mut [T], half: f64) {
    // A factor that is not a number shows.
    let zero = if half.is_nan() { half } else { 0.0 };
    let times = |v: f64| if v == 0.0 { zero } else { v * half * half };
    x.iter_mut().for_each(|v| *v = T::saturated(times(v.widen())));
}

multiversion! {
    /// x ← half² · x, saturated, by one factor after the other. What is 0 stays so, however large the factor.
    pub fn scale_twice<T>(x: &mut [T], half: f64) = scale_twice_body;
}

#[inline(always)]
fn scale_products_body<T: Real, const FMA: bool>(x: &mut [T], y: &[T], half: f64) {
    zip((&mut *x, y)).for_each(|(x, y)| *x *= *y);
    scale_twice_body::<T, FMA>(x, half);
}

multiversion! {
    /// x ← half² · (x · y) for each entry, saturated, by one factor after the other. A product of 0 stays so, however large the factor.
    pub fn scale_products<T>(x: &mut [T], y: &[T], half: f64) = scale_products_body;
}

#[inline(always)]
fn add_weighted_body<T: Real, const FMA: bool>(x: &mut [T], factor: f64, weight: f64, y: &[f64]) {
    zip((x, y)).for_each(|(x, y)| *x = T::narrow(factor * (x.widen() + weight * y)));
}

multiversion! {
    /// x ← factor · (x + weight · y), in `f64`.
    pub fn add_weighted<T>(x: &mut [T], factor: f64, weight: f64, y: &[f64]) = add_weighted_body;
}

#[inline(always)]
fn scaled_body<T: Lane, const FMA: bool>(out: &mut [T], x: &[T], factor: T) {
    zip((out, x)).for_each(|(out, x)| *out = *x * factor + T::zero());
}

multiversion! {
    /// out ← factor · x, in which no zero has a sign.
    pub fn scaled<T>(out: &mut [T], x: &[T], factor: T) = scaled_body;
}

#[inline(always)]
fn add_two_body<T: Real, const FMA: bool>(out: &mut [f64], a: f64, x: &[T], b: f64, y: &[T]) {
    zip((out, x, y)).for_each(|(out, x, y)| *out += a * x.widen() + b * y.widen());
}

multiversion! {
    /// out ← out + a · x + b · y, in `f64`.
    pub fn add_two<T>(out: &mut [f64], a: f64, x: &[T], b: f64, y: &[T]) = add_two_body;
}

multiversion! {
    /// x ← slope · x + bias; an empty bias is 0.
    pub fn affine<T>(x: &mut [T], slope: T, bias: &[T]) = affine_body;
}

#[inline(always)]
fn raise_body<T: Lane, const FMA: bool>(tops: &mut [T], x: &mut [T], offset: T) {
    for (top, x) in zip((tops, x)) {
        *x += offset;
        *top = if *x > *top { *x } else { *top };
    }
}

multiversion! {
    /// x ← x + offset, and tops ← max(tops, x), ignoring NaN.
    pub fn raise<T>(tops: &mut [T], x: &mut [T], offset: T) = raise_body;
}

#[inline(always)]
fn subtract_body<T: Lane, const FMA: bool>(x: &mut [T], y: &[T]) {
    for (x, y) in zip((x, y)) {
        *x -= *y;
    }
}

multiversion! {
    /// x ← x − y.
    pub fn subtract<T>(x: &mut [T], y: &[T]) = subtract_body;
}

/// Replaces logarithms by weights that add up to 1, in proportion to their exponentials.
pub fn softmax(mut logarithms: ArrayViewMut1<'_, f64>) {
    let top = largest(logarithms.iter().copied());
    logarithms.mapv_inplace(|log| (log - top).exp());
    let total = logarithms.sum();
    logarithms /= total;
}

/// The number of independent sums of [`simplex`].
const LANES: usize = 16;

#[inline(always)]
fn simplex_body<T: Lane, const FMA: bool>(v: &mut [T], stretch: T, shift: T, last: T) {
    let Some((bottom, upper)) = v.split_last_mut() else { return };
    let mut sums = [T::zero(); LANES];
    let (whole, rest) = upper.as_chunks::<LANES>();
    for chunk in whole {
        zip((&mut sums[..], &chunk[..])).for_each(|(sum, v)| *sum += *v);
    }
    zip((&mut sums[..], rest)).for_each(|(sum, v)| *sum += *v);
    let sum = sums.into_iter().fold(T::zero(), |a, b| a + b);
    let common = -(shift * sum);
    upper.iter_mut().for_each(|v| *v = stretch.madd::<FMA>(*v, common));
    *bottom = last * sum;
}

multiversion! {
    /// With σ the sum of all elements but the last: vᵢ ← stretch · vᵢ − shift · σ, and last · σ in the last place.
    pub fn simplex<T>(v: &mut [T], stretch: T, shift: T, last: T) = simplex_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn agree_with_naive_loops() {
        for isa in Isa::available() {
            for len in 0..70usize {
                let v: Vec<f64> = (0..len).map(|i| ((i * 7) % 11) as f64 - 5.0).collect();
                let mut out = vec![f64::NAN; len];
                multiply(isa, &mut out, &v, &v);
                assert!(out.iter().zip(&v).all(|(o, v)| *o == v * v));
                let mut sum: Vec<f32> = v.iter().map(|v| *v as f32).collect();
                add_minus(isa, &mut sum, &v, 2.0);
                assert!(sum.iter().zip(&v).all(|(s, v)| f64::from(*s) == 2.0 * v - 2.0));
                let mut w = v.clone();
                affine(isa, &mut w, 3.0, &v);
                assert!(w.iter().zip(&v).all(|(w, v)| *w == 4.0 * v));
                affine(isa, &mut w, 0.5, &[]);
                assert!(w.iter().zip(&v).all(|(w, v)| *w == 2.0 * v));
                let mut halves = vec![f64::NAN; len];
                scaled(isa, &mut halves, &v, -0.5);
                assert!(
                    halves.iter().zip(&v).all(|(h, v)| *h == -0.5 * v && (*h != 0.0 || h.is_sign_positive()))
                );
                let (mut tops, mut w) = (vec![1.0; len], v.clone());
                raise(isa, &mut tops, &mut w, 0.5);
                assert!(w.iter().zip(&v).all(|(w, v)| *w == v + 0.5));
                assert!(tops.iter().zip(&w).all(|(top, w)| *top == w.max(1.0)));
                subtract(isa, &mut w, &tops);
                assert!(w.iter().zip(v.iter().zip(&tops)).all(|(w, (v, top))| *w == v + 0.5 - top));
                let by: Vec<f64> = (0..len).map(|i| 2.0 + i as f64).collect();
                let mut quotients = vec![f64::NAN; len];
                divide(isa, &mut quotients, &v, &by);
                assert!(quotients.iter().zip(v.iter().zip(&by)).all(|(q, (v, by))| *q == v / by));
                let mut narrow = vec![f32::NAN; len];
                super::quotients(isa, &mut narrow, &v, 3.0);
                assert!(narrow.iter().zip(&v).all(|(q, v)| *q == (v / 3.0) as f32));
                let mut sizes = vec![f64::NAN; len];
                assert_eq!(magnitudes(isa, &mut sizes, &v, &by), !v.contains(&0.0));
                assert!(sizes.iter().zip(v.iter().zip(&by)).all(|(size, (v, by))| *size == v.abs() * by));
                // Small integers, so every sum is exact.
                let mut w = v.clone();
                simplex(isa, &mut w, 3.0, 2.0, 5.0);
                let sum: f64 = v.iter().take(len.saturating_sub(1)).sum();
                for (i, (w, v)) in w.iter().zip(&v).enumerate() {
                    assert_eq!(*w, if i + 1 < len { 3.0 * v - 2.0 * sum } else { 5.0 * sum });
                }
            }
        }
    }

    #[test]
    fn agree_with_naive_loops_where_they_narrow() {
        for isa in Isa::available() {
            for len in 0..70 {
                let x: Vec<f32> = (0..len).map(|i| ((i * 37) % 19) as f32 - 9.0).collect();
                let y: Vec<f64> = (0..len).map(|i| f64::from((i * 11) % 7) + 0.5).collect();
                // Small integers and halves, so every product and sum is exact.
                let mut sums = x.clone();
                add_weighted(isa, &mut sums, 0.5, 2.0, &y);
                let naive = |(x, y): (&f32, &f64)| (0.5 * (f64::from(*x) + 2.0 * y)) as f32;
                assert!(sums.iter().copied().eq(x.iter().zip(&y).map(naive)), "{isa:?}, {len}");
                let mut scaled = x.clone();
                scale_twice(isa, &mut scaled, 4.0);
                assert!(scaled.iter().zip(&x).all(|(scaled, x)| *scaled == 16.0 * x), "{isa:?}, {len}");
                // What overflows is saturated, and 0 stays 0.
                let mut scaled = x.clone();
                scale_twice(isa, &mut scaled, 1e200);
                let end = |x: f32| if x == 0.0 { 0.0 } else { f32::saturated(f64::from(x) * 1e300) };
                assert!(scaled.iter().zip(&x).all(|(scaled, x)| *scaled == end(*x)), "{isa:?}, {len}");
                scale_twice(isa, &mut scaled, f64::NAN);
                assert!(scaled.iter().all(|scaled| scaled.is_nan()), "{isa:?}, {len}");
                let narrow: Vec<f32> = y.iter().map(|y| *y as f32).collect();
                for half in [4.0, 1e200] {
                    let mut products = x.clone();
                    scale_products(isa, &mut products, &narrow, half);
                    let mut expected: Vec<f32> = x.iter().zip(&narrow).map(|(x, y)| x * y).collect();
                    scale_twice(isa, &mut expected, half);
                    assert_eq!(products, expected, "{isa:?}, {len}");
                }
                let mut sums = y.clone();
                add_two(isa, &mut sums, 0.5, &x, 3.0, &narrow);
                let naive = |(x, y): (&f32, &f64)| y + 0.5 * f64::from(*x) + 3.0 * y;
                assert!(sums.iter().copied().eq(x.iter().zip(&y).map(naive)), "{isa:?}, {len}");
            }
        }
    }

    /// Only a normal product of any lane counts as one.
    #[test]
    fn magnitudes_notice_what_is_not_normal() {
        for isa in Isa::available() {
            for (i, bad) in [0.0, 1e-40, f32::INFINITY, f32::NAN].into_iter().cycle().take(40).enumerate() {
                let (mut x, mut out) = ([-1.5_f32; 40], [0.0; 40]);
                x[i] = bad;
                assert!(!magnitudes(isa, &mut out, &x, &[1.0; 40]), "{isa:?}, {bad} at {i}");
            }
        }
    }

    /// What is moved is a multiple of the grid's last place, nothing is lost, and at most half a step stays.
    #[test]
    fn multiples_move_without_loss() {
        let (grid, step) = (1.5 * 2_f32.powi(23), 1.0);
        for isa in Isa::available() {
            let values: Vec<f32> = (0..70).map(|i| (i as f32 - 35.0) * 0.3).collect();
            let (mut to, mut from) = (vec![7.0; values.len()], values.clone());
            move_multiples(isa, &mut to, &mut from, grid);
            for ((to, from), v) in to.iter().zip(&from).zip(&values) {
                assert!(
                    (to - 7.0) % step == 0.0 && from.abs() <= 0.5 * step,
                    "{isa:?}: {v} gave {to} and {from}"
                );
                assert_eq!((to - 7.0) + from, *v);
            }
        }
    }
}
