//! Sums and maxima over slices, in a fixed order.
//!
//! A sum is split over [`LANES`] accumulators and folded by halves, so that it vectorises and its value depends only on
//! the elements. Sums are computed in `f64` for every element type.

use std::array;

use super::{Isa, Lane, Submatrix, zip};
use crate::Real;

/// The number of independent accumulators of a reduction: two vectors of the widest instruction set.
pub(super) const LANES: usize = 16;

#[inline(always)]
fn squared_norm_body<T: Real, const FMA: bool>(x: &[T], scale: f64, scales: &[f64]) -> f64 {
    let square = |v: f64| (v, v);
    if scales.is_empty() && scale == 1.0 {
        sum::<T, FMA>(x, square)
    } else if scales.is_empty() {
        sum::<T, FMA>(x, |v| square(scale * v))
    } else {
        sum_of_pairs::<T, FMA>(x, &scales[..x.len()], |v, scale| square(scale * v))
    }
}

multiversion! {
    /// Σ (sₖ xₖ)² with sₖ = `scales[k]`, or `scale` for all k if there are none.
    pub fn squared_norm<T>(x: &[T], scale: f64, scales: &[f64]) -> f64 = squared_norm_body;
}

#[inline(always)]
fn squared_norms_body<T: Real, const FMA: bool>(
    out: Submatrix<&mut [f64]>,
    x: Submatrix<&[T]>,
    scale: f64,
    scales: &[f64],
) {
    for (out, x) in zip((out, x)) {
        out[0] = squared_norm_body::<T, FMA>(x, scale, scales);
    }
}

multiversion! {
    /// [`squared_norm`] of each row of x, in the first column of `out`.
    pub fn squared_norms<T>(out: Submatrix<&mut [f64]>, x: Submatrix<&[T]>, scale: f64, scales: &[f64]) = squared_norms_body;
}

#[inline(always)]
fn dot_body<T: Real, const FMA: bool>(x: &[T], y: &[f64]) -> f64 {
    sum_of_pairs::<T, FMA>(x, &y[..x.len()], |x, y| (x, y))
}

multiversion! {
    /// Σ xₖ yₖ over the length of x.
    pub fn dot<T>(x: &[T], y: &[f64]) -> f64 = dot_body;
}

#[inline(always)]
fn dots_body<T: Real, const FMA: bool>(x: &[T], y: &[f64], out: &mut [f64]) {
    if y.is_empty() {
        return out.fill(0.0);
    }
    // In a single row each addition waits for the one before, so several rows are added side by side.
    let (whole, rest) = out.as_chunks_mut::<ROWS>();
    let (together, alone) = x.split_at(x.len().min(whole.len() * ROWS * y.len()));
    for (out, x) in zip((whole, together.chunks_exact(ROWS * y.len()))) {
        *out = dots_together::<T, FMA>(x, y);
    }
    // No closure: it would not be compiled for the instruction set.
    for (out, x) in zip((rest, alone.chunks_exact(y.len()))) {
        *out = dot_body::<T, FMA>(x, y);
    }
}

/// The number of rows that are summed side by side.
pub const ROWS: usize = 4;

/// The bits of [`dot_body`] for each of some rows.
#[inline(always)]
fn dots_together<T: Real, const FMA: bool>(x: &[T], y: &[f64]) -> [f64; ROWS] {
    let mut lanes = [[0.0; LANES]; ROWS];
    let mut rows: [(&[[T; LANES]], &[T]); ROWS] = [(&[], &[]); ROWS];
    let all = Submatrix { values: x, rows: ROWS, stride: y.len(), width: y.len() };
    for (row, x) in zip((&mut rows[..], all)) {
        *row = x.as_chunks();
    }
    let (whole, rest) = y.as_chunks::<LANES>();
    for (k, y) in whole.iter().enumerate() {
        for (lanes, (x, _)) in zip((&mut lanes[..], &rows[..])) {
            for (lane, x, y) in zip((&mut lanes[..], &x[k][..], &y[..])) {
                *lane = x.widen().madd::<FMA>(*y, *lane);
            }
        }
    }
    for (lanes, (_, x)) in zip((&mut lanes[..], &rows[..])) {
        for (lane, x, y) in zip((&mut lanes[..], *x, rest)) {
            *lane = x.widen().madd::<FMA>(*y, *lane);
        }
    }
    let mut sums = [0.0; ROWS];
    for (sum, lanes) in zip((&mut sums[..], &lanes[..])) {
        *sum = folded(*lanes);
    }
    sums
}

