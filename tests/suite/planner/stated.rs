//! Recipes that the caller states: their sizes, couplings and errors in a plan, and which are refused.

use super::{calibration, couplings, near};
use crate::common::points;
use crate::sketch::binning::{Grids, RandomBinning};
use ndarray::Axis;
use random_features::compose::{Bases, Coefficient, Hybrid};
use random_features::extend::{Generator, Sketch, SketchKinds, SketchNumbers};
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::kernel::{Gaussian, Laplace, Softmax};
use random_features::map::{AnyKernel, Redraw, Sketched};
use random_features::planner::{Measure, Plan, Planner, RankedRecipe};
use random_features::recipe::{Draw, SketchDraw};
use random_features::theory::Basis;
use random_features::{Error, Map, Positive, Recipe, Result, Trigonometric};

const OWN: &str = "a map of mine";

fn laplace() -> Laplace {
    Laplace::new(0.7).unwrap()
}

fn binning() -> Recipe {
    Sketched.recipe(RandomBinning { d: 3, grids: 5, buckets: 8 }, laplace())
}

/// A planner for the Laplace kernel of 200 points.
fn planner() -> Planner {
    let planner = Planner::of_one_set(&points::<f64>(200, 3, 0.5)).unwrap();
    planner.with_kernel(laplace()).with_max_features(203)
}

fn own(plan: &Plan) -> Option<&RankedRecipe> {
    plan.choices.iter().find(|choice| choice.map == OWN)
}

