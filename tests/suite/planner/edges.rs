//! The edges: few points, equal ones, huge and tiny ones, what is refused and in which words.

use super::data::{half, normal};
use super::{couplings, label, quick};
use ndarray::{Array2, Axis, array, s};
use random_features::data::Reservoir;
use random_features::extend::{ShiftInvariant, Spectrum};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{
    Gaussian, Laplace, Lengthscale, Matern, PoweredExponential, RationalQuadratic, RegularisedSoftmax,
    Smoothness, Softmax,
};
use random_features::map::AnyKernel;
use random_features::planner::{Loss, Measure, Plan, Planner};
use random_features::recipe::Draw;
use random_features::workbench;
use random_features::{Error, Map, Positive, SignedLog};

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, words: &str) {
    let error = result.expect_err(words).to_string();
    assert!(error.contains(words), "{error}");
}

/// Ranked choices have numbers, and none that is finite stands behind one that is not.
fn sound(plan: &Plan, case: &str) {
    for (i, choice) in plan.choices.iter().enumerate() {
        let loss = choice.forecast.loss;
        assert!(i > 0 || !loss.value.is_nan(), "{case}: {} first with {loss:?}", label(choice));
        assert!(!loss.standard_error.is_nan(), "{case}: {}: {loss:?}", label(choice));
        assert!(
            loss.value.is_finite() || choice.uncertain,
            "{case}: {} is certain of {loss:?}",
            label(choice)
        );
    }
    let losses: Vec<f64> = plan.choices.iter().map(|choice| choice.forecast.loss.value).collect();
    let bad = losses.iter().position(|loss| !loss.is_finite()).unwrap_or(losses.len());
    assert!(losses[bad..].iter().all(|loss| !loss.is_finite()), "{case}: {losses:?}");
    let _ = format!("{plan:#}");
}

/// Plans of these points with both kernels, by mean and by quantile, in turn of one set and of two. Closed forms of the simplex take
/// long.
fn sound_plans(x: &Array2<f64>, case: &str) {
    let planners = [Planner::of_one_set(x).unwrap(), Planner::new(x, x).unwrap()];
    let targets = [AnyKernel::from(Softmax::default()), Gaussian::default().into()];
    for (i, target) in targets.into_iter().enumerate() {
        for (j, loss) in [Loss::Gram, Loss::RelativeMean, Loss::RelativeNinety].into_iter().enumerate() {
            let sides = (i + j) % 2;
            let planner = planners[sides].clone().with_kernel(target.clone()).with_loss(loss);
            let case = format!("{case}, {target}, {} sides, {loss:?}", sides + 1);
            let plan = planner.with_couplings(couplings()).with_max_features(16).plan();
            sound(&plan.unwrap_or_else(|error| panic!("{case}: {error}")), &case);
        }
    }
}

#[test]
fn points_that_are_all_equal() {
    sound_plans(&Array2::from_elem((20, 3), 0.7), "equal points");
    sound_plans(&Array2::zeros((20, 3)), "zeros");
}

#[test]
fn points_that_occur_twice() {
    let x = normal(10, 3, 0.5, 1);
    sound_plans(&ndarray::concatenate![ndarray::Axis(0), x, x], "duplicates");
}

#[test]
fn points_on_a_line() {
    sound_plans(&normal(30, 1, 0.5, 1), "d = 1");
    // In all couplings too.
    let planner = Planner::of_one_set(&normal(30, 1, 0.5, 1)).unwrap().with_kernel(Softmax::default());
    let plan = planner.with_max_features(8).plan().unwrap();
    sound(&plan, "d = 1, all couplings");
}

#[test]
fn eight_points_are_enough_and_seven_are_not() {
    let x = normal(8, 2, 0.5, 1);
    sound_plans(&x, "eight points");
    for n in [0, 1, 7] {
        let few = x.slice(s![..n, ..]);
        refused(Planner::of_one_set(&few), "the number of points is");
        refused(Planner::new(&few, &x), "the number of queries is");
        refused(Planner::new(&x, &few), "the number of keys is");
        refused(Planner::of_one_set(&few), "at least 8");
    }
}

