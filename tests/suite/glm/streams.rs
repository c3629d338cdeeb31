//! Streams against fits of all rows.

use ndarray::{Array1, Array2, Axis, arr1, arr2, s};
use random_features::Targets;
use random_features::apply::{Glm, GlmFit, GlmStream, GlmSums};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::Activation;
use random_features::{Error, Map, Nonlinear, Trigonometric};

use super::{labelled, trigonometric};
use crate::common::SplitMix;

/// The mean loss of a model on labels.
fn loss(model: &Glm<f64>, x: &ndarray::Array2<f64>, labels: &[usize]) -> f64 {
    let p = model.probabilities(x).unwrap();
    -labels.iter().enumerate().map(|(i, label)| p[[i, *label]].ln()).sum::<f64>() / labels.len() as f64
}

#[test]
fn a_stream_is_near_the_minimum_and_one_pass_nearer() {
    for classes in [2, 3] {
        let (x, labels) = labelled::<f64>(4000, classes);
        let zero = Glm::logistic(trigonometric(10, 1.2), classes).unwrap();
        let mut stream = GlmStream::new(&zero, 1.0).unwrap();
        for batch in 0..40 {
            let rows = 100 * batch..100 * (batch + 1);
            stream.update(x.slice(s![rows.clone(), ..]), &labels[rows]).unwrap();
        }
        let best: GlmFit<f64> = zero.fit(&x, &labels, 1.0).unwrap();
        let streamed = stream.model().unwrap().clone();
        let mut pass = GlmSums::at(&streamed).unwrap();
        pass.update(&x, &labels).unwrap();
        let after = pass.step(1.0).unwrap();
        let penalised = |model: &Glm<f64>| {
            let mut sums = GlmSums::at(model).unwrap();
            sums.update(&x, &labels).unwrap();
            sums.loss(1.0).unwrap() / 4000.0
        };
        let [streamed, after, best] = [&streamed, &after, best.model()].map(penalised);
        assert!(streamed - best < 0.01, "{streamed}, {best}");
        assert!((after - best).abs() < 0.1 * (streamed - best) + 1e-9, "{streamed}, {after}, {best}");
    }
}

#[test]
fn streams_join() {
    let (x, labels) = labelled::<f64>(2000, 2);
    let zero = Glm::logistic(trigonometric(10, 1.2), 2).unwrap();
    let of = |rows: std::ops::Range<usize>| {
        let mut stream = GlmStream::new(&zero, 1.0).unwrap();
        for start in rows.step_by(200) {
            let rows = start..start + 200;
            stream.update(x.slice(s![rows.clone(), ..]), &labels[rows]).unwrap();
        }
        stream
    };
    let mut joined = of(0..1000);
    joined.merge(&of(1000..2000)).unwrap();
    let best = zero.fit(&x, &labels, 1.0).unwrap();
    let [joined_loss, best] = [joined.model().unwrap(), best.model()].map(|model| loss(model, &x, &labels));
    assert!(joined_loss - best < 0.01, "{joined_loss}, {best}");
    assert!(joined.merge(&GlmStream::new(&zero, 2.0).unwrap()).is_err());
}

/// The first batches have one class, counts are large, and rows of weight 0 are absent.
#[test]
fn late_classes_and_large_counts_stay_finite() {
    let (x, mut labels) = labelled::<f64>(600, 3);
    labels[..200].fill(1);
    let mut stream = GlmStream::new(&Glm::logistic(trigonometric(8, 1.2), 3).unwrap(), 1.0).unwrap();
    let of = |labels: &[usize], rows: std::ops::Range<usize>| labels[rows].to_vec();
    for start in (0..600).step_by(100) {
        let own = of(&labels, start..start + 100);
        let targets = Targets::of_labels(&own, 3).unwrap();
        stream.update(x.slice(s![start..start + 100, ..]), targets).unwrap();
    }
    let p = stream.model().unwrap().probabilities(&x).unwrap();
    assert!((p.sum_axis(Axis(1)) - 1.0).iter().all(|d| d.abs() < 1e-9));
    let all = Glm::logistic(trigonometric(8, 1.2), 3).unwrap().fit(&x, &labels, 1.0).unwrap();
    let [streamed, best] = [stream.model().unwrap(), all.model()].map(|model| loss(model, &x, &labels));
    assert!(streamed - best < 0.1, "{streamed}, {best}");
    let y = x.column(0).mapv(|x| (1000.0 * (0.5 * x).exp()).round());
    let mut stream = GlmStream::new(&Glm::poisson(trigonometric(8, 1.2)).unwrap(), 1.0).unwrap();
    for start in (0..600).step_by(100) {
        let own = y.slice(s![start..start + 100]).to_owned();
        stream.update(x.slice(s![start..start + 100, ..]), &own).unwrap();
    }
    let rates = stream.model().unwrap().rates(&x).unwrap();
    assert!((rates / y - 1.0).iter().all(|d| d.abs() < 0.2));
}

