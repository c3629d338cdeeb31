//! eˣ − 1 and cosh x − 1 over slices, without cancellation where x is small.
//!
//! Method: x = n ln 2 + r as in [`exp`](super::exp), and eˣ − 1 = 2ⁿ(eʳ − 1) + (2ⁿ − 1), computed in `f64`. Errors are at most
//! 2 and 6 ulp (tested). Overflow gives +∞; ±∞ and NaN follow IEEE 754.

use super::exp::{TOGETHER, exp_m1_of, last_together, write_last};
use super::lane::Lane;

#[inline(always)]
fn exp_m1_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each_together(x, |x| T::narrow(exp_m1_of::<FMA>(x.widen())));
}

multiversion! {
    /// x ← eˣ − 1.
    pub fn exp_m1<T>(x: &mut [T]) = exp_m1_body;
}

#[inline(always)]
fn cosh_m1_body<T: Lane, const FMA: bool>(x: &mut [T]) {
    each_together(x, |x| {
        // With q = e^|x| − 1: q²/(2(1 + q)), whose square must not overflow before it does.
        let q = exp_m1_of::<FMA>(x.widen().abs());
        let share = q / (1.0 + q);
        T::narrow(0.5 * q * if q < f64::INFINITY { share } else { q })
    });
}

multiversion! {
    /// x ← cosh x − 1; +∞ wherever eˣ overflows.
    pub fn cosh_m1<T>(x: &mut [T]) = cosh_m1_body;
}

/// Applies a function to every element, in chunks of as many as a vector holds.
#[inline(always)]
fn each_together<T: Lane>(x: &mut [T], f: impl Fn(T) -> T) {
    let last = last_together(x);
    for x in x.as_chunks_mut::<TOGETHER>().0 {
        x.iter_mut().for_each(|x| *x = f(*x));
    }
    if let Some(mut last) = last {
        last.iter_mut().for_each(|x| *x = f(*x));
        write_last(x, &last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{Isa, test_support::ulps64};

    /// From the smallest results to the largest, on both sides of 0.
    fn points() -> Vec<f64> {
        let spread = (0..200_000).map(|i| -60.0 + 769.7 * f64::from(i) / 199_999.0);
        let small = (0..2000).map(|i| 10f64.powf(-12.0 + 13.0 * f64::from(i) / 1999.0));
        spread.chain(small.clone()).chain(small.map(|x| -x)).collect()
    }

    #[test]
    fn exponentials_less_one_are_within_two_ulp() {
        for isa in Isa::available() {
            let xs = points();
            let mut ys = xs.clone();
            exp_m1(isa, &mut ys);
            for (x, y) in xs.iter().zip(&ys) {
                assert!(ulps64(*y, x.exp_m1()) <= 2.0, "{isa:?} {x}: {} ulp", ulps64(*y, x.exp_m1()));
            }
        }
    }

    #[test]
    fn hyperbolic_cosines_less_one_are_within_six_ulp() {
        for isa in Isa::available() {
            let xs = points();
            let mut ys = xs.clone();
            cosh_m1(isa, &mut ys);
            for (x, y) in xs.iter().zip(&ys) {
                let expected = 2.0 * (0.5 * x).sinh() * (0.5 * x).sinh();
                assert!(ulps64(*y, expected) <= 6.0, "{isa:?} {x}: {} ulp", ulps64(*y, expected));
            }
        }
    }

    #[test]
    fn edges_are_right() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for isa in Isa::available() {
            let mut x = [0.0, inf, -inf, nan, 710.0, -800.0, 709.7, -0.0, f64::MAX];
            let mut y = x;
            exp_m1(isa, &mut x);
            assert_eq!((x[0], x[1], x[2], x[4], x[5], x[7], x[8]), (0.0, inf, -1.0, inf, -1.0, 0.0, inf));
            assert!(x[3].is_nan() && x[6].is_finite());
            cosh_m1(isa, &mut y);
            assert_eq!((y[0], y[1], y[2], y[4], y[7], y[8]), (0.0, inf, inf, inf, 0.0, inf));
            assert!(y[3].is_nan() && y[6].is_finite());
            let mut single = [0.5f32, -0.5];
            exp_m1(isa, &mut single);
            assert!(
                (single[0] - 0.5f32.exp_m1()).abs() < 1e-6 && (single[1] - (-0.5f32).exp_m1()).abs() < 1e-6
            );
        }
    }
}
