//! The optimal diagonal A of complex-exponential features for two centres.

use num_complex::Complex64;

/// The complex diagonal A that minimises ‖Ar + A⁻¹r′‖² for centres r on the x side and r′ on the y side: aₖ =
/// √(−r′ₖ/rₖ), with residual 0.
///
/// Coordinates where one centre is 0 have no minimum: |aₖ| is ε where only r′ₖ = 0, and 1/ε where only rₖ = 0. It is 1 where
/// both are 0. Extreme entries give a very large variance away from the centres: see [`robust`]. Source: Hybrid Random
/// Features, equations 83–88 (erratum H10: the clamps).
pub fn complex(r: &[f64], r_prime: &[f64], epsilon: f64) -> Vec<Complex64> {
    let entry = |(r, q): (&f64, &f64)| {
        let size = clamped_ratio(*r, *q, epsilon);
        if r * q > 0.0 { Complex64::new(0.0, size) } else { Complex64::from(size) }
    };
    r.iter().zip(r_prime).map(entry).collect()
}

/// The real diagonal A that minimises ‖Ar + A⁻¹r′‖²: aₖ = √|r′ₖ/rₖ|, with residual 4|rₖr′ₖ| where signs agree and 0
/// elsewhere.
///
/// Where a centre is 0, aₖ is that of [`complex`]. Source: Hybrid Random Features, equations 83–88.
pub fn real(r: &[f64], r_prime: &[f64], epsilon: f64) -> Vec<f64> {
    r.iter().zip(r_prime).map(|(r, q)| clamped_ratio(*r, *q, epsilon)).collect()
}

/// The real diagonal that minimises the mean ‖Ax + A⁻¹y‖² over two clusters: aₖ = (E yₖ²/E xₖ²)^{1/4}; ε where only E yₖ² is
/// 0, 1/ε where only E xₖ² is 0, 1 where both are 0.
///
/// For the complex case multiply the entries by i where the signs of the centres agree. Source: new.
pub fn robust(mean_square_x: &[f64], mean_square_y: &[f64], epsilon: f64) -> Vec<f64> {
    let entry = |(x, y): (&f64, &f64)| clamped_ratio(x.sqrt(), y.sqrt(), epsilon);
    mean_square_x.iter().zip(mean_square_y).map(entry).collect()
}

/// The loss ‖Ar + A⁻¹r′‖² that [`complex`] and [`real`] minimise.
pub fn loss(a: &[Complex64], r: &[f64], r_prime: &[f64]) -> f64 {
    super::complex_exponential::zeta_diagonal(a, r, r_prime).iter().map(Complex64::norm_sqr).sum()
}

fn clamped_ratio(r: f64, q: f64, epsilon: f64) -> f64 {
    match (r == 0.0, q == 0.0) {
        (true, true) => 1.0,
        (true, false) => epsilon.recip(),
        (false, true) => epsilon,
        (false, false) => (q / r).abs().sqrt(),
    }
}
