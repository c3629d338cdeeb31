//! Searches: approximate leave-one-out against refits, and where they end.

use ndarray::{Array1, Array2, Axis};
use random_features::apply::{Criterion, Glm, GlmFit, RidgeWarning};
use random_features::{Error, Targets};

use super::{features, labelled, line_map, scores, trigonometric, weights_with_zeros};

/// The mean loss of each row by the model of all others.
fn by_refits(classes: usize, n: usize, lambda: f64) -> f64 {
    let ((x, labels), weights) = (labelled::<f64>(n, classes), weights_with_zeros(n));
    let model = Glm::logistic(trigonometric(6, 1.2), classes).unwrap();
    let of_row = |i: usize| {
        let mut others = weights.clone();
        others[i] = 0.0;
        let targets = Targets::of_labels(&labels, classes).unwrap().with_weights(&others).unwrap();
        let fit = model.fit(&x, targets, lambda).unwrap();
        let p = fit.model().probabilities(&x.select(Axis(0), &[i])).unwrap();
        -weights[i] * p[[0, labels[i]]].ln()
    };
    (0..n).filter(|i| weights[*i] > 0.0).map(of_row).sum::<f64>() / weights.sum()
}

#[test]
fn leaving_out_is_near_refitting() {
    for (classes, n) in [(2, 120), (3, 120)] {
        let ((x, labels), weights) = (labelled::<f64>(n, classes), weights_with_zeros(n));
        let targets = Targets::from(&labels).with_weights(&weights).unwrap();
        let fit = Glm::logistic(trigonometric(6, 1.2), classes).unwrap().search(&x, targets).unwrap();
        let place = fit.errors().iter().position(|(lambda, _)| *lambda == fit.lambda()).unwrap();
        let least = fit.errors()[place].1;
        assert!(fit.errors().iter().all(|(_, error)| *error >= least));
        assert!(fit.errors().windows(2).all(|pair| pair[1].0 < pair[0].0));
        for (lambda, error) in &fit.errors()[place..place + 2] {
            let refitted = by_refits(classes, n, *lambda);
            assert!((error / refitted - 1.0).abs() < 0.02, "{classes}, λ = {lambda}: {error}, {refitted}");
        }
        // It is the fit for its λ.
        let targets = Targets::from(&labels).with_weights(&weights).unwrap();
        let again = Glm::logistic(trigonometric(6, 1.2), classes).unwrap();
        let again = again.fit(&x, targets, fit.lambda()).unwrap();
        let difference = &again.model().weights() - &fit.model().weights();
        assert!(difference.iter().all(|d| d.abs() < 1e-6));
    }
}

#[test]
fn the_evidence_is_a_criterion_of_counts() {
    let (x, labels) = labelled::<f64>(200, 2);
    let model = Glm::logistic(trigonometric(10, 1.2), 2).unwrap();
    let fit = model.search_by(&Criterion::LogEvidence, &x, &labels).unwrap();
    let least = fit.errors().iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
    assert_eq!(-fit.log_evidence().unwrap(), least);
    assert!(fit.errors().len() > 5);
    let refused = model.search_by(&Criterion::GeneralisedCrossValidation, &x, &labels);
    assert!(refused.unwrap_err().to_string().contains("leave-one-out"));
    // 120 and 80 rows have no whole weights that balance them.
    let refused = model.search_by(&Criterion::LogEvidence, &x, Targets::from(&labels).balanced().unwrap());
    assert!(refused.unwrap_err().to_string().contains("whole numbers"));
    // Nor are half rows of the class 0 counts of it.
    let halves = Array1::from_iter(labels.iter().map(|label| if *label == 0 { 0.5 } else { 1.0 }));
    let targets = Targets::from(&labels).with_weights(&halves).unwrap();
    let refused = model.search_by(&Criterion::LogEvidence, &x, targets);
    assert!(refused.unwrap_err().to_string().contains("whole numbers"));
}

#[test]
fn noise_leads_to_the_largest_values() {
    let (x, _) = labelled::<f64>(300, 2);
    let labels: Vec<usize> = (0..300).map(|i| (i * 7919 % 1009) % 2).collect();
    let fit = Glm::logistic(trigonometric(40, 0.5), 2).unwrap().search(&x, &labels).unwrap();
    let share = labels.iter().sum::<usize>() as f64 / 300.0;
    let p = fit.model().probabilities(&x).unwrap();
    assert!(p.column(1).iter().all(|p| (p - share).abs() < 0.15), "λ = {}", fit.lambda());
}

