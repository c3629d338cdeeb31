//! Coupled radii: their strata, the law of each row, and the variance of estimates.
//!
//! Seeds are fixed. A z-score beyond 4.5 has probability 7e-6, and there are 48 of them here; the largest distance of a
//! distribution function is beyond its bound with probability 1e-6, in 16 cases: the rate of false alarms is below 4e-4.

use crate::common::{Name, Sample, gaussian, point};
use random_features::extend::{Coupling, Radius};
use random_features::frequency::{
    Antithetic, Givens, Hadamard, Independent, Orthogonal, RadiusCoupling, Simplex,
};
use random_features::kernel::{Gaussian, PoweredExponential, Softmax};
use random_features::recipe::{AnyCoupling, Draw};
use random_features::theory::{BlockLaw, Dependence, Law, Pair, hyperbolic, positive, trigonometric};
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
fn all(radii: RadiusCoupling) -> [AnyCoupling; 4] {
    [
        Orthogonal.with_coupled_radii(radii).into(),
        Simplex::default().with_coupled_radii(radii).into(),
        Hadamard::default().with_coupled_radii(radii).into(),
        Givens::default().with_coupled_radii(radii).into(),
    ]
}

/// A dimension that Hadamard products do not pad, so that rows have the norms that were drawn.
const D: usize = 16;

/// The probabilities of the radii of a draw of `m` rows in ℝ¹⁶, block by block.
fn probabilities(coupling: AnyCoupling, m: usize, seed: u64) -> Vec<Vec<f64>> {
    let omega = Draw::new(D, m, coupling).of_seed(seed).unwrap();
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
    let (d, m, draws) = (4, 7, 30_000);
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
    for radii in RadiusCoupling::ALL {
        for coupling in &all(radii)[..2] {
            for name in [Name::Trigonometric, Name::Positive, Name::Hyperbolic] {
                let make = |seed| -> Map<f64> {
                    name.make(Draw::new(d, m, *coupling).of_seed(seed).unwrap(), gaussian())
                };
                let exact = make(0).kernel().unwrap().value(&x, &y).unwrap();
                let sample: Vec<f64> = (0..draws).map(|seed| make(seed).estimate(&x, &y).unwrap()).collect();
                let errors: Vec<f64> = sample.iter().map(|v| (v - exact).powi(2)).collect();
                let (mean, mse) = (Sample::of(&sample), Sample::of(&errors));
                let variance = make(0).log_variance(&x, &y).unwrap().unwrap().exp();
                let case = format!("{name:?}, {coupling}");
                assert!(mean.z(exact).abs() < 4.5, "{case}: mean {} of {exact}", mean.mean);
                assert!(mse.z(variance).abs() < 4.5, "{case}: MSE {} of {variance}", mse.mean);
                assert!(mse.error < 0.04 * mse.mean, "{case}: too few draws to see 15 %");
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
    let other = Draw::new(6, 20, Simplex::default()).of_seed(3).unwrap();
    assert_ne!(Draw::new(6, 20, coupling).of_seed(3).unwrap(), other);
}
