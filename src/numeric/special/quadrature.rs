//! The Gauss–Legendre rule.

use std::f64::consts::PI;

/// Nodes and weights of the Gauss–Legendre rule on \[−1, 1\] with 128 points.
pub fn gauss_legendre() -> &'static [(f64, f64)] {
    static RULE: std::sync::OnceLock<Vec<(f64, f64)>> = std::sync::OnceLock::new();
    RULE.get_or_init(|| gauss_legendre_rule(128))
}

/// Nodes and weights of the Gauss–Legendre rule on \[−1, 1\] with `count` points.
pub fn gauss_legendre_rule(count: usize) -> Vec<(f64, f64)> {
    (0..count).map(|i| gauss_legendre_node(i, count)).collect()
}

/// Root i of the Legendre polynomial of this degree by Newton's method from Chebyshev's estimate.
fn gauss_legendre_node(i: usize, degree: usize) -> (f64, f64) {
    let n = degree as f64;
    let mut x = (PI * (i as f64 + 0.75) / (n + 0.5)).cos();
    let mut slope = 0.0;
    for _ in 0..8 {
        let (mut previous, mut value) = (1.0, x);
        for k in 2..=degree {
            let k = k as f64;
            (previous, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * previous) / k);
        }
        slope = n * (x * value - previous) / (x * x - 1.0);
        x -= value / slope;
    }
    (x, 2.0 / ((1.0 - x * x) * slope * slope))
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    #[test]
    fn quadrature_is_exact_for_polynomials() {
        let integral = |f: &dyn Fn(f64) -> f64| gauss_legendre().iter().map(|(x, w)| w * f(*x)).sum::<f64>();
        close(integral(&|_| 1.0), 2.0, 1e-14);
        close(integral(&|x| x.powi(200)), 2.0 / 201.0, 1e-13);
        close(integral(&|x| (3.0 * x).exp()), 2.0 * 3f64.sinh() / 3.0, 1e-14);
    }
}