#[test]
fn large_models_are_chosen_by_folds() {
    let (x, labels) = labelled::<f64>(160, 5);
    let map = trigonometric::<f64>(210, 1.2);
    let fit = Glm::logistic(map.clone(), 5).unwrap().search(&x, &labels).unwrap();
    assert!(fit.errors().len() >= 5 && fit.errors().iter().all(|(_, error)| error.is_finite()));
    let totals = fit.model().probabilities(&x).unwrap().sum_axis(Axis(0));
    // Probabilities add up to the counts of the classes.
    let counts = Array1::from_shape_fn(5, |c| labels.iter().filter(|l| **l == c).count() as f64);
    assert!((totals - counts).iter().all(|d| d.abs() < 1e-4));
    assert_eq!(scores(fit.model(), &features(&map, &x)).ncols(), 5);
}

#[test]
fn searches_of_counts_and_of_the_hinge_end_inside() {
    let (x, labels) = labelled::<f64>(200, 2);
    let fit = Glm::squared_hinge(trigonometric(20, 1.0)).unwrap().search(&x, &labels).unwrap();
    assert!(fit.errors().last().unwrap().0 < fit.lambda());
    let y = Array1::from_shape_fn(200, |i| (20.0 * (0.5 + x[[i, 0]].sin().powi(2))).round());
    let fit = Glm::poisson(trigonometric(20, 1.0)).unwrap().search(&x, &y).unwrap();
    let rates = fit.model().rates(&x).unwrap();
    let relative = (&rates / &y - 1.0).mapv(f64::abs).sum() / 200.0;
    assert!(relative < 0.1, "{relative}");
}

/// The error of a λ by fits without the rows of each part, each of which is tested on its part.
fn by_parts(
    model: &Glm<f64>,
    (x, labels): &(ndarray::Array2<f64>, Vec<usize>),
    parts: &[(Vec<usize>, Vec<usize>)],
    lambda: f64,
) -> f64 {
    let of_part = |(training, tested): &(Vec<usize>, Vec<usize>)| {
        let of = |rows: &[usize]| -> Vec<usize> { rows.iter().map(|i| labels[*i]).collect() };
        let fit = model.fit(&x.select(Axis(0), training), &of(training), lambda).unwrap();
        let p = fit.model().probabilities(&x.select(Axis(0), tested)).unwrap();
        -of(tested).iter().enumerate().map(|(i, label)| p[[i, *label]].ln()).sum::<f64>()
    };
    let rows: usize = parts.iter().map(|(_, tested)| tested.len()).sum();
    parts.iter().map(of_part).sum::<f64>() / rows as f64
}

#[test]
fn groups_and_blocks_are_left_out_by_refits() {
    for classes in [2, 3] {
        let data = labelled::<f64>(120, classes);
        let (x, labels) = &data;
        let model = Glm::logistic(trigonometric(6, 1.2), classes).unwrap();
        let split = |tests: &dyn Fn(usize) -> bool, trains: &dyn Fn(usize) -> bool| {
            let of = |inside: &dyn Fn(usize) -> bool| (0..120).filter(|i| inside(*i)).collect::<Vec<_>>();
            (of(trains), of(tests))
        };
        // Five groups, which are five folds.
        let groups: Vec<usize> = (0..120).map(|i| 3 + 7 * (i * i % 5)).collect();
        let parts: Vec<_> = (0..5)
            .map(|k| split(&|i| groups[i] == 3 + 7 * k, &|i| groups[i] != 3 + 7 * k))
            .filter(|(_, tested)| !tested.is_empty())
            .collect();
        let fit = model.search_by(&Criterion::LeaveGroupsOut(&groups), x, labels).unwrap();
        assert!(fit.errors().len() >= 5);
        for (lambda, error) in fit.errors() {
            let expected = by_parts(&model, &data, &parts, *lambda);
            assert!((error / expected - 1.0).abs() < 1e-6, "λ = {lambda}: {error}, {expected}");
        }
        // Four blocks of 30 rows, with one left out before the tested one.
        let parts: Vec<_> = (2..4).map(|k| split(&|i| i / 30 == k, &|i| i / 30 + 1 < k)).collect();
        let fit = model.search_by(&Criterion::Forward { blocks: 4, gap: 1 }, x, labels).unwrap();
        for (lambda, error) in fit.errors() {
            let expected = by_parts(&model, &data, &parts, *lambda);
            assert!((error / expected - 1.0).abs() < 1e-6, "λ = {lambda}: {error}, {expected}");
        }
        let fit = model.search_by(&Criterion::Folds(6), x, labels).unwrap();
        assert!(fit.errors().iter().all(|(_, error)| error.is_finite()));
    }
}