fn plane(m: usize, lengthscale: f64) -> Map<f64> {
    Trigonometric.gaussian(Orthogonal.draw(2, m, 7).unwrap(), lengthscale).unwrap()
}

/// Points in the plane with labels: two classes that overlap and are equally frequent, or one row in a hundred of class 1.
fn classes_of(n: usize, is_rare: bool) -> (Array2<f64>, Vec<usize>) {
    let mut stream = SplitMix(23);
    let x = Array2::from_shape_fn((n, 2), |(i, _)| {
        let z = stream.normal();
        if is_rare && i % 100 == 0 { 1.2 + 0.5 * z } else { z }
    });
    let label = |i: usize| match is_rare {
        true => usize::from(i.is_multiple_of(100)),
        false => usize::from(x[[i, 0]] + stream.normal() > 0.0),
    };
    let labels = (0..n).map(label).collect();
    (x, labels)
}

/// The model after rows in an order, in batches of a size.
fn streamed(
    glm: &Glm<f64>,
    (x, labels): &(Array2<f64>, Vec<usize>),
    order: &[usize],
    batch: usize,
) -> Glm<f64> {
    let mut stream = GlmStream::new(glm, 0.1).unwrap();
    for rows in order.chunks(batch) {
        let own: Vec<usize> = rows.iter().map(|i| labels[*i]).collect();
        let targets = Targets::of_labels(&own, 2).unwrap();
        stream.update(x.select(Axis(0), rows).view(), targets).unwrap();
    }
    stream.model().unwrap().clone()
}

/// The sum of probabilities of class 1, relative to its number of rows.
fn ratio(model: &Glm<f64>, x: &Array2<f64>, labels: &[usize]) -> f64 {
    let p = model.probabilities(x).unwrap().column(1).sum();
    p / labels.iter().sum::<usize>() as f64
}

/// Orders of rows: as they are, one class first for some rows, and sorted.
fn orders(labels: &[usize]) -> Vec<(&'static str, Vec<usize>, f64)> {
    let n = labels.len();
    let sorted = |first: &dyn Fn(usize) -> bool| {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|i| !first(*i));
        order
    };
    vec![
        ("as they are", sorted(&|_| true), 1.2),
        ("99 rows of class 0 first", sorted(&|i| labels[i] == 0 && i <= 130), 1.2),
        ("1000 rows of class 0 first", sorted(&|i| labels[i] == 0 && i <= 1500), 1.3),
        ("a fourth of class 1 first", sorted(&|i| labels[i] == 1 && i < n / 4), 1.4),
        ("class 0 first", sorted(&|i| labels[i] == 0), 2.0),
        ("class 1 first", sorted(&|i| labels[i] == 1), 2.0),
    ]
}

#[test]
fn no_order_of_rows_misleads_a_stream() {
    for (is_rare, n) in [(false, 3000), (true, 8000)] {
        let (data, glm) = (classes_of(n, is_rare), Glm::logistic(plane(16, 1.0), 2).unwrap());
        let (x, labels) = &data;
        let best = glm.fit(x, labels, 0.1).unwrap();
        for (k, (name, order, most)) in orders(labels).into_iter().enumerate() {
            // The library takes 64 rows at a time or more: a row and many of them, and a few less and more.
            for batch in [[1, 500], [50, 99]][k % 2] {
                let model = streamed(&glm, &data, &order, batch);
                let found = ratio(&model, x, labels);
                assert!((1.0 / most..most).contains(&found), "{is_rare}, {name}, by {batch}: {found}");
                // One pass, with half steps if the loss increases, and then the minimum.
                let passed = pass(&model, x, labels);
                let found = ratio(&passed, x, labels);
                assert!((0.8..1.25).contains(&found), "{is_rare}, {name}, by {batch}, after a pass: {found}");
                let fit = model.fit(x, labels, 0.1).unwrap();
                assert!((fit.loss() / best.loss() - 1.0).abs() < 1e-9);
            }
        }
    }
}