#[test]
fn huge_and_tiny_points() {
    for size in [1e-30, 1e-160, 1e-300, 30.0, 1e3, 1e10, 1e30, 1e100, 1e150] {
        sound_plans(&normal(10, 3, size, 2), &format!("size {size:e}"));
    }
    let one =
        Array2::from_shape_fn((20, 3), |(i, k)| if (i, k) == (4, 1) { 1e20 } else { 0.1 * (i + k) as f64 });
    sound_plans(&one, "one outlier");
}

#[test]
fn arrays_that_are_no_points() {
    let x = normal(20, 3, 0.5, 1);
    refused(Planner::of_one_set(&Array2::<f64>::zeros((20, 0))), "the dimension d is 0");
    refused(Planner::of_one_set(&Array2::<f64>::zeros((0, 0))), "the dimension d is 0");
    refused(Planner::new(&x, &normal(20, 4, 0.5, 1)), "the dimension of the keys is 4, but must be 3");
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut bad = x.clone();
        bad[[5, 1]] = wrong;
        refused(
            Planner::of_one_set(&bad),
            "row 5, column 1 of the points, both counted from 0, holds a number that is not finite",
        );
        refused(Planner::new(&bad, &x), "row 5, column 1 of the queries");
        refused(Planner::new(&x, &bad), "row 5, column 1 of the keys");
    }
    let mut large = x.clone();
    large[[6, 0]] = 1e200;
    assert!(matches!(Planner::of_one_set(&large), Err(Error::NotFinite { row: 6, .. })));
}

#[test]
fn budgets_that_are_none() {
    let planner = Planner::of_one_set(&normal(20, 3, 0.5, 1)).unwrap();
    refused(planner.clone().with_max_features(0).plan(), "the budget is 0");
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for measure in [Measure::Features, Measure::Multiplications, Measure::Bytes, Measure::Nanoseconds] {
            refused(planner.clone().with_budget(measure, wrong).plan(), "the budget is");
        }
        refused(planner.clone().with_max_error(wrong), "the error to reach is");
        refused(planner.clone().with_max_error_with_probability(wrong, 0.5), "the error to reach is");
    }
    for wrong in [0.0, 1.0, -0.5, f64::NAN] {
        refused(planner.clone().with_max_error_with_probability(0.1, wrong), "the probability is");
    }
    // One feature is a plan, and less than one is none.
    let one = quick(&planner, 1);
    assert!(one.choices.iter().all(|choice| choice.recipe.feature_dim() == 1) && one.best().is_ok());
    sound(&one, "one feature");
    let none = planner.clone().with_budget(Measure::Features, 0.5).plan().unwrap();
    refused(none.best().map(drop), "none fits the budget");
    assert!(none.choices.is_empty() && none.pareto().is_empty() && !none.works());
    let _ = format!("{none}");
    refused(
        planner.measure(&Positive.recipe(Draw::new(3, 4, Independent), Softmax::default()), 1, 0),
        "the number of draws is 1",
    );
}

#[test]
fn kernels_for_other_points() {
    let planner = Planner::of_one_set(&normal(20, 3, 0.5, 1)).unwrap();
    let two = planner.clone().with_kernel(Gaussian::new(vec![1.0, 2.0]).unwrap());
    assert!(matches!(two.plan(), Err(Error::Shape { .. })));
    let recipe = Positive.recipe(Draw::new(4, 8, Independent), Softmax::default());
    refused(planner.forecast(&recipe), "the dimension of the recipe is 4, but must be 3");
    refused(planner.measure(&recipe, 4, 0), "the dimension of the recipe is 4, but must be 3");
    refused(
        planner.clone().with_kernel(AnyKernel::implied(1.0)).plan(),
        "a plan for a kernel without a name",
    );
    refused(planner.clone().with_loss(Loss::AttentionOutput).plan(), "output without values");
    refused(planner.clone().with_loss(Loss::Ridge).plan(), "a regression without targets");
    let each = planner
        .clone()
        .with_kernel(Softmax::new(vec![1.0, 2.0, 3.0]).unwrap())
        .with_loss(Loss::AttentionWeights);
    refused(each.plan(), "a lengthscale for each dimension");
    let ninety =
        planner.clone().with_loss(Loss::RelativeNinety).with_max_error_with_probability(0.1, 0.5).unwrap();
    refused(ninety.plan(), "a probability for another error");
    refused(
        planner.clone().with_loss(Loss::AttentionWeights).with_max_error(0.1).unwrap().plan(),
        "a maximal error for a loss that is not a closed form",
    );
}

