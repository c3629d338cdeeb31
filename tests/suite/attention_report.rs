//! Expected errors of linear attention against simulation.

use ndarray::{Array2, Array4, Axis};
use num_complex::Complex64;
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, Basis, ErrorReport, ExactAttention, Heads};
use random_features::frequency::{Draw, Independent, RootDim, Simplex, draw, draw_with};
use random_features::kernel::{RegularisedSoftmax, Softmax};
use random_features::map::{Conditioning, Mechanism, Recipe};
use random_features::theory::covariance;
use random_features::theory::gerf::GerfSign;
use random_features::{
    DenseExponential, EluPlusOne, Error, Gerf, Hyperbolic, Map, Positive, Trigonometric, rng,
};

fn normal(n: usize, d: usize, size: f64, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn((n, d), || size * Distribution::<f64>::sample(&StandardNormal, &mut rng))
}

/// One batch of one head.
fn four(x: &Array2<f64>) -> Array4<f64> {
    x.clone().insert_axis(Axis(0)).insert_axis(Axis(0))
}

fn maps(d: usize, m: usize, seed: u64) -> [Map<f64>; 4] {
    let omega = || draw(d, m, &Independent, &mut rng(seed)).unwrap();
    [
        Positive.softmax(omega()).unwrap(),
        Hyperbolic.softmax(omega()).unwrap(),
        Trigonometric.softmax(omega()).unwrap(),
        Gerf::optimal(d, 1.5).unwrap().softmax(omega()).unwrap(),
    ]
}

const COMPLEX: [(Complex64, GerfSign); 2] =
    [(Complex64::new(-0.06, 0.08), GerfSign::Plus), (Complex64::new(-0.04, -0.05), GerfSign::Minus)];

fn conditioning(d: usize, r: usize) -> Conditioning {
    let entry =
        |(k, l): (usize, usize)| f64::from(u8::from(k == l)) * 1.1 + 0.02 * ((k + 2 * l) % 5) as f64 - 0.04;
    let (c_x, c_y) = ((0..d).map(|k| 0.03 * k as f64).collect(), vec![-0.05; d]);
    let whole = Conditioning::new(Array2::from_shape_fn((d, d), entry)).unwrap();
    whole.shifted(c_x, c_y).unwrap().truncated(r).unwrap()
}

/// Maps with parameters of their own, by name.
fn shaped(d: usize, m: usize, seed: u64) -> Vec<(&'static str, Map<f64>)> {
    let omega = |d| draw(d, m, &Independent, &mut rng(seed)).unwrap();
    let sphere = || draw_with(d, m, &Independent, &RootDim, &mut rng(seed)).unwrap();
    let dense = DenseExponential::new((0..d).map(|k| -0.03 * k as f64).collect()).unwrap();
    let positive = |d| Positive.softmax::<f64>(omega(d)).unwrap();
    let [plus, minus] = COMPLEX.map(|(a, s)| Gerf::new(a, s).unwrap().softmax(omega(d)).unwrap());
    vec![
        ("complex, s = 1", plus),
        ("complex, s = -1", minus),
        ("dense", dense.softmax(omega(d)).unwrap()),
        ("regularised positive", Positive.softmax(sphere()).unwrap()),
        ("regularised hyperbolic", Hyperbolic.softmax(sphere()).unwrap()),
        ("conditioned", positive(d).conditioned(&conditioning(d, d)).unwrap()),
        ("truncated", positive(d - 2).conditioned(&conditioning(d, d - 2)).unwrap()),
        ("Gaussian", Positive.gaussian(omega(d), 1.3).unwrap()),
    ]
}

