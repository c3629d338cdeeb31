//! The trigonometric estimate of Matérn kernels.

use std::f64::consts::LN_2;

use super::gaussian::Terms;
use super::{Law, Radius};
use crate::SignedLog;
use crate::kernel::Smoothness;

/// ln of the variance of the trigonometric estimate of a Matérn kernel at squared distance `difference` = ‖x−y‖²;
/// `None` without a closed form.
///
/// Independent: (1 + k(2δ) − 2k(δ)²)/(2m) at distance δ, since (cos a)² = ½ + ½ cos 2a. Even in ω: an antithetic pair
/// counts once. Source: Rahimi and Recht's estimator; the sum without cancellation: new.
pub fn matern_trigonometric(smoothness: Smoothness, difference: f64, law: &Law) -> Option<f64> {
    if !law.pairs(Radius::Matern(smoothness))?.angles.is_empty() {
        return None;
    }
    let t = 2.0 * (2.0 * smoothness.nu() * difference).sqrt();
    // 1 + k(2δ) − 2k(δ)² is the tail P(n, t) = e⁻ᵗ Σ_{j≥n} tʲ/j!, and e⁻ᵗ t⁴/36 more for ν = 5/2.
    let excess = match smoothness {
        Smoothness::Half => ln_tail(1, t),
        Smoothness::ThreeHalves => ln_tail(3, t),
        Smoothness::FiveHalves if t == 0.0 => f64::NEG_INFINITY,
        Smoothness::FiveHalves => super::ln_add_exp(ln_tail(5, t), 4.0 * t.ln() - 36f64.ln() - t),
    };
    let single = SignedLog::positive(excess - LN_2);
    let terms = Terms { single, antithetic: single.scaled(LN_2), angle: &|_| SignedLog::from(f64::NAN) };
    terms.ln_variance(law, Radius::Matern(smoothness))
}

/// ln of e⁻ᵗ Σ_{j≥n} tʲ/j!, the probability that a Poisson count with mean t is at least n.
fn ln_tail(n: u32, t: f64) -> f64 {
    if t == 0.0 {
        return f64::NEG_INFINITY;
    }
    if t > 800.0 {
        // All of the probability, to the last bit; powers of t would overflow.
        return 0.0;
    }
    // Terms relative to the n-th: the series where they fall, the complement where the rest is small.
    if t < f64::from(n) {
        let ratios = (1..200).scan(1.0, |term, j| {
            *term *= t / f64::from(n + j);
            Some(*term)
        });
        let sum = 1.0 + ratios.take_while(|term| *term > 1e-18).sum::<f64>();
        let factorial: f64 = (1..=n).map(f64::from).product();
        f64::from(n) * t.ln() - factorial.ln() + sum.ln() - t
    } else {
        let below = (0..n).scan(1.0, |term, j| {
            let this = *term;
            *term *= t / f64::from(j + 1);
            Some(this)
        });
        let below: f64 = below.sum();
        super::ln_1m_exp(t - below.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Matern};
    use ndarray::arr1;

    #[test]
    fn is_the_definition_and_does_not_cancel() {
        for smoothness in [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves] {
            let kernel = Matern::new(smoothness, 1.0).unwrap();
            let k = |delta: f64| kernel.value(&arr1(&[delta]), &arr1(&[0.0])).unwrap();
            let law = Law::independent(7).with_radius(Radius::Matern(smoothness));
            for delta in [0.3, 0.5, 0.9, 1.0, 1.3, 2.0, 5.0, 40.0f64] {
                let expected: f64 = (1.0 + k(2.0 * delta) - 2.0 * k(delta).powi(2)) / 14.0;
                let found = matern_trigonometric(smoothness, delta * delta, &law).unwrap().exp();
                assert!((found - expected).abs() < 1e-13, "{smoothness:?} at {delta}: {found}, {expected}");
            }
            // Small distances: the leading term, t, t³/6 or t⁴/36.
            let t: f64 = 2.0 * (2.0 * smoothness.nu()).sqrt() * 1e-6;
            let leading = match smoothness {
                Smoothness::Half => t,
                Smoothness::ThreeHalves => t.powi(3) / 6.0,
                Smoothness::FiveHalves => t.powi(4) / 36.0,
            };
            let found = matern_trigonometric(smoothness, 1e-12, &law).unwrap();
            assert!((found - (leading / 14.0).ln()).abs() < 1e-5);
            let far = matern_trigonometric(smoothness, 1e170, &law).unwrap();
            assert!((far + 14f64.ln()).abs() < 1e-15);
            assert_eq!(matern_trigonometric(smoothness, 0.0, &law), Some(f64::NEG_INFINITY));
            assert_eq!(matern_trigonometric(smoothness, 1.0, &Law::independent(7)), None);
        }
    }
}
