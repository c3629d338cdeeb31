//! Long passes that are stopped: they end with an error, and nothing has changed.

use std::ops::ControlFlow;

use ndarray::{Array2, arr2};
use random_features::apply::softmax_sampling::{SampledSoftmax, SoftmaxSampler};
use random_features::data::{Clustering, Reservoir, Statistics, shaping::Moments};
use random_features::{Error, progress};

use super::{all, data, non_negative, signed, tree};

/// What `work` gives once a watcher has said stop, which a clustering asks it.
fn stopped<R>(work: impl FnOnce() -> R) -> R {
    progress::watch(
        |_| ControlFlow::Break(()),
        || {
            let clustering = Clustering::of(&arr2(&[[0.0], [1.0]]), 2, 1);
            assert_eq!(clustering, Err(Error::Cancelled));
            work()
        },
    )
}

fn probabilities(sampler: &SoftmaxSampler<f64>, h: &Array2<f64>) -> Vec<f64> {
    sampler.log_probabilities(&h.row(0), &all(sampler.classes())).unwrap()
}

#[test]
fn a_stopped_change_changes_nothing() {
    let (c, h) = data::<f64>(70, 3);
    let maps = [non_negative::<f64>(3, 16).remove(0), signed(3, 16).remove(0)];
    for (map, leaf) in maps.into_iter().flat_map(|map| [(map.clone(), 1), (map, 8)]) {
        let proposal = tree(map).with_uniform(0.1).unwrap().with_leaf_size(leaf).unwrap();
        assert_eq!(stopped(|| proposal.clone().build(&c)).err(), Some(Error::Cancelled));
        let mut sampler = proposal.build(&c).unwrap();
        let before = probabilities(&sampler, &h);
        assert_eq!(stopped(|| sampler.add(&c)), Err(Error::Cancelled));
        assert_eq!(
            stopped(|| sampler.replace(&[3, 60], &c.slice(ndarray::s![..2, ..]))),
            Err(Error::Cancelled)
        );
        if leaf > 1 {
            assert_eq!(stopped(|| sampler.remove(&[5])), Err(Error::Cancelled));
        }
        assert_eq!((sampler.classes(), sampler.present_classes()), (70, 70));
        assert_eq!(probabilities(&sampler, &h), before);
        assert_eq!(stopped(|| sampler.sample(&h, 3, 1)), Err(Error::Cancelled));
        assert_eq!(stopped(|| sampler.report(&h, &c, &[])), Err(Error::Cancelled));
        assert_eq!(stopped(|| sampler.log_probabilities(&h.row(0), &[3])), Err(Error::Cancelled));
        // And then it goes on as if nothing had been.
        sampler.add(&c).unwrap();
        assert_eq!(sampler.classes(), 140);
    }
}

#[test]
fn a_stopped_layer_is_as_it_was() {
    let (c, h) = data::<f64>(70, 3);
    let proposal = tree(non_negative::<f64>(3, 16).remove(0));
    let mut layer = SampledSoftmax::new(proposal, &c).unwrap();
    let loss = layer.loss(&h, &[1, 2, 3, 4], 5, 1).unwrap();
    assert_eq!(stopped(|| layer.loss(&h, &[1, 2, 3, 4], 5, 1)), Err(Error::Cancelled));
    assert_eq!(stopped(|| layer.step(&loss, 0.5)), Err(Error::Cancelled));
    assert_eq!(stopped(|| layer.add(&c)).err(), Some(Error::Cancelled));
    assert_eq!(stopped(|| layer.rebuild()), Err(Error::Cancelled));
    assert_eq!(layer.vectors(), c);
    assert_eq!(layer.loss(&h, &[1, 2, 3, 4], 5, 1).unwrap(), loss);
}

#[test]
fn stopped_statistics_have_read_nothing() {
    let (x, _) = data::<f64>(70, 3);
    let (mut statistics, mut moments) = (Statistics::of(&x).unwrap(), Moments::of(&x).unwrap());
    let mut reservoir = Reservoir::of(&x).unwrap();
    let before = (statistics.clone(), moments.clone(), reservoir.clone());
    assert_eq!(stopped(|| statistics.update(&x)), Err(Error::Cancelled));
    assert_eq!(stopped(|| moments.update(&x)), Err(Error::Cancelled));
    assert_eq!(stopped(|| reservoir.update(&x)), Err(Error::Cancelled));
    assert_eq!((statistics, moments, reservoir), before);
}

/// A clustering tells its initial centres and its steps.
#[test]
fn a_clustering_says_how_far_it_is() {
    let (x, _) = data::<f64>(70, 3);
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = told.clone();
    let watcher = move |progress: &progress::Progress<'_>| {
        sink.lock().unwrap().push(progress.to_string());
        ControlFlow::Continue(())
    };
    let watched = progress::watch(watcher, || Clustering::of(&x, 2, 1));
    assert_eq!(watched, Clustering::of(&x, 2, 1));
    let told = told.lock().unwrap();
    assert_eq!(told[..3], ["initial centres: 1 of 2", "initial centres: 2 of 2", "steps of k-means: 1"]);
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn a_stopped_shape_is_an_error() {
    use random_features::apply::attention::AttentionShaping;
    use random_features::data::shaping::Shaping;
    let (x, y) = data::<f64>(70, 3);
    let weights = Array2::<f64>::ones((2, y.nrows()));
    let shaping = Shaping::new().with_validated_ridge(&[0.1, 0.3]).unwrap();
    for shaping in [Shaping::new(), shaping.clone(), shaping.with_rank_for(8).unwrap()] {
        assert_eq!(stopped(|| shaping.of_points(&x, &y)), Err(Error::Cancelled));
        assert_eq!(stopped(|| shaping.of_pairs(&x, &[0, 9], &y, &weights)), Err(Error::Cancelled));
        assert_eq!(
            stopped(|| AttentionShaping::new(shaping.clone()).choose(&x, &y, 4, 0)),
            Err(Error::Cancelled)
        );
        assert!(shaping.of_points(&x, &y).is_ok());
    }
}
