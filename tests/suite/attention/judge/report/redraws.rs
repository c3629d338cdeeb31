//! Reports from redraws of all frequencies, against closed forms and where there are none.

use crate::attention::judge::report::{COMPLEX, off_centre};
use crate::attention::judge::{four, normal};
use crate::attention::oracle;
use ndarray::{Array1, Array2, Array4};
use random_features::apply::attention::{Attention, ExactAttention, Heads, TokenSample};
use random_features::frequency::{Independent, Simplex};
use random_features::kernel::{RegularisedSoftmax, Softmax};
use random_features::map::Recipe;
use random_features::recipe::Draw;
use random_features::theory::Basis;
use random_features::workbench::RootDim;
use random_features::{EluPlusOne, Error, Gerf, Positive, Trigonometric};

/// A report from redraws is of the variances and the biases of the estimates of the seeds 0, 1 and 2.
#[test]
fn redraws_are_samples() {
    let (d, m, draws) = (5, 64, 3);
    let [q, k, v] = off_centre(d, 0.3);
    let recipe: Recipe = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::new(recipe.draw::<f64>(7).unwrap()).unwrap();
    let report =
        attention.simulated_report(&recipe, draws, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
    let (x, y) = (&q * (d as f64).powf(-0.25), &k * (d as f64).powf(-0.25));
    let grams: Vec<Array2<f64>> =
        (0..draws as u64).map(|seed| recipe.draw::<f64>(seed).unwrap().gram(&x, &y).unwrap()).collect();
    let weights_of_pairs = oracle::softmax(&x.dot(&y.t()));
    let (count, one) = (draws as f64, (draws - 1) as f64);
    let square = |x: Array1<f64>| x.dot(&x);
    let (mut normaliser, mut weights, mut output, mut sizes) = (0.0f64, 0.0, 0.0, [0.0; 2]);
    for i in 0..q.nrows() {
        let exact = weights_of_pairs.row(i).to_owned();
        let rows: Vec<Array1<f64>> = grams.iter().map(|gram| gram.row(i).to_owned()).collect();
        let sum = rows.iter().fold(Array1::<f64>::zeros(k.nrows()), |sum, row| sum + row);
        let (p, mean): (Array1<f64>, f64) = (&sum / sum.sum(), sum.sum() / count);
        let variance =
            |of: &dyn Fn(&Array1<f64>) -> f64| rows.iter().map(of).sum::<f64>() / (one * mean * mean);
        normaliser = normaliser.max(variance(&|row: &Array1<f64>| (row.sum() - mean).powi(2)));
        // The bias is that of the mean, which has a variance too.
        let part = |variance: f64, off: Array1<f64>| variance + (square(off) - variance / count).max(0.0);
        weights += part(variance(&|row| square(row - &(&p * row.sum()))), &p - &exact);
        let of_output = variance(&|row| square(row.dot(&v) - &(p.dot(&v) * row.sum())));
        output += part(of_output, p.dot(&v) - exact.dot(&v));
        sizes = [sizes[0] + square(exact.clone()), sizes[1] + square(exact.dot(&v))];
    }
    for (found, expected) in [
        (report.normaliser_variance, normaliser),
        (report.weight_error().unwrap(), (weights / sizes[0]).sqrt()),
        (report.output_error().unwrap(), (output / sizes[1]).sqrt()),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, {expected}");
    }
}

/// Recipes to be drawn of maps with closed forms: both reports say the same, within the error of 400 redraws.
#[test]
fn redraws_agree_with_closed_forms() {
    let (d, m, redraws) = (5, 64, 400);
    let [q, k] = [1, 2].map(|seed| normal(20, d, 0.35, seed));
    let v = normal(20, 3, 1.0, 3);
    let omega = || Draw::new(d, m, Independent);
    let recipes: [Recipe; 5] = [
        Positive.recipe(omega(), Softmax::default()),
        Trigonometric.recipe(omega(), Softmax::default()),
        Gerf::new(COMPLEX[0].0, COMPLEX[0].1).unwrap().recipe(omega(), Softmax::default()),
        Positive.recipe(omega().with_radii(RootDim), RegularisedSoftmax::default()),
        Positive.recipe(omega(), random_features::kernel::Gaussian::new(1.2).unwrap()),
    ];
    for recipe in recipes {
        let attention = Attention::signed(vec![recipe.draw::<f64>(1).unwrap()]).unwrap();
        let closed = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
        // From the laws alone: nothing needs to be drawn.
        assert_eq!(
            attention.expected_report(&recipe, &TokenSample::new(&q, &k).with_values(&v)).unwrap(),
            closed
        );
        let redrawn =
            attention.simulated_report(&recipe, redraws, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
        for (a, b) in [
            (closed.output_error(), redrawn.output_error()),
            (closed.weight_error(), redrawn.weight_error()),
            (closed.output_error_with(10 * m), redrawn.output_error_with(10 * m)),
        ] {
            assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 0.1, "{recipe}: {a:?}, {b:?}");
        }
        let normalisers = closed.normaliser_variance / redrawn.normaliser_variance;
        assert!((0.7..1.3).contains(&normalisers), "{recipe}: {normalisers}");
        assert_eq!((redrawn.basis, redrawn.m), (Basis::Simulation(redraws), m));
        assert_eq!(closed.mean_error, redrawn.mean_error);
        assert!(redrawn.shrink.is_nan() && redrawn.to_string().ends_with("by 400 redraws"), "{redrawn}");
    }
}

/// What has no closed form: coupled frequencies do better, and what is not drawn has a bias alone, that of its output.
#[test]
fn redraws_know_what_closed_forms_do_not() {
    let (d, m) = (8, 64);
    let [q, k] = [1, 2].map(|seed| normal(20, d, 0.3, seed));
    let v = normal(20, 3, 1.0, 3);
    let of = |recipe: &Recipe, redraws: usize| {
        let attention = Attention::new(recipe.draw::<f64>(1).unwrap()).unwrap();
        attention.simulated_report(recipe, redraws, &TokenSample::new(&q, &k).with_values(&v)).unwrap()
    };
    let independent = of(&Positive.recipe(Draw::new(d, m, Independent), Softmax::default()), 1000);
    let simplex = of(&Positive.recipe(Draw::new(d, m, Simplex::default()), Softmax::default()), 1000);
    assert!(simplex.output_error() < independent.output_error(), "{simplex} {independent}");
    // Of ELU + 1 there is but one draw.
    let recipe = EluPlusOne.recipe(d, 1.0);
    let report = of(&recipe, 2);
    let (q4, k4, v4) = (four(&q), four(&k), four(&v));
    let heads = Heads::new(&q4, &k4, &v4).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    let out = Attention::new(recipe.draw::<f64>(1).unwrap()).unwrap().bidirectional(&heads).unwrap().output;
    let squares = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let error = (squares(&(&out - &exact)) / squares(&exact)).sqrt();
    assert!((report.output_error().unwrap() / error - 1.0).abs() < 1e-9, "{report}, {error}");
    assert!(report.normaliser_variance < 1e-12 && report.m == 1);
    // What is drawn cannot be drawn again; one draw has no spread.
    let drawn = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::new(drawn.draw::<f64>(1).unwrap()).unwrap();
    let refused =
        attention.simulated_report(&drawn.drawn(1).unwrap(), 9, &TokenSample::new(&q, &k).with_values(&v));
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    let refused = attention.simulated_report(&drawn, 1, &TokenSample::new(&q, &k).with_values(&v));
    assert!(matches!(refused, Err(Error::Parameter { .. })));
    let other = Positive.recipe(Draw::new(d + 1, m, Independent), Softmax::default());
    assert!(attention.simulated_report(&other, 9, &TokenSample::new(&q, &k).with_values(&v)).is_err());
}

/// Estimates beyond the range of numbers have errors like any others.
#[test]
fn redraws_reach_logits_beyond_the_range() {
    let (d, m, draws) = (4, 256, 200);
    // Differences are small, norms are not: trigonometric features do well.
    let centre = Array1::from_elem(d, 40.0);
    let [q, k] = [(6, 1), (9, 2)].map(|(n, seed)| normal(n, d, 0.3, seed) + &centre);
    let v = normal(9, 3, 1.0, 3);
    let recipe: Recipe = Trigonometric.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::signed(vec![recipe.draw::<f64>(7).unwrap()]).unwrap();
    let closed = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
    let redrawn =
        attention.simulated_report(&recipe, draws, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
    assert!(!closed.is_hopeless() && !redrawn.is_hopeless(), "{closed} {redrawn}");
    let ratio = redrawn.output_error().unwrap() / closed.output_error().unwrap();
    assert!((ratio - 1.0).abs() < 0.2, "{redrawn} {closed}");
    assert!((redrawn.normaliser_variance / closed.normaliser_variance - 1.0).abs() < 0.5);
}

/// From redraws that are hopeless nothing follows for more frequencies.
#[test]
fn hopeless_redraws_name_no_number() {
    let (d, m) = (64, 256);
    let [q, k, v] = [1, 2, 3].map(|seed| normal(16, d, 1.0, seed));
    let recipe: Recipe = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::new(recipe.draw::<f64>(7).unwrap()).unwrap();
    let report = attention.simulated_report(&recipe, 20, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
    assert!(report.is_hopeless());
    assert!(!report.to_string().contains("it would take"), "{report}");
    assert!(report.frequencies_for(0.1).is_nan() && report.output_error_with(1 << 40).is_none());
    let closed = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
    assert!(closed.frequencies_for(0.1) > 1e6);
}
