//! Maps whose draw is not a matrix of frequencies are drawn, combined, planned and, with `serde`, stored as others are.

pub mod binning;
mod faulty;
#[cfg(feature = "serde")]
mod stored;

use crate::common::points;
use binning::RandomBinning;
use faulty::{Fault, Faulty};
use ndarray::{Array2, ArrayView2, arr1, arr2};
use random_features::compose::{Coefficient, Hybrid};

use random_features::frequency::{Independent, Product};
use random_features::kernel::{Gaussian, Kernel, Laplace, Softmax};
use random_features::map::{AnyKernel, Redraw, Sketched};
use random_features::planner::{Measure, Planner};
use random_features::recipe::{Draw, Omega, SketchDraw};
use random_features::testing::{check_unbiased, conform};
use random_features::theory::Basis;
use random_features::workbench::Cauchy;
use random_features::{Error, Map, Positive, Real, Recipe, Side, Trigonometric};

/// m grids in ℝ³ of so many buckets.
fn binning(grids: usize, buckets: usize) -> RandomBinning {
    RandomBinning { d: 3, grids, buckets }
}

fn laplace() -> Laplace {
    Laplace::new(0.7).unwrap()
}

fn of_stream(stream: u64) -> Recipe {
    Sketched.recipe(SketchDraw::new(binning(8, 4)).with_stream(stream), laplace())
}

/// Points at distances 0.1, 0.6 and 2.1 from the first.
fn rows<T: Real>() -> Array2<T> {
    let rows = [[0.1, -0.2, 0.3], [0.2, -0.2, 0.3], [0.1, 0.1, 0.0], [-0.4, 0.6, -0.5]];
    arr2(&rows).mapv(T::narrow)
}

/// Means and variances over 4000 draws, at 4 standard errors: twelve comparisons raise a false alarm with probability 8e-4. The mean
/// shows deviations of 1.5 % of the kernel's range, such as collisions without signs (25 %), and the variance those of 10 %.
fn unbiased<T: Real>() {
    let (x, recipe) = (rows::<T>(), of_stream(0));
    for y in x.rows().into_iter().skip(1) {
        let (x, y) = (x.row(0).to_owned(), y.to_owned());
        let wide = |x: &ndarray::Array1<T>| x.mapv(|v| v.widen());
        let exact = laplace().log_value(&wide(&x), &wide(&y)).unwrap().value();
        let found = check_unbiased(|seed| recipe.draw::<T>(seed), &x, &y, exact, 4000).unwrap();
        assert!(found.z.abs() < 4.0 && found.variance_z.unwrap().abs() < 4.0, "{found}");
    }
}

#[test]
fn estimates_are_unbiased_with_the_stated_variance() {
    unbiased::<f32>();
    unbiased::<f64>();
    let same = rows::<f64>().row(0).to_owned();
    assert_eq!(
        of_stream(0).draw::<f64>(1).unwrap().log_variance(&same, &same).unwrap(),
        Some(f64::NEG_INFINITY)
    );
}

#[test]
fn maps_keep_what_every_map_keeps() {
    fn conforms<T: Real>() {
        for (sketch, n) in [(binning(1, 1), 30), (binning(40, 16), 300)] {
            let map: Map<T> = Sketched.recipe(sketch, laplace()).draw(3).unwrap();
            assert_eq!(map.feature_dim(), sketch.grids * sketch.buckets);
            assert_eq!(map.recipe().unwrap().feature_dim(), map.feature_dim());
            conform(&map, &points::<T>(n, 3, 1.5)).unwrap();
        }
    }
    conforms::<f32>();
    conforms::<f64>();
}

/// What is known before a draw is known after it; a draw is repeated by its seed, and by nothing else.
#[test]
fn laws_come_before_draws_and_seeds_repeat_them() {
    let (recipe, x) = (of_stream(0), rows::<f64>());
    let (a, b) = (x.row(0).to_owned(), x.row(2).to_owned());
    let map: Map<f64> = recipe.draw(7).unwrap();
    assert_eq!(recipe.log_variance(&a, &b).unwrap(), map.log_variance(&a, &b).unwrap());
    assert_eq!(recipe.kernel().unwrap().identity(), map.kernel().unwrap().identity());
    assert_eq!(map.kernel().unwrap().value(&a, &b).unwrap(), laplace().value(&a, &b).unwrap());
    assert_eq!((recipe.dim(), recipe.feature_dim(), recipe.draws()[0].m()), (3, 32, 8));
    assert!(!recipe.is_drawn() && recipe.drawn(7).unwrap().is_drawn());
    assert_eq!(recipe.drawn(7).unwrap().drawn(8).unwrap(), recipe.drawn(7).unwrap());
    let features = |recipe: &Recipe, seed| recipe.draw::<f64>(seed).unwrap().features(Side::X, &x).unwrap();
    assert_eq!(features(&recipe, 7), features(&of_stream(0), 7));
    assert_ne!(features(&recipe, 7).mantissas(), features(&recipe, 8).mantissas());
    assert_ne!(features(&recipe, 7).mantissas(), features(&of_stream(1), 7).mantissas());
    let redraw = Redraw::new(recipe.clone(), 42, 1000).unwrap();
    let [first, again, later] = [0, 999, 2500].map(|step| redraw.build::<f32>(step).unwrap());
    assert_eq!(first.identity(), again.identity());
    assert_ne!(first.identity(), later.identity());
    assert_eq!(redraw.recipe(0).unwrap(), recipe.drawn(42).unwrap());
}

