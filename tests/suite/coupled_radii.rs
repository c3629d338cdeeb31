//! Coupled radii: their strata, the law of each row, and the variance of estimates.
//!
//! Seeds are fixed. A z-score beyond 4.5 has probability 7e-6, and there are 160 of them here; the largest distance of a
//! distribution function is beyond its bound with probability 1e-6, in 80 cases: the rate of false alarms is below 2e-3.

use crate::common::{Name, Sample, at_pairs, gaussian, point, shifted};
use random_features::extend::{Coupling, Radii, Radius};
use random_features::frequency::{
    Antithetic, Givens, Hadamard, Independent, Orthogonal, RadiusCoupling, Simplex,
};
use random_features::kernel::{Gaussian, Matern, PoweredExponential, RationalQuadratic, Smoothness, Softmax};
use random_features::map::AnyKernel;
use random_features::recipe::{AnyCoupling, Draw};
use random_features::theory::{
    BlockLaw, Dependence, Law, Pair, hyperbolic, positive, regularised_positive, trigonometric,
};
use random_features::workbench::RootDim;
use random_features::{Error, Map, Recipe, Trigonometric};

/// P(χ_d ≤ r) for even d.
fn distribution(d: usize, r: f64) -> f64 {
    let x = 0.5 * r * r;
    let mut term = 1.0;
    let sum: f64 = (0..d / 2)
        .map(|k| {
            if k == 0 {
                1.0
            } else {
                term *= x / k as f64;
                term
            }
        })
        .sum();
    1.0 - (-x).exp() * sum
}

/// The couplings of directions of which radii can be coupled, with coupled radii.
fn all(radii: RadiusCoupling) -> Vec<AnyCoupling> {
    let mut all = vec![
        Orthogonal.with_coupled_radii(radii).into(),
        Simplex::default().with_coupled_radii(radii).into(),
    ];
    if radii != RadiusCoupling::Overall {
        all.push(Hadamard::default().with_coupled_radii(radii).into());
        all.push(Givens::default().with_coupled_radii(radii).into());
    }
    all
}

/// A number of rows that makes blocks of four and a part of one; of simplices with radii of a whole draw only whole blocks are
/// known.
fn some_rows(radii: RadiusCoupling) -> usize {
    if radii == RadiusCoupling::Overall { 8 } else { 7 }
}

/// A dimension that Hadamard products do not pad, so that rows have the norms that were drawn.
const D: usize = 16;

/// The probabilities of the radii of a draw of `m` rows in ℝ¹⁶, block by block.
fn probabilities(coupling: AnyCoupling, m: usize, seed: u64) -> Vec<Vec<f64>> {
    let omega = Draw::new(D, m, coupling).draw(seed).unwrap();
    let radius = |row: ndarray::ArrayView1<'_, f64>| row.dot(&row).sqrt();
    let all: Vec<f64> = omega.rows().rows().into_iter().map(|row| distribution(D, radius(row))).collect();
    let capacity = coupling.capacity(D);
    all.chunks(capacity).map(<[f64]>::to_vec).collect()
}

#[test]
fn probabilities_are_coupled_within_each_block() {
    for radii in RadiusCoupling::ALL {
        for coupling in all(radii) {
            for (m, seed) in [(16, 1), (37, 2), (25, 3), (2, 4)] {
                for block in probabilities(coupling, m, seed) {
                    let b = block.len();
                    let case = format!("{coupling}, {b} rows");
                    let mut sorted = block.clone();
                    sorted.sort_by(f64::total_cmp);
                    let strata: Vec<usize> = sorted.iter().map(|p| (p * b as f64 + 1e-9) as usize).collect();
                    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{case}: {block:?}");
                    match radii {
                        RadiusCoupling::Antithetic => {
                            (0..b / 2).for_each(|i| close(block[i] + block[b / 2 + i], 1.0));
                        }
                        _ => assert_eq!(strata, (0..b).collect::<Vec<_>>(), "{case}: {block:?}"),
                    }
                    if radii == RadiusCoupling::Systematic {
                        sorted.windows(2).for_each(|pair| close(pair[1] - pair[0], (b as f64).recip()));
                    }
                    if radii == RadiusCoupling::Paired {
                        (0..b / 2).for_each(|a| close(sorted[a] + sorted[b - 1 - a], 1.0));
                    }
                }
            }
        }
    }
}

