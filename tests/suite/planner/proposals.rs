//! What pages propose for points: parameters, clusters and widths by hand.

use super::data::{half, normal};
use super::near;
use ndarray::{Array2, Axis, array};
use random_features::Recipe;
use random_features::data::shaping::Shaping;
use random_features::frequency::{Draw, Independent};
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::Planner;

/// The points of both sides count: 18 of them, with 153 distances.
#[test]
fn lengthscales_of_two_sets() {
    let (x, y) = (normal(8, 2, 1.0, 1), normal(10, 2, 3.0, 2) + 2.0);
    let all = ndarray::concatenate![Axis(0), x, y];
    let deviations = all.std_axis(Axis(0), 0.0);
    let median = |x: &Array2<f64>| {
        let pairs = (0..18).flat_map(|i| (0..i).map(move |j| (i, j)));
        let mut all: Vec<f64> =
            pairs.map(|(i, j)| (&x.row(i) - &x.row(j)).mapv(|v| v * v).sum().sqrt()).collect();
        all.sort_by(f64::total_cmp);
        all[76]
    };
    let planner = Planner::new(&x, &y).unwrap().with_couplings([Independent.into()]).with_max_features(16);
    let of = |planner: Planner| {
        let plan = planner.plan().unwrap();
        plan.choices.iter().find(|choice| choice.map == "trigonometric").unwrap().forecast.gram.value
    };
    let by_hand = of(planner.clone().with_kernel(Gaussian::new(median(&all)).unwrap()));
    near(of(planner.clone().with_gaussian_of_median().unwrap()), by_hand, "median");
    let each = (&deviations * median(&(&all / &deviations))).to_vec();
    let by_hand = of(planner.clone().with_kernel(Gaussian::new(each).unwrap()));
    near(of(planner.with_gaussian_of_medians().unwrap()), by_hand, "medians");
}

/// Parameters are fitted to the moments of these points: those of GERFs, of the dense exponential and of Poisson counts.
#[test]
fn parameters_are_those_of_the_points() {
    // Coordinates of different sizes, with means of both signs.
    let shift = array![0.3, -0.2, 0.1];
    let [x, y] = [1, 2].map(|seed| normal(40, 3, 0.5, seed) * &array![0.3, 0.7, 1.2] + &shift);
    let planner = Planner::new(&x, &y).unwrap().with_couplings([Independent.into()]).with_max_features(64);
    let plan = planner.plan().unwrap();
    let mean = |sign: f64| -> Vec<f64> {
        let of = |k: usize| {
            let of = |a: f64| y.column(k).mapv(|b| (a + sign * b).powi(2)).mean().unwrap();
            x.column(k).mapv(of).mean().unwrap()
        };
        (0..3).map(of).collect()
    };
    let (plus, minus) = (mean(1.0), mean(-1.0));
    let found = |name: &str| -> Vec<f64> {
        let of = |recipe: &Recipe| planner.forecast(recipe).unwrap().unwrap().gram.value;
        plan.choices.iter().filter(|one| one.map.starts_with(name)).map(|one| of(&one.recipe)).collect()
    };
    let hand = |recipe: Recipe| planner.forecast(&recipe).unwrap().unwrap().gram.value;
    let draw = |m| Draw::new(3, m, Independent);
    let contains = |found: &[f64], expected: f64, what: &str| {
        assert!(
            found.iter().any(|one| (one / expected - 1.0).abs() < 1e-9),
            "{what}: {found:?}, by hand {expected}"
        );
    };
    for factor in [1.0, 2.0, 4.0] {
        let gerf = random_features::Gerf::optimal(3, factor * plus.iter().sum::<f64>()).unwrap();
        contains(&found("OPRF"), hand(gerf.recipe(draw(64), Softmax::default())), "OPRF");
    }
    let a = random_features::theory::gerf::optimal_minus(3, minus.iter().sum());
    let gerf = random_features::Gerf::new(a, random_features::theory::gerf::GerfSign::Minus).unwrap();
    contains(&found("GERF, s = −1"), hand(gerf.recipe(draw(32), Softmax::default())), "GERF");
    for factor in [1.0, 2.0] {
        let phi: Vec<f64> = plus.iter().map(|phi| factor * phi).collect();
        let dense = random_features::DenseExponential::optimal(&phi).unwrap();
        contains(
            &found("dense exponential"),
            hand(dense.recipe(draw(64), Softmax::default())),
            "dense exponential",
        );
    }
    // A rate for each coordinate does better than one for all.
    let poisson = |name: &str| {
        plan.choices
            .iter()
            .find(|one| one.map == name)
            .map(|one| planner.forecast(&one.recipe).unwrap().unwrap().gram.value)
    };
    let (each, one) = (poisson("Poisson").unwrap(), poisson("Poisson, one λ").unwrap());
    assert!(each < 0.99 * one, "{each}, {one}");
}

