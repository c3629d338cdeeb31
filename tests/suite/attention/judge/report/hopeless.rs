//! Reports where no error can be stated: what they say instead, and how far tokens must shrink.

use crate::attention::judge::report::{conditioning, maps, off_centre, report};
use crate::attention::judge::{four, normal};
use ndarray::Array4;
use random_features::apply::attention::{Attention, ExactAttention, Heads, TokenSample};
use random_features::compose::Conditioning;
use random_features::frequency::Independent;
use random_features::kernel::Softmax;
use random_features::map::{Mechanism, Recipe};
use random_features::recipe::Draw;
use random_features::theory::dense::optimal;
use random_features::{DenseExponential, Gerf, Map, Positive, rng};

/// The factor to shrink by is where the largest variance is a tenth, neither more nor less, with coefficients that are fitted
/// again.
#[test]
fn tokens_shrink_no_more_than_they_must() {
    let (d, m) = (6, 64);
    let [q, k, v] = off_centre(d, 1.2);
    let variance = |map: &Map<f64>, factor: f64| {
        let report = report(map, [&(&q * factor), &(&k * factor), &v]);
        (report.normaliser_variance, report.shrink)
    };
    let omega = || Independent.draw(d, m, rng(5).next_u64()).unwrap();
    let positive = Positive.softmax::<f64>(omega()).unwrap();
    let turned = Conditioning::new(conditioning(d, d).matrices()[0].clone()).unwrap();
    let conditioned = positive.conditioned(&turned).unwrap();
    // (x + y)² of pairs, coordinate by coordinate.
    let squares = |factor: f64| {
        let scale = factor * (d as f64).powf(-0.25);
        let mut sums = vec![0.0; d];
        for (x, y) in q.rows().into_iter().flat_map(|x| k.rows().into_iter().map(move |y| (x, y))) {
            sums.iter_mut().zip(&x + &y).for_each(|(sum, w)| *sum += (scale * w).powi(2) / (12.0 * 15.0));
        }
        sums
    };
    let gerf = |factor: f64| -> Map<f64> {
        Gerf::optimal(d, squares(factor).iter().sum()).unwrap().softmax(omega()).unwrap()
    };
    let dense = |factor: f64| -> Map<f64> {
        let a = squares(factor).into_iter().map(|phi| optimal(phi).a).collect();
        DenseExponential::new(a).unwrap().softmax(omega()).unwrap()
    };
    type Fit<'a> = Box<dyn Fn(f64) -> Map<f64> + 'a>;
    let fits: [(&str, Fit<'_>); 4] = [
        ("positive", Box::new(|_| positive.clone())),
        ("conditioned", Box::new(|_| conditioned.clone())),
        ("generalised", Box::new(gerf)),
        ("dense", Box::new(dense)),
    ];
    for (name, fit) in &fits {
        let (_, shrink) = variance(&fit(1.0), 1.0);
        assert!(shrink > 0.05 && shrink < 0.95, "{name}: {shrink}");
        for (factor, enough) in [(0.999 * shrink, true), (1.001 * shrink, false)] {
            let (found, _) = variance(&fit(factor), factor);
            assert_eq!(found < 0.1, enough, "{name}: {found} at {factor}");
        }
    }
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
        assert!(report.to_string().contains(&format!("it would take {enough:.1e} frequencies")), "{report}");
    }
    // At smaller norms one map may do where another does not.
    let (q, k) = (&q * 0.7, &k * 0.7);
    let report = report(&maps(d, m, 5)[2], [&q, &k, &v]);
    assert!(matches!(report.alternatives[0].0, Mechanism::Gerf(_)));
}

/// Beyond the range of numbers a report has a sentence all the same.
#[test]
fn reports_of_huge_tokens_make_sense() {
    let (d, m) = (8, 64);
    let [q, k, v] = [1, 2, 3].map(|seed| normal(20, d, 200.0, seed));
    for map in maps(d, m, 5) {
        let report = report(&map, [&q, &k, &v]);
        let text = report.to_string();
        assert!(report.is_hopeless() && text.starts_with("hopeless with m = 64"), "{text}");
        assert!(!text.contains("inf") && !text.contains("NaN") && !text.contains("0.00 "), "{text}");
        assert!(text.contains("shrunk to"), "{text}");
        assert_eq!(report.is_worse_than_uniform(), None);
        if !report.normaliser_variance.is_finite() {
            assert!(
                text.contains("beyond the range of numbers: no number of frequencies is enough"),
                "{text}"
            );
        }
    }
}