/// exp(−‖x−y‖²/2), as a user writes it.
#[derive(Debug)]
struct Own(Lengthscale);

impl ShiftInvariant for Own {
    fn name(&self) -> String {
        "own".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(&random_features::workbench::Chi)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog { ln_abs: -0.5 * square, sign: 1.0 }
    }
}

#[test]
fn other_kernels_have_plans() {
    let x = normal(24, 3, 0.6, 1);
    let targets: [AnyKernel; 8] = [
        Matern::new(Smoothness::ThreeHalves, 1.0).unwrap().into(),
        Matern::new(Smoothness::of(0.8).unwrap(), 1.0).unwrap().into(),
        PoweredExponential::new(1.5, 1.0).unwrap().into(),
        RationalQuadratic::new(1.5, 1.0).unwrap().into(),
        Laplace::new(1.0).unwrap().into(),
        RegularisedSoftmax::default().into(),
        Gaussian::new(vec![0.5, 1.0, 2.0]).unwrap().into(),
        AnyKernel::own(Own(1.0.into())),
    ];
    for target in targets {
        let planner = Planner::of_one_set(&x).unwrap().with_kernel(target.clone()).with_max_features(64);
        let plan = planner.plan().unwrap_or_else(|error| panic!("{target}: {error}"));
        sound(&plan, &target.to_string());
        let best = plan.best().unwrap();
        assert!(best.forecast.gram.value < 0.5, "{target}: {plan}");
        // What the plan says of its best is what draws show.
        let measured = planner.measure(&best.recipe, 200, 99).unwrap();
        let off = measured.gram.value / best.forecast.gram.value - 1.0;
        assert!(off.abs() < 0.15, "{target}: {:?} and {:?}", best.forecast.gram, measured.gram);
        if let AnyKernel::RegularisedSoftmax(_) = target {
            continue;
        }
        let map: Map<f64> = best.recipe.draw(3).unwrap();
        assert!(map.feature_dim() <= 64);
    }
}

/// Kernels that no map serves under the constraints.
#[test]
fn a_kernel_without_a_map_is_refused_in_words() {
    let planner = Planner::of_one_set(&normal(20, 3, 0.5, 1)).unwrap();
    let matern = planner.with_kernel(Matern::new(Smoothness::FiveHalves, 1.0).unwrap());
    refused(
        matern.clone().only_non_negative().plan(),
        "none of this crate serves this kernel under these constraints",
    );
    refused(
        matern.with_couplings([]).plan(),
        "none of this crate serves this kernel under these constraints",
    );
}

#[test]
fn reservoirs_that_keep_few_rows() {
    let x = normal(1000, 3, 0.5, 1);
    for capacity in [1, 2, 7, 8, 50] {
        let mut reservoir = Reservoir::new(3).unwrap().with_capacity(capacity).unwrap();
        reservoir.update(&x).unwrap();
        for keys in [None, Some(&reservoir)] {
            match Planner::of_reservoirs(&reservoir, keys) {
                Ok(planner) => {
                    let plan = quick(&planner.with_kernel(Gaussian::default()), 32);
                    sound(&plan, &format!("{capacity} rows kept"));
                    let gram = plan.best().unwrap().forecast.gram;
                    assert!(gram.value > 0.01, "{capacity} rows kept: {gram:?}");
                }
                Err(error) => assert!(capacity < 8, "{capacity}: {error}"),
            }
        }
    }
}

