//! Every choice keeps every constraint and the budget, in each measure.

use super::data::{half, normal};
use super::{calibration, couplings, label};
use ndarray::Array2;
use random_features::compose::{Bases, Clustered, Conditioning, Hybrid};
use random_features::data::Clustering;
use random_features::frequency::{Hadamard, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::Transform;
use random_features::planner::{Measure, Plan, Planner};
use random_features::recipe::{CountLaw, Draw, DrawCounts};
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::workbench;
use random_features::{ComplexExponential, Gerf, Map, Poisson, Positive, Recipe, Trigonometric};

fn points() -> (Array2<f64>, Array2<f64>) {
    let x = normal(48, 4, 0.4, 1);
    (half(&x, 0), half(&x, 1))
}

fn planners() -> [Planner; 2] {
    let (x, y) = points();
    let both = Planner::new(&x, &y).unwrap();
    [both.clone().with_kernel(Softmax::default()), both.with_kernel(Gaussian::default())]
}

fn drawn(plan: &Plan) -> Vec<(String, Map<f64>)> {
    assert!(!plan.choices.is_empty());
    plan.choices.iter().map(|choice| (label(choice), choice.recipe.draw(7).unwrap())).collect()
}

#[test]
fn choices_are_never_negative() {
    let (x, y) = points();
    for planner in planners() {
        let plan = planner.only_non_negative().with_max_features(24).plan().unwrap();
        for (name, map) in drawn(&plan) {
            assert!(map.facts().non_negative, "{name}");
            assert!(map.gram(&x, &y).unwrap().iter().all(|v| *v >= 0.0), "{name}");
        }
    }
}

#[test]
fn choices_are_symmetric() {
    for planner in planners() {
        let plan = planner.only_symmetric().with_max_features(24).plan().unwrap();
        drawn(&plan).into_iter().for_each(|(name, map)| assert!(map.facts().symmetric, "{name}"));
    }
}

/// The means of 4000 draws: beyond 5 standard errors with a probability of 6e-7 for each of some sixty choices, if estimates are
/// about normal.
#[test]
fn choices_are_unbiased() {
    let (x, y) = points();
    for (planner, kernel) in planners().into_iter().zip(["softmax", "Gaussian"]) {
        let plan = planner.only_unbiased().with_max_features(24).plan().unwrap();
        let all = [&plan];
        assert!(plan.choices.iter().all(|choice| !choice.biased), "{kernel}");
        for choice in all.iter().flat_map(|plan| &plan.choices).step_by(8) {
            let name = label(choice);
            assert!(!["regularised", "truncated", "shifted"].iter().any(|word| choice.map.contains(word)));
            assert!(!["hadamard", "givens"].contains(&choice.coupling.as_str()), "{name}");
            let exact = match kernel {
                "softmax" => x.row(3).dot(&y.row(5)).exp(),
                _ => (-0.5 * (&x.row(3) - &y.row(5)).mapv(|v| v * v).sum()).exp(),
            };
            let values: Vec<f64> = (0..4000)
                .map(|seed| {
                    let map: Map<f64> = choice.recipe.draw(seed).unwrap();
                    map.estimate(&x.row(3), &y.row(5)).unwrap()
                })
                .collect();
            let sample = crate::common::Sample::of(&values);
            assert!(sample.z(exact).abs() < 5.0, "{name}, {kernel}: {} of {exact}", sample.mean);
        }
    }
}

#[test]
fn couplings_are_those_that_are_wanted() {
    for planner in planners() {
        let plan = planner.clone().without_structured().with_max_features(24).plan().unwrap();
        assert!(
            plan.choices.iter().all(|choice| !["hadamard", "givens"].contains(&choice.coupling.as_str()))
        );
        assert!(plan.choices.iter().any(|choice| choice.coupling == "sobol"));
        let two = planner
            .clone()
            .with_couplings([Independent.into(), Orthogonal.into()])
            .with_max_features(24)
            .plan()
            .unwrap();
        assert!(
            two.choices
                .iter()
                .all(|choice| ["independent", "orthogonal", "–"].contains(&choice.coupling.as_str()))
        );
        let fast = planner.clone().with_couplings([Hadamard::default().into()]);
        let plan = fast.clone().with_max_features(24).plan().unwrap();
        assert!(plan.choices.iter().all(|choice| ["hadamard", "–"].contains(&choice.coupling.as_str())));
        assert!(plan.choices.iter().any(|choice| choice.coupling == "hadamard"));
        // Their law is nearly that of the kernel, not quite.
        assert!(
            plan.choices.iter().filter(|choice| choice.coupling == "hadamard").all(|choice| choice.biased)
        );
        // Nothing is left of contradictions but counts, or a sentence.
        match fast.without_structured().with_max_features(24).plan() {
            Ok(plan) => assert!(plan.choices.iter().all(|choice| choice.coupling == "–")),
            Err(error) => assert!(error.to_string().contains("none of this crate serves"), "{error}"),
        }
    }
}

/// Costs are those of the maps, no choice costs more than the budget, and one frequency more would.
#[test]
fn budgets_are_kept_and_used() {
    let calibration = calibration();
    let budgets = [
        (Measure::Features, 50.0),
        (Measure::Multiplications, 700.0),
        (Measure::Bytes, 1000.0),
        (Measure::Nanoseconds, 130.0),
    ];
    for planner in planners() {
        for (measure, most) in budgets {
            let planner = planner
                .clone()
                .with_calibration(calibration)
                .with_couplings(couplings())
                .with_budget(measure, most);
            let plan = planner.plan().unwrap();
            assert_eq!((plan.measure, plan.calibration), (measure, Some(calibration)));
            for (choice, (name, map)) in plan.choices.iter().zip(drawn(&plan)) {
                assert_eq!(choice.cost(Measure::Features), map.feature_dim() as f64, "{name}");
                let blocks = choice.recipe.block_count();
                assert_eq!(
                    choice.cost(Measure::Bytes),
                    (8 * map.feature_dim() + 8 * blocks) as f64,
                    "{name}"
                );
                assert_eq!(blocks, map.blocks().len(), "{name}");
                let spent = choice.cost(measure);
                assert!(spent <= most, "{name}: {spent} {measure} of {most}");
                // Costs grow by as much for each frequency, from no less than nothing. A budget is an upper limit: whole blocks, whose
                // errors are smaller, may leave the rest of one.
                let rank =
                    choice.map.strip_prefix("truncated, rank ").and_then(|rest| rest.split(' ').next());
                let d: usize = rank.map_or(4, |rank| rank.parse().unwrap());
                let block = match choice.coupling.as_str() {
                    "orthogonal" => d,
                    "±orthogonal" => 2 * d,
                    _ => 1,
                };
                let more = if choice.m % block == 0 { block } else { 1 };
                let next = spent * (1.0 + more as f64 / choice.m as f64);
                assert!(next > most, "{name}: {spent} {measure} of {most}, with {} frequencies", choice.m);
            }
            let positive = plan
                .choices
                .iter()
                .find(|choice| choice.map == "positive" && choice.coupling == "independent");
            if let Some(choice) = positive {
                // A projection in four dimensions and an exponential for each frequency.
                let m = choice.m as f64;
                assert_eq!(choice.cost(Measure::Multiplications), 5.0 * m);
                let [dense, _, _, exponential, .., part, _] = workbench::calibration_times(&calibration);
                let expected = part + m * (4.0 * dense + exponential);
                assert!((choice.cost(Measure::Nanoseconds) / expected - 1.0).abs() < 1e-12);
            } else {
                panic!("no positive features for {measure}");
            }
        }
    }
}

/// The size of a number follows from the data unless it is stated.
#[test]
fn bytes_are_those_of_the_features() {
    let (x, y) = points();
    let single = Planner::new(&x.mapv(|v| v as f32), &y.mapv(|v| v as f32)).unwrap();
    let bytes = |planner: Planner| {
        let plan = planner.with_couplings([Independent.into()]).with_max_features(16).plan().unwrap();
        let choice = plan.choices.iter().find(|choice| choice.map == "positive").unwrap();
        (choice.recipe.feature_dim(), choice.cost(Measure::Bytes))
    };
    assert_eq!(bytes(single.clone()), (16, 72.0));
    assert_eq!(bytes(single.with_scalar::<f64>()), (16, 136.0));
}

/// A budget of time without a calibration is counted by one that is measured, and can be kept.
#[test]
fn a_calibration_is_measured_once_and_kept() {
    let planner =
        planners()[0].clone().with_couplings([Independent.into()]).with_budget(Measure::Nanoseconds, 5000.0);
    let plan = planner.plan().unwrap();
    let kept = plan.calibration.unwrap();
    let all = workbench::calibration_times(&kept);
    assert!(all.iter().all(|ns| *ns > 0.0 && ns.is_finite()), "{kept}");
    let again = planner.with_calibration(kept).plan().unwrap();
    assert_eq!(again, plan);
}

#[test]
fn wrong_calibrations_are_refused() {
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        for place in [0, 10] {
            let mut times = workbench::calibration_times(&calibration());
            times[place] = wrong;
            let calibration = workbench::calibration(times);
            let error = planners()[0].clone().with_calibration(calibration).plan().unwrap_err().to_string();
            assert!(error.contains("a time of the calibration"), "{error}");
        }
    }
}

