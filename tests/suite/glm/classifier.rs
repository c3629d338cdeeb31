//! Ridge classifiers: thresholds by trying all, calibration with weights as with repeated rows, other priors.

use ndarray::{Array1, Array2, Axis, arr2, s};
use random_features::Targets;
use random_features::apply::{Criterion, Ridge, RidgeClassifier, RidgeStatistics};

use super::{labelled, trigonometric};
use crate::common::SplitMix;

fn model(x: &Array2<f64>, labels: &[usize], classes: usize) -> Ridge<f64> {
    let mut statistics = RidgeStatistics::new(trigonometric(8, 1.2), classes).unwrap();
    statistics.update(x, Targets::of_labels(labels, classes).unwrap()).unwrap();
    statistics.solve(0.5).unwrap()
}

/// ½ (true positive share + true negative share) of class 1 above a threshold.
fn balanced_accuracy(scores: &Array2<f64>, labels: &[usize], weights: &Array1<f64>, at: f64) -> f64 {
    let share = |class: usize| {
        let total = |right: bool| -> f64 {
            let counts =
                |i: &usize| labels[*i] == class && (!right || (scores[[*i, 1]] > at) == (class == 1));
            (0..labels.len()).filter(counts).map(|i| weights[i]).sum()
        };
        total(true) / total(false)
    };
    0.5 * (share(0) + share(1))
}

#[test]
fn the_threshold_is_the_best_of_all() {
    let (x, labels) = labelled::<f64>(90, 2);
    let own = model(&x, &labels, 2);
    // Ties between scores, and between thresholds.
    let scores = own.predict(&x).unwrap().mapv(|s| (s * 8.0).round() / 8.0);
    let weights = Array1::from_shape_fn(90, |i| (i % 4) as f64);
    let targets = Targets::from(&labels).with_weights(&weights).unwrap();
    let classifier = RidgeClassifier::new(own).unwrap().with_threshold(&scores, targets).unwrap();
    let found = classifier.threshold().unwrap();
    let best = balanced_accuracy(&scores, &labels, &weights, found);
    for step in -40..80 {
        let at = f64::from(step) / 32.0;
        let other = balanced_accuracy(&scores, &labels, &weights, at);
        assert!(other <= best + 1e-12, "{at} is better than {found}");
        let is_middle = |at: f64| scores.column(1).iter().all(|s| (s - at).abs() > 1.0 / 32.0);
        if other > best - 1e-12 && is_middle(at) {
            assert!((found - 0.5).abs() <= (at - 0.5).abs() + 1.0 / 16.0);
        }
    }
    let above = classifier.model().predict(&x).unwrap().column(1).mapv(|s| usize::from(s > found));
    assert_eq!(classifier.classify(&x).unwrap(), above.to_vec());
    let three = RidgeClassifier::new(model(&x, &labelled::<f64>(90, 3).1, 3)).unwrap();
    assert!(three.with_threshold(&Array2::zeros((90, 3)), &labelled::<f64>(90, 3).1).is_err());
}

#[test]
fn weights_calibrate_as_repeated_rows() {
    let (x, labels) = labelled::<f64>(90, 3);
    let (own, counts) = (model(&x, &labels, 3), Array1::from_shape_fn(90, |i| (i % 3) as f64));
    let rows: Vec<usize> = (0..90).flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    let repeated: Vec<usize> = rows.iter().map(|i| labels[*i]).collect();
    let new = || RidgeClassifier::new(own.clone()).unwrap();
    let weighted = Targets::from(&labels).with_weights(&counts).unwrap();
    let one = new().with_calibration(&x, weighted).unwrap().probabilities(&x).unwrap();
    let two = new().with_calibration(&x.select(Axis(0), &rows), &repeated).unwrap();
    let two = two.probabilities(&x).unwrap();
    assert!((&one - &two).iter().all(|d| d.abs() < 1e-6));
    // Predictions of these rows are the same calibration.
    let scores = own.predict(&x).unwrap();
    let weighted = Targets::from(&labels).with_weights(&counts).unwrap();
    let three = new().with_score_calibration(&scores, weighted).unwrap().probabilities(&x).unwrap();
    assert_eq!(one, three);
}

#[test]
fn left_out_scores_lose_no_data() {
    let mut stream = SplitMix(5);
    let x = Array2::from_shape_fn((4300, 3), |_| stream.normal());
    let mut label = |i: usize| {
        let p = 1.0 / (1.0 + (-3.0 * (1.5 * x[[i, 0]]).sin()).exp());
        usize::from(stream.uniform() < p)
    };
    let labels: Vec<usize> = (0..4300).map(&mut label).collect();
    let (training, own) = (x.slice(s![..300, ..]), &labels[..300]);
    let mut statistics = RidgeStatistics::new(trigonometric(100, 0.8), 2).unwrap();
    statistics.update(training, own).unwrap();
    let spectrum = statistics.spectrum().unwrap();
    let left_out = spectrum.left_out(&Criterion::leave_one_out(training, own), 0.1).unwrap();
    let new = || RidgeClassifier::new(spectrum.model(0.1).unwrap()).unwrap();
    let honest = new().with_score_calibration(&left_out, own).unwrap();
    let fooled = new().with_calibration(training, own).unwrap();
    // On new rows of the same law, scores that were fitted are too sure.
    let (rows, new_labels) = (x.slice(s![300.., ..]), &labels[300..]);
    let loss = |classifier: &RidgeClassifier<f64>| -> f64 {
        let p = classifier.probabilities(rows).unwrap();
        -new_labels.iter().enumerate().map(|(i, label)| p[[i, *label]].ln()).sum::<f64>() / 4000.0
    };
    assert!(loss(&honest) < 0.9 * loss(&fooled), "{} and {}", loss(&honest), loss(&fooled));
}

#[test]
fn priors_multiply_odds() {
    let (x, labels) = labelled::<f64>(90, 3);
    let classifier = RidgeClassifier::new(model(&x, &labels, 3)).unwrap();
    assert!(classifier.clone().with_priors(&[1.0; 3], &[1.0; 3]).is_err());
    let classifier = classifier.with_calibration(&x, &labels).unwrap();
    let other = classifier.clone().with_priors(&[1.0, 1.0, 2.0], &[3.0, 1.0, 1.0]).unwrap();
    let (p, q) = (classifier.probabilities(&x).unwrap(), other.probabilities(&x).unwrap());
    let mut expected = &p * &arr2(&[[3.0, 1.0, 0.5]]);
    expected /= &expected.sum_axis(Axis(1)).insert_axis(Axis(1));
    assert!((q - expected).iter().all(|d| d.abs() < 1e-12));
}