/// How far tokens must shrink, and what other maps would do, is said of the pairs that are estimated.
#[test]
fn hopeless_reports_are_of_estimated_pairs() {
    let (n, d, m) = (20, 4, 32);
    let [q, k] = [1, 2].map(|seed| normal(n, d, 1.6, seed));
    let attention = |map: &Map<f64>| {
        Attention::signed(vec![map.clone()])
            .unwrap()
            .with_window(4, 3)
            .unwrap()
            .with_keys_exact(&[0])
            .unwrap()
    };
    let all = maps(d, m, 5);
    let positive = attention(&Positive.softmax(Independent.draw(d, m, rng(5).next_u64()).unwrap()).unwrap());
    let report = positive.error_report(&TokenSample::new(&q, &k)).unwrap();
    assert!(report.is_hopeless() && report.shrink < 1.0, "{report}");
    let shrunk = |factor: f64| {
        let [q, k] = [&q, &k].map(|x| x * (factor * report.shrink));
        positive.error_report(&TokenSample::new(&q, &k)).unwrap()
    };
    assert!(!shrunk(0.999).is_hopeless() && shrunk(1.001).is_hopeless(), "{report}");
    let mut found = 0;
    for map in &all {
        let own = attention(map).error_report(&TokenSample::new(&q, &k)).unwrap().normaliser_variance;
        found += usize::from(report.alternatives.iter().any(|(_, v)| (v / own - 1.0).abs() < 1e-9));
    }
    // Two of the three others, and not the one that is fitted to the tokens.
    assert!(found >= 2, "{report:?}");
}

/// Beside "hopeless" stands a number, which is rough: of features that are never negative too large by a factor of up to 3. The one of the
/// mean of the values says how bad it is.
#[test]
fn hopeless_reports_give_a_rough_number() {
    let (d, m, draws) = (8, 128, 60);
    let mut met = 0;
    for size in [0.5, 0.53, 0.56, 0.59, 0.62, 0.65, 0.68] {
        let [q, k] = [1, 2].map(|seed| normal(40, d, size, seed));
        let v = normal(40, 5, 1.0, 3);
        let (q4, k4, v4) = (four(&q), four(&k), four(&v));
        let heads = Heads::new(&q4, &k4, &v4).unwrap();
        let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
        let size = exact.iter().map(|v| v * v).sum::<f64>();
        for i in [0, 1, 3] {
            let report = report(&maps(d, m, 5)[i], [&q, &k, &v]);
            let rough = report.rough_output_error();
            assert_eq!(rough.is_some(), report.normaliser_variance <= 1.0, "{report}");
            assert_eq!(rough.is_some(), report.rough_weight_error().is_some());
            if !report.is_hopeless() {
                assert_eq!(
                    (rough, report.rough_weight_error()),
                    (report.output_error(), report.weight_error())
                );
                continue;
            }
            assert!(report.output_error().is_none());
            assert_eq!(report.to_string().contains("Roughly"), rough.is_some(), "{report}");
            let Some(rough) = rough else { continue };
            let square = |seed: u64| {
                let map = maps(d, m, 1000 + seed).into_iter().nth(i).unwrap();
                let out = Attention::new(map).unwrap().bidirectional(&heads).unwrap().output;
                (&out - &exact).iter().map(|e| e * e).sum::<f64>() / size / draws as f64
            };
            let measured = (0..draws).map(square).sum::<f64>().sqrt();
            println!("{i}: variance {} rough {rough} measured {measured}", report.normaliser_variance);
            assert!((0.8..3.0).contains(&(rough / measured)), "{i}: {rough}, {measured}, {report}");
            met += 1;
        }
    }
    assert!(met >= 6, "{met}");
    // Of weights alone, and from redraws.
    let [q, k] = [1, 2].map(|seed| normal(20, d, 0.7, seed));
    let recipe: Recipe = Positive.recipe(Draw::new(d, 32, Independent), Softmax::default());
    let attention = Attention::new(recipe.draw::<f64>(7).unwrap()).unwrap();
    let redrawn = attention.simulated_report(&recipe, 50, &TokenSample::new(&q, &k)).unwrap();
    assert!(redrawn.is_hopeless() && redrawn.rough_output_error().is_none(), "{redrawn}");
    let rough = redrawn.rough_weight_error();
    assert!(rough.is_none_or(|rough| rough > 0.05) && redrawn.weight_error().is_none());
    assert_eq!(redrawn.to_string().contains("Roughly"), rough.is_some(), "{redrawn}");
}