/// Each kind of recipe by the operations of a point, counted by hand.
#[test]
fn times_are_those_of_the_operations() {
    let own = calibration();
    let [
        dense,
        hadamard,
        _,
        exponential,
        sinusoid,
        complex_exponential,
        power,
        product,
        complex,
        part,
        gathered,
    ] = workbench::calibration_times(&own);
    let planner = planners()[0].clone().with_calibration(own);
    let expect = |recipe: Recipe, expected: f64| {
        let cost = planner.cost(&recipe, Measure::Nanoseconds);
        assert!((cost / expected - 1.0).abs() < 1e-12, "{recipe}: {cost} ns, by hand {expected}");
    };
    let draw = |d, m, stream| Draw::new(d, m, Independent).with_stream(stream);
    let softmax = Softmax::default;
    expect(Trigonometric.recipe(draw(4, 10, 0), softmax()), 40.0 * dense + 20.0 * sinusoid + part);
    let generalised = Gerf::new(0.01, GerfSign::Minus).unwrap().recipe(draw(4, 10, 0), softmax());
    expect(generalised, 40.0 * dense + 20.0 * complex_exponential + part);
    let a = Transform::diagonal(vec![num_complex::Complex64::I; 4]).unwrap();
    let transformed = ComplexExponential::new(a, Symmetry::Plain).recipe(draw(4, 10, 0), softmax());
    expect(transformed, 80.0 * dense + 20.0 * complex_exponential + 4.0 * complex + part);
    let counts = DrawCounts::new(4, 10, CountLaw::Poisson(0.5.into())).unwrap();
    let poisson = Poisson::default().recipe(counts, softmax());
    expect(poisson, 40.0 * dense + 10.0 * power + part);
    // Three rounds of signs, transforms with log₂ 256 steps and a radius; fewer frequencies are multiplied as a matrix.
    let fast = |m| Positive.recipe(Draw::new(256, m, Hadamard::default()), softmax());
    expect(fast(256), (3.0 * 256.0 * 9.0 + 256.0) * hadamard + 256.0 * exponential + part);
    expect(fast(8), 8.0 * 256.0 * dense + 8.0 * exponential + part);
    // A whole transformation is multiplied into a matrix of frequencies, and leaves a norm; fast frequencies have no matrix.
    let stretched = Conditioning::new(Array2::from_diag_elem(256, 1.1)).unwrap();
    let slow = Positive.recipe(draw(256, 256, 0), softmax()).conditioned(&stretched).unwrap();
    let of_points = 256.0 * exponential + part;
    expect(slow, (256.0 * 256.0 + 0.5 * 256.0 * 257.0) * dense + of_points);
    let of_rounds = (3.0 * 256.0 * 9.0 + 256.0) * hadamard;
    expect(fast(256).conditioned(&stretched).unwrap(), of_rounds + 256.0 * 256.0 * dense + of_points);
    // Both bases on one draw of 3 and coefficients of 2: projected once each.
    let bases = Bases::shared(draw(4, 3, 0));
    let hybrid: Recipe = Hybrid::angular(bases, draw(4, 2, 1)).unwrap();
    let features = hybrid.feature_dim() as f64;
    let lifted = 6.0 * exponential + 6.0 * sinusoid + 2.0 * exponential;
    expect(hybrid, 20.0 * dense + lifted + features * product + 3.0 * part);
    // Two bases for a point of each side, and its distances from two centres.
    let clusters = Clustering::new(ndarray::arr2(&[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])).unwrap();
    let base = |k| Positive.recipe(draw(4, 10, k), softmax());
    let clustered: Recipe =
        Clustered::from_bases(clusters.clone(), clusters, (0..4).map(base).collect()).unwrap();
    expect(clustered, (2.0 * 40.0 + 8.0) * dense + 20.0 * exponential + 2.0 * gathered);
}