/// Clusters of queries and of keys are those of their own sides.
#[test]
fn clusters_are_those_of_their_sides() {
    use random_features::compose::{Centres, Clustered};
    use random_features::data::Clustering;
    use random_features::workbench::Formula;
    // Two clusters of each side.
    let side = |seed: u64, centre: [f64; 3]| {
        let mut x = normal(60, 3, 0.1, seed);
        for (i, mut row) in x.rows_mut().into_iter().enumerate() {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            row.iter_mut().zip(centre).for_each(|(v, c)| *v += sign * c);
        }
        x
    };
    let (x, y) = (side(1, [1.5, 0.2, 0.4]) + &array![4.0, 0.0, 0.0], side(2, [-0.3, 1.0, 0.5]));
    for ell in [1.0, 2.0] {
        let softmax = Softmax::new(ell).unwrap();
        let planner = Planner::new(&x, &y)
            .unwrap()
            .with_kernel(softmax.clone())
            .with_couplings([Independent.into()])
            .with_max_features(64);
        let plan = planner.plan().unwrap();
        let choice = plan.choices.iter().find(|one| one.map == "clustered 2 × 2, complex").unwrap();
        let clusters = |x: &Array2<f64>| Clustering::of(x, 2, &mut random_features::rng(7)).unwrap();
        let (queries, keys) = (clusters(&x), clusters(&y));
        let centres = Centres::new(&queries, &keys).with_diagonal(Formula::Robust);
        let draw = Draw::new(3, choice.m, Independent);
        let by_hand: Recipe = Clustered::<Recipe>::by_centres(centres, draw, softmax).unwrap();
        let of = |recipe: &Recipe| planner.forecast(recipe).unwrap().unwrap().gram.value;
        near(of(&choice.recipe), of(&by_hand), "clusters");
    }
}

/// No map is forgotten, and the shape is that of queries and keys.
#[test]
fn every_map_is_proposed() {
    let x = normal(120, 5, 0.3, 3);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_couplings([Independent.into()]);
    let plan = planner.with_max_features(128).plan().unwrap();
    for name in [
        "positive",
        "hyperbolic",
        "trigonometric",
        "OPRF",
        "GERF",
        "Poisson",
        "Poisson, one λ",
        "geometric",
        "dense exponential",
        "real exponential",
        "complex exponential",
        "angular hybrid",
        "Gaussian hybrid",
        "clustered 2 × 2, complex",
        "clustered 4 × 4, real",
        "Gaussian 1 × 1",
        "shaped",
        "truncated",
    ] {
        assert!(plan.choices.iter().any(|one| one.map.starts_with(name)), "{name}: {plan:#}");
    }
    // The shape of queries and keys, not of keys and queries.
    let y = &normal(60, 3, 0.5, 4) * &ndarray::array![0.2, 1.0, 2.0];
    let x = normal(60, 3, 0.5, 5);
    let planner = Planner::new(&x, &y).unwrap().with_couplings([Independent.into()]).with_max_features(64);
    let plan = planner.plan().unwrap();
    let shaped = plan.choices.iter().find(|one| one.map == "shaped").unwrap();
    let shape = Shaping::new().of_points(&x, &y).unwrap();
    let by_hand: Recipe = shape.build(Draw::new(3, 64, Independent), Softmax::default()).unwrap();
    let of = |recipe: &Recipe| planner.forecast(recipe).unwrap().unwrap().gram.value;
    near(of(&shaped.recipe), of(&by_hand), "shaped");
}

/// Of one cluster of each side the width is √E‖Ax + A⁻¹y‖², with entries that are imaginary where the means agree in sign.
#[test]
fn widths_and_signs_of_clusters() {
    // One cluster of each side, whose means agree in sign in two coordinates.
    let x = normal(60, 3, 0.3, 4) + &ndarray::array![0.9, -0.5, 0.4];
    let y = normal(60, 3, 0.3, 5) + &ndarray::array![0.8, -0.7, -0.3];
    let planner = Planner::new(&x, &y).unwrap().with_couplings([Independent.into()]).with_max_features(128);
    let plan = planner.plan().unwrap();
    let square: f64 = (0..3)
        .map(|k| {
            let of =
                |x: &Array2<f64>| (x.column(k).mean().unwrap(), x.column(k).mapv(|v| v * v).mean().unwrap());
            let ((a, aa), (b, bb)) = (of(&x), of(&y));
            2.0 * (aa * bb).sqrt() - 2.0 * (a * b).abs()
        })
        .sum();
    let name = format!("Gaussian 1 × 1, c = {:.3}", square.sqrt());
    let names: Vec<&str> =
        plan.choices.iter().map(|one| one.map.as_str()).filter(|n| n.starts_with("Gaussian 1")).collect();
    assert!(names.contains(&name.as_str()), "{name} of {names:?}");
    let of = |name: &str| {
        let one = plan.choices.iter().find(|one| one.map == name).unwrap();
        planner.forecast(&one.recipe).unwrap().unwrap().gram.value
    };
    let (complex, real) = (of("complex exponential"), of("real exponential"));
    assert!(complex < 0.8 * real, "{complex}, {real}");
}