multiversion! {
    /// outᵢ ← Σ xᵢₖ yₖ for rows x, one after the other, bit-identical to [`dot`].
    pub fn dots<T>(x: &[T], y: &[f64], out: &mut [f64]) = dots_body;
}

#[inline(always)]
fn squared_distance_body<T: Real, const FMA: bool>(x: &[T], y: &[f64]) -> f64 {
    // Additions are never fused, so that comparisons of distances do not depend on the machine.
    sum_of_pairs::<T, false>(x, &y[..x.len()], |x, y| (x - y, x - y))
}

multiversion! {
    /// Σ (xₖ − yₖ)² over the length of x, bit-identical on all instruction sets.
    pub fn squared_distance<T>(x: &[T], y: &[f64]) -> f64 = squared_distance_body;
}

/// The index of the first of the nearest rows, and the squared distance to it. Rows are as long as the point, one after
/// another. Index 0 and an infinite distance if no distance is finite.
pub fn nearest<T: Real>(isa: Isa, rows: &[f64], point: &[T]) -> (usize, f64) {
    let distances = rows.chunks_exact(point.len()).map(|row| squared_distance(isa, point, row)).enumerate();
    distances.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}

#[inline(always)]
fn plain_sum_body<T: Real, const FMA: bool>(x: &[T]) -> f64 {
    sum::<T, FMA>(x, |v| (v, 1.0))
}

multiversion! {
    /// Σ xₖ.
    pub fn plain_sum<T>(x: &[T]) -> f64 = plain_sum_body;
}

/// Σ aₖ bₖ for the pairs that `term` gives.
#[inline(always)]
fn sum<T: Real, const FMA: bool>(x: &[T], term: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut lanes = [0.0; LANES];
    let add = |lane: &mut f64, x: &T| {
        let (a, b) = term(x.widen());
        *lane = a.madd::<FMA>(b, *lane);
    };
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        zip((&mut lanes[..], &x[..])).for_each(|(lane, x)| add(lane, x));
    }
    zip((&mut lanes[..], rest)).for_each(|(lane, x)| add(lane, x));
    folded(lanes)
}