/// The model after one pass of sums, by the largest of the steps 1, ½, ¼ … that lowers the loss.
fn pass(model: &Glm<f64>, x: &Array2<f64>, labels: &[usize]) -> Glm<f64> {
    let at = |model: &Glm<f64>| {
        let mut sums = GlmSums::at(model).unwrap();
        sums.update(x, labels).unwrap();
        sums
    };
    let (sums, mut fraction) = (at(model), 1.0);
    loop {
        let next = sums.step_by(0.1, fraction).unwrap();
        if at(&next).loss(0.1).unwrap() <= sums.loss(0.1).unwrap() {
            return next;
        }
        fraction *= 0.5;
    }
}

#[test]
fn one_class_alone_is_finite_and_certain() {
    let (x, _) = classes_of(3000, false);
    let glm = Glm::logistic(plane(16, 1.0), 2).unwrap();
    let mut stream = GlmStream::new(&glm, 0.1).unwrap();
    for i in 0..3000 {
        let targets = Targets::of_labels(&[0], 2).unwrap();
        stream.update(x.slice(s![i..i + 1, ..]), targets).unwrap();
    }
    let p = stream.model().unwrap().probabilities(&x).unwrap().column(1).sum();
    // Half a row of the other class.
    assert!((0.1..2.0).contains(&p), "{p}");
    let mut counts = GlmStream::new(&Glm::poisson(plane(16, 1.0)).unwrap(), 0.1).unwrap();
    for i in 0..3000 {
        counts.update(x.slice(s![i..i + 1, ..]), &[0usize]).unwrap();
    }
    let rates = counts.model().unwrap().rates(&x).unwrap().sum();
    assert!((0.1..2.0).contains(&rates), "{rates}");
}

/// The hinge and several classes in the worst order.
#[test]
fn sorted_classes_are_told_apart() {
    let data = classes_of(2000, false);
    let (x, labels) = &data;
    let mut order: Vec<usize> = (0..2000).collect();
    order.sort_by_key(|i| labels[*i]);
    let right = |model: &Glm<f64>| {
        let found = model.classify(x).unwrap();
        found.iter().zip(labels).filter(|(a, b)| a == b).count() as f64 / 2000.0
    };
    let hinge = Glm::squared_hinge(plane(16, 1.0)).unwrap();
    let best = right(hinge.fit(x, labels, 0.1).unwrap().model());
    for batch in [1, 300] {
        let found = right(&streamed(&hinge, &data, &order, batch));
        assert!(found > best - 0.1, "by {batch}: {found}, {best}");
    }
    let (x, labels) = labelled::<f64>(1500, 3);
    let glm = Glm::logistic(trigonometric(8, 1.2), 3).unwrap();
    let mut order: Vec<usize> = (0..1500).collect();
    order.sort_by_key(|i| labels[*i]);
    let mut stream = GlmStream::new(&glm, 1.0).unwrap();
    for rows in order.chunks(50) {
        let own: Vec<usize> = rows.iter().map(|i| labels[*i]).collect();
        stream.update(x.select(Axis(0), rows).view(), Targets::of_labels(&own, 3).unwrap()).unwrap();
    }
    let p = stream.model().unwrap().probabilities(&x).unwrap().sum_axis(Axis(0));
    for class in 0..3 {
        let ratio = p[class] / labels.iter().filter(|label| **label == class).count() as f64;
        assert!((0.5..2.0).contains(&ratio), "class {class}: {ratio}");
    }
}

#[test]
fn asking_for_the_model_changes_nothing() {
    let (x, labels) = classes_of(700, false);
    let glm = Glm::logistic(plane(16, 1.0), 2).unwrap();
    let [mut asked, mut silent] = [(); 2].map(|()| GlmStream::new(&glm, 0.1).unwrap());
    for (i, label) in labels.iter().enumerate() {
        for stream in [&mut asked, &mut silent] {
            stream.update(x.slice(s![i..i + 1, ..]), Targets::of_labels(&[*label], 2).unwrap()).unwrap();
        }
        if i % 50 == 3 {
            asked.model().unwrap();
        }
    }
    assert_eq!(asked.model().unwrap().weights(), silent.model().unwrap().weights());
    // Each row counts at once.
    let before = asked.model().unwrap().weights().to_owned();
    asked.update(x.slice(s![..1, ..]), Targets::of_labels(&[1], 2).unwrap()).unwrap();
    assert_ne!(asked.model().unwrap().weights(), before);
}

