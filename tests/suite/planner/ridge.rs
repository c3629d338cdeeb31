//! Plans for ridge regression, and lengthscales that targets choose.
#![cfg(any(feature = "faer", feature = "ndarray-linalg"))]

use super::data::normal;
use super::{couplings, label, near};
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use random_features::Error;
use random_features::apply::{Criterion, KernelRidge};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{Gaussian, Kernel, Matern, Smoothness};
use random_features::planner::{Loss, Planner};
use random_features::recipe::Draw;
use random_features::theory::Basis;
use random_features::workbench;
use random_features::{Map, Trigonometric};

/// Points in three dimensions and a smooth target of the first coordinate, with some noise.
fn data(n: usize) -> (Array2<f64>, Array2<f64>) {
    let (x, noise) = (normal(n, 3, 1.0, 1), normal(n, 1, 0.1, 2));
    let y = x.column(0).mapv(|v| (2.0 * v).sin()).insert_axis(Axis(1)) + noise;
    (x, y)
}

#[test]
fn plans_minimise_the_excess_risk() {
    let (x, y) = data(400);
    let planner =
        Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_couplings(couplings());
    let planner = planner.with_ridge_targets(&y).unwrap();
    let plan = planner.clone().with_max_features(48).plan().unwrap();
    assert_eq!(plan.loss, Loss::Ridge);
    assert!(plan.choices.len() > 1 && plan.choices.len() <= 16);
    // With a standard error of draws, and in steps of half a percent.
    let losses: Vec<f64> = plan
        .choices
        .iter()
        .map(|choice| choice.forecast.loss.value + choice.forecast.loss.standard_error)
        .collect();
    assert!(losses.windows(2).all(|pair| pair[0] <= 1.006 * pair[1]), "{losses:?}");
    for choice in &plan.choices {
        assert!(matches!(choice.forecast.loss.basis, Basis::Simulation(_)), "{}", label(choice));
        assert!(choice.forecast.loss.value > -0.05, "{}: {:?}", label(choice), choice.forecast.loss);
    }
    // More features leave less.
    let wide = planner.clone().with_couplings([Orthogonal.into()]).with_max_features(192).plan().unwrap();
    assert!(wide.best().unwrap().forecast.loss.value < plan.best().unwrap().forecast.loss.value);
    // The best in other draws is about as good: 4.5 standard errors.
    let best = plan.best().unwrap();
    let measured = planner.measure(&best.recipe, 16, 777).unwrap().loss;
    let stated = best.forecast.loss;
    let z = (measured.value - stated.value) / measured.standard_error.hypot(stated.standard_error);
    assert!(z.abs() < 4.5, "{stated:?}, {measured:?}");
    assert_eq!(planner.forecast(&best.recipe).unwrap(), None, "an excess risk has no closed form");
}

/// A kernel with few maps has all their couplings in its plan.
#[test]
fn few_maps_are_tried_on_all_couplings() {
    let (x, y) = data(60);
    let matern = Matern::new(Smoothness::FiveHalves, 1.0).unwrap();
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(matern).with_couplings(couplings());
    let plan = planner.with_ridge_targets(&y).unwrap().with_max_features(32).plan().unwrap();
    for coupling in ["independent", "orthogonal", "±orthogonal"] {
        let is_there = |map: &str| plan.choices.iter().any(|one| one.map == map && one.coupling == coupling);
        assert!(is_there("trigonometric"), "{coupling}: {plan}");
    }
}

/// With very many features, the regression is that of the exact kernel: nothing is left. Those of all points are too many to be held
/// at once where errors are measured at pairs.
#[test]
fn many_features_are_the_exact_kernel() {
    let (x, y) = data(150);
    let planner =
        Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_ridge_targets(&y).unwrap();
    let of = |m: usize| {
        let recipe = Trigonometric.recipe(Draw::new(3, m, Orthogonal), Gaussian::default());
        planner.measure(&recipe, 4, 1).unwrap().loss.value
    };
    let (few, many) = (of(8), of(7500));
    assert!(many.abs() < 0.02 && few > 10.0 * many.abs(), "{few}, {many}");
}

#[test]
fn other_kernels_and_several_targets() {
    let (x, y) = data(120);
    let both = ndarray::concatenate![Axis(1), y, x.mapv(f64::abs)];
    let matern = Matern::new(Smoothness::FiveHalves, 1.0).unwrap();
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(matern).with_ridge_targets(&both).unwrap();
    let plan = planner.with_couplings(couplings()).with_max_features(64).plan().unwrap();
    assert!(plan.best().unwrap().forecast.loss.value.is_finite());
}