/// Σ aₖ bₖ for the pairs that `term` gives. `y` is as long as `x`.
#[inline(always)]
fn sum_of_pairs<T: Real, const FMA: bool>(x: &[T], y: &[f64], term: impl Fn(f64, f64) -> (f64, f64)) -> f64 {
    let mut lanes = [0.0; LANES];
    let add = |lane: &mut f64, x: &T, y: &f64| {
        let (a, b) = term(x.widen(), *y);
        *lane = a.madd::<FMA>(b, *lane);
    };
    let ((whole, rest), (y_whole, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in zip((whole, y_whole)) {
        zip((&mut lanes[..], &x[..], &y[..])).for_each(|(lane, x, y)| add(lane, x, y));
    }
    zip((&mut lanes[..], rest, y_rest)).for_each(|(lane, x, y)| add(lane, x, y));
    folded(lanes)
}

/// The sum of lanes by halves: a chain of four dependent additions instead of fifteen.
#[inline(always)]
pub(super) fn folded(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        zip((low, high)).for_each(|(low, high)| *low += *high);
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn add_scaled_body<T: Real, const FMA: bool>(sum: &mut [f64], weight: f64, x: &[T]) {
    for (s, v) in zip((sum, x)) {
        *s = weight.madd::<FMA>(v.widen(), *s);
    }
}

multiversion! {
    /// sum ← sum + weight · x.
    pub fn add_scaled<T>(sum: &mut [f64], weight: f64, x: &[T]) = add_scaled_body;
}

#[inline(always)]
fn add_together_body<T: Real, const FMA: bool>(
    sum: &mut [f64],
    weights: &[f64; ROWS],
    rows: Submatrix<&[T]>,
) {
    if rows.rows == ROWS && weights.iter().all(|weight| *weight != 0.0) {
        let mut each: [&[T]; ROWS] = [&[]; ROWS];
        for (each, row) in zip((&mut each[..], rows)) {
            *each = row;
        }
        let [a, b, c, d] = each;
        for (s, a, b, c, d) in zip((sum, a, b, c, d)) {
            let first = weights[1].madd::<FMA>(b.widen(), weights[0].madd::<FMA>(a.widen(), *s));
            *s = weights[3].madd::<FMA>(d.widen(), weights[2].madd::<FMA>(c.widen(), first));
        }
        return;
    }
    for (row, weight) in zip((rows, &weights[..])) {
        if *weight != 0.0 {
            add_scaled_body::<T, FMA>(sum, *weight, row);
        }
    }
}

/// sum ← sum + Σ weightₖ · rowₖ, row after row. Rows of weight 0 add nothing, whatever they hold.
pub fn add_multiples<T: Real>(
    isa: Isa,
    sum: &mut [f64],
    weight: impl Fn(usize) -> f64,
    rows: Submatrix<&[T]>,
) {
    for first in (0..rows.rows).step_by(ROWS) {
        let count = ROWS.min(rows.rows - first);
        let weights = array::from_fn(|k| if k < count { weight(first + k) } else { 0.0 });
        let values = &rows.values[first * rows.stride..];
        add_together(isa, sum, &weights, Submatrix { values, rows: count, ..rows });
    }
}

multiversion! {
    /// sum ← sum + Σ weightₖ · rowₖ for at most [`ROWS`] rows, to the bit as by [`add_scaled`] of one row after the other. Rows of weight
    /// 0 add nothing, whatever they hold.
    pub fn add_together<T>(sum: &mut [f64], weights: &[f64; ROWS], rows: Submatrix<&[T]>) = add_together_body;
}

#[inline(always)]
fn add_squares_body<T: Real, const FMA: bool>(sum: &mut [T], x: &[T]) {
    zip((sum, x)).for_each(|(sum, x)| *sum += *x * *x);
}

multiversion! {
    /// sum ← sum + x².
    pub fn add_squares<T>(sum: &mut [T], x: &[T]) = add_squares_body;
}

#[inline(always)]
fn scale_and_add_body<T: Real, const FMA: bool>(sum: &mut [f64], keep: f64, weight: f64, x: &[T]) {
    for (s, v) in zip((sum, x)) {
        *s = keep.madd::<FMA>(*s, weight * v.widen());
    }
}

multiversion! {
    /// sum ← keep · sum + weight · x.
    pub fn scale_and_add<T>(sum: &mut [f64], keep: f64, weight: f64, x: &[T]) = scale_and_add_body;
}

#[inline(always)]
fn scale_and_add_each_body<T: Real, const FMA: bool>(
    sum: &mut [f64],
    keep: &[f64],
    weights: &[f64],
    x: &[T],
) {
    for (s, keep, weight, v) in zip((sum, keep, weights, x)) {
        *s = keep * *s + weight * v.widen();
    }
}

multiversion! {
    /// sumₖ ← keepₖ · sumₖ + weightₖ · xₖ, rounded alike on every instruction set.
    pub fn scale_and_add_each<T>(sum: &mut [f64], keep: &[f64], weights: &[f64], x: &[T]) = scale_and_add_each_body;
}

#[inline(always)]
fn scale_and_add_rows_body<T: Real, const FMA: bool>(
    rows: &mut [f64],
    keep: &[f64],
    weights: &[f64],
    x: &[T],
) {
    let width = rows.len() / keep.len().max(1);
    // Some columns of all rows are taken at a time, so that x is widened once.
    for (k, x) in x.chunks(LANES).enumerate() {
        let first = k * LANES;
        let mut values = [0.0; LANES];
        zip((&mut values[..], x)).for_each(|(value, x)| *value = x.widen());
        for (row, keep, weight) in zip((rows.chunks_exact_mut(width), keep, weights)) {
            let row = &mut row[first..first + x.len()];
            if *weight == 0.0 {
                row.iter_mut().for_each(|sum| *sum *= *keep);
                continue;
            }
            let (whole, rest) = row.as_chunks_mut::<LANES>();
            for row in whole {
                scale_and_add_body::<f64, FMA>(row, *keep, *weight, &values);
            }
            scale_and_add_body::<f64, FMA>(rest, *keep, *weight, &values);
        }
    }
}

multiversion! {
    /// rowₖ ← keepₖ · rowₖ + weightₖ · x over the length of x, for rows one after the other. A weight of 0 adds nothing, whatever x
    /// is.
    pub fn scale_and_add_rows<T>(rows: &mut [f64], keep: &[f64], weights: &[f64], x: &[T]) = scale_and_add_rows_body;
}

#[inline(always)]
fn add_rows_body<T: Real, const FMA: bool>(sum: &mut [f64], weights: &[f64], rows: &[T]) {
    let width = rows.len() / weights.len().max(1);
    for (k, sum) in sum.chunks_mut(LANES).enumerate() {
        let first = k * LANES;
        let mut lanes = [0.0; LANES];
        for (weight, row) in zip((weights, rows.chunks_exact(width))) {
            if *weight == 0.0 {
                continue;
            }
            let (whole, rest) = row[first..first + sum.len()].as_chunks::<LANES>();
            for row in whole {
                add_scaled_body::<T, FMA>(&mut lanes, *weight, row);
            }
            add_scaled_body::<T, FMA>(&mut lanes, *weight, rest);
        }
        zip((sum, &lanes[..])).for_each(|(sum, lane)| *sum += *lane);
    }
}

multiversion! {
    /// sum ← sum + Σ weightₖ · rowₖ over the length of the sum, for rows one after the other. Rows of weight 0 add nothing,
    /// whatever they hold.
    pub fn add_rows<T>(sum: &mut [f64], weights: &[f64], rows: &[T]) = add_rows_body;
}

#[inline(always)]
fn weighted_sum_body<T: Real, const FMA: bool>(out: &mut [T], a: f64, x: &[f64], b: f64, y: &[f64]) {
    for (out, x, y) in zip((out, x, y)) {
        *out = T::narrow(a.madd::<FMA>(*x, b * y));
    }
}

multiversion! {
    /// out ← a · x + b · y, computed in `f64` and rounded once.
    pub fn weighted_sum<T>(out: &mut [T], a: f64, x: &[f64], b: f64, y: &[f64]) = weighted_sum_body;
}

/// The factors of a [`prefix_step`]: x ← `before` · before + `since` · since, and since ← `keep` · since + `add` · x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefixFactors {
    pub before: f64,
    pub since: f64,
    pub keep: f64,
    pub add: f64,
}

#[inline(always)]
fn prefix_step_body<T: Real, const FMA: bool>(
    x: &mut [T],
    before: &[f64],
    since: &mut [f64],
    factors: PrefixFactors,
) {
    for (x, before, since) in zip((x, before, since)) {
        let next = factors.keep.madd::<FMA>(*since, factors.add * x.widen());
        *x = T::narrow(factors.before.madd::<FMA>(*before, factors.since * *since));
        *since = next;
    }
}

multiversion! {
    /// A step of prefix sums in place: x becomes the weighted sum of `before` and `since`, and the old x is added to `since`,
    /// with the factors that [`PrefixFactors`] states. Bit-identical to [`weighted_sum`] and [`scale_and_add`].
    pub fn prefix_step<T>(
        x: &mut [T],
        before: &[f64],
        since: &mut [f64],
        factors: PrefixFactors,
    ) = prefix_step_body;
}

#[inline(always)]
fn max_of<T: Real>(x: &[T], value: impl Fn(T) -> T) -> T {
    let mut lanes = [T::neg_infinity(); LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    let larger = |a: T, b: T| if b > a { b } else { a };
    for chunk in whole {
        for (lane, v) in zip((&mut lanes[..], &chunk[..])) {
            *lane = larger(*lane, value(*v));
        }
    }
    for (lane, v) in zip((&mut lanes[..], rest)) {
        *lane = larger(*lane, value(*v));
    }
    lanes.into_iter().fold(T::neg_infinity(), larger)
}

#[inline(always)]
fn max_body<T: Real, const FMA: bool>(x: &[T]) -> T {
    max_of(x, |v| v)
}

#[inline(always)]
fn max_abs_body<T: Real, const FMA: bool>(x: &[T]) -> T {
    max_of(x, T::abs)
}

multiversion! {
    /// The largest element, ignoring NaN; −∞ for an empty slice.
    pub fn max<T>(x: &[T]) -> T = max_body;
}

multiversion! {
    /// The largest magnitude, ignoring NaN; −∞ for an empty slice.
    pub fn max_abs<T>(x: &[T]) -> T = max_abs_body;
}

#[inline(always)]
fn min_abs_body<T: Real, const FMA: bool>(x: &[T]) -> T {
    -max_of(x, |v| -v.abs())
}

multiversion! {
    /// The smallest magnitude, ignoring NaN; ∞ for an empty slice.
    pub fn min_abs<T>(x: &[T]) -> T = min_abs_body;
}

#[inline(always)]
fn max_sum_body<T: Real, const FMA: bool>(x: &[T], bias: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let ((x, x_rest), (bias, bias_rest)) = (x.as_chunks::<LANES>(), bias.as_chunks::<LANES>());
    for (x, bias) in zip((x, bias)) {
        for (lane, v, b) in zip((&mut lanes[..], &x[..], &bias[..])) {
            *lane = larger(*lane, v.widen() + b);
        }
    }
    for (lane, v, b) in zip((&mut lanes[..], x_rest, bias_rest)) {
        *lane = larger(*lane, v.widen() + b);
    }
    lanes.into_iter().fold(f64::NEG_INFINITY, larger)
}

multiversion! {
    /// The largest xₖ + biasₖ for slices of equal length, ignoring NaN; −∞ for empty slices.
    pub fn max_sum<T>(x: &[T], bias: &[f64]) -> f64 = max_sum_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn a_weight_of_zero_adds_nothing() {
        for isa in Isa::available() {
            let mut sums = [1.0, 2.0, 3.0, 4.0];
            scale_and_add_rows(isa, &mut sums, &[2.0, 0.5], &[0.0, 1.0], &[f32::INFINITY, f32::NAN]);
            assert!(sums[..2] == [2.0, 4.0] && sums[2] == f64::INFINITY && sums[3].is_nan(), "{isa:?}");
            let mut sum = [1.0];
            add_rows(isa, &mut sum, &[0.0, 2.0, 0.0], &[f64::NAN, 3.0, f64::INFINITY]);
            assert_eq!(sum, [7.0], "{isa:?}");
        }
    }

    /// Rows that are added together have the bits of rows that are added one by one, and a row of weight 0 may hold anything.
    #[test]
    fn rows_together_are_rows_one_by_one() {
        for isa in Isa::available() {
            for (rows, width) in [(1, 5), (3, 33), (4, 1), (4, 70), (9, 31), (16, 16)] {
                let stride = width + 3;
                let mut values: Vec<f32> =
                    (0..rows * stride).map(|i| ((i * 29) % 31) as f32 * 0.7 - 9.1).collect();
                for zero in [rows, 0, rows / 2] {
                    if zero < rows {
                        values[zero * stride] = f32::NAN;
                    }
                    let weight = |k: usize| if k == zero { 0.0 } else { 0.3 * k as f64 - 1.1 };
                    let start: Vec<f64> = (0..width).map(|f| 0.1 * f as f64).collect();
                    let (mut sums, mut expected) = (start.clone(), start);
                    add_multiples(
                        isa,
                        &mut sums,
                        weight,
                        Submatrix { values: &values[..], rows, stride, width },
                    );
                    for k in (0..rows).filter(|k| *k != zero) {
                        add_scaled(isa, &mut expected, weight(k), &values[k * stride..][..width]);
                    }
                    let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&sums), bits(&expected), "{isa:?}: {rows} × {width}, {zero}");
                    if zero < rows {
                        values[zero * stride] = 1.0;
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_of_numbers_and_nan() {
        for isa in Isa::available() {
            for (len, place) in (1..150).flat_map(|len| [0, len / 2, len - 1].map(|place| (len, place))) {
                let mut x: Vec<f32> = (0..len).map(|i| if i % 3 == 0 { f32::NAN } else { -3.0 }).collect();
                x[place] = -2.0;
                assert_eq!(max(isa, &x), -2.0, "{isa:?} {len} {place}");
                assert_eq!(min_abs(isa, &x), 2.0, "{isa:?} {len} {place}");
            }
            assert_eq!(max(isa, &[f32::NAN; 70]), f32::NEG_INFINITY);
        }
    }

    #[test]
    fn agree_with_naive_loops_at_every_length() {
        for isa in Isa::available() {
            for len in 0..70 {
                let x: Vec<f32> = (0..len).map(|i| ((i * 37) % 19) as f32 - 9.5).collect();
                let w: Vec<f64> = (0..len).map(|i| f64::from((i * 11) % 7) + 0.5).collect();
                let naive = |f: &dyn Fn(usize) -> f64| (0..len as usize).map(f).sum::<f64>();
                // Small integers and halves, so every sum is exact.
                assert_eq!(squared_norm(isa, &x, 2.0, &[]), naive(&|k| 4.0 * f64::from(x[k]).powi(2)));
                assert_eq!(squared_norm(isa, &x, 9.0, &w), naive(&|k| (w[k] * f64::from(x[k])).powi(2)));
                assert_eq!(plain_sum(isa, &x), naive(&|k| f64::from(x[k])));
                assert_eq!(dot(isa, &x, &w), naive(&|k| w[k] * f64::from(x[k])));
                for rows in [1, 4, 5, 11] {
                    let all: Vec<f32> = (0..rows * len).map(|i| ((i * 37) % 23) as f32 * 0.3 - 3.1).collect();
                    let mut out = vec![f64::NAN; rows as usize];
                    dots(isa, &all, &w, &mut out);
                    let row = |i: usize| &all[i * len as usize..][..len as usize];
                    assert!(
                        out.iter().enumerate().all(|(i, v)| *v == dot(isa, row(i), &w)),
                        "{isa:?} {rows} × {len}"
                    );
                }
                assert_eq!(squared_distance(isa, &x, &w), naive(&|k| (f64::from(x[k]) - w[k]).powi(2)));
                let mut sum = vec![1.0; len as usize];
                add_scaled(isa, &mut sum, 2.0, &x);
                assert!(sum.iter().zip(&x).all(|(s, v)| *s == 1.0 + 2.0 * f64::from(*v)));
                let mut squares = vec![1.0f32; len as usize];
                add_squares(isa, &mut squares, &x);
                assert!(squares.iter().zip(&x).all(|(s, v)| *s == 1.0 + v * v));
                scale_and_add(isa, &mut sum, 0.5, 2.0, &x);
                assert!(sum.iter().zip(&x).all(|(s, v)| *s == 0.5 + 3.0 * f64::from(*v)));
                let (mut each, keep) = (sum.clone(), w.iter().map(|w| 2.0 * w).collect::<Vec<f64>>());
                scale_and_add_each(isa, &mut each, &keep, &w, &x);
                let naive = sum.iter().zip(&w).zip(&x).map(|((s, w), v)| 2.0 * w * s + w * f64::from(*v));
                assert!(each.iter().copied().eq(naive));
                for width in [len as usize, len as usize + 3] {
                    let given: Vec<f64> = (0..3 * width).map(|i| ((i * 31) % 17) as f64 - 8.0).collect();
                    let (weights, row) = ([2.0, 0.0, -0.5], |k: usize| k * width..k * width + len as usize);
                    let mut rows = given.clone();
                    scale_and_add_rows(isa, &mut rows, &[0.5, 2.0, 1.0], &weights, &x);
                    let mut naive = given.clone();
                    for (k, keep) in [0.5, 2.0, 1.0].into_iter().enumerate() {
                        scale_and_add(isa, &mut naive[row(k)], keep, weights[k], &x);
                    }
                    assert_eq!(rows, naive, "{isa:?} {len} of {width}");
                    let (mut added, mut naive) = (sum.clone(), sum.clone());
                    add_rows(isa, &mut added, &weights, &given);
                    (0..3).for_each(|k| add_scaled(isa, &mut naive, weights[k], &given[row(k)]));
                    assert_eq!(added, naive, "{isa:?} {len} of {width}");
                }
                let mut out = x.clone();
                weighted_sum(isa, &mut out, 2.0, &w, -0.5, &w);
                assert!(out.iter().zip(&w).all(|(out, w)| f64::from(*out) == 1.5 * w));
                let (mut both, mut since, mut given) = (x.clone(), sum.clone(), x.clone());
                let factors = PrefixFactors { before: 0.3, since: -1.7, keep: 0.9, add: 1.1 };
                prefix_step(isa, &mut both, &w, &mut since, factors);
                weighted_sum(isa, &mut given, 0.3, &w, -1.7, &sum);
                scale_and_add(isa, &mut sum, 0.9, 1.1, &x);
                assert_eq!((both, since), (given, sum));
                assert_eq!(min_abs(isa, &x), x.iter().fold(f32::INFINITY, |a, v| a.min(v.abs())));
                assert_eq!(max(isa, &x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                let sums = x.iter().zip(&w).map(|(v, w)| f64::from(*v) + w);
                assert_eq!(max_sum(isa, &x, &w), sums.fold(f64::NEG_INFINITY, f64::max));
                assert_eq!(max_abs(isa, &x), x.iter().map(|v| v.abs()).fold(f32::NEG_INFINITY, f32::max));
            }
        }
    }
}
