//! Poisson and geometric features, whose frequencies are counts, for the Gaussian kernel and m independent frequencies.

use crate::numeric::special::{bessel_i_ratio, ln_bessel_i, ln_expm1};

/// ln of the variance of the Poisson estimate: (exp(λd + Σ xₗ²yₗ²/λ − ‖x‖² − ‖y‖²) − K²)/m.
///
/// `lambda` > 0. The form K² (exp(Σ (λ − xₗyₗ)²/λ) − 1)/m avoids cancellation. Source: Chefs' Random Tables, Theorem 3.4.
pub fn ln_poisson_variance(x: &[f64], y: &[f64], lambda: f64, m: usize) -> f64 {
    ln_poisson(x, y, std::iter::repeat(lambda), m)
}

/// ln of the variance of the Poisson estimate with a rate λₗ for each coordinate: (exp(Σ (λₗ + xₗ²yₗ²/λₗ) −
/// ‖x‖² − ‖y‖²) − K²)/m.
///
/// `lambdas` > 0, one for each coordinate. The variance is K² (exp(Σ (λₗ − xₗyₗ)²/λₗ) − 1)/m, which vanishes if λₗ = xₗyₗ
/// for every l. Source: new.
pub fn ln_poisson_variance_per_dimension(x: &[f64], y: &[f64], lambdas: &[f64], m: usize) -> f64 {
    ln_poisson(x, y, lambdas.iter().copied(), m)
}

fn ln_poisson(x: &[f64], y: &[f64], lambdas: impl Iterator<Item = f64>, m: usize) -> f64 {
    let term = |((x, y), lambda): ((&f64, &f64), f64)| (lambda - x * y).powi(2) / lambda;
    let excess: f64 = x.iter().zip(y).zip(lambdas).map(term).sum();
    ln_squared_gaussian(x, y) + ln_expm1(excess) - (m as f64).ln()
}

/// ln of the variance of the geometric estimate: (p^{−d} e^{−‖x‖²−‖y‖²} Π I₀(2|xₗyₗ|(1−p)^{−1/2}) − K²)/m.
///
/// 0 < `p` < 1. Source: Chefs' Random Tables, Theorem 3.5.
pub fn ln_geometric_variance(x: &[f64], y: &[f64], p: f64, m: usize) -> f64 {
    // The excess of each coordinate is positive, so the sum over coordinates does not cancel.
    let coordinate = |(x, y): (&f64, &f64)| -p.ln() + ln_i0(x * y, p) - 2.0 * x * y;
    let excess: f64 = x.iter().zip(y).map(coordinate).sum();
    let excess = if excess < 0.0 { 0.0 } else { excess };
    ln_squared_gaussian(x, y) + ln_expm1(excess) - (m as f64).ln()
}

/// The λ that minimises the Poisson variance: √(Σ tₗ²/d) for the products tₗ = xₗyₗ, or for data with tₗ² = mean(xₗ²)
/// mean(yₗ²). 0 if all t are 0; the infimum is then not attained.
///
/// Source: Chefs' Random Tables, Theorem 3.4.
pub fn optimal_lambda(products: &[f64]) -> f64 {
    let mean = products.iter().map(|t| t * t).sum::<f64>() / products.len() as f64;
    mean.sqrt()
}

/// The p that minimises the geometric variance for |tₗ| = |xₗyₗ|, or mean|xₗ| mean|yₗ| of data, in \[ε, 1 −
/// ε\] with ε = 1e-12.
///
/// It minimises the convex g(p) = −d ln p + Σ ln I₀(2|tₗ|(1−p)^{−1/2}) by bisection of its derivative, and is 1 − ε if all t
/// are 0. Source: Chefs' Random Tables, Theorem 3.5; derivative and clamp: new.
pub fn optimal_p(products: &[f64]) -> f64 {
    const EDGE: f64 = 1e-12;
    if products.is_empty() || products.iter().any(|t| t.is_nan()) {
        return f64::NAN;
    }
    let slope = |p: f64| {
        let root = (1.0 - p).sqrt();
        let rise = |t: &f64| t.abs() * bessel_i_ratio(2.0 * t.abs() / root) / (root * root * root);
        -(products.len() as f64) / p + products.iter().map(rise).sum::<f64>()
    };
    let (mut low, mut high) = (EDGE, 1.0 - EDGE);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 { low = middle } else { high = middle }
    }
    // If all t are 0, the slope is negative everywhere.
    if slope(1.0 - EDGE) < 0.0 { 1.0 - EDGE } else { 0.5 * (low + high) }
}

/// The objective that [`optimal_p`] minimises: −d ln p + Σ ln I₀(2|tₗ|(1−p)^{−1/2}).
pub fn geometric_objective(products: &[f64], p: f64) -> f64 {
    products.iter().map(|t| ln_i0(*t, p) - p.ln()).sum()
}

/// ln I₀(2|t|/√(1−p)).
fn ln_i0(t: f64, p: f64) -> f64 {
    ln_bessel_i(0.0, 2.0 * t.abs() / (1.0 - p).sqrt())
}

/// ln K² = −‖x−y‖².
fn ln_squared_gaussian(x: &[f64], y: &[f64]) -> f64 {
    -x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>()
}
