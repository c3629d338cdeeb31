//! Recipes that are written by hand, for configuration files.

use random_features::frequency::{Antithetic, Hadamard, Halton, Orthogonal, Product};
use random_features::kernel::{
    Activation, Gaussian, Laplace, Matern, RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::map::{AnyKernel, MapConfig, Mechanism};
use random_features::recipe::{CountLaw, Draw, DrawCounts};
use random_features::theory::gerf::GerfSign;
use random_features::workbench::{Cauchy, RootDim};
use random_features::{
    EluPlusOne, Error, Geometric, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Recipe, Sign,
    Trigonometric,
};
use serde_json::{from_str, to_string};

/// What is written, and the recipe that it is.
fn written() -> Vec<(&'static str, Recipe)> {
    let softmax = || Softmax::new(2.0).unwrap();
    let plain = |d, m| Draw::new(d, m, Orthogonal);
    let gerf = Gerf::new(-0.2, GerfSign::Plus).unwrap();
    let matern = Matern::new(Smoothness::FiveHalves, vec![0.5, 2.0]).unwrap();
    let relu = Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap();
    vec![
        (
            r#"{"map": "positive", "kernel": "softmax", "lengthscale": 2, "coupling": "orthogonal", "d": 4, "m": 6}"#,
            Positive.recipe(plain(4, 6), softmax()),
        ),
        (
            r#"{"map": "positive", "kernel": "softmax 2", "d": 4, "m": 6}"#,
            Positive.recipe(plain(4, 6), softmax()),
        ),
        (
            r#"{"map": "trigonometric", "kernel": "matern 5/2", "lengthscale": [0.5, 2], "d": 2, "m": 6, "stream": 3}"#,
            Trigonometric.recipe(plain(2, 6).with_radii(Smoothness::FiveHalves).with_stream(3), matern),
        ),
        (
            r#"{"map": "hyperbolic", "kernel": "gaussian", "coupling": "antithetic orthogonal", "d": 2, "m": 6}"#,
            Hyperbolic.recipe(Draw::new(2, 6, Antithetic(Orthogonal)), Gaussian::default()),
        ),
        (
            r#"{"map": "positive", "kernel": "regularised softmax", "d": 2, "m": 6}"#,
            Positive.recipe(plain(2, 6).with_radii(RootDim), RegularisedSoftmax::default()),
        ),
        (
            r#"{"map": "positive", "kernel": "regularised softmax in dimension 16", "coupling": "hadamard, 2 rounds", "d": 12, "m": 6}"#,
            Positive.recipe(
                Draw::new(12, 6, Hadamard::default().with_rounds(2)).with_radii(RootDim),
                RegularisedSoftmax::in_dimension(16),
            ),
        ),
        (
            r#"{"map": "trigonometric", "kernel": "laplace 3", "d": 2, "m": 6}"#,
            Trigonometric.recipe(Draw::new(2, 6, Product(Cauchy)), Laplace::new(3.0).unwrap()),
        ),
        (
            r#"{"map": "trigonometric", "kernel": "laplace", "coupling": "halton product, cauchy", "d": 2, "m": 6}"#,
            Trigonometric.recipe(Draw::new(2, 6, Halton.with_marginal(Cauchy)), Laplace::default()),
        ),
        (
            r#"{"map": "gerf, A = -0.2", "kernel": "softmax 2", "d": 4, "m": 6}"#,
            gerf.recipe(plain(4, 6), softmax()),
        ),
        (r#"{"map": "sign", "d": 4, "m": 6}"#, Sign.recipe(plain(4, 6), 1.0)),
        (
            r#"{"map": "nonlinear relu, offset 0.001", "lengthscale": 0.5, "d": 4, "m": 6}"#,
            relu.recipe(plain(4, 6), 0.5),
        ),
        (r#"{"map": "elu plus one", "d": 4}"#, EluPlusOne.recipe(4, 1.0)),
        (
            r#"{"map": "poisson, rate 0.5", "kernel": "softmax 2", "d": 2, "m": 6}"#,
            Poisson::with_rates(0.5)
                .recipe(DrawCounts::new(2, 6, CountLaw::Poisson(0.5.into())).unwrap(), softmax()),
        ),
        (
            r#"{"map": "geometric, p = 0.5", "kernel": "softmax 2", "d": 2, "m": 6, "stream": 1}"#,
            Geometric::with_p(0.5)
                .recipe(DrawCounts::new(2, 6, CountLaw::Geometric(0.5)).unwrap().with_stream(1), softmax()),
        ),
    ]
}

#[test]
fn what_is_written_by_hand_is_a_recipe() {
    for (text, recipe) in written() {
        let config: MapConfig = from_str(text).unwrap();
        assert_eq!(config.recipe().unwrap(), recipe, "{text}");
        assert_eq!(from_str::<MapConfig>(&to_string(&config).unwrap()).unwrap(), config, "{text}");
        let map: Map<f64> = config.recipe().unwrap().draw(7).unwrap();
        assert_eq!(map.recipe(), Some(recipe.drawn(7).unwrap()));
        let estimates_a_kernel =
            matches!(config.map, Mechanism::Sign(_) | Mechanism::Nonlinear(_)) || config.kernel.is_some();
        assert_eq!(map.kernel().is_some(), estimates_a_kernel, "{text}");
    }
    // What is left out is not written.
    let config = MapConfig { m: Some(6), ..MapConfig::new(Sign, 4) };
    assert_eq!(to_string(&config).unwrap(), r#"{"map":"sign","d":4,"m":6,"stream":0}"#);
}

#[test]
fn what_is_wrong_in_it_is_said() {
    for (text, reason) in [
        (
            r#"{"map": "positive", "kernl": "softmax", "d": 4, "m": 6}"#,
            "unknown field `kernl`, expected one of `map`, `kernel`,",
        ),
        (
            r#"{"map": "favor", "d": 4}"#,
            "“favor” cannot be read as a map: the names are trigonometric, positive,",
        ),
        (
            r#"{"map": "positive", "kernel": "rbf", "d": 4}"#,
            "“rbf” cannot be read as a kernel: the names are softmax, gaussian,",
        ),
        (
            r#"{"map": "positive", "coupling": "ortho", "d": 4}"#,
            "“ortho” cannot be read as a coupling: the names are independent,",
        ),
        (r#"{"map": "positive", "kernel": 3, "d": 4}"#, "invalid type: integer `3`, expected a string"),
        (
            r#"{"map": "positive", "lengthscale": "wide", "d": 4}"#,
            "a lengthscale is a number, or a list of one number for each dimension",
        ),
        (r#"{"map": "positive"}"#, "missing field `d`"),
        (r#"{"kernel": "softmax", "d": 4}"#, "missing field `map`"),
        (r#"{"map": "positive", "d": -4}"#, "invalid value: integer `-4`"),
        (r#"{"map": "gaussian", "kernel": "gaussian", "d": 4}"#, "“gaussian” cannot be read as a map"),
        (
            r#"{"map": "positive", "kernel": "gaussian 0", "d": 4}"#,
            "the lengthscale is 0, but must be positive",
        ),
    ] {
        let error = from_str::<MapConfig>(text).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{text}: {error}");
    }
    for (text, reason) in [
        (r#"{"map": "positive", "d": 4, "m": 6}"#, "it needs a kernel, such as “softmax” or “gaussian”"),
        (r#"{"map": "positive", "kernel": "softmax", "d": 4}"#, "it needs m, the number of frequencies"),
        (r#"{"map": "poisson", "kernel": "softmax", "d": 4, "m": 6}"#, "it needs the law of its counts"),
        (
            r#"{"map": "poisson, rate 1", "kernel": "softmax", "d": 4}"#,
            "it needs m, the number of frequencies",
        ),
        (
            r#"{"map": "poisson, rate 1", "kernel": "softmax", "coupling": "orthogonal", "d": 4, "m": 6}"#,
            "it takes no coupling",
        ),
        (r#"{"map": "elu plus one", "d": 4, "m": 6}"#, "it takes neither m nor a coupling"),
        (
            r#"{"map": "positive", "kernel": "softmax 2", "lengthscale": 3, "d": 4, "m": 6}"#,
            "the kernel “softmax, lengthscale 2” has a lengthscale, and another is stated beside it",
        ),
        (
            r#"{"map": "positive", "kernel": "laplace", "d": 4, "m": 6}"#,
            "does not estimate the kernel Laplace, lengthscale 1",
        ),
        (
            r#"{"map": "sign", "kernel": "softmax", "d": 4, "m": 6}"#,
            "does not estimate the kernel softmax, lengthscale 1",
        ),
        (
            r#"{"map": "trigonometric", "kernel": "laplace", "coupling": "sobol", "d": 4, "m": 6}"#,
            "does not estimate the kernel Laplace",
        ),
        (
            r#"{"map": "positive", "kernel": "softmax", "lengthscale": -1, "d": 4, "m": 6}"#,
            "the lengthscale is -1, but must be",
        ),
        (
            r#"{"map": "positive", "kernel": "softmax", "lengthscale": [1, 1], "d": 4, "m": 6}"#,
            "the number of lengthscales",
        ),
        (r#"{"map": "positive", "kernel": "softmax", "d": 4, "m": 0}"#, "m is 0, but must be at least 1"),
    ] {
        let error = from_str::<MapConfig>(text).unwrap().recipe().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    // Parameters that are arrays have no text.
    let dense = random_features::DenseExponential::new(vec![0.0; 4]).unwrap();
    assert!(
        to_string(&MapConfig::new(dense, 4)).unwrap_err().to_string().contains("which a text does not hold")
    );
}

/// Texts of formats whose reader gives whole numbers and lists as they are, as those of TOML and YAML do, and fields in any order.
#[test]
fn any_format_for_people_will_do() {
    use serde::Deserialize;
    use serde::de::value::{Error as Words, MapDeserializer};
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    for (text, recipe) in written() {
        // `Value` sorts its fields.
        assert_eq!(serde_json::from_value::<MapConfig>(value(text)).unwrap().recipe().unwrap(), recipe);
    }
    let fields = [("map", "sign")];
    let missing = MapConfig::deserialize(MapDeserializer::<_, Words>::new(fields.into_iter()));
    let missing = missing.unwrap_err().to_string();
    assert!(missing.contains("missing field `d`"), "{missing}");
    let own: Result<AnyKernel, Error> = "implied 2".parse();
    assert_eq!(own, Ok(AnyKernel::implied(2.0)));
}
