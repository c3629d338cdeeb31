//! The variance of the trigonometric estimate of any shift-invariant kernel.

use std::f64::consts::LN_2;

use super::Law;
use super::gaussian::{VarianceTerms, not_known};
use crate::SignedLog;
use crate::kernel::ShiftInvariant;

/// ln of the variance of the trigonometric estimate of a shift-invariant kernel at the difference δ = (x − y)/ℓ;
/// `None` without a closed form.
///
/// For independent frequencies it is (1 + k(2δ) − 2k(δ)²)/(2m), since cos² a = ½ + ½ cos 2a. Features are even in ω, so an
/// antithetic pair counts once. For the Gaussian kernel [`trigonometric`](super::trigonometric) also covers coupled
/// frequencies. Source of the estimator: Rahimi and Recht.
pub fn shift_invariant<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &[f64], law: &Law) -> Option<f64> {
    let radius = kernel.spectrum().law();
    if !law.pairs(radius)?.angles.is_empty() {
        return None;
    }
    let single = SignedLog::positive(kernel.ln_variance(delta));
    let terms = VarianceTerms {
        single,
        antithetic: single.scaled(LN_2),
        angle: &|_| SignedLog::from(f64::NAN),
        coupled: &not_known,
    };
    terms.ln_variance(law, radius)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{
        Gaussian, Laplace, Lengthscale, Matern, PoweredExponential, RationalQuadratic, Smoothness, Spectrum,
    };
    use crate::numeric::special::ln_gamma;
    use crate::theory::{Pair, Radius, trigonometric};

    /// A kernel with every default method.
    #[derive(Debug)]
    struct Plain<'a>(&'a dyn ShiftInvariant);

    impl ShiftInvariant for Plain<'_> {
        fn name(&self) -> String {
            self.0.name()
        }

        fn lengthscale(&self) -> &Lengthscale {
            self.0.lengthscale()
        }

        fn spectrum(&self) -> Spectrum<'_> {
            self.0.spectrum()
        }

        fn of_square(&self, square: f64) -> SignedLog {
            self.0.of_square(square)
        }
    }

    fn kernels() -> Vec<Box<dyn ShiftInvariant>> {
        vec![
            Box::new(Gaussian::default()),
            Box::new(Matern::new(Smoothness::Half, 1.0).unwrap()),
            Box::new(Matern::new(Smoothness::ThreeHalves, 1.0).unwrap()),
            Box::new(Matern::new(Smoothness::FiveHalves, 1.0).unwrap()),
            Box::new(Matern::new(Smoothness::Nu(0.3), 1.0).unwrap()),
            Box::new(Matern::new(Smoothness::Nu(4.2), 1.0).unwrap()),
            Box::new(RationalQuadratic::new(0.4, 1.0).unwrap()),
            Box::new(RationalQuadratic::new(3.0, 1.0).unwrap()),
            Box::new(PoweredExponential::new(0.4, 1.0).unwrap()),
            Box::new(PoweredExponential::new(1.0, 1.0).unwrap()),
            Box::new(PoweredExponential::new(1.9, 1.0).unwrap()),
            Box::new(PoweredExponential::new(2.0, 1.0).unwrap()),
            Box::new(Laplace::default()),
        ]
    }

    #[test]
    fn is_the_definition() {
        for kernel in kernels() {
            let kernel = kernel.as_ref();
            let law = Law::independent(7).with_radius(kernel.spectrum().law());
            let k = |delta: &[f64]| match kernel.spectrum() {
                Spectrum::Polar(_) => kernel.of_square(delta.iter().map(|v| v * v).sum()).value(),
                Spectrum::Product(_) => delta.iter().map(|v| kernel.of_square(v * v).value()).product(),
                Spectrum::Mixture(_) => unreachable!("no mixture is among them"),
            };
            for size in [0.3, 0.5, 0.9, 1.3, 2.0, 5.0, 40.0f64] {
                let (delta, twice) = ([0.6 * size, -0.8 * size], [1.2 * size, -1.6 * size]);
                let expected: f64 = (1.0 + k(&twice) - 2.0 * k(&delta).powi(2)) / 14.0;
                for found in
                    [shift_invariant(kernel, &delta, &law), shift_invariant(&Plain(kernel), &delta, &law)]
                {
                    let found = found.unwrap().exp();
                    assert!((found - expected).abs() < 1e-13, "{kernel:?} at {size}: {found}, {expected}");
                }
            }
            for (far, delta) in [(true, [1e100, 1e100]), (false, [0.0, 0.0])] {
                for found in
                    [shift_invariant(kernel, &delta, &law), shift_invariant(&Plain(kernel), &delta, &law)]
                {
                    let expected = if far { -14f64.ln() } else { f64::NEG_INFINITY };
                    let found = found.unwrap();
                    assert!(found == expected || (found - expected).abs() < 1e-15, "{kernel:?}: {found}");
                }
            }
            assert_eq!(shift_invariant(kernel, &[1.0], &Law::unknown(7)), None);
        }
    }

    /// Where 1 + k(2δ) − 2k(δ)² would round to 0, the variance is the leading term of its series in the distance.
    #[test]
    fn nothing_cancels_near_zero() {
        let delta = 1e-6f64;
        let half = |nu: f64| 2.0 * (2.0 * nu).sqrt() * delta;
        // 1 − k for ν = 0.3: Γ(1−ν)/Γ(1+ν) (t/2)^{2ν}.
        let rough = (ln_gamma(0.7) - ln_gamma(1.3)).exp() * (0.25 * half(0.3)).powf(0.6);
        let powered = |alpha: f64| {
            let power = delta.powf(alpha);
            (-2f64.powf(alpha) * power).exp_m1() - 2.0 * (-2.0 * power).exp_m1()
        };
        let leading = [
            delta.powi(4),
            half(0.5),
            half(1.5).powi(3) / 6.0,
            half(2.5).powi(4) / 36.0,
            4.0 * rough - 4f64.powf(0.3) * rough - 2.0 * rough * rough,
            (2.0 * 4.2f64 * delta * delta).powi(2) / (8.0 * 3.2) * (3.0 / 2.2 - 1.0 / 3.2),
            // (α² + 3α/2) δ⁴/α², the variance of τ and of the Gaussian kernels in the mixture.
            delta.powi(4) * (1.0 + 1.5 / 0.4),
            delta.powi(4) * (1.0 + 1.5 / 3.0),
            powered(0.4),
            powered(1.0),
            powered(1.9),
            4.0 * delta.powi(4),
            2.0 * delta,
        ];
        for (kernel, leading) in kernels().iter().zip(leading) {
            let law = Law::independent(7).with_radius(kernel.spectrum().law());
            let found = shift_invariant(kernel.as_ref(), &[delta], &law).unwrap();
            assert!(
                (found - (leading / 14.0).ln()).abs() < 1e-5,
                "{kernel:?}: {} {leading}",
                14.0 * found.exp()
            );
        }
    }

    #[test]
    fn pairs_count_once_and_other_laws_have_no_closed_form() {
        let kernel = Gaussian::default();
        let pair = Pair::new([(0.7, 0.0), (0.0, 0.4)]);
        for law in [Law::independent(6), Law::independent(6).antithetic()] {
            let found = shift_invariant(&kernel, &[0.7, -0.4], &law).unwrap();
            let expected = trigonometric(&Pair { norms: 0.0, ..pair }, &law).unwrap();
            assert!((found - expected).abs() < 1e-13);
        }
        assert_eq!(shift_invariant(&kernel, &[1.0], &Law::orthogonal(2, 2)), None);
        let matern = Law::independent(3).with_radius(Radius::Matern(Smoothness::Half));
        assert_eq!(shift_invariant(&kernel, &[1.0], &matern), None);
    }
}