/// A row that no sum can hold is refused when it is given, and leaves the stream as it was.
#[test]
fn rows_beyond_all_sums_are_refused_at_once() {
    let refused = |found: Result<(), Error>| {
        assert!(matches!(found, Err(Error::Parameter { .. })), "{found:?}");
    };
    let (x, labels) = classes_of(200, false);
    let linear: Map<f64> =
        Nonlinear::new(Activation::Identity).build(Independent.draw(2, 8, 1).unwrap(), 1.0).unwrap();
    for (map, is_linear) in [(plane(16, 1.0), false), (linear, true)] {
        let glm = Glm::logistic(map, 2).unwrap();
        let [mut stream, mut silent] = [(); 2].map(|()| GlmStream::new(&glm, 0.1).unwrap());
        for (i, label) in labels.iter().enumerate() {
            let row = x.slice(s![i..i + 1, ..]);
            if i % 50 == 3 {
                let heavy = arr1(&[1e291]);
                let targets = Targets::of_labels(&[1], 2).unwrap().with_weights(&heavy).unwrap();
                refused(stream.update(row, targets));
                if is_linear {
                    refused(stream.update(&arr2(&[[1e145, 0.0]]), Targets::of_labels(&[1], 2).unwrap()));
                }
            }
            for stream in [&mut stream, &mut silent] {
                stream.update(row, Targets::of_labels(&[*label], 2).unwrap()).unwrap();
            }
        }
        assert_eq!(stream.model().unwrap().weights(), silent.model().unwrap().weights());
    }
    let row = x.slice(s![..1, ..]);
    let mut counts = GlmStream::new(&Glm::poisson(plane(16, 1.0)).unwrap(), 0.1).unwrap();
    refused(counts.update(row, &arr1(&[1e291])));
    let three = Glm::logistic(plane(16, 1.0), 3).unwrap();
    let heavy = arr1(&[1e291]);
    let targets = Targets::of_labels(&[1], 3).unwrap().with_weights(&heavy).unwrap();
    refused(GlmStream::new(&three, 0.1).unwrap().update(row, targets));
    refused(GlmStream::new(&three, 1e-280).map(drop));
}

/// Exposures in other units are other weights and the inverse of other targets. Half a count that smooths the rates is half a count in
/// each of them; it is less where weights are below 1.
#[test]
fn rates_of_a_stream_follow_the_unit_of_exposures() {
    let x = Array2::from_shape_fn((400, 1), |(i, _)| 2.0 * (0.7 * i as f64).sin());
    let counts =
        Array1::from_shape_fn(400, |i| (1.0 + (1.5 * x[[i, 0]]).sin() + (9.1 * i as f64).sin()).round());
    let counts = counts.mapv(|count| count.max(0.0));
    let rates = |unit: f64| {
        let mut stream = GlmStream::new(&Glm::poisson(super::line_map(1.0)).unwrap(), 1.0).unwrap();
        let (y, exposures) = (&counts / unit, Array1::from_elem(400, unit));
        for start in (0..400).step_by(80) {
            let rows = s![start..start + 80];
            let (y, exposures) = (y.slice(rows), exposures.slice(rows));
            let targets = Targets::from(&y).with_weights(&exposures).unwrap();
            stream.update(x.slice(s![start..start + 80, ..]), targets).unwrap();
        }
        stream.model().unwrap().rates(&x).unwrap() * unit
    };
    let plain = rates(1.0);
    assert!((plain.sum() / counts.sum() - 1.0).abs() < 0.1, "{} for {}", plain.sum(), counts.sum());
    for (unit, error) in [(1e2, 1e-6), (1e4, 1e-6), (1e8, 1e-6), (1e-2, 0.02), (1e-6, 0.02)] {
        let ratios = rates(unit) / &plain;
        assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < error), "unit {unit:e}: {ratios}");
    }
}
