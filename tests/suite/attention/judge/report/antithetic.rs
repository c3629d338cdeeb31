//! Reports of frequencies in antithetic pairs.

use crate::attention::judge::normal;
use crate::attention::judge::report::{COMPLEX, Defined, defined, maps, off_centre};
use num_complex::Complex64;
use random_features::apply::attention::{Attention, TokenSample};
use random_features::frequency::{Antithetic, Independent, Orthogonal, Simplex, Sobol};
use random_features::kernel::Softmax;
use random_features::map::{Mechanism, Recipe};
use random_features::recipe::{Draw, PlainRecipe};
use random_features::theory::covariance;
use random_features::theory::gerf::GerfSign;
use random_features::{DenseExponential, Error, Gerf, Hyperbolic, Positive, Trigonometric};

/// An antithetic pair counts as what it is: once for features that are even in ω, for others with the covariance of ω and −ω.
#[test]
fn antithetic_pairs_count_as_pairs() {
    let (d, m) = (6, 256);
    let [q, k, v] = off_centre(d, 0.3);
    let attention = Attention::new(maps(d, m, 5)[0].clone()).unwrap();
    let expected = |recipe: &Recipe| {
        attention.expected_report(recipe, &TokenSample::new(&q, &k).with_values(&v)).unwrap()
    };
    let mechanisms: [(Mechanism, bool); 5] = [
        (Hyperbolic.into(), true),
        (Trigonometric.into(), true),
        (Gerf::new(-0.05, GerfSign::Minus).unwrap().into(), true),
        (Positive.into(), false),
        (Gerf::optimal(d, 1.5).unwrap().into(), false),
    ];
    for (mechanism, even) in mechanisms {
        let recipe = |omega: Draw| -> Recipe {
            Recipe::Plain(PlainRecipe::new(mechanism.clone(), omega, Softmax::default()))
        };
        let pairs = [
            Draw::new(d, m, Antithetic(Independent)),
            Draw::new(d, m, Antithetic(Orthogonal)),
            Draw::new(d, m, Antithetic(Simplex::default())),
        ];
        let [half, whole] = [m / 2, m].map(|m| expected(&recipe(Draw::new(d, m, Independent))));
        for report in pairs.map(|omega| expected(&recipe(omega))) {
            let ratio = report.output_error().unwrap() / half.output_error().unwrap();
            let of_normalisers = report.normaliser_variance / half.normaliser_variance;
            if even {
                assert!((ratio - 1.0).abs() < 1e-12 && (of_normalisers - 1.0).abs() < 1e-12, "{report}");
            } else {
                // Pairs of these are better than independent frequencies.
                assert!(report.output_error() < whole.output_error(), "{report} {whole}");
                assert!(report.normaliser_variance < whole.normaliser_variance, "{report} {whole}");
            }
        }
        // The last of an odd number is alone: n²/(n + 2p) independent ones for p pairs.
        let odd = expected(&recipe(Draw::new(d, 7, Antithetic(Independent))));
        let one = whole.normaliser_variance * m as f64;
        assert!(!even || (odd.normaliser_variance / (one * 13.0 / 49.0) - 1.0).abs() < 1e-12);
        // Of Sobol' points nothing is known that says what pairs of them do.
        let unknown = attention.expected_report(
            &recipe(Draw::new(d, m, Antithetic(Sobol))),
            &TokenSample::new(&q, &k).with_values(&v),
        );
        assert!(matches!(unknown, Err(Error::Unsupported { .. })));
    }
    // By the definition, for all that is not even and has a closed form.
    let (x, y) = (&q * (d as f64).powf(-0.25), &k * (d as f64).powf(-0.25));
    let sum = |i: usize, j: usize| (&x.row(i) + &y.row(j)).to_vec();
    let squares = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let rho = DenseExponential::new((0..d).map(|k| -0.03 * k as f64).collect()).unwrap().rho();
    let a = Gerf::optimal(d, 1.5).unwrap().a().re;
    let logit = |i: usize, j: usize| x.row(i).dot(&y.row(j));
    let of = |covariance: &dyn Fn(&[f64], &[f64]) -> f64| {
        let both = |i: usize, j: usize, k: usize| {
            let (w, other) = (sum(i, j), sum(i, k));
            let opposite: Vec<f64> = other.iter().map(|w| -w).collect();
            covariance(&w, &other) + covariance(&w, &opposite)
        };
        defined((12, &v), &logit, &|_, _| 0.0, &both)
    };
    let gerf = |a: Complex64| {
        move |w: &[f64], other: &[f64]| {
            let norms = (squares(w, w), squares(other, other));
            covariance::complex_gerf(a, GerfSign::Plus, d, squares(w, other), norms)
        }
    };
    let omega = || Draw::new(d, m, Antithetic(Independent));
    let dense = DenseExponential::new((0..d).map(|k| -0.03 * k as f64).collect()).unwrap();
    let complex = Gerf::new(COMPLEX[0].0, GerfSign::Plus).unwrap();
    let cases: [(Recipe, Defined); 4] = [
        (
            Positive.recipe(omega(), Softmax::default()),
            of(&|w, other| covariance::positive(squares(w, other))),
        ),
        (Gerf::optimal(d, 1.5).unwrap().recipe(omega(), Softmax::default()), of(&gerf(a.into()))),
        (complex.recipe(omega(), Softmax::default()), of(&gerf(COMPLEX[0].0))),
        (dense.recipe(omega(), Softmax::default()), of(&|w, other| covariance::dense(w, other, &rho))),
    ];
    for (recipe, defined) in cases {
        let report = expected(&recipe);
        let output = (defined.output[0] / m as f64 + defined.output[1]).sqrt();
        assert!((report.output_error().unwrap() / output - 1.0).abs() < 1e-9, "{recipe}: {report}");
        let normaliser = report.normaliser_variance * m as f64 / defined.normaliser;
        assert!((normaliser - 1.0).abs() < 1e-9, "{recipe}: {normaliser}");
    }
}