/// One set has the Gaussian kernel with the median lengthscale in plans, forecasts and measurements, and pairs of sets have softmax.
#[test]
fn kernels_that_nobody_stated() {
    let x = normal(40, 3, 0.5, 1);
    let one = Planner::of_one_set(&x).unwrap();
    let stated = one.clone().with_gaussian_of_median().unwrap();
    assert_eq!(quick(&one, 24), quick(&stated, 24));
    let recipe = Positive.recipe(Draw::new(3, 8, Orthogonal), Gaussian::default());
    assert_eq!(one.forecast(&recipe).unwrap(), stated.forecast(&recipe).unwrap());
    assert_eq!(one.measure(&recipe, 4, 1).unwrap(), stated.measure(&recipe, 4, 1).unwrap());
    let batches = Planner::of_reservoirs(&Reservoir::of(&x).unwrap(), None).unwrap();
    assert_eq!(quick(&batches, 24), quick(&stated, 24));
    let softmax = one.clone().with_kernel(Softmax::default());
    assert_ne!(quick(&softmax, 24), quick(&stated, 24));
    assert!(quick(&softmax, 24).title.starts_with("softmax"));
    let two = Planner::new(&x, &x).unwrap();
    assert_eq!(quick(&two, 24), quick(&two.with_kernel(Softmax::default()), 24));
    // Equal points have no median distance, which another kernel does not need.
    let equal = Planner::of_one_set(&Array2::<f64>::ones((10, 2))).unwrap();
    refused(equal.plan(), "");
    assert!(equal.with_kernel(Gaussian::default()).with_max_features(8).plan().is_ok());
}

/// The numbers that are asked for most are those of the forecast and of the cost.
#[test]
fn the_usual_numbers_are_near() {
    let plan = quick(&Planner::of_one_set(&normal(40, 3, 0.5, 1)).unwrap(), 24);
    for choice in &plan.choices {
        assert_eq!(choice.loss(), choice.forecast.loss.value);
        assert_eq!(choice.relative_error(), choice.forecast.relative_median().value);
        assert_eq!(choice.cost(Measure::Features), choice.recipe.feature_dim() as f64);
        assert!(choice.cost(Measure::Nanoseconds).is_nan());
    }
    assert!(plan.works() && plan.advice().is_none());
}

#[test]
fn any_seed_will_do() {
    let x = normal(20, 3, 0.5, 1);
    let recipe = Positive.recipe(Draw::new(3, 4, Orthogonal), Softmax::default());
    for seed in [u64::MAX, 1 << 44, u64::MAX - 1] {
        let planner = Planner::of_one_set(&x).unwrap().with_kernel(Softmax::default());
        let planner = planner.with_seed(seed).with_max_features(8);
        sound(&planner.plan().unwrap(), "a large seed");
        planner.measure(&recipe, 40, seed).unwrap();
    }
    let heads =
        ndarray::Array4::from_shape_fn((1, 3, 20, 4), |(_, h, i, k)| (0.3 * (h + i * (k + 1)) as f64).sin());
    let planner = Planner::of_heads(&heads, &heads, None).unwrap().with_seed(u64::MAX).with_max_features(8);
    sound(&planner.with_couplings(couplings()).plan().unwrap(), "a large seed with heads");
}

/// Points of normal coordinates.
fn far(deviation: f64) -> (Planner, [Array2<f64>; 2]) {
    let x = normal(200, 8, deviation, 5);
    let sides = [half(&x, 0), half(&x, 1)];
    (Planner::new(&sides[0], &sides[1]).unwrap().with_couplings(couplings()).with_max_features(64), sides)
}

/// Estimates that are about 0 everywhere have errors of 1, which is no use.
#[test]
fn advice_where_the_best_estimates_nothing() {
    assert_eq!(far(0.2).0.plan().unwrap().advice(), None);
    for deviation in [1.5, 2.5, 10.0] {
        let plan = far(deviation).0.plan().unwrap();
        let best = plan.best().unwrap();
        let gram = best.forecast.gram.value;
        assert!(plan.advice().is_some(), "{deviation}: no advice where {} has the error {gram}", label(best));
    }
}