/// The first and the last row of a partial block have the law of every row.
#[test]
fn each_radius_has_its_law() {
    let (draws, m) = (4000, 5);
    // P(√n D > t) is at most 2 e^{−2t²}.
    let bound = (0.5 * (2e6f64).ln() / draws as f64).sqrt();
    for radii in RadiusCoupling::ALL {
        for coupling in
            [Orthogonal.with_coupled_radii(radii).into(), Simplex::default().with_coupled_radii(radii).into()]
        {
            for row in [0, m - 1] {
                let mut all: Vec<f64> =
                    (0..draws).map(|seed| probabilities(coupling, m, seed)[0][row]).collect();
                all.sort_by(f64::total_cmp);
                let distance = |(i, p): (usize, &f64)| {
                    let i = i as f64;
                    (p - i / draws as f64).abs().max(((i + 1.0) / draws as f64 - p).abs())
                };
                let largest = all.iter().enumerate().map(distance).fold(0.0, f64::max);
                assert!(largest < bound, "{coupling}, row {row}: {largest} beyond {bound}");
            }
        }
    }
}

#[test]
fn estimates_are_unbiased_and_of_the_closed_form_variance() {
    let (d, draws) = (4, 10_000);
    // Each draw is seen at four pairs of one kernel value and one variance, whose x + y and x − y differ.
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 11, 0.5));
    let pairs = (&shifted(&x, 1), &shifted(&y, 1));
    for radii in RadiusCoupling::ALL {
        let m = some_rows(radii);
        for coupling in &all(radii)[..2] {
            for name in [Name::Trigonometric, Name::Positive, Name::Hyperbolic] {
                let make = |seed| -> Map<f64> {
                    name.make(Draw::new(d, m, *coupling).draw(seed).unwrap(), gaussian())
                };
                let exact = make(0).kernel().unwrap().value(&x, &y).unwrap();
                let (mean, mse) = at_pairs(draws, make, pairs, exact);
                let variance = make(0).log_variance(&x, &y).unwrap().unwrap().exp();
                let case = format!("{name:?}, {coupling}");
                assert!(mean.z(exact).abs() < 4.5, "{case}: mean {} of {exact}", mean.mean);
                assert!(mse.z(variance).abs() < 4.5, "{case}: MSE {} of {variance}", mse.mean);
                assert!(mse.error < 0.04 * mse.mean, "{case}: too few draws to see 15 %");
            }
        }
    }
}

/// Kernels whose radii have heavy tails, light ones, and a law between them.
fn radial_kernels() -> [AnyKernel; 4] {
    let matern = |nu: f64| Matern::new(Smoothness::of(nu).unwrap(), 1.0).unwrap().into();
    [matern(0.3), matern(0.5), matern(2.5), RationalQuadratic::new(0.6, 1.0).unwrap().into()]
}

/// Estimates of kernels with other laws of radii: 40 means and 40 variances.
#[test]
fn radial_kernels_are_estimated_with_the_variance_of_the_closed_form() {
    let (d, draws) = (4, 3_000);
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 4, 0.5));
    let pairs = (&shifted(&x, 1), &shifted(&y, 1));
    let mut squares = 0.0;
    for kernel in radial_kernels() {
        let exact = kernel.kernel::<f64>().unwrap().value(&x, &y).unwrap();
        for radii in RadiusCoupling::ALL {
            for coupling in &all(radii)[..2] {
                let draw = Draw::new(d, some_rows(radii), *coupling).with_radii(kernel.radius().unwrap());
                let recipe: Recipe = Trigonometric.recipe(draw, kernel.clone());
                let make = |seed| -> Map<f64> { recipe.draw(seed).unwrap() };
                let (mean, mse) = at_pairs(draws, make, pairs, exact);
                let variance = make(0).log_variance(&x, &y).unwrap().unwrap().exp();
                let case = format!("{kernel}, {coupling}");
                assert!(mean.z(exact).abs() < 4.5, "{case}: mean {} of {exact}", mean.mean);
                assert!(mse.z(variance).abs() < 4.5, "{case}: MSE {} of {variance}", mse.mean);
                squares += mse.z(variance).powi(2);
            }
        }
    }
    let rms = (squares / 40.0).sqrt();
    assert!((0.6..1.5).contains(&rms), "{rms}");
}