/// Rows of each class are dealt to folds in turn, those of the next class from the next fold on; one that is alone is in every fit.
#[test]
fn folds_are_dealt_class_by_class() {
    let (x, mut labels) = labelled::<f64>(90, 3);
    labels[40] = 3;
    let model = Glm::logistic(trigonometric(4, 1.2), 4).unwrap();
    let fit = model.search_by(&Criterion::Folds(4), &x, &labels).unwrap();
    let mut next = [0; 4];
    let deal = |class: &usize| {
        next[*class] += 1;
        (*class < 3).then_some((next[*class] + class) % 4)
    };
    let folds: Vec<Option<usize>> = labels.iter().map(deal).collect();
    let of =
        |inside: &dyn Fn(Option<usize>) -> bool| (0..90).filter(|i| inside(folds[*i])).collect::<Vec<_>>();
    let parts: Vec<_> = (0..4).map(|k| (of(&|fold| fold != Some(k)), of(&|fold| fold == Some(k)))).collect();
    let data = (x, labels);
    assert!(fit.errors().len() >= 5);
    for (lambda, error) in fit.errors() {
        let expected = by_parts(&model, &data, &parts, *lambda);
        assert!((error / expected - 1.0).abs() < 1e-6, "λ = {lambda}: {error}, {expected}");
    }
}

/// λ falls from the trace of the second derivatives at equal probabilities, in the mean over classes: points have features of length 1.
#[test]
fn lambda_falls_from_the_trace() {
    for classes in [3, 4] {
        let (x, labels) = labelled::<f64>(120, classes);
        let fit = Glm::logistic(trigonometric(6, 1.2), classes).unwrap().search(&x, &labels).unwrap();
        let k = classes as f64;
        let top = 120.0 * (k - 1.0) / (k * k);
        for (lambda, _) in fit.errors() {
            let place = 2.0 * (lambda / top).log10();
            assert!((place - place.round()).abs() < 1e-9, "{classes}: {lambda} of {top}");
        }
    }
}

/// Which of two classes comes first changes nothing, however small losses are.
#[test]
fn small_losses_keep_their_digits() {
    let x = Array2::from_shape_fn((80, 1), |(i, _)| i as f64 / 20.0 + if i < 40 { 0.0 } else { 2.0 });
    let errors = |first: usize| {
        let labels: Vec<usize> = (0..80).map(|i| if i < 40 { first } else { 1 - first }).collect();
        Glm::logistic(line_map(2.0), 2).unwrap().search(&x, &labels).unwrap().errors().to_vec()
    };
    let (one, other) = (errors(0), errors(1));
    assert!(one.iter().any(|(_, error)| *error < 1e-9), "{one:?}");
    for ((lambda, a), (same, b)) in one.iter().zip(&other) {
        assert!(lambda == same && (a / b - 1.0).abs() < 1e-6, "λ = {lambda}: {a}, {b}");
    }
}

/// The least error of a search.
fn least(fit: &GlmFit<f64>) -> f64 {
    fit.errors().iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min)
}

/// Each row five times: leave-one-out sees four equal rows, groups do not.
#[test]
fn repeated_rows_are_left_out_as_groups() {
    let (x, labels) = labelled::<f64>(60, 2);
    let rows: Vec<usize> = (0..300).map(|i| i / 5).collect();
    let (x, labels): (_, Vec<usize>) = (x.select(Axis(0), &rows), rows.iter().map(|i| labels[*i]).collect());
    let model = Glm::logistic(trigonometric(60, 0.4), 2).unwrap();
    let by_rows = model.search(&x, &labels).unwrap();
    let by_groups = model.search_by(&Criterion::LeaveGroupsOut(&rows), &x, &labels).unwrap();
    assert!(least(&by_rows) < 0.7 * least(&by_groups), "{} {}", least(&by_rows), least(&by_groups));
    assert!(by_groups.lambda() > by_rows.lambda());
}