#[test]
fn advice_where_nothing_works() {
    for deviation in [1.0, 1.5, 2.5, 10.0] {
        let (planner, [x, y]) = far(deviation);
        let plan = planner.with_couplings([Independent.into()]).only_unbiased().plan().unwrap();
        let advice = workbench::advice(&plan).unwrap();
        assert_eq!((plan.works(), plan.advice()), (advice.works, Some(advice.to_string())));
        assert_eq!(advice.beyond_one, plan.best().unwrap().forecast.beyond_one().value);
        assert!(advice.beyond_one > 0.1 && advice.more_frequencies > 1.0, "{advice}");
        assert!(format!("{plan}").contains("Nothing within the budget works"));
        // Of points that are shrunk so much, and just so much, a tenth of the pairs are beyond 1.
        let m = plan.best().unwrap().m;
        let share = |factor: f64| {
            let planner =
                Planner::new(&(&x * factor), &(&y * factor)).unwrap().with_couplings([Independent.into()]);
            let of = |features: usize, is_wanted: fn(&str) -> bool| -> f64 {
                let plan = planner.clone().with_max_features(features).plan().unwrap();
                let shares = plan.choices.iter().filter(|choice| is_wanted(&choice.map)).map(|choice| {
                    assert_eq!(choice.m, m);
                    planner.forecast(&choice.recipe).unwrap().unwrap().beyond_one().value
                });
                shares.fold(1.0, f64::min)
            };
            // The first of the optimal positive ones is that of the mean of ‖x + y‖².
            let positive = of(m, |map| map == "positive" || map.starts_with("OPRF"));
            positive.min(of(2 * m, |map| map == "trigonometric"))
        };
        assert!(advice.shrink > 0.0 && advice.shrink < 1.0, "{advice}");
        let (kept, more) = (share(0.999 * advice.shrink), share(1.5 * advice.shrink));
        assert!(kept <= 0.1, "{deviation}: shrunk to {}: {kept}", advice.shrink);
        assert!(more > 0.1, "{deviation}: shrunk to 1.5 · {}: {more}", advice.shrink);
    }
}

#[test]
fn advice_names_numbers_that_exist() {
    let x = normal(100, 4, 1e30, 5);
    let plan = quick(&Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().only_unbiased(), 64);
    let advice = workbench::advice(&plan).unwrap();
    assert_eq!(advice.more_frequencies, f64::INFINITY);
    assert!(advice.shrink > 0.0 && advice.shrink < 1e-25, "{advice:?}");
    assert!(format!("{advice}").contains("No number of frequencies is enough"));
    // A kernel that positive features do not serve.
    let matern = Matern::new(Smoothness::ThreeHalves, 1e-3).unwrap();
    let planner = Planner::of_one_set(&normal(100, 4, 1.0, 5)).unwrap().with_kernel(matern);
    let plan = planner.with_max_features(8).plan().unwrap();
    let advice = workbench::advice(&plan).unwrap();
    assert!(advice.shrink.is_nan() && !format!("{advice}").contains("NaN"), "{advice}");
}

#[test]
fn lengthscales_of_medians() {
    // Of points ±1 in one coordinate distances are 0 and 2.
    let x = array![[1.0], [-1.0], [1.0], [-1.0], [1.0], [-1.0], [1.0], [-1.0]];
    let planner = Planner::of_one_set(&x).unwrap().with_gaussian_of_median().unwrap().with_max_features(8);
    assert!(planner.plan().unwrap().title.contains("ℓ = 2:"), "{}", planner.plan().unwrap().title);
    // Coordinates of different sizes: the plan is that of points divided by their deviations, times the median there.
    let x = normal(60, 3, 1.0, 1);
    let scaled = &x * &array![1.0, 100.0, 1e-3];
    let of = |x: &Array2<f64>| {
        let planner =
            Planner::of_one_set(x).unwrap().with_gaussian_of_medians().unwrap().with_couplings(couplings());
        planner.with_max_features(32).plan().unwrap().best().unwrap().forecast.gram.value
    };
    let (plain, scaled) = (of(&x), of(&scaled));
    assert!((plain / scaled - 1.0).abs() < 1e-6, "{plain}, {scaled}");
    // A constant coordinate has the others' mean, constants alone have 1 times the median, which is 0 then.
    let mut constant = x.clone();
    constant.column_mut(1).fill(3.0);
    assert!(of(&constant).is_finite());
    let title = |x: &Array2<f64>| {
        let planner = Planner::of_one_set(x).unwrap().with_gaussian_of_medians().unwrap();
        let plan = planner.with_couplings([Independent.into()]).with_max_features(8).plan().unwrap();
        plan.title[..plan.title.find(':').unwrap()].to_string()
    };
    // So that it is within them.
    assert_eq!(title(&constant), title(&constant.select(Axis(1), &[0, 2])));
    refused(
        Planner::of_one_set(&Array2::<f64>::ones((10, 2))).unwrap().with_gaussian_of_median().map(drop),
        "",
    );
    refused(
        Planner::of_one_set(&Array2::<f64>::ones((10, 2))).unwrap().with_gaussian_of_medians().map(drop),
        "",
    );
}
