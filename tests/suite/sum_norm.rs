//! The density of ‖ωᵢ+ωⱼ‖: numbers of two other integrals, its moments, and draws.

use std::f64::consts::PI;

use rand_distr::{ChiSquared, Distribution};
use random_features::theory::conformity::ln_conformity;
use random_features::theory::sum_norm::{ln_density, ln_density_of_independent};

use crate::common::hypergeometric;

/// ∫ p(w) f(w) dw by the trapezoidal rule for each f; densities fall off like a normal one.
fn means(d: usize, density: impl Fn(f64) -> f64, functions: [&dyn Fn(f64) -> f64; 3]) -> [f64; 3] {
    let (end, n) = (2.0 * (2.0 * d as f64).sqrt() + 16.0, 1500);
    let step = end / f64::from(n);
    let mut sums = [0.0; 3];
    for k in 0..=n {
        let w = step * f64::from(k);
        let weight = step * if k == 0 { 0.5 } else { 1.0 } * density(w).exp();
        sums.iter_mut().zip(functions).for_each(|(sum, f)| *sum += weight * f(w));
    }
    sums
}

/// Radii are sides of a triangle whose third side is w. The numbers are integrals of their joint density over the angle between the
/// first and the third side, in multiple precision (mpmath); they agree with Equation 20 in multiple precision to 12 digits.
#[test]
fn densities_are_those_of_triangles() {
    let known = [
        ((1, 0.5, -1.0), -0.2651325657583742),
        ((2, 0.001, -1.0), -0.12078298744730695),
        ((2, 0.7, -1.0), -0.4442169305058947),
        ((3, 4.0, -0.5), -6.453148338478583),
        ((5, 3.0, 1.0), -1.6339802779504193),
        ((6, 0.5, -0.2), -14.799748174197452),
        ((6, 3.25, -0.2), -0.542078673066399),
        ((6, 9.0, -0.2), -31.527283894328576),
        ((6, 2.5, 0.75), -3.149358602465654),
        ((16, 5.0, -0.999), -12.877837220286793),
        ((64, 0.25, -1.0), -0.25518235541445566),
        ((64, 11.0, -1.0 / 63.0), -0.5969918220818827),
        ((64, 14.0, 0.5), -0.8045176059359834),
        ((256, 20.0, -0.25), -0.6586898306456704),
    ];
    for ((d, w, cos), exact) in known {
        let own = ln_density(d, w, cos);
        assert!((own - exact).abs() < 2e-12 * exact.abs().max(1.0), "{d}, {w}, {cos}: {own}, not {exact}");
    }
}

#[test]
fn densities_have_their_moments() {
    for d in [1, 2, 3, 6, 17, 64, 300] {
        let n = d as f64;
        // E w² = 2d + 2 cos θ (E χ_d)².
        let squared_mean = 2.0 * (2.0 * (libm::lgamma(0.5 * n + 0.5) - libm::lgamma(0.5 * n))).exp();
        let of = |cos: Option<f64>| {
            move |w| cos.map_or_else(|| ln_density_of_independent(d, w), |cos| ln_density(d, w, cos))
        };
        for cos in [None, Some(0.0), Some(-0.2), Some(0.7), Some(-0.98), Some(-1.0), Some(1.0)] {
            let close = |own: f64, exact: f64, what: &str| {
                // At 0 densities of few dimensions end abruptly.
                let tolerance = if d < 3 { 1e-3 } else { 1e-5 };
                assert!((own / exact - 1.0).abs() < tolerance, "{what}, {d}, {cos:?}: {own}, not {exact}");
            };
            let (square, v2) = (2.0 * n + 2.0 * cos.unwrap_or(0.0) * squared_mean, 0.3);
            let conformity = cos.map_or(v2, |cos| ln_conformity(d, v2, cos)).exp();
            let sphere = |w: f64| hypergeometric(0.5 * n, 0.25 * v2 * w * w);
            let own = means(d, of(cos), [&|_| 1.0, &|w| w * w, &sphere]);
            close(own[0], 1.0, "mass");
            close(own[1], square, "square");
            close(own[2], conformity, "conformity");
        }
    }
}

/// Draws of two radii, in ten equal parts by probability: χ² with 9 degrees of freedom, above 40 with probability 8e-6 each.
#[test]
fn draws_have_these_densities() {
    let (d, n) = (6, 200_000);
    let chi = ChiSquared::<f64>::new(d as f64).unwrap();
    let mut rng = random_features::rng(11);
    for cos in [-0.2f64, 0.0, 0.6, -1.0] {
        let step = 0.002;
        let density: Vec<f64> =
            (0..6000).map(|k| ln_density(d, step * (f64::from(k) + 0.5), cos).exp()).collect();
        let below = |w: f64| {
            let whole = (w / step) as usize;
            let part = density.get(whole).map_or(0.0, |p| p * (w - whole as f64 * step));
            density.iter().take(whole).sum::<f64>() * step + part
        };
        let mut counts = [0u32; 10];
        for _ in 0..n {
            let (a, b) = (chi.sample(&mut rng).sqrt(), chi.sample(&mut rng).sqrt());
            let w = (a * a + b * b + 2.0 * cos * a * b).max(0.0).sqrt();
            counts[((10.0 * below(w)) as usize).min(9)] += 1;
        }
        let expected = f64::from(n) / 10.0;
        let chi2: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!(chi2 < 40.0, "{cos}: {counts:?}");
    }
}

#[test]
fn densities_end_where_they_should() {
    // Of opposite directions at 0 in one dimension: 2 ∫ (2/π) e^{−r²} dr.
    assert!((ln_density(1, 0.0, -1.0) - (2.0 / PI.sqrt()).ln()).abs() < 1e-14);
    for d in [1, 2, 6, 64] {
        let (at, near) = (ln_density(d, 0.0, -1.0), ln_density(d, 1e-9, -1.0));
        assert!((at - near).abs() < 1e-9, "{d}: {at}, {near}");
        assert_eq!(ln_density(d, 0.0, 0.3), f64::NEG_INFINITY);
        assert!(ln_density(d, 1e3, -0.5) < -1e5 && ln_density(d, 1e-30, -0.5) < -60.0);
        assert!(ln_density_of_independent(d, 1e3) < -1e5);
    }
    for wrong in [
        ln_density(0, 1.0, 0.0),
        ln_density(3, -1.0, 0.0),
        ln_density(3, 1.0, -1.1),
        ln_density(3, f64::NAN, 0.0),
    ] {
        assert!(wrong.is_nan());
    }
    assert!(ln_density_of_independent(0, 1.0).is_nan() && ln_density_of_independent(3, -1.0).is_nan());
    assert!(ln_density(1, 0.0, 0.0).is_infinite() && ln_density_of_independent(1, 0.0).is_finite());
}