/// Each row of a draw with coupled radii has the law of its kernel.
#[test]
fn radii_of_other_kernels_have_their_law() {
    let (d, m, draws) = (3, 5, 4000);
    let bound = (0.5 * (2e6f64).ln() / draws as f64).sqrt();
    for kernel in radial_kernels() {
        let law = kernel.radius().unwrap();
        for radii in RadiusCoupling::ALL {
            let coupling = Orthogonal.with_coupled_radii(radii);
            for row in [0, 2, 4] {
                let radius = |seed| {
                    let omega = coupling.with_radii(law).draw(d, m, seed).unwrap();
                    let row = omega.rows().row(row).to_owned();
                    row.dot(&row).sqrt()
                };
                let all: Vec<f64> = (0..draws).map(radius).collect();
                for p in (1..64).map(|k| f64::from(k) / 64.0) {
                    let quantile = law.quantile(d, p).unwrap();
                    let below = all.iter().filter(|r| **r <= quantile).count() as f64 / draws as f64;
                    assert!((below - p).abs() < bound, "{kernel}, {radii:?}, row {row}: {below} of {p}");
                }
            }
        }
    }
}

/// Paired radii lower the variance of orthogonal trigonometric features by a third at small distances (ratios of the table in the
/// documentation of the coupling, to the digits there).
#[test]
fn the_gain_is_what_the_documentation_says() {
    let ratio = |variance: fn(&Pair, &Law) -> Option<f64>, d: usize, x: f64, y: f64| {
        let pair = Pair::new((0..d).map(|k| if k == 0 { (x, y) } else { (0.0, 0.0) }));
        let coupled = Draw::new(d, d, Orthogonal.with_coupled_radii(RadiusCoupling::Paired)).law();
        (variance(&pair, &coupled).unwrap() - variance(&pair, &Law::orthogonal(d, d)).unwrap()).exp()
    };
    for (d, distance, expected) in [
        (4, 0.25, 0.697),
        (4, 1.0, 0.536),
        (4, 3.0, 1.034),
        (8, 0.5, 0.632),
        (8, 2.0, 0.924),
        (16, 1.5, 0.865),
        (64, 0.5, 0.652),
        (64, 2.0, 0.993),
    ] {
        let found = ratio(trigonometric, d, distance, 0.0);
        assert!((found - expected).abs() < 6e-4, "d = {d}, {distance}: {found}");
    }
    for (d, sum, expected) in [(4, 0.5, 0.751), (8, 1.0, 0.845), (16, 2.0, 0.989), (64, 0.5, 0.740)] {
        let found = ratio(hyperbolic, d, sum, 0.0);
        assert!((found - expected).abs() < 6e-4, "hyperbolic, d = {d}, {sum}: {found}");
    }
    let found = ratio(positive, 8, 1.0, 0.0);
    assert!((found - 0.973).abs() < 6e-4, "{found}");
}

