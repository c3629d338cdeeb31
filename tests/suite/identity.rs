//! Identities: the same on every machine and in every later version, and different wherever maps are.

use std::collections::HashSet;

use ndarray::{Array2, arr1, arr2};
use num_complex::Complex64;
use random_features::apply::attention::{Attention, TokenSample};
use random_features::compose::{Bases, Centres, Clustered, Coefficient, Conditioning, Hybrid, Mixture};
use random_features::data::Clustering;
use random_features::frequency::{
    Antithetic, Frequencies, Hadamard, Independent, Orthogonal, Product, Simplex,
};
use random_features::kernel::{
    Activation, Gaussian, Laplace, Matern, RationalQuadratic, RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::map::{AnyKernel, ImportanceMixture, Shift, Transform};
use random_features::recipe::{CountLaw, Draw, DrawCounts, Omega, PlainRecipe};
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::{Cauchy, RootDim};

use crate::common::changed;
use random_features::{
    ComplexExponential, DenseExponential, EluPlusOne, Geometric, Gerf, Hyperbolic, Importance, Map,
    Nonlinear, Poisson, Positive, Recipe, Sign, Trigonometric,
};

fn omega() -> Draw {
    Draw::new(3, 8, Orthogonal)
}

fn counts(law: CountLaw) -> DrawCounts {
    DrawCounts::new(3, 8, law).unwrap()
}

/// A recipe of every map, every kernel and every combination, with its identity.
fn pinned() -> Vec<(&'static str, Recipe)> {
    let softmax = Softmax::default;
    let diagonal = Transform::diagonal(vec![Complex64::new(0.5, 0.5), Complex64::ONE, Complex64::I]).unwrap();
    let given = Frequencies::from_rows(arr2(&[[0.5, 1.0, -0.25], [2.0, 0.0, 1.5]])).unwrap();
    let shift = Shift::new(vec![-1.0, -2.0, -3.0], 0.5).unwrap();
    let clusters = Clustering::new(arr2(&[[1.0, 0.5, 0.25], [-1.0, 0.5, 2.0]])).unwrap();
    let bases = || Bases::shared(omega());
    let tau = || Draw::new(3, 4, Independent).with_stream(1);
    let c = Conditioning::new(arr2(&[[2.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])).unwrap();
    let mut stream = 1;
    let mut next = || {
        stream += 1;
        Ok(omega().with_stream(stream))
    };
    let mut other = 100;
    let mut weights = || {
        other += 1;
        Ok(omega().with_stream(other))
    };
    let mixture = Mixture::new(&clusters, &clusters, 1.5);
    let rest = || Positive.recipe(omega(), softmax());
    let quadratic = RationalQuadratic::new(1.5, 2.0).unwrap();
    vec![
        ("24221cbc79efd488", Trigonometric.recipe(omega(), softmax())),
        ("336daa4287d73195", Positive.recipe(omega(), softmax())),
        ("2d3d1ad5eb45c5e5", Hyperbolic.recipe(omega(), softmax())),
        ("6f2c5710a235eccb", Gerf::new(-0.25, GerfSign::Plus).unwrap().recipe(omega(), softmax())),
        (
            "3dabef0145b52d65",
            Gerf::new(Complex64::new(-0.05, 0.06), GerfSign::Minus).unwrap().recipe(omega(), softmax()),
        ),
        (
            "aee20dd2f099b8b4",
            ComplexExponential::new(diagonal.clone(), Symmetry::Plain).recipe(omega(), softmax()),
        ),
        (
            "a0e817f9105e4748",
            ComplexExponential::new(diagonal, Symmetry::Symmetric).recipe(omega(), softmax()),
        ),
        (
            "99afed1aa30857af",
            DenseExponential::new(vec![-0.1, -0.2, 0.0]).unwrap().recipe(omega(), softmax()),
        ),
        ("e2f6bb31dd0a0b5a", Importance::new(vec![-1.0, -2.0]).unwrap().recipe(given.clone(), softmax())),
        ("69df50ee2a2605dc", Poisson::default().recipe(counts(CountLaw::Poisson(1.0.into())), softmax())),
        (
            "8e012020cb915c92",
            Poisson::with_rates(2.0).shifted(shift).recipe(counts(CountLaw::Poisson(2.0.into())), softmax()),
        ),
        ("b2c05bd756f70e96", Geometric::with_p(0.5).recipe(counts(CountLaw::Geometric(0.5)), softmax())),
        ("750b217582d8bad1", Sign.recipe(omega(), 1.0)),
        ("62d3194f334687bd", Nonlinear::new(Activation::Relu).with_offset(0.5).unwrap().recipe(omega(), 2.0)),
        ("a6b0972bce61a992", EluPlusOne.recipe(3, vec![1.0, 2.0, 3.0])),
        ("fcf11e9a5f0ee826", ImportanceMixture::new(&given.rows(), 8).unwrap().recipe(softmax())),
        ("0bb17134e3ef9b02", Positive.recipe(given, softmax())),
        ("88db75d03bf19a87", Positive.recipe(Omega::from(omega()), Gaussian::new(2.0).unwrap())),
        ("9077ea3a7023f732", Positive.recipe(omega(), Softmax::new(vec![1.0, 2.0, 3.0]).unwrap())),
        ("c91b7ed5bfadf417", Positive.recipe(omega().with_radii(RootDim), RegularisedSoftmax::default())),
        ("c4ba5a19ca401668", Positive.recipe(Draw::new(3, 8, Hadamard::default()), softmax())),
        ("bdd2c0b2a48af9f5", Positive.recipe(Draw::new(3, 8, Antithetic(Simplex::default())), softmax())),
        (
            "4cd541f39ebde580",
            Trigonometric.recipe(
                omega().with_radii(Smoothness::ThreeHalves),
                Matern::new(Smoothness::ThreeHalves, 2.0).unwrap(),
            ),
        ),
        ("f5f98c1aca8b806c", Trigonometric.recipe(omega().with_radii(quadratic.clone()), quadratic)),
        (
            "b17dee32432fc820",
            Trigonometric.recipe(Draw::new(3, 8, Product(Cauchy)), Laplace::new(2.0).unwrap()),
        ),
        ("b2ed42a45aad7ce2", Hybrid::angular(bases(), tau()).unwrap()),
        (
            "ce0d4c8c6b1b6e17",
            Hybrid::gaussian(Bases::independent(omega(), omega().with_stream(2)), tau(), (0.5, 1.0)).unwrap(),
        ),
        (
            "2bbf766a81097f1a",
            Hybrid::sum(vec![(Coefficient::constant(0.25).unwrap(), rest())], rest()).unwrap(),
        ),
        ("a572a3be9ad2a828", Hybrid::clustered(mixture, &mut next, &mut weights, rest()).unwrap()),
        (
            "88681bc6e7794e89",
            Clustered::by_centres(Centres::new(&clusters, &clusters), omega(), softmax()).unwrap(),
        ),
        ("4473fbd53952f7b7", rest().conditioned(&c).unwrap()),
        (
            "fb0980178dae1c78",
            rest()
                .conditioned(&c.clone().shifted(vec![1.0, 0.0, 0.0], vec![0.0, 0.5, 0.0]).unwrap())
                .unwrap(),
        ),
        (
            "0a79019770fd4e3a",
            Positive
                .recipe(Draw::new(2, 8, Orthogonal), softmax())
                .conditioned(&c.truncated(2).unwrap())
                .unwrap(),
        ),
    ]
}

/// A change here is a change of what stored maps are called, and needs another version of the format.
#[test]
fn identities_are_pinned() {
    let mut seen = HashSet::new();
    for (expected, recipe) in pinned() {
        assert_eq!(recipe.identity().to_string(), expected, "{recipe}");
        assert!(seen.insert(recipe.identity()), "{recipe}");
    }
}

/// Drawn frequencies are identified by draw and seed, given ones by their numbers, on whatever instruction set they were drawn.
#[test]
fn drawn_maps_are_identified_by_draw_and_seed() {
    let recipe = Positive.recipe(omega(), Softmax::default());
    let map: Map<f32> = recipe.draw(7).unwrap();
    assert_eq!(map.identity().to_string(), "d54cde31f1c35a73");
    assert_eq!(
        map.identity(),
        Positive.softmax::<f64>(Orthogonal.draw(3, 8, 7).unwrap()).unwrap().identity()
    );
    let other = |recipe: &Recipe, seed| recipe.draw::<f32>(seed).unwrap().identity();
    assert_ne!(other(&recipe, 8), map.identity());
    let given = Frequencies::from_rows(Orthogonal.draw(3, 8, 7).unwrap().rows().into_owned()).unwrap();
    assert_ne!(Positive.softmax::<f32>(given).unwrap().identity(), map.identity());
}

/// What follows from laws is the same before and after drawing.
#[test]
fn laws_are_known_before_draws() {
    let (x, y) = (arr1(&[0.5, 0.25, -0.4]), arr1(&[0.3, -0.2, 0.6]));
    let bits = |v: Option<f64>| v.map(f64::to_bits);
    let mut known = 0;
    for (_, recipe) in pinned() {
        let map: Map<f64> = recipe.draw(3).unwrap();
        let kernels = (recipe.kernel().map(|k| k.value(&x, &y)), map.kernel().map(|k| k.value(&x, &y)));
        assert_eq!(kernels.0.map(Result::unwrap), kernels.1.map(Result::unwrap), "{recipe}");
        let (before, after) = (recipe.log_variance(&x, &y).unwrap(), map.log_variance(&x, &y).unwrap());
        assert_eq!(bits(before), bits(after), "{recipe}");
        let errors = (recipe.relative_error(&x, &y).unwrap(), map.relative_error(&x, &y).unwrap());
        assert_eq!(bits(errors.0), bits(errors.1), "{recipe}");
        known += usize::from(before.is_some());
    }
    assert_eq!(known, 21);
}

/// What cannot be a map is an error, or unknown, before anything is drawn: never a panic, never a number.
#[test]
fn recipes_of_no_map_are_refused() {
    let (x, y) = (arr1(&[0.5, 0.25, -0.4]), arr1(&[0.3, -0.2, 0.6]));
    let turned = |recipe: Recipe, m: Array2<f64>| match recipe {
        Recipe::Plain(plain) => Recipe::Plain(changed(&plain, |plain| plain.matrix = Some(m))),
        other => other,
    };
    let clusters = Clustering::new(arr2(&[[1.0, 0.5, 0.25]])).unwrap();
    let clustered = Clustered { queries: clusters.clone(), keys: clusters, bases: Vec::new() };
    let law = CountLaw::Poisson(1.0.into());
    let recipes = [
        Positive.recipe(omega(), Softmax::new(vec![1.0; 2]).unwrap()),
        DenseExponential::new(vec![-0.1; 2]).unwrap().recipe(omega(), Softmax::default()),
        Positive.recipe(omega().with_radii(RootDim), Gaussian::default()),
        Sign.recipe(3, 1.0),
        Poisson::default().recipe(DrawCounts::new(3, 0, law.clone()).unwrap(), Softmax::default()),
        turned(EluPlusOne.recipe(3, 1.0), Array2::eye(3)),
        turned(Poisson::default().recipe(counts(law), Softmax::default()), Array2::eye(3)),
        turned(Positive.recipe(omega(), Softmax::default()), Array2::zeros((3, 2))),
        Recipe::Composite(Box::new(clustered.into())),
    ];
    let attention =
        Attention::new(Positive.softmax::<f64>(Orthogonal.draw(3, 8, 1).unwrap()).unwrap()).unwrap();
    let tokens = Array2::from_elem((4, 3), 0.1);
    for recipe in recipes {
        assert!(recipe.log_variance(&x, &y).is_err() && recipe.kernel().is_none(), "{recipe}");
        assert!(
            recipe.draw::<f64>(1).is_err()
                && attention
                    .expected_report(&recipe, &TokenSample::new(&tokens, &tokens).with_values(&tokens))
                    .is_err()
        );
        let coefficient = Coefficient::affine(0.0, 1.0, recipe).unwrap();
        assert!(coefficient.moments(&x, &y).is_err());
    }
}

/// Angles of turned points are not those of the points.
#[test]
fn turned_signs_are_no_angular_coefficient() {
    let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[1.0, 0.2]));
    let quarter = arr2(&[[0.0, -1.0], [1.0, 0.0]]);
    let plain = PlainRecipe::new(Sign, Draw::new(2, 50, Independent), AnyKernel::implied(1.0));
    let signs = Recipe::Plain(changed(&plain, |plain| plain.matrix = Some(quarter)));
    let moments = Coefficient::affine(0.5, -0.5, signs).unwrap().moments(&x, &y).unwrap();
    let angle = (0.2f64.atan() + std::f64::consts::FRAC_PI_2) / std::f64::consts::PI;
    assert!(moments.is_none_or(|moments| (moments.mean - angle).abs() < 1e-12), "{moments:?}");
}

/// An identity is written with all its digits.
#[test]
fn identities_are_written_in_full() {
    for text in ["00000000000000ab", "0000000000000000", "ffffffffffffffff"] {
        assert_eq!(text.parse::<random_features::map::Identity>().unwrap().to_string(), text);
    }
}

/// Centres that are asked for symmetric maps give them.
#[test]
fn symmetric_centres_are_not_plain_ones() {
    let clusters = Clustering::new(arr2(&[[1.0, 0.0], [0.0, 1.0]])).unwrap();
    let centres = || Centres::new(&clusters, &clusters);
    assert_eq!(centres().symmetry, Symmetry::Plain);
    assert_eq!(centres().symmetric().symmetry, Symmetry::Symmetric);
}
