//! The variance of the trigonometric estimate of any shift-invariant kernel.

use std::f64::consts::LN_2;

use super::Law;
use super::gaussian::VarianceTerms;
use super::law::{CoupledPairs, DependentPairs};
use super::overall::OverallStrata;
use super::radial_pairs::{Covariance, PairsOf, RadialPairs};
use crate::SignedLog;
use crate::kernel::{ShiftInvariant, Spectrum};

/// The share of the variance of independent rows by which quadrature of covariances may be wrong.
const PRECISION: f64 = 1e-5;

/// The most rows of strata over a whole draw: beyond, quadrature of heavy tails is no better than the little that is left.
const MOST_OVERALL: usize = 256;

/// ln of the variance of the trigonometric estimate of a shift-invariant kernel at the difference δ = (x − y)/ℓ;
/// `None` without a closed form.
///
/// For independent frequencies it is (1 + k(2δ) − 2k(δ)²)/(2m), since cos² a = ½ + ½ cos 2a. Features are even in ω, so an
/// antithetic pair counts once. Source of the estimator: Rahimi and Recht.
///
/// Orthogonal rows, rows at a fixed angle and coupled radii are known where the [quantiles](crate::extend::Radii::quantile) of the
/// radii are. Pairs of rows are then integrated over these quantiles, to some 10⁻³ of the variance of independent rows or better. Their
/// cost is some tenths of a second for each law, once, and up to a millisecond for each distance. It is `None` where quadrature does
/// not meet the variance of one feature: at tiny distances, for Matérn kernels of ν below some 0.1, and in two and three dimensions
/// also at distances of several lengthscales where radii have heavy tails. Strata over a whole draw are known for up to 256 rows.
/// Source: new.
pub fn shift_invariant<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &[f64], law: &Law) -> Option<f64> {
    let radius = kernel.spectrum().law();
    let single = SignedLog::positive(kernel.ln_variance(delta));
    let pairs = law.coupled_pairs(radius)?;
    let covariances = Covariances::of(kernel, delta, &pairs)?;
    let room = PRECISION * law.len() as f64 * single.value();
    if covariances.error.is_nan() || covariances.error > room {
        return None;
    }
    let terms = VarianceTerms {
        single,
        antithetic: single.scaled(LN_2),
        angle: &|cos| covariances.at(PairsOf::Independent(cos)).unwrap_or(SignedLog::from(f64::NAN)),
        coupled: &|of| covariances.at(PairsOf::Coupled(of)),
    };
    terms.ln_variance(law, radius)
}

/// The covariances of dependent pairs of rows.
#[derive(Default)]
struct Covariances {
    known: Vec<(PairsOf, f64)>,
    /// A bound of the error of their sum.
    error: f64,
}

impl Covariances {
    fn of<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &[f64], pairs: &DependentPairs) -> Option<Self> {
        let of_angle = |(cos, count): &(f64, f64)| (PairsOf::Independent(*cos), *count);
        let of_block = |(of, count): &(CoupledPairs, f64)| (PairsOf::Coupled(*of), *count);
        let all = pairs.angles.iter().map(of_angle).chain(pairs.coupled.iter().map(of_block));
        all.filter(|(_, count)| *count > 0.0).try_fold(Covariances::default(), |mut sum, (of, count)| {
            let Covariance { value, error } = covariance(kernel, delta, of)?;
            sum.known.push((of, value));
            sum.error += count * error;
            Some(sum)
        })
    }

    fn at(&self, of: PairsOf) -> Option<SignedLog> {
        self.known.iter().find(|(known, _)| *known == of).map(|(_, value)| SignedLog::from(*value))
    }
}