/// No distance gives NaN, a negative variance or a jump; far beyond what features resolve there is no closed form.
#[test]
fn variances_are_finite_and_continuous_at_all_distances() {
    for radii in RadiusCoupling::ALL {
        for (d, m) in [(2, 2), (3, 5), (8, 8), (64, 100)] {
            let law = Draw::new(d, m, Orthogonal.with_coupled_radii(radii)).law();
            for variance in [trigonometric, hyperbolic, positive] {
                let at = |size: f64| {
                    let pair = Pair::new((0..d).map(|k| if k == 0 { (size, 0.0) } else { (0.0, 0.0) }));
                    (variance(&pair, &law), variance(&pair, &Law::independent(m)).unwrap())
                };
                let mut size = 1e-150;
                while size < 1e3 {
                    if let (Some(found), independent) = at(size) {
                        let ratio = found - independent;
                        assert!(
                            (-7.0..0.7).contains(&ratio),
                            "{radii:?}, {d}, {size}: {found}, {independent}"
                        );
                    } else {
                        assert!(size > 5.0, "{radii:?}, {d}, {size}");
                    }
                    size *= 1.7;
                }
                // On both sides of where the power series ends.
                let (below, above) = (at(3.0 - 1e-9).0.unwrap(), at(3.0 + 1e-9).0.unwrap());
                assert!((below - above).abs() < 1e-7, "{radii:?}, {d}: {below}, {above}");
                assert_eq!(at(0.0).0, Some(f64::NEG_INFINITY));
            }
        }
    }
}

/// Radii of a whole draw: as many strata as rows, blocks of directions, and the variance of the closed form for few dimensions.
#[test]
fn radii_are_stratified_over_the_whole_draw() {
    let coupling = Orthogonal.with_coupled_radii(RadiusCoupling::Overall);
    let omega = coupling.draw(D, 40, 3).unwrap();
    let rows = omega.rows();
    let mut strata: Vec<usize> =
        rows.rows().into_iter().map(|row| (40.0 * distribution(D, row.dot(&row).sqrt())) as usize).collect();
    strata.sort_unstable();
    assert_eq!(strata, (0..40).collect::<Vec<_>>());
    assert!(rows.row(17).dot(&rows.row(31)).abs() < 1e-12 && rows.row(15).dot(&rows.row(16)).abs() > 1e-6);
    for (d, m, ratio) in [(1, 8, 0.063), (2, 6, 0.37), (3, 7, 0.51)] {
        let draw = Draw::new(d, m, coupling);
        let pair = Pair::new((0..d).map(|k| if k == 0 { (1.0, 0.0) } else { (0.0, 0.0) }));
        let variance = |law: &Law| trigonometric(&pair, law).unwrap();
        let found = (variance(&draw.law()) - variance(&Law::orthogonal(d, m))).exp();
        assert!((found - ratio).abs() < 0.02 * ratio, "{d}, {m}: {found}");
        let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
        for name in [Name::Trigonometric, Name::Positive, Name::Hyperbolic] {
            let make = |seed| -> Map<f64> { name.make(draw.draw(seed).unwrap(), gaussian()) };
            let exact = make(0).kernel().unwrap().value(&x, &y).unwrap();
            let square = |seed| (make(seed).estimate(&x, &y).unwrap() - exact).powi(2);
            let mse = Sample::of(&(0..20_000).map(square).collect::<Vec<f64>>());
            let variance = make(0).log_variance(&x, &y).unwrap().unwrap().exp();
            assert!(mse.z(variance).abs() < 4.5, "{name:?}, {d}: MSE {} of {variance}", mse.mean);
        }
    }
}

#[test]
fn radii_of_a_whole_draw_have_their_limits() {
    let overall = RadiusCoupling::Overall;
    for coupling in [
        AnyCoupling::from(Hadamard::default().with_coupled_radii(overall)),
        Givens::default().with_coupled_radii(overall).into(),
        "simplex, hadamard, overall radii".parse().unwrap(),
    ] {
        assert!(matches!(coupling.draw(8, 16, 1), Err(Error::Unsupported { .. })), "{coupling}");
    }
    let coupling = Orthogonal.with_coupled_radii(overall);
    let law = coupling.with_radii(RootDim).draw(3, 7, 1).unwrap().law().clone();
    let pair = Pair::new([(0.3, 0.1); 3]);
    let blocks = Law::orthogonal(3, 7).with_radius(Radius::RootDim);
    assert_eq!(regularised_positive(&pair, &law), regularised_positive(&pair, &blocks));
    // A part of a simplex has other angles.
    let simplex = Simplex::default().with_coupled_radii(overall);
    assert_eq!(trigonometric(&pair, Draw::new(3, 5, simplex).draw(1).unwrap().law()), None);
    assert!(trigonometric(&pair, &Draw::new(3, 6, simplex).law()).is_some());
    assert_eq!(trigonometric(&pair, &Draw::new(3, 1 << 20, coupling).law()), None);
    assert_eq!(coupling.draw(3, 1, 1).unwrap().law(), &Law::orthogonal(3, 1));
}

