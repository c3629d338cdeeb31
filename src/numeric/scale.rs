//! Numbers by which others are divided so that their squares stay in range.

/// The power of two at or below `largest`, from which it differs by less than a factor of 2: dividing by it is exact. Always a
/// normal number of `f64`, also for 0, denormal and infinite numbers.
pub fn power_of_two_below(largest: f64) -> f64 {
    let (_, exponent) = libm::frexp(largest.clamp(f64::MIN_POSITIVE, f64::MAX));
    libm::ldexp(1.0, exponent - 1)
}

/// The entries of `length` · x/‖x‖, whatever the norm; zeros for x = 0.
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

    #[test]
    fn powers_are_normal_and_near() {
        for v in [1.0, 1.999, 2.0, 3.7e-300, 1e308, f64::MIN_POSITIVE] {
            let power = power_of_two_below(v);
            assert!(power <= v && v < 2.0 * power && libm::frexp(power).0 == 0.5, "{v}");
        }
        assert!([0.0, 5e-324, f64::INFINITY].iter().all(|v| power_of_two_below(*v).is_normal()));
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