/// The mean over draws of products of relative errors. With 20,000 draws its standard error is known from the sample; four
/// of them, for 6 values, leave a false-alarm rate of 4e-4.
#[test]
fn covariances_are_those_of_a_simulation() {
    let (d, draws) = (3, 20_000);
    let (x, y) = (normal(1, d, 0.5, 1), normal(2, d, 0.5, 2));
    let dots = |sign: f64| {
        let (w, v) = (&x.row(0) + &(&y.row(0) * sign), &x.row(0) + &(&y.row(1) * sign));
        (w.dot(&v), (w.dot(&w), v.dot(&v)))
    };
    let a = Gerf::optimal(d, 1.5).unwrap().a().re;
    let (sum, squares) = dots(1.0);
    let expected = [
        covariance::positive(sum),
        covariance::hyperbolic(sum),
        covariance::trigonometric(dots(-1.0).0),
        covariance::gerf(a, d, sum, squares),
        covariance::complex_gerf(COMPLEX[0].0, COMPLEX[0].1, d, sum, squares),
        covariance::complex_gerf(COMPLEX[1].0, COMPLEX[1].1, d, dots(-1.0).0, dots(-1.0).1),
    ];
    let kernel = [0, 1].map(|j| x.row(0).dot(&y.row(j)).exp());
    let mut samples = [const { Vec::new() }; 6];
    for seed in 0..draws as u64 {
        let complex = COMPLEX.map(|(a, s)| {
            Gerf::new(a, s).unwrap().softmax(draw(d, 1, &Independent, &mut rng(seed)).unwrap()).unwrap()
        });
        for (map, sample) in maps(d, 1, seed).iter().chain(&complex).zip(&mut samples) {
            let gram = map.gram(&x, &y).unwrap();
            sample.push((gram[[0, 0]] / kernel[0] - 1.0) * (gram[[0, 1]] / kernel[1] - 1.0));
        }
    }
    for (sample, expected) in samples.iter().zip(expected) {
        let mean = sample.iter().sum::<f64>() / draws as f64;
        let variance = sample.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / draws as f64;
        let error = (variance / draws as f64).sqrt();
        assert!(
            (mean - expected).abs() < 4.0 * error && error < 0.3 * expected.abs() + 0.02,
            "{mean} ± {error}, {expected}"
        );
    }
    assert!(covariance::gerf(0.125, d, sum, squares).is_nan());
    assert!((covariance::gerf(0.0, d, 0.7, (2.0, 3.0)) - covariance::positive(0.7)).abs() < 1e-14);
}

fn report(map: &Map<f64>, x: [&Array2<f64>; 3]) -> ErrorReport {
    let attention = Attention::signed(vec![map.clone()]).unwrap();
    attention.error_report(0, x[0], x[1], x[2]).unwrap()
}

/// The root mean square error over draws against the report, within its domain: first-order terms are all but a few
/// percent of it there.
#[test]
fn reports_agree_with_simulation_in_their_domain() {
    let (d, m, draws) = (8, 128, 150);
    // Where ‖x + y‖² is about ½: beyond, draws that are never met make up the variance.
    let [q, k] = [1, 2].map(|seed| normal(60, d, 0.3, seed));
    let v = normal(60, 5, 1.0, 3);
    let (q4, k4, v4) = (four(&q), four(&k), four(&v));
    let heads = Heads::new(&q4, &k4, &v4).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap();
    let size = exact.iter().map(|v| v * v).sum::<f64>();
    let mut errors = [0.0; 4];
    for seed in 0..draws {
        for (map, error) in maps(d, m, 1000 + seed).into_iter().zip(&mut errors) {
            let out = Attention::signed(vec![map]).unwrap().bidirectional(&heads).unwrap().output;
            *error += (&out - &exact).iter().map(|e| e * e).sum::<f64>() / size / draws as f64;
        }
    }
    for (map, error) in maps(d, m, 5).iter().zip(errors) {
        let report = report(map, [&q, &k, &v]);
        let (expected, measured) = (report.output_error().unwrap(), error.sqrt());
        assert!((measured / expected - 1.0).abs() < 0.12, "{map:?}: {measured}, {expected}");
        assert_eq!(report.shrink, 1.0);
        // A target of half the error needs four times as many.
        let needed = report.frequencies_for(0.5 * expected);
        assert!((needed / (4.0 * m as f64) - 1.0).abs() < 0.01);
        assert!(
            report.weight_error().unwrap() > 0.0 && report.to_string().contains("expected relative error")
        );
    }
}