/// Reports and variances of antithetic frequencies against redraws. The output's error is a mean over 60 coordinates of 400
/// draws, whose standard error is below 2.5 %. Four of them, for 12 values, leave a false-alarm rate below 1e-3. Counted as
/// independent, even features would be off by √2.
#[test]
fn antithetic_pairs_agree_with_redraws() {
    let (d, m, redraws) = (5, 64, 400);
    let [q, k] = [1, 2].map(|seed| normal(20, d, 0.35, seed));
    let v = normal(20, 3, 1.0, 3);
    let scale = (d as f64).powf(-0.25);
    let (x, y) = (&q * scale, &k * scale);
    let recipes = |omega: &dyn Fn() -> Draw| -> [Recipe; 4] {
        [
            Hyperbolic.recipe(omega(), Softmax::default()),
            Trigonometric.recipe(omega(), Softmax::default()),
            Positive.recipe(omega(), Softmax::default()),
            Gerf::optimal(d, 1.0).unwrap().recipe(omega(), Softmax::default()),
        ]
    };
    let couplings: [(&str, &dyn Fn() -> Draw); 3] = [
        ("independent", &|| Draw::new(d, m, Antithetic(Independent))),
        ("orthogonal", &|| Draw::new(d, m, Antithetic(Orthogonal))),
        ("simplex", &|| Draw::new(d, m, Antithetic(Simplex::default()))),
    ];
    for (name, omega) in couplings {
        for recipe in recipes(omega) {
            let attention = Attention::signed(vec![recipe.draw::<f64>(1).unwrap()]).unwrap();
            let closed = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
            let redrawn = attention
                .simulated_report(&recipe, redraws, &TokenSample::new(&q, &k).with_values(&v))
                .unwrap();
            let ratio = redrawn.output_error().unwrap() / closed.output_error().unwrap();
            // Coupled pairs are counted as independent ones, and do better or about as well: trigonometric features on orthogonal
            // ones by almost a half in so few dimensions.
            let range = if name == "independent" { 0.9..1.1 } else { 0.4..1.25 };
            assert!(range.contains(&ratio), "{name}, {recipe}: {ratio}");
            // The variance of one estimate knows the coupling, too. Estimates at these norms are nearly normal, so that a sample
            // variance of 400 has a standard error of 7 to 10 %.
            let (x, y) = (x.row(3).to_owned(), y.row(5).to_owned());
            let estimates: Vec<f64> = (0..redraws as u64)
                .map(|seed| recipe.draw::<f64>(seed).unwrap().estimate(&x, &y).unwrap())
                .collect();
            let mean = estimates.iter().sum::<f64>() / redraws as f64;
            let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (redraws - 1) as f64;
            let expected = recipe.log_variance(&x, &y).unwrap().unwrap().exp();
            assert!((0.6..1.5).contains(&(variance / expected)), "{name}, {recipe}: {variance}, {expected}");
        }
    }
}
