//! Limits in plans.

use crate::common::points;
use ndarray::{Array2, Array4};
use rand::RngExt;
use random_features::data::GramSpectrum;
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::ImportanceMixture;
use random_features::planner::{Limits, Loss, Plan, Planner};
use random_features::rng;

const OWN: &str = "best density";

fn planned(planner: Planner) -> Plan {
    planner.with_couplings([Independent.into(), Orthogonal.into()]).plan().unwrap()
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
}

/// Limits of few points are those of all of them; the recipe that reaches the first is within 15 % of it, by some draws.
#[test]
fn a_plan_has_the_limits_of_its_points() {
    let (x, kernel) = (points::<f64>(60, 3, 0.8), Gaussian::new(0.7).unwrap());
    let mixture = ImportanceMixture::new(&x, 5).unwrap().recipe(kernel.clone());
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(kernel.clone()).with_max_features(16);
    let plan = planned(planner.with_recipe(OWN, mixture));
    let spectrum = GramSpectrum::new(&kernel, &x, &x).unwrap();
    for choice in &plan.choices {
        let (limits, features) = (choice.limits, choice.recipe.feature_dim());
        near(limits.independent, spectrum.independent_error(features));
        near(limits.unbiased, spectrum.unbiased_error(features));
        near(limits.any, spectrum.least_error(features));
        let error = choice.forecast.gram;
        assert!(error.value + 4.0 * error.standard_error > limits.any.unwrap(), "{}: {plan}", choice.map);
    }
    let own = plan.choices.iter().find(|choice| choice.map == OWN).unwrap();
    let ratio = own.forecast.gram.value / own.limits.independent.unwrap();
    assert!(own.recipe.feature_dim() == 16 && (0.85..1.15).contains(&ratio), "{ratio}: {plan}");
    let (short, long) = (plan.to_string(), format!("{plan:#}"));
    for text in [&short, &long] {
        let line = text.lines().find(|line| line.starts_with("The least errors of 16 features: ")).unwrap();
        assert!(line.contains(" if independent, ") && line.contains(" without bias, "), "{line}");
        assert!(line.ends_with(" with a bias."), "{line}");
    }
    let reasons = |text: &str| text.matches("its error over the least: ").count();
    assert_eq!((reasons(&short), reasons(&long.replace("\n   ", " "))), (0, plan.choices.len()), "{long}");
}

/// Two sets of points have the limits of their singular values.
#[test]
fn two_sets_have_limits() {
    let (x, y, kernel) = (points::<f32>(40, 3, 0.6), points::<f32>(50, 3, 0.4), Softmax::default());
    let plan = planned(Planner::new(&x, &y).unwrap().with_max_features(12));
    let spectrum = GramSpectrum::new(&kernel, &x, &y).unwrap();
    let limits = plan.best().unwrap().limits;
    let features = plan.best().unwrap().recipe.feature_dim();
    near(limits.independent, spectrum.independent_error(features));
    near(limits.any, spectrum.least_error(features));
}

/// Limits of a sample are near those of all points, and what they do not tell is left out.
#[test]
fn limits_of_a_sample_are_near() {
    let mut rng = rng(4);
    let x = Array2::from_shape_simple_fn((1200, 5), || rng.random_range(-1.0..1.0));
    let kernel = Gaussian::default();
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(kernel.clone());
    let plan = planned(planner.clone().with_max_features(32));
    let (limits, spectrum) = (plan.best().unwrap().limits, GramSpectrum::new(&kernel, &x, &x).unwrap());
    let all = [limits.independent, limits.unbiased, limits.any].map(Option::unwrap);
    let exact = [spectrum.independent_error(32), spectrum.unbiased_error(32), spectrum.least_error(32)];
    for (found, exact) in all.iter().zip(exact) {
        assert!((found / exact - 1.0).abs() < 0.1, "{all:?} {exact:?}");
    }
    // Two sets have no limits without all points, and neither have kernels of which few pairs may be most.
    for planner in [
        Planner::new(&x, &x).unwrap().with_kernel(kernel),
        Planner::of_one_set(&x).unwrap().with_kernel(Softmax::default()),
    ] {
        let limits = planned(planner.with_loss(Loss::Gram).with_max_features(32)).best().unwrap().limits;
        assert_eq!(limits, Limits::default());
    }
}

/// Points with heavy tails have exact limits where they are all known, in order.
#[test]
fn heavy_tails_have_exact_limits() {
    let x = points::<f64>(400, 8, 1.0);
    let kernel = Softmax::default();
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(kernel.clone()).with_loss(Loss::Gram);
    let plan = planned(planner.with_max_features(48));
    let spectrum = GramSpectrum::new(&kernel, &x, &x).unwrap();
    let (limits, features) = (plan.best().unwrap().limits, plan.best().unwrap().recipe.feature_dim());
    near(limits.independent, spectrum.independent_error(features));
    near(limits.unbiased, spectrum.unbiased_error(features));
    near(limits.any, spectrum.least_error(features));
}

/// Equal points have one singular value: what is left of it is rounding.
#[test]
fn equal_points_have_no_limits() {
    for n in [30, 300, 1000] {
        let x = Array2::from_shape_fn((n, 2), |(_, k)| 0.3 + k as f64);
        let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
        let plan = planned(planner.with_max_features(16));
        assert!(plan.choices.iter().all(|choice| choice.limits == Limits::default()), "{n}: {plan}");
    }
}

#[test]
fn what_is_not_known_is_not_said() {
    let x = points::<f64>(40, 3, 0.6);
    let of = |planner: Planner| {
        let plan = planned(planner.with_max_features(64));
        (plan.best().unwrap().limits, plan.to_string())
    };
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
    // As many features as points may be exact.
    let (limits, text) = of(planner.clone());
    assert!(limits.independent.is_some() && limits.unbiased.is_none() && limits.any.is_none());
    assert!(text.contains(" if independent.") && !text.contains("with a bias"), "{text}");
    for planner in [
        planner.clone().with_loss(Loss::RelativeMedian),
        planner.with_ridge_targets(&x.column(0).to_owned()).unwrap(),
        Planner::new(&x, &x).unwrap().with_loss(Loss::AttentionWeights),
    ] {
        let (limits, text) = of(planner);
        assert_eq!(limits, Limits::default());
        assert!(!text.contains("least errors"), "{text}");
    }
    let tokens = Array4::from_shape_fn((1, 2, 20, 3), |(_, h, i, k)| ((h + 3 * i + 7 * k) as f64).sin());
    let (limits, _) = of(Planner::of_heads(&tokens, &tokens, None).unwrap().with_loss(Loss::Gram));
    assert_eq!(limits, Limits::default());
}