#[test]
fn criteria_of_other_searches_are_named() {
    let (x, labels) = labelled::<f64>(40, 2);
    let model = Glm::logistic(trigonometric(6, 1.2), 2).unwrap();
    let search = |criterion: &Criterion<'_>| model.search_by(criterion, &x, &labels);
    for criterion in [Criterion::HeldOutShare(0.3), Criterion::GeneralisedCrossValidation] {
        let message = search(&criterion).unwrap_err().to_string();
        assert!(message.contains("groups, folds, forward blocks"), "{message}");
    }
    assert!(matches!(search(&Criterion::Folds(1)), Err(Error::Parameter { .. })));
    assert!(matches!(search(&Criterion::Folds(41)), Err(Error::Parameter { .. })));
    assert!(matches!(search(&Criterion::Forward { blocks: 4, gap: 3 }), Err(Error::Parameter { .. })));
    assert!(matches!(search(&Criterion::LeaveGroupsOut(&[0; 40])), Err(Error::Parameter { .. })));
    assert!(matches!(search(&Criterion::LeaveGroupsOut(&[0, 1])), Err(Error::Shape { .. })));
    // The groups are the classes, so that no fold can be tested.
    assert!(matches!(search(&Criterion::LeaveGroupsOut(&labels)), Err(Error::NoData { .. })));
}

/// The unit of the weights is that of λ, and changes nothing else.
#[test]
fn a_search_of_counts_follows_the_unit_of_weights() {
    let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
    let y = x.column(0).mapv(|x| (10.0 * (1.0 + (2.0 * x).sin())).round());
    let search = |unit: f64| {
        let weights = Array1::from_elem(200, unit);
        let targets = Targets::from(&y).with_weights(&weights).unwrap();
        let fit = Glm::poisson(line_map(0.5)).unwrap().search(&x, targets).unwrap();
        (fit.lambda() / unit, fit.model().rates(&x).unwrap())
    };
    let (lambda, rates) = search(1.0);
    for unit in [1e10, 1.0 / 200.0, 1e-6, 1e-15] {
        let (own, others) = search(unit);
        assert!((own / lambda - 1.0).abs() < 1e-9, "unit {unit:e}: λ = {own}, not {lambda}");
        let off = (others - &rates).iter().fold(0.0, |a: f64, d| a.max(d.abs()));
        // The chosen λ is 1.6·10⁻¹² units, where rounding moves rates of up to 20 by some 10⁻⁶.
        assert!(off < 1e-5, "unit {unit:e}: {off}");
    }
}

#[test]
fn copies_are_noticed_and_left_out_together() {
    let (x, labels) = labelled::<f64>(100, 2);
    let rows: Vec<usize> = (0..500).map(|i| i / 5).collect();
    let (x5, labels5) = (x.select(Axis(0), &rows), rows.iter().map(|i| labels[*i]).collect::<Vec<_>>());
    let model = Glm::logistic(trigonometric(40, 1.0), 2).unwrap();
    let once = model.search(&x, &labels).unwrap();
    assert!(once.warnings().is_empty());
    let copied = model.search(&x5, &labels5).unwrap();
    assert_eq!(copied.warnings(), [RidgeWarning::Repeated { repeated: 400, rows: 500 }]);
    assert!(copied.to_string().contains("LeaveGroupsOut"));
    let groups: Vec<usize> = rows.iter().map(|i| i % 5).collect();
    let grouped = model.search_by(&Criterion::LeaveGroupsOut(&groups), &x5, &labels5).unwrap();
    assert!(grouped.warnings().is_empty());
    let (plain, together) = (least(&once), least(&grouped));
    assert!((together / plain - 1.0).abs() < 0.25, "{together} by groups, {plain} by rows without copies");
    assert!(least(&copied) < plain);
    let short = model.search_by(&Criterion::LeaveGroupsOut(&groups[..9]), &x5, &labels5);
    assert!(matches!(short, Err(Error::Shape { .. })));
}

/// Classes of which all but one are rare, each with two rows far from each other, with too many weights for second derivatives: 32 · 65.
#[test]
fn rare_classes_have_a_choice() {
    let x = Array2::from_shape_fn((100, 1), |(i, _)| i as f64 / 25.0);
    let labels: Vec<usize> = (0..100).map(|i| if i < 62 { 1 + i % 31 } else { 0 }).collect();
    let model = Glm::logistic(line_map(0.7), 32).unwrap();
    let fit = model.search(&x, &labels).unwrap();
    assert!(fit.errors().len() >= 5 && fit.errors().iter().all(|(_, error)| error.is_finite()));
    // No class has a row that can be left out.
    let each: Vec<usize> = (0..32).collect();
    assert!(matches!(model.search(x.slice(ndarray::s![..32, ..]), &each), Err(Error::NoData { .. })));
}
