//! Streams against fits of all rows.

use ndarray::{Axis, s};
use random_features::Targets;
use random_features::apply::{Glm, GlmFit, GlmStream, GlmSums};

use super::{labelled, trigonometric};

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
        let mut pass = GlmSums::at(stream.model()).unwrap();
        pass.update(&x, &labels).unwrap();
        let after = pass.step(1.0).unwrap();
        let penalised = |model: &Glm<f64>| {
            let mut sums = GlmSums::at(model).unwrap();
            sums.update(&x, &labels).unwrap();
            sums.loss(1.0).unwrap() / 4000.0
        };
        let [streamed, after, best] = [stream.model(), &after, best.model()].map(penalised);
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
    let [joined_loss, best] = [joined.model(), best.model()].map(|model| loss(model, &x, &labels));
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
    let p = stream.model().probabilities(&x).unwrap();
    assert!((p.sum_axis(Axis(1)) - 1.0).iter().all(|d| d.abs() < 1e-9));
    let all = Glm::logistic(trigonometric(8, 1.2), 3).unwrap().fit(&x, &labels, 1.0).unwrap();
    let [streamed, best] = [stream.model(), all.model()].map(|model| loss(model, &x, &labels));
    assert!(streamed - best < 0.1, "{streamed}, {best}");
    let y = x.column(0).mapv(|x| (1000.0 * (0.5 * x).exp()).round());
    let mut stream = GlmStream::new(&Glm::poisson(trigonometric(8, 1.2)).unwrap(), 1.0).unwrap();
    for start in (0..600).step_by(100) {
        let own = y.slice(s![start..start + 100]).to_owned();
        stream.update(x.slice(s![start..start + 100, ..]), &own).unwrap();
    }
    let rates = stream.model().rates(&x).unwrap();
    assert!((rates / y - 1.0).iter().all(|d| d.abs() < 0.2));
}