/// Everything that makes a draw another one makes another identity; `f32` and `f64` have the same cells at points that both hold.
#[test]
fn identities_are_of_what_is_drawn() {
    let recipe = |sketch: RandomBinning, stream, seed| {
        Sketched.recipe(SketchDraw::new(sketch).with_stream(stream).with_seed(seed), laplace())
    };
    let all = [
        recipe(binning(8, 4), 0, 1),
        recipe(binning(8, 4), 0, 2),
        recipe(binning(8, 4), 1, 1),
        recipe(binning(4, 8), 0, 1),
        recipe(RandomBinning { d: 2, ..binning(8, 4) }, 0, 1),
        of_stream(0),
    ];
    for (i, a) in all.iter().enumerate() {
        assert!(all.iter().skip(i + 1).all(|b| a != b && a.identity() != b.identity()));
        assert_eq!(a, &a.clone());
    }
    let x = arr2(&[[0.5, -0.25, 1.0]]);
    let narrow = all[0].build::<f32>().unwrap().features(Side::X, &x.mapv(|v: f64| v as f32)).unwrap();
    let wide = all[0].build::<f64>().unwrap().features(Side::X, &x).unwrap();
    assert_eq!(narrow.mantissas().mapv(f64::from), wide.mantissas());
    // Stored identities are compared with later ones: a change here is a change of the format and of the streams.
    assert_eq!(all[0].identity().to_string(), "7bf5d8b1026ab72d");
    let buckets = |features: ArrayView2<'_, f64>| -> Vec<(usize, f64)> {
        features.iter().copied().enumerate().filter(|(_, v)| *v != 0.0).collect()
    };
    assert_eq!(buckets(wide.mantissas())[..3], [(2, 1.0), (5, -1.0), (8, -1.0)]);
}

/// Half of each of two maps: with draws of their own a quarter of the sum of their variances, and of the same draw the same map.
#[test]
fn equal_draws_are_dependent_and_others_independent() {
    let half = |first: Recipe, second: Recipe| -> Recipe {
        Hybrid::sum(vec![(Coefficient::constant(0.5).unwrap(), first)], second).unwrap()
    };
    let x = rows::<f64>();
    let (a, b) = (x.row(0).to_owned(), x.row(2).to_owned());
    let exact = laplace().value(&a, &b).unwrap();
    let ln = |recipe: &Recipe| recipe.log_variance(&a, &b).unwrap();
    let frequencies = Draw::new(3, 8, Product(Cauchy));
    let waves = Trigonometric.recipe(frequencies, laplace());
    let own = |recipe: &Recipe| ln(recipe).unwrap().exp();
    let with_more_buckets = Sketched.recipe(binning(8, 16), laplace());
    for other in [of_stream(1), with_more_buckets, waves] {
        let recipe = half(of_stream(0), other.clone());
        assert_eq!(recipe.draws().len(), 2);
        let expected = 0.25 * (own(&of_stream(0)) + own(&other));
        assert!((own(&recipe) / expected - 1.0).abs() < 1e-12);
        // Means and variances over 2000 draws: six comparisons raise a false alarm with probability 4e-4. Dependent draws would double
        // the variance, by more than 10 standard errors.
        let found = check_unbiased(|seed| recipe.draw::<f64>(seed), &a, &b, exact, 2000).unwrap();
        assert!(found.z.abs() < 4.0 && found.variance_z.unwrap().abs() < 4.0, "{found}");
    }
    let shared = half(of_stream(0), of_stream(0));
    assert_eq!((shared.draws().len(), ln(&shared)), (1, None));
    let [first, second] = [0, 1].map(|k| shared.drawn(3).unwrap().children()[k].identity());
    assert_eq!(first, second);
    // Drawn from one seed in two steps, they are still one draw; from two seeds they are not.
    let drawn = |a, b| ln(&half(of_stream(0).drawn(a).unwrap(), of_stream(0).drawn(b).unwrap()));
    assert!(drawn(1, 1).is_none() && drawn(1, 2).is_some());
}