/// The same for maps with parameters of their own, and for redraws of all frequencies instead of closed forms.
#[test]
fn reports_of_shaped_maps_agree_with_simulation() {
    let (d, m, draws) = (6, 128, 200);
    let [q, k] = [1, 2].map(|seed| normal(40, d, 0.35, seed));
    let v = normal(40, 5, 1.0, 3);
    let (q4, k4, v4) = (four(&q), four(&k), four(&v));
    let heads = Heads::new(&q4, &k4, &v4).unwrap();
    let softmax: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap();
    let squares = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let mut errors = vec![0.0; shaped(d, m, 0).len()];
    // The Gaussian kernel's own weights, which no exact attention here has.
    let gaussian = {
        let (factor, scale) = ((d as f64).powf(-0.5), 1.0 / (1.3 * 1.3));
        let log = |i: usize, j: usize| -> f64 {
            (q.row(i).dot(&k.row(j)) - 0.5 * k.row(j).dot(&k.row(j))) * factor * scale
        };
        let mut out = Array2::<f64>::zeros((40, 5));
        for i in 0..40 {
            let total: f64 = (0..40).map(|j| log(i, j).exp()).sum();
            (0..40).for_each(|j| out.row_mut(i).scaled_add(log(i, j).exp() / total, &v.row(j)));
        }
        four(&out)
    };
    let exact = |name: &str| if name == "Gaussian" { &gaussian } else { &softmax };
    for seed in 0..draws {
        for ((name, map), error) in shaped(d, m, 1000 + seed).into_iter().zip(&mut errors) {
            let out = Attention::signed(vec![map]).unwrap().bidirectional(&heads).unwrap().output;
            *error += squares(&(&out - exact(name))) / squares(exact(name)) / draws as f64;
        }
    }
    for ((name, map), error) in shaped(d, m, 5).iter().zip(errors) {
        let report = report(map, [&q, &k, &v]);
        let (expected, measured) = (report.output_error().unwrap(), error.sqrt());
        assert!((measured / expected - 1.0).abs() < 0.12, "{name}: {measured}, {expected}");
        assert_eq!((report.basis, report.shrink), (Basis::ClosedForm, 1.0));
        // Biases do not fall with the number of frequencies.
        let biased = name.starts_with("regularised") || *name == "truncated";
        let many = report.output_error_with(100_000_000).unwrap();
        assert_eq!(many > 1e-3, biased, "{name}: {many}");
        let least = report.frequencies_for(0.5 * many);
        assert_eq!(least == f64::INFINITY, biased, "{name}: {least}");
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
        let closed = attention.error_report(0, &q, &k, &v).unwrap();
        let redrawn = attention.simulated_report(&recipe, redraws, &q, &k, &v).unwrap();
        for (a, b) in [
            (closed.output_error(), redrawn.output_error()),
            (closed.weight_error(), redrawn.weight_error()),
            (closed.output_error_with(10 * m), redrawn.output_error_with(10 * m)),
        ] {
            assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 0.1, "{recipe}: {a:?}, {b:?}");
        }
        let normalisers = closed.normaliser_variance / redrawn.normaliser_variance;
        assert!((0.7..1.3).contains(&normalisers), "{recipe}: {normalisers}");
        assert_eq!((redrawn.basis, redrawn.frequencies), (Basis::Redraws(redraws), m));
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
        attention.simulated_report(recipe, redraws, &q, &k, &v).unwrap()
    };
    let independent = of(&Positive.recipe(Draw::new(d, m, Independent), Softmax::default()), 1000);
    let simplex = of(&Positive.recipe(Draw::new(d, m, Simplex::default()), Softmax::default()), 1000);
    assert!(simplex.output_error() < independent.output_error(), "{simplex} {independent}");
    // Of ELU + 1 there is but one draw.
    let recipe = EluPlusOne.recipe(d, 1.0);
    let report = of(&recipe, 2);
    let (q4, k4, v4) = (four(&q), four(&k), four(&v));
    let heads = Heads::new(&q4, &k4, &v4).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap();
    let out = Attention::new(recipe.draw::<f64>(1).unwrap()).unwrap().bidirectional(&heads).unwrap().output;
    let squares = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let error = (squares(&(&out - &exact)) / squares(&exact)).sqrt();
    assert!((report.output_error().unwrap() / error - 1.0).abs() < 1e-9, "{report}, {error}");
    assert!(report.normaliser_variance < 1e-12 && report.frequencies == 1);
    // What is drawn cannot be drawn again; one draw has no spread.
    let drawn = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::new(drawn.draw::<f64>(1).unwrap()).unwrap();
    let refused = attention.simulated_report(&drawn.drawn(1).unwrap(), 9, &q, &k, &v);
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    let refused = attention.simulated_report(&drawn, 1, &q, &k, &v);
    assert!(matches!(refused, Err(Error::Parameter { .. })));
    let other = Positive.recipe(Draw::new(d + 1, m, Independent), Softmax::default());
    assert!(attention.simulated_report(&other, 9, &q, &k, &v).is_err());
}