#[test]
fn what_has_no_radii_to_couple_is_refused_or_unchanged() {
    let paired = RadiusCoupling::Paired;
    for text in ["independent, paired radii", "sobol, paired radii", "simplex plus, paired radii"] {
        let coupling: AnyCoupling = text.parse().unwrap();
        assert!(matches!(coupling.draw(4, 8, 1), Err(Error::Unsupported { .. })), "{text}");
    }
    for text in [
        "orthogonal, paired",
        "orthogonal, radii",
        "orthogonal, paired systematic radii",
        "paired orthogonal",
    ] {
        assert!(matches!(text.parse::<AnyCoupling>(), Err(Error::Text { .. })), "{text}");
    }
    let powered = PoweredExponential::new(1.5, 1.0).unwrap();
    let coupling = Orthogonal.with_coupled_radii(paired);
    assert!(matches!(powered.draw(&coupling, 4, 8, 1), Err(Error::Unsupported { .. })));
    assert!(PoweredExponential::new(1.0, 1.0).unwrap().draw(&coupling, 4, 8, 1).is_ok());
    assert!(Gaussian::default().draw(&coupling, 4, 8, 1).is_ok());
    assert!(Softmax::default().draw(&coupling, 4, 8, 1).is_ok());
    // Radii √d have nothing to couple, and a single row has no partner.
    let law = coupling.with_radii(RootDim).draw(4, 8, 1).unwrap().law().clone();
    assert_eq!(law, Law::orthogonal(4, 8).with_radius(Radius::RootDim));
    assert_eq!(coupling.draw(1, 3, 1).unwrap().law(), &Law::orthogonal(1, 3));
    // Fast rotations stay approximate.
    assert!(Hadamard::default().with_coupled_radii(paired).draw(8, 8, 1).unwrap().law().is_approximate());
    // Pairs ±ω of rows with coupled radii have no closed form.
    let pairs = Antithetic(coupling).draw(4, 8, 1).unwrap();
    let pair = Pair::new([(0.3, 0.1); 4]);
    assert_eq!(trigonometric(&pair, pairs.law()), None);
    assert!(Antithetic(coupling).recipe().is_none());
    let block = |omega: &Law| omega.runs()[0].block.dependence;
    assert!(matches!(block(coupling.draw(4, 8, 1).unwrap().law()), Dependence::CoupledRadii(_)));
    assert_eq!(
        Independent.block_law(4, 3, Radius::Chi),
        BlockLaw::new(3, Dependence::Independent, Radius::Chi)
    );
}

#[test]
fn recipes_and_drawn_maps_agree() {
    let coupling = Simplex::default().with_coupled_radii(RadiusCoupling::Stratified);
    let recipe: Recipe = Trigonometric.recipe(Draw::new(6, 20, coupling), Gaussian::default());
    let (a, b): (Map<f64>, Map<f64>) = (recipe.draw(3).unwrap(), recipe.draw(3).unwrap());
    assert_eq!(a.identity(), b.identity());
    let pair = (point::<f64>(6, 1, 0.6), point::<f64>(6, 5, 0.5));
    let of_recipe = recipe.log_variance(&pair.0, &pair.1).unwrap();
    assert_eq!(of_recipe, a.log_variance(&pair.0, &pair.1).unwrap());
    assert!(of_recipe.is_some());
    let other = Draw::new(6, 20, Simplex::default()).draw(3).unwrap();
    assert_ne!(Draw::new(6, 20, coupling).draw(3).unwrap(), other);
}
