//! What must be reached on data of a stated stream of random numbers.

use experiments::dataset::Dataset;
use ndarray::{Array2, Axis};
use random_features::Targets;
use random_features::apply::{Criterion, Glm, RidgeClassifier, RidgeFit, RidgeSearch, Standardisation};

use crate::common::{SplitMix, print_reached};

/// Rows of which the first are rare, with their labels.
fn rare(stream: &mut SplitMix, n: usize, first: usize) -> (Array2<f64>, Vec<usize>) {
    let value = |(i, _): (usize, usize)| {
        let z = stream.normal();
        if i < first { 1.5 + 0.3 * z } else { z }
    };
    (Array2::from_shape_fn((n, 2), value), (0..n).map(|i| usize::from(i < first)).collect())
}

fn balanced_accuracy(found: &[usize], labels: &[usize]) -> f64 {
    let share = |class: usize| {
        let of = || found.iter().zip(labels).filter(|(_, label)| **label == class);
        of().filter(|(found, label)| found == label).count() as f64 / of().count() as f64
    };
    0.5 * (share(0) + share(1))
}

fn search(x: &Array2<f64>, targets: Targets<'_, f64>) -> RidgeFit<f64> {
    RidgeSearch::gaussian(2, 256, 7).unwrap().with_lengthscales([0.6]).fit(x, targets).unwrap()
}

/// A class of one row in a hundred: weights, a threshold by left-out scores, and logistic regression.
#[test]
fn a_rare_class_is_found() {
    let mut stream = SplitMix(17);
    let (x, labels) = rare(&mut stream, 4000, 40);
    let (new, new_labels) = rare(&mut stream, 40_000, 400);
    let balanced = || Targets::from(&labels).balanced().unwrap();
    let weighted = search(&x, balanced());
    let reached = balanced_accuracy(&weighted.model().classify(&new).unwrap(), &new_labels);
    print_reached("rare class: weights", ".96", reached, "RidgeClassifierCV .970");
    assert!(reached > 0.96, "weights: {reached}");

    let plain = search(&x, Targets::from(&labels));
    let without = balanced_accuracy(&plain.model().classify(&new).unwrap(), &new_labels);
    let scores = plain.spectrum().left_out(&Criterion::leave_one_out(&x, &labels), plain.lambda()).unwrap();
    let classifier = RidgeClassifier::new(plain.model().clone()).unwrap();
    let classifier = classifier.with_threshold(&scores, &labels).unwrap();
    let threshold = balanced_accuracy(&classifier.classify(&new).unwrap(), &new_labels);
    print_reached("rare class: threshold", ".95", threshold, "unweighted .61");
    assert!(threshold > 0.95 && without < 0.75, "threshold: {threshold}, without: {without}");
    // Probabilities of the population, not of equally frequent classes.
    let calibrated = classifier.with_score_calibration(&scores, &labels).unwrap();
    let mean = calibrated.probabilities(&new).unwrap().column(1).mean().unwrap();
    assert!((mean - 0.01).abs() < 0.003, "{mean}");

    let model = weighted.model();
    let inputs = model.standardisation().cloned().unwrap();
    let logistic = Glm::logistic(model.map().clone(), 2).unwrap().with_standardisation(inputs).unwrap();
    let fit = logistic.search(&x, balanced()).unwrap();
    let reached = balanced_accuracy(&fit.model().classify(&new).unwrap(), &new_labels);
    print_reached("rare class: logistic", ".96", reached, "LogisticRegression .973, SVC .969");
    assert!(reached > 0.96, "logistic: {reached}");
    let corrected = fit.into_model().with_priors(&[1.0, 1.0], &[3960.0, 40.0]).unwrap();
    let p = corrected.probabilities(&new).unwrap();
    let loss = -new_labels.iter().enumerate().map(|(i, label)| p[[i, *label]].ln()).sum::<f64>() / 40_000.0;
    assert!(loss < 0.025, "log loss after a correction of priors: {loss}");
}

/// The log loss of every fifth row, by the others.
fn log_loss(set: &Dataset) -> f64 {
    let part = |held: bool| {
        let rows: Vec<usize> = (0..set.labels.len()).filter(|i| (i % 5 == 4) == held).collect();
        let labels: Vec<usize> = rows.iter().map(|i| set.labels[*i]).collect();
        (set.points.select(Axis(0), &rows), labels)
    };
    let ((x, labels), (new, new_labels)) = (part(false), part(true));
    let (d, classes) = (x.ncols(), set.classes.len());
    let ridge = RidgeSearch::gaussian(d, 256, 7).unwrap();
    let ridge = ridge.fit(&x, Targets::of_labels(&labels, classes).unwrap()).unwrap();
    let model = Glm::logistic(ridge.model().map().clone(), classes).unwrap();
    let model = model.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
    let fit = model.search(&x, &labels).unwrap();
    let p = fit.model().probabilities(&new).unwrap();
    -new_labels.iter().enumerate().map(|(i, label)| p[[i, *label]].ln()).sum::<f64>() / new.nrows() as f64
}

#[test]
fn wines_are_told_apart() {
    check_log_loss("wine", 0.08, ".067");
}

#[test]
#[ignore = "it takes a minute or more"]
fn tumours_and_digits_are_told_apart() {
    check_log_loss("breast_cancer", 0.06, ".023");
    check_log_loss("digits", 0.08, ".079");
}

/// Checks the log loss on a bundled set. The peer is `LogisticRegressionCV` on the features of an `RBFSampler`.
fn check_log_loss(name: &str, most: f64, peer: &str) {
    let loss = log_loss(&Dataset::bundled(name).unwrap());
    print_reached(&format!("log loss, {name}"), &format!("at most {most}"), loss, peer);
    assert!(loss < most, "{name}: {loss}");
}