/// The covariance of a pair of rows, or the change of their sum in a block.
fn covariance<K: ShiftInvariant + ?Sized>(kernel: &K, delta: &[f64], of: PairsOf) -> Option<Covariance> {
    let Spectrum::Polar(radii) = kernel.spectrum() else {
        return None;
    };
    let d = delta.len();
    let square: f64 = delta.iter().map(|v| v * v).sum();
    let k = kernel.of_square(square);
    let deviation = if k.sign > 0.0 { k.ln_abs.exp_m1() } else { k.value() - 1.0 };
    let quantile = |p: f64| radii.quantile(d, p);
    if let PairsOf::Coupled(CoupledPairs::Across(m)) = of {
        if m > MOST_OVERALL {
            return None;
        }
        let value = OverallStrata::of(&quantile, d, m)?.trigonometric(square, deviation)?;
        return Some(Covariance { value, error: 0.0 });
    }
    let variance = kernel.ln_variance(delta).exp();
    RadialPairs::of(&quantile, d, of)?.covariance(square, deviation, variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{Orthogonal, Simplex};
    use crate::kernel::{
        Gaussian, Laplace, Lengthscale, Matern, PoweredExponential, RationalQuadratic, Smoothness, Spectrum,
    };
    use crate::numeric::special::ln_gamma;
    use crate::recipe::{AnyCoupling, Draw};
    use crate::theory::{Pair, Radius, RadiusCoupling, trigonometric};

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
        let orthogonal = [Law::orthogonal(2, 6), Law::orthogonal(2, 5).antithetic()];
        for law in [Law::independent(6), Law::independent(6).antithetic()].into_iter().chain(orthogonal) {
            let found = shift_invariant(&kernel, &[0.7, -0.4], &law).unwrap();
            let expected = trigonometric(&Pair { norms: 0.0, ..pair }, &law).unwrap();
            assert!((found - expected).abs() < 1e-13);
        }
        let matern = Law::independent(3).with_radius(Radius::Matern(Smoothness::Half));
        assert_eq!(shift_invariant(&kernel, &[1.0], &matern), None);
    }

    /// The variance of coupled frequencies over that of others.
    fn ratio(kernel: &dyn ShiftInvariant, delta: f64, own: &AnyCoupling, other: &AnyCoupling) -> f64 {
        let (d, radius) = (8, kernel.spectrum().law());
        let mut point = [0.0; 8];
        point[2] = delta;
        let of = |coupling: &AnyCoupling| {
            let law = Draw::new(d, d, *coupling).with_radii(radius).law();
            shift_invariant(kernel, &point, &law).unwrap()
        };
        (of(own) - of(other)).exp()
    }

    /// The tables of the documentation: paired over independent radii of orthogonal rows, for m = d = 8.
    #[test]
    fn paired_radii_gain_what_was_found_before() {
        let paired = Orthogonal.with_coupled_radii(RadiusCoupling::Paired).into();
        for (nu, expected) in [
            (0.5, [0.47, 0.53, 0.68, 0.90]),
            (1.5, [0.71, 0.54, 0.59, 0.92]),
            (2.5, [0.74, 0.60, 0.55, 0.92]),
        ] {
            let kernel = Matern::new(Smoothness::of(nu).unwrap(), 1.0).unwrap();
            for (delta, expected) in [0.25, 0.5, 1.0, 2.0].into_iter().zip(expected) {
                let found = ratio(&kernel, delta, &paired, &Orthogonal.into());
                assert!((found - expected).abs() < 6e-3, "ν = {nu}, {delta}: {found}");
            }
        }
    }

    /// The general quadrature has the closed forms of the Gaussian kernel.
    #[test]
    fn normal_frequencies_are_a_special_case() {
        for radii in RadiusCoupling::ALL {
            for (d, m) in [(2, 5), (3, 3), (8, 12), (40, 40)] {
                for coupling in [
                    AnyCoupling::from(Orthogonal),
                    Orthogonal.with_coupled_radii(radii).into(),
                    Simplex::default().with_coupled_radii(radii).into(),
                ] {
                    let law = Draw::new(d, m, coupling).law();
                    for size in [1e-3, 0.3, 1.0, 2.0, 4.0f64] {
                        let delta: Vec<f64> = (0..d).map(|k| if k == 1 { size } else { 0.0 }).collect();
                        let pair = Pair::new(delta.iter().map(|v| (*v, 0.0)));
                        let found = shift_invariant(&Gaussian::default(), &delta, &law);
                        let Some(expected) = trigonometric(&Pair { norms: 0.0, ..pair }, &law) else {
                            // A part of a simplex has other angles.
                            assert_eq!((found, radii), (None, RadiusCoupling::Overall));
                            continue;
                        };
                        let found = found.unwrap();
                        assert!(
                            (found - expected).abs() < 1e-7,
                            "{coupling}, {d}, {m}, {size}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }

    /// All couplings at all distances: finite, or not known, and 0 at 0.
    #[test]
    fn variances_of_coupled_radii_are_finite_at_all_distances() {
        let kernels: [Box<dyn ShiftInvariant>; 5] = [
            Box::new(Matern::new(Smoothness::of(0.3).unwrap(), 1.0).unwrap()),
            Box::new(Matern::new(Smoothness::of(20.0).unwrap(), 1.0).unwrap()),
            Box::new(RationalQuadratic::new(0.4, 1.0).unwrap()),
            Box::new(RationalQuadratic::new(1e12, 1.0).unwrap()),
            Box::new(PoweredExponential::new(1.0, 1.0).unwrap()),
        ];
        for (kernel, radii) in
            kernels.iter().flat_map(|kernel| RadiusCoupling::ALL.map(|radii| (kernel, radii)))
        {
            let law = Draw::new(3, 7, Orthogonal.with_coupled_radii(radii))
                .with_radii(kernel.spectrum().law())
                .law();
            let single = Law::independent(7).with_radius(kernel.spectrum().law());
            let mut known = 0;
            for size in (-40..40).map(|k| 1.7f64.powi(k)) {
                let delta = [0.0, size, 0.0];
                let Some(found) = shift_invariant(kernel.as_ref(), &delta, &law) else { continue };
                known += 1;
                let ratio = found - shift_invariant(kernel.as_ref(), &delta, &single).unwrap();
                assert!((-3.0..0.4).contains(&ratio), "{kernel:?}, {radii:?}, {size}: {ratio}");
            }
            assert!(known > 50, "{kernel:?}, {radii:?}: {known}");
            assert_eq!(shift_invariant(kernel.as_ref(), &[0.0; 3], &law), Some(f64::NEG_INFINITY));
        }
        let rough = Matern::new(Smoothness::of(0.05).unwrap(), 1.0).unwrap();
        let law = Law::orthogonal(3, 3).with_radius(rough.spectrum().law());
        assert_eq!(shift_invariant(&rough, &[1.0, 0.0, 0.0], &law), None);
        let powered = PoweredExponential::new(1.5, 1.0).unwrap();
        let law = Law::orthogonal(3, 3).with_radius(powered.spectrum().law());
        assert_eq!(shift_invariant(&powered, &[1.0, 0.0, 0.0], &law), None);
    }
}