/// A sketch has as many terms as the budget holds, and the errors that its closed form states, which draws show: within 4 standard
/// errors of both.
#[test]
fn a_sketch_is_ranked_in_the_size_of_the_budget() {
    let of = |grids: usize| {
        let sketch = RandomBinning { d: 3, grids, buckets: 8 };
        Sketched.recipe(SketchDraw::new(sketch).with_stream(3), laplace())
    };
    let plan = planner().with_recipe(OWN, of(5)).plan().unwrap();
    let one = own(&plan).unwrap();
    assert_eq!((one.m, one.recipe.feature_dim(), one.coupling.as_str()), (25, 200, "–"));
    assert_eq!(one.recipe, of(25));
    assert_eq!(one.forecast.gram.basis, Basis::ClosedForm);
    assert!(!one.biased && plan.choices.len() > 1);
    let seen = planner().measure(&one.recipe, 400, 3).unwrap().gram;
    let error = seen.standard_error.hypot(one.forecast.gram.standard_error);
    assert!((seen.value - one.forecast.gram.value).abs() < 4.0 * error, "{seen:?} {:?}", one.forecast.gram);

    // Others are ranked as they are without it.
    let without = planner().plan().unwrap();
    let others = |plan: &Plan| {
        let names = plan.choices.iter().filter(|one| one.map != OWN).map(|one| one.map.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(others(&plan), others(&without));
    assert!(own(&without).is_none());
}

/// What a plan chose is stored, read, drawn and drawn again.
#[test]
#[cfg(feature = "serde")]
fn a_sketch_is_stored_with_its_plan_and_redrawn() {
    let plan = planner().with_recipe(OWN, binning()).plan().unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    let kinds = SketchKinds::new().with::<RandomBinning>();
    let read: Plan = kinds.reading(|| serde_json::from_str(&text).unwrap());
    assert_eq!(read, plan);
    let recipe = &own(&read).unwrap().recipe;
    let redraw = Redraw::new(recipe.clone(), 4, 10).unwrap();
    let maps: [Map<f32>; 3] = [0, 9, 10].map(|step| redraw.build(step).unwrap());
    assert_eq!(maps[0].identity(), maps[1].identity());
    assert_ne!(maps[0].identity(), maps[2].identity());
    assert_eq!(maps[0].identity(), recipe.draw::<f32>(4).unwrap().identity());
}

/// The fewest terms that keep an error are one more than too few.
#[test]
fn a_maximal_error_is_kept_by_no_more_terms_than_it_takes() {
    let planner = planner().with_recipe(OWN, binning()).with_max_error(0.4).unwrap();
    let plan = planner.plan().unwrap();
    let one = own(&plan).unwrap();
    let loss = |grids: usize| {
        let recipe = Sketched.recipe(RandomBinning { d: 3, grids, buckets: 8 }, laplace());
        planner.forecast(&recipe).unwrap().unwrap().gram.value
    };
    assert!(one.m > 1);
    near(one.loss(), loss(one.m), "the loss of the smallest size");
    assert!(loss(one.m) <= 0.4 && loss(one.m - 1) > 0.4);
}

/// A sketch that states no variance, and, if it lies, another number of terms than it is asked for.
#[derive(Debug)]
struct Unstated {
    binning: RandomBinning,
    lies: bool,
}

impl Sketch for Unstated {
    const NAME: &'static str = "random binning of unstated variance";
    type Drawn = Grids;

    fn dim(&self) -> usize {
        self.binning.dim()
    }

    fn feature_dim(&self) -> usize {
        self.binning.feature_dim()
    }

    fn m(&self) -> usize {
        self.binning.m()
    }

    fn with_m(&self, m: usize) -> Option<Self> {
        let binning = self.binning.with_m(if self.lies { m + 1 } else { m })?;
        Some(Unstated { binning, ..*self })
    }

    fn numbers(&self) -> SketchNumbers {
        self.binning.numbers()
    }

    fn of_numbers(numbers: &SketchNumbers) -> Result<Self> {
        Ok(Unstated { binning: RandomBinning::of_numbers(numbers)?, lies: false })
    }

    fn serves(&self, kernel: &AnyKernel) -> bool {
        self.binning.serves(kernel)
    }

    fn draw(&self, kernel: &AnyKernel, rng: &mut Generator) -> Result<Grids> {
        self.binning.draw(kernel, rng)
    }
}

/// Errors by draws are those of the closed form, within 4 standard errors.
#[test]
fn errors_without_a_closed_form_are_simulated() {
    let sketch = Unstated { binning: RandomBinning { d: 3, grids: 5, buckets: 8 }, lies: false };
    let planner = planner().with_recipe(OWN, Sketched.recipe(sketch, laplace()));
    let plan = planner.plan().unwrap();
    let one = own(&plan).unwrap();
    assert!(matches!(one.forecast.gram.basis, Basis::Simulation(_)), "{:?}", one.forecast.gram);
    let recipe = Sketched.recipe(RandomBinning { d: 3, grids: one.m, buckets: 8 }, laplace());
    let stated = planner.forecast(&recipe).unwrap().unwrap().gram;
    let error = one.forecast.gram.standard_error.hypot(stated.standard_error);
    assert!(
        (one.forecast.gram.value - stated.value).abs() < 4.0 * error,
        "{stated:?} {:?}",
        one.forecast.gram
    );
    // An error to reach is one of closed forms, which the plan says.
    let plan = planner.with_max_error(0.4).unwrap().plan().unwrap();
    let why = plan.left_out().find(|(what, _)| *what == OWN).map(|(_, why)| why.to_string());
    assert!(own(&plan).is_none() && why.unwrap().starts_with("it has no closed form"));
}

/// A recipe whose smallest size is too dear is said to be missing.
#[test]
fn what_is_too_dear_is_said() {
    let plan = planner().with_max_features(7).with_recipe(OWN, binning()).plan().unwrap();
    let why = plan.left_out().find(|(what, _)| *what == OWN).map(|(_, why)| why.to_string());
    assert!(own(&plan).is_none() && why.unwrap().starts_with("one frequency is too dear"));
}

/// The excess risk of a regression is a loss of sketches, too.
#[test]
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
fn a_sketch_is_tried_at_a_regression() {
    let x = points::<f64>(200, 3, 0.5);
    let y = x.sum_axis(Axis(1)).mapv(f64::sin);
    let plan = planner().with_recipe(OWN, binning()).with_ridge_targets(&y).unwrap().plan().unwrap();
    let one = own(&plan).unwrap();
    assert!(one.loss().is_finite() && one.recipe.draw::<f64>(1).is_ok());
}

/// The coupling of a recipe stays, whatever couplings the plan takes.
#[test]
fn couplings_stay() {
    let x = points::<f64>(100, 3, 0.5);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Softmax::default());
    let simplex = Positive.recipe(Draw::new(3, 7, Simplex::default()), Softmax::default());
    let planner = planner.with_max_features(60).with_recipe(OWN, simplex);
    let plan = planner.clone().with_couplings([Independent.into()]).plan().unwrap();
    let one = own(&plan).unwrap();
    assert_eq!(one.coupling, "simplex");
    assert!(one.m.is_multiple_of(3) && one.m > 40);
    assert!(plan.choices.iter().any(|one| one.coupling == "independent"));
    let plan = planner.with_couplings([]).plan().unwrap();
    assert!(plan.choices.iter().all(|one| one.map == OWN || one.coupling == "–"));
    assert!(own(&plan).is_some());
}

/// A recipe of the crate under another name has one row, and a recipe that only has its errors has its own.
#[test]
fn only_equal_recipes_are_one() {
    let x = points::<f64>(100, 3, 0.5);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(1.0).unwrap());
    let planner = planner.with_couplings([Orthogonal.into()]).with_max_features(60);
    let of = |stream| {
        let draw = Draw::new(3, 8, Orthogonal).with_stream(stream);
        let recipe = Trigonometric.recipe(draw, Gaussian::new(1.0).unwrap());
        planner.clone().with_recipe(OWN, recipe).plan().unwrap()
    };
    assert!(own(&of(0)).is_none() && own(&of(1)).is_some());
    assert!(of(0).left_out().all(|(what, _)| what != OWN));
}