/// Errors by the closed form and by 400 draws agree within 4 standard errors of both.
#[test]
fn a_planner_forecasts_and_simulates_them() {
    let x = points::<f64>(200, 3, 0.5);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(laplace());
    let recipe = Sketched.recipe(binning(16, 8), laplace());
    let stated = planner.forecast(&recipe).unwrap().unwrap();
    let seen = planner.measure(&recipe, 400, 5).unwrap();
    assert_eq!(seen.gram.basis, Basis::Simulation(400));
    let error = stated.gram.standard_error.hypot(seen.gram.standard_error);
    assert!((stated.gram.value - seen.gram.value).abs() < 4.0 * error, "{stated:?} {seen:?}");
    assert!(error < 0.1 * stated.gram.value);
    assert_eq!(planner.cost(&recipe, Measure::Features), 128.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let sketch = || SketchDraw::new(binning(8, 4)).with_seed(1);
    let refused = |result: Result<Map<f64>, Error>, words: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(Positive.softmax(sketch()), "the positive map needs real frequencies, but got a sketch");
    let omega = Independent.draw(3, 8, 1).unwrap();
    refused(Sketched.build(omega, laplace()), "the sketched map needs a sketch, but got real frequencies");
    let gaussian = "the random binning map with no frequencies does not estimate the kernel Gaussian";
    refused(Sketched.build(sketch(), Gaussian::default()), gaussian);
    refused(Sketched.build(sketch(), Softmax::default()), "does not estimate the kernel softmax");
    assert!(matches!(Sketched.build::<f64>(binning(8, 4), laplace()), Err(Error::NotDrawn)));
    for (d, grids, buckets) in [(0, 8, 4), (3, 0, 4), (3, 8, 0), (3, 1 << 40, 1 << 40)] {
        let recipe = Sketched.recipe(RandomBinning { d, grids, buckets }, laplace());
        assert!(matches!(recipe.draw::<f32>(1), Err(Error::Parameter { .. })));
    }
    let per_dimension = Laplace::new(vec![1.0, 2.0]).unwrap();
    assert!(matches!(Sketched.build::<f64>(sketch(), per_dimension), Err(Error::Shape { .. })));
    for (fault, words) in [
        (Fault::Facts, "its facts state another dimension or other features than its sketch"),
        (Fault::Unwritten, "it leaves values or scales of a present block unwritten"),
    ] {
        refused(Sketched.recipe(Faulty(fault), AnyKernel::implied(1.0)).draw(1), words);
    }
    // Numbers are asked for where a sketch is stored.
    assert!(Sketched.recipe(Faulty(Fault::Numbers), AnyKernel::implied(1.0)).draw::<f64>(1).is_ok());
    let m = Array2::eye(3);
    let Recipe::Plain(mut plain) = of_stream(0) else { panic!("a sketch is a plain map") };
    plain.matrix = Some(m);
    assert!(matches!(Recipe::Plain(plain).draw::<f64>(1), Err(Error::Unsupported { .. })));
}

#[test]
fn maps_print_what_they_are() {
    let text = "random binning, 32 features in dimension 3, Laplace, lengthscale 0.7";
    assert_eq!(of_stream(0).to_string(), format!("{text}, to be drawn"));
    assert_eq!(of_stream(0).drawn(1).unwrap().to_string(), text);
    let Omega::Sketch(draw) = of_stream(0).draws()[0].clone() else { panic!("a sketch") };
    assert_eq!((draw.name(), draw.seed(), draw.dim(), draw.feature_dim()), ("random binning", None, 3, 32));
    assert_eq!(draw.sketch::<RandomBinning>().unwrap().buckets, 4);
    assert!(draw.sketch::<Faulty>().is_none());
}

/// A point that is not finite has NaN features, and others keep theirs.
#[test]
fn rows_that_are_not_finite_are_alone() {
    let map: Map<f64> = of_stream(0).draw(1).unwrap();
    let x = arr2(&[[0.1, 0.2, 0.3], [f64::NAN, 0.0, 0.0], [f64::INFINITY, 0.0, 0.0], [1e300, -1e300, 0.0]]);
    let features = map.features(Side::X, &x).unwrap().to_array();
    let nan: Vec<bool> = features.rows().into_iter().map(|row| row.iter().all(|v| v.is_nan())).collect();
    assert_eq!(nan, [false, true, true, false]);
    let alone = map.features_of(Side::X, &arr1(&[0.1, 0.2, 0.3])).unwrap().to_array();
    assert_eq!(alone.row(0), features.row(0));
}
