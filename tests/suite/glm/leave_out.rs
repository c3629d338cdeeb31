//! Searches: approximate leave-one-out against refits, and where they end.

use ndarray::{Array1, Axis};
use random_features::Targets;
use random_features::apply::{Criterion, Glm};

use super::{features, labelled, scores, trigonometric, weights_with_zeros};

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