/// Queries and keys as they leave a usual layer norm: no map of the four works, and the report says so.
#[test]
fn it_is_hopeless_at_usual_norms() {
    let (d, m) = (64, 256);
    let [q, k, v] = [1, 2, 3].map(|seed| normal(64, d, 1.0, seed));
    for (i, map) in maps(d, m, 5).into_iter().enumerate() {
        let report = report(&map, [&q, &k, &v]);
        assert!(report.is_hopeless() && report.output_error().is_none() && report.weight_error().is_none());
        assert!(report.alternatives.iter().all(|(_, variance)| *variance > 0.1), "{report}");
        assert!(report.shrink > 0.05 && report.shrink < 0.95, "{report}");
        assert!((0.5..1.1).contains(&report.mean_error), "{report}");
        assert!(report.to_string().starts_with("hopeless with m = 256"), "{report}");
        // Shrunk as it says, they are reliable.
        let (small_q, small_k) = (&q * (0.99 * report.shrink), &k * (0.99 * report.shrink));
        let shrunk = self::report(&map, [&small_q, &small_k, &v]);
        // Of generalised features those with the best A for the smaller ones.
        let fitted =
            shrunk.alternatives.iter().find(|(mechanism, _)| matches!(mechanism, Mechanism::Gerf(_)));
        let gerf = (i == 3).then(|| fitted.map_or(f64::NAN, |(_, variance)| *variance));
        assert!(gerf.unwrap_or(shrunk.normaliser_variance) < 0.1, "{shrunk}");
        // What it takes instead is enough.
        let enough = report.frequencies_for(f64::INFINITY);
        assert!(report.normaliser_variance * m as f64 / enough <= 0.1 * (1.0 + 1e-9) && enough > m as f64);
    }
    // At smaller norms one map may do where another does not.
    let (q, k) = (&q * 0.7, &k * 0.7);
    let report = report(&maps(d, m, 5)[2], [&q, &k, &v]);
    assert!(matches!(report.alternatives[0].0, Mechanism::Gerf(_)));
}

#[test]
fn reports_refuse_what_they_cannot_say() {
    let x = normal(5, 4, 0.5, 1);
    let attention = Attention::new(EluPlusOne.map::<f64>(4, 1.0).unwrap()).unwrap();
    assert!(matches!(attention.error_report(0, &x, &x, &x), Err(Error::Unsupported { .. })));
    let attention = Attention::new(maps(4, 8, 1)[0].clone()).unwrap();
    let (none, wide) = (normal(0, 4, 1.0, 1), normal(5, 3, 1.0, 1));
    assert!(
        attention.error_report(0, &none, &x, &x).is_err()
            && attention.error_report(0, &x, &none, &none).is_err()
    );
    assert!(
        attention.error_report(0, &wide, &x, &x).is_err()
            && attention.error_report(0, &x, &wide, &x).is_err()
    );
    let mut bad = x.clone();
    bad[[2, 1]] = f64::NAN;
    assert!(matches!(attention.error_report(0, &x, &bad, &x), Err(Error::NotFinite { row: 2, .. })));
    assert!(matches!(attention.error_report(0, &x, &x, &bad), Err(Error::NotFinite { row: 2, .. })));
}

/// Beyond the range of what can be summed up it is hopeless, and nothing is said of outputs that are 0.
#[test]
fn reports_at_the_ends_of_the_range() {
    for size in [30.0, 300.0] {
        let [q, k, v] = [1, 2, 3].map(|seed| normal(20, 4, size, seed));
        for map in maps(4, 32, 1) {
            let report = report(&map, [&q, &k, &v]);
            if report.is_hopeless() {
                assert!(report.frequencies_for(0.1) > 32.0, "{report}");
            }
            assert!(report.alternatives.is_sorted_by(|a, b| a.1 <= b.1), "{report:?}");
            assert_eq!(
                (report.frequencies_for(-1.0), report.frequencies_for(f64::NAN)),
                (f64::INFINITY, f64::INFINITY)
            );
        }
    }
    let (x, none) = (normal(20, 4, 0.3, 1), Array2::zeros((20, 2)));
    let report = report(&maps(4, 512, 1)[0], [&x, &x, &none]);
    assert!(!report.is_hopeless() && report.output_error().is_none() && report.weight_error().is_some());
}