/// Mixtures of clusters serve the softmax kernel with ℓ = 1, with closed forms; each part has a draw of its own.
#[test]
fn mixtures_of_clusters_are_proposed() {
    let x = normal(100, 4, 0.4, 1);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1))
        .unwrap()
        .with_couplings([Independent.into(), Orthogonal.into()])
        .with_max_features(256);
    let plan = planner.clone().with_kernel(Softmax::default()).plan().unwrap();
    let mixtures: Vec<_> = plan
        .choices
        .iter()
        .filter(|choice| choice.map.starts_with("Gaussian") && choice.map.contains('×'))
        .collect();
    let names: std::collections::BTreeSet<&str> = mixtures.iter().map(|choice| choice.map.as_str()).collect();
    assert_eq!(names.len(), 3, "{plan:#}");
    for choice in mixtures {
        let seen =
            planner.clone().with_kernel(Softmax::default()).measure(&choice.recipe, 600, 1 << 40).unwrap();
        let (found, stated) = (seen.relative_median().value, choice.forecast.relative_median().value);
        assert!((found / stated - 1.0).abs() < 0.1, "{}: {found}, stated {stated}", choice.map);
    }
    let gaussian = planner.with_kernel(Gaussian::default()).plan().unwrap();
    assert!(
        gaussian
            .choices
            .iter()
            .all(|choice| !choice.map.starts_with("Gaussian ") || choice.map.contains("hybrid"))
    );
}

/// Times are measured once for a type of features, and anew for another type: no two measurements are the same to the bit.
#[test]
fn times_are_measured_for_the_type_of_the_features() {
    let planner = planners()[0].clone();
    let double = planner.calibration().unwrap();
    assert_eq!(planner.calibration().unwrap(), double);
    assert_ne!(planner.with_scalar::<f32>().calibration().unwrap(), double);
}