/// A recipe for another kernel is biased, and its bias is part of its error.
#[test]
fn another_kernel_is_a_bias() {
    let x = points::<f64>(100, 3, 0.5);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(1.0).unwrap());
    let of = |ell: f64| {
        let recipe = Trigonometric.recipe(Draw::new(3, 8, Orthogonal), Gaussian::new(ell).unwrap());
        let plan = planner.clone().with_couplings(couplings()).with_recipe(OWN, recipe).plan().unwrap();
        own(&plan).map(|one| (one.biased, one.loss()))
    };
    let (biased, loss) = of(2.0).unwrap();
    assert!(biased && loss > 0.1, "{loss}");
    // One that the plan has anyway is named once.
    assert!(of(1.0).is_none_or(|(biased, _)| !biased));
}

#[test]
fn what_cannot_be_planned_is_said() {
    let refused = |recipe: Recipe| planner().with_recipe(OWN, recipe).plan().unwrap_err();
    let far = Sketched.recipe(RandomBinning { d: 4, grids: 5, buckets: 8 }, laplace());
    assert!(matches!(refused(far), Error::Shape { .. }));
    let gaussian = Sketched.recipe(RandomBinning { d: 3, grids: 5, buckets: 8 }, Gaussian::default());
    assert!(refused(gaussian).to_string().contains("does not estimate the kernel Gaussian"));
    // Numbers that no draw names have one size.
    let numbers = Independent.draw(3, 8, 1).unwrap();
    let unnamed = random_features::frequency::Frequencies::from_rows(numbers.rows().into_owned()).unwrap();
    let recipe = Trigonometric.recipe(unnamed, Gaussian::default());
    assert!(refused(recipe).to_string().contains("of given numbers"));
    let liar = Unstated { binning: RandomBinning { d: 3, grids: 5, buckets: 8 }, lies: true };
    assert!(refused(Sketched.recipe(liar, laplace())).to_string().contains("of few sizes"));
    let draw = |stream| Draw::new(3, 9, Orthogonal).with_stream(stream);
    let coefficient = Coefficient::angular(draw(2)).unwrap();
    let hybrid = Hybrid::bipolar(Bases::independent(draw(0), draw(1)), coefficient, Softmax::default());
    assert!(refused(hybrid.unwrap()).to_string().contains("of several parts"));
    // Other recipes are evaluated as before.
    let bad = planner().with_recipe("", binning());
    assert!(bad.plan().unwrap_err().to_string().contains("whose name is not a line"));
    assert!(bad.forecast(&binning()).unwrap().is_some());
    for (name, words) in [
        ("two\nlines", "whose name is not a line"),
        (&"x".repeat(61), "whose name is not a line"),
        ("trigonometric", "a name of the plan's own"),
    ] {
        let error = planner().with_recipe(name, binning()).plan().unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let twice = planner().with_recipe(OWN, binning()).with_recipe(OWN, binning());
    assert!(twice.plan().unwrap_err().to_string().contains("two recipes of one name"));
    let timed = planner().with_budget(Measure::Nanoseconds, 1e6).with_calibration(calibration());
    let error = timed.with_recipe(OWN, binning()).plan().unwrap_err().to_string();
    assert!(error.contains("the time of a sketch"), "{error}");
    // Signs of cells are negative.
    let plan = Planner::of_one_set(&points::<f64>(200, 3, 0.5)).unwrap().with_kernel(laplace());
    let plan = plan.only_symmetric().with_recipe(OWN, binning()).plan().unwrap();
    assert!(own(&plan).is_some());
    let softmax = Planner::of_one_set(&points::<f64>(50, 3, 0.5)).unwrap().with_kernel(Softmax::default());
    let waves = Trigonometric.recipe(Draw::new(3, 8, Orthogonal), Softmax::default());
    let plan =
        softmax.with_couplings(couplings()).only_non_negative().with_recipe(OWN, waves).plan().unwrap();
    assert!(own(&plan).is_none());
    let why = plan.left_out().find(|(what, _)| *what == OWN).map(|(_, why)| why.to_string());
    assert_eq!(why.as_deref(), Some("options of the plan exclude it"));
    assert_eq!(planner().cost(&binning(), Measure::Features), 40.0);
}

/// Weights of attention by another kernel are other weights: no error of a plan is about them.
#[test]
fn errors_of_attention_are_those_of_its_kernel() {
    let [q, k] =
        [0.3, 0.4].map(|scale| points::<f64>(40, 3, scale).into_shape_with_order((1, 1, 40, 3)).unwrap());
    let planner = Planner::of_heads(&q, &k, None).unwrap().with_couplings(couplings()).with_max_features(32);
    let of = |kernel: AnyKernel| Positive.recipe(Draw::new(3, 8, Orthogonal), kernel);
    let [wide, gaussian] = [of(Softmax::new(1.2).unwrap().into()), of(Gaussian::default().into())];
    for recipe in [wide, gaussian] {
        for error in [
            planner.measure(&recipe, 8, 1).unwrap_err(),
            planner.forecast(&recipe).unwrap_err(),
            planner.clone().with_recipe(OWN, recipe.clone()).plan().unwrap_err(),
        ] {
            assert!(error.to_string().contains("a recipe for another kernel"), "{error}");
        }
    }
    assert!(planner.measure(&of(Softmax::default().into()), 8, 1).is_ok());
}