#[test]
fn wrong_targets_are_refused() {
    let (x, y) = data(40);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
    assert!(matches!(planner.clone().with_ridge_targets(&normal(39, 1, 1.0, 1)), Err(Error::Shape { .. })));
    let mut bad = y.clone();
    bad[[3, 0]] = f64::NAN;
    assert!(matches!(planner.clone().with_ridge_targets(&bad), Err(Error::NotFinite { row: 3, .. })));
    let constant =
        planner.clone().with_ridge_targets(&Array2::<f64>::ones((40, 1))).unwrap().plan().unwrap_err();
    assert!(constant.to_string().contains("the variance of the targets"), "{constant}");
    let by_target =
        planner.clone().with_ridge_targets(&y).unwrap().with_max_error(0.1).unwrap().plan().unwrap_err();
    assert!(by_target.to_string().contains("a maximal error for a loss"), "{by_target}");
    let search = Criterion::default;
    assert!(planner.clone().with_gaussian_for_targets(&normal(39, 1, 1.0, 1), search(), 0).is_err());
    assert!(planner.with_gaussian_for_targets(&bad, search(), 0).is_err());
}

/// Of 8 points a few train and a few are left to test: a plan or a sentence, and no panic.
#[test]
fn few_points_have_a_plan_or_a_sentence() {
    for n in [8, 9, 12] {
        let (x, y) = data(n);
        let planner =
            Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_ridge_targets(&y).unwrap();
        match planner.with_couplings(couplings()).with_max_features(16).plan() {
            Ok(plan) => assert!(!plan.best().unwrap().forecast.loss.value.is_nan()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// The target varies in the first coordinate only: its lengthscale is found to be the shortest, and the error of the exact kernel
/// with it is smaller than with the median of distances.
#[test]
fn targets_choose_lengthscales() {
    let (x, y) = data(300);
    let search = || Criterion::GeneralisedCrossValidation;
    let planner = || Planner::of_one_set(&x).unwrap();
    let risk = |planner: Planner| {
        let plan = planner.with_couplings([Orthogonal.into()]).with_max_features(256).plan().unwrap();
        let map: Map<f64> = plan.best().unwrap().recipe.draw(1).unwrap();
        let (rows, rest): (Vec<usize>, Vec<usize>) = (0..300).partition(|i| i % 3 != 2);
        let of = |array: &Array2<f64>, rows: &[usize]| array.select(Axis(0), rows);
        let gram = map.gram(&of(&x, &rows), &of(&x, &rows)).unwrap();
        let model = KernelRidge::fit(&gram, &of(&y, &rows), 0.1).unwrap();
        let predicted = model.predict_from_gram(&map.gram(&of(&x, &rest), &of(&x, &rows)).unwrap()).unwrap();
        (predicted - of(&y, &rest)).mapv(|v| v * v).mean().unwrap()
    };
    let median = risk(planner().with_gaussian_of_median().unwrap());
    let one = risk(planner().with_gaussian_for_targets(&y, search(), 0).unwrap());
    let each = risk(planner().with_gaussian_for_targets(&y, search(), 2).unwrap());
    println!("mean squared errors: median {median:.4}, for targets {one:.4}, each {each:.4}");
    assert!(one < median && each < one, "{median}, {one}, {each}");
}

/// The exact kernel predicts nothing of noise: losses are relative to the mean, and the plan says so.
#[test]
fn targets_that_the_exact_kernel_cannot_predict_are_said() {
    let (x, y) = (normal(110, 2, 1.0, 1), normal(110, 1, 1.0, 2) + 100.0);
    let planner = Planner::of_one_set(&x)
        .unwrap()
        .with_kernel(Gaussian::new(1e-3).unwrap())
        .with_ridge_targets(&y)
        .unwrap();
    let plan = planner.with_couplings(couplings()).with_max_features(16).plan().unwrap();
    let advice = workbench::advice(&plan).unwrap();
    assert!(advice.exact_fails && !advice.works, "{plan}");
    assert!(plan.to_string().contains("no better than their mean"), "{plan}");
    assert!(plan.choices.iter().all(|choice| choice.forecast.loss.value > -0.3), "{plan}");
    let y = x.column(0).mapv(|v| v.sin()).insert_axis(Axis(1));
    let planner =
        Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_ridge_targets(&y).unwrap();
    let plan = planner.with_couplings(couplings()).with_max_features(64).plan().unwrap();
    assert!(!workbench::advice(&plan).is_some_and(|advice| advice.exact_fails));
}

/// Two of three of the 110 points train. In a few such sets a criterion of these alone chooses a λ with which the exact kernel fails at the
/// others, so that features with the same λ would be far better than it.
#[test]
fn excess_risks_are_relative_to_the_best_exact_regression() {
    let losses = (0..60).map(|seed| {
        let (x, noise) = (normal(110, 1, 1.0, 2 * seed), normal(110, 1, 0.1, 2 * seed + 1));
        let y = x.mapv(|v| (2.0 * v).sin()) + noise + 100.0;
        let planner =
            Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_ridge_targets(&y).unwrap();
        let recipe = Trigonometric.recipe(Draw::new(1, 64, Orthogonal), Gaussian::default());
        planner.measure(&recipe, 2, 0).unwrap().loss.value
    });
    let least = losses.fold(f64::INFINITY, f64::min);
    assert!(least >= -0.05, "{least}");
}

/// Twenty of 30 points in random order train, and ten test: the excess of a draw over the exact kernel with the λ that is best at all of
/// them, relative to the variance of the targets of the latter.
#[test]
fn excess_risks_by_hand() {
    let (x, y) = data(30);
    let mut others = 0;
    for seed in 0..12 {
        let mut train: Vec<usize> = (0..30).collect();
        train.shuffle(&mut random_features::rng(seed));
        let test = train.split_off(20);
        let of = |array: &Array2<f64>, rows: &[usize]| array.select(Axis(0), rows);
        let (own, aims) = (of(&x, &train), of(&y, &train));
        let (rest, truth) = (of(&x, &test), of(&y, &test));
        let risk = |model: KernelRidge<f64>, gram: Array2<f64>| {
            (model.predict_from_gram(&gram).unwrap() - &truth).mapv(|v| v * v).mean().unwrap()
        };
        let kernel = Gaussian::default();
        let spectrum = KernelRidge::spectrum(&kernel.gram(&own, &own).unwrap(), &aims).unwrap();
        let lambdas = spectrum.lambdas();
        let left_out = spectrum.errors(&Criterion::LeaveOneOut, &lambdas).unwrap();
        let held_out = |lambda: f64| risk(spectrum.model(lambda).unwrap(), kernel.gram(&rest, &own).unwrap());
        let best = |[rows, others]: [f64; 2]| {
            let of =
                |(lambda, left_out): (&f64, &f64)| (*lambda, rows * left_out + others * held_out(*lambda));
            lambdas.iter().zip(&left_out).map(of).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
        };
        let lambda = best([20.0, 10.0]);
        others += usize::from(lambda != best([1.0, 1.0]));
        let exact = held_out(lambda);
        let recipe = Trigonometric.recipe(Draw::new(3, 16, Independent), Gaussian::default());
        let excess = |seed| {
            let map: Map<f64> = recipe.draw(seed).unwrap();
            let model = KernelRidge::fit(&map.gram(&own, &own).unwrap(), &aims, lambda).unwrap();
            (risk(model, map.gram(&rest, &own).unwrap()) - exact) / truth.var_axis(Axis(0), 0.0)[0]
        };
        let planner = Planner::of_one_set(&x)
            .unwrap()
            .with_kernel(Gaussian::default())
            .with_seed(seed)
            .with_ridge_targets(&y)
            .unwrap();
        let measured = planner.measure(&recipe, 2, 7).unwrap().loss.value;
        near(measured, 0.5 * (excess(7) + excess(8)), "excess risk");
    }
    assert!(others > 0, "rows of both kinds count alike");
}

/// A plan whose risk is most of the variance does not call it small, whatever small kernel values do.
#[test]
fn large_risks_are_not_called_small() {
    let x = normal(200, 1, 8.0, 1);
    let planner = Planner::of_one_set(&x)
        .unwrap()
        .with_kernel(Gaussian::default())
        .with_couplings([Independent.into()]);
    let planner = planner.with_ridge_targets(&x.mapv(f64::sin)).unwrap();
    for (features, works) in [(2, false), (128, true)] {
        let plan = planner.clone().with_max_features(features).plan().unwrap();
        let loss = plan.best().unwrap().forecast.loss.value;
        assert_eq!(loss < 0.5, works, "{loss}");
        let advice = workbench::advice(&plan).unwrap();
        assert_eq!(advice.works, works, "{advice}");
        assert_eq!(advice.to_string().contains("although the loss is small"), works, "{advice}");
    }
}
