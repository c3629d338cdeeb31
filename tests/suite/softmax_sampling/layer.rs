//! Class vectors and sampler as one.

use ndarray::{Array2, Axis, s};
use random_features::Error;
use random_features::apply::softmax_sampling::{SampledLoss, SampledSoftmax};

use super::{all, data, log_sum, non_negative, tree};
use crate::common::points;

fn layer(leaf: usize, exact: usize) -> (SampledSoftmax<f64>, Array2<f64>) {
    let (c, h) = data::<f64>(50, 4);
    // Mixed, so that the classes that grow most are seen.
    let proposal = tree(non_negative(4, 16).remove(0)).with_uniform(0.2).unwrap();
    let proposal = proposal.with_leaf_size(leaf).unwrap().with_exact_below(exact);
    (SampledSoftmax::new(proposal, &c).unwrap(), h)
}

/// The sampler is the one that is built of the vectors.
fn in_step(layer: &SampledSoftmax<f64>, h: &Array2<f64>) {
    let sampler = layer.sampler();
    let proposal = tree(sampler.map().clone()).with_uniform(sampler.uniform_weight()).unwrap();
    let proposal = proposal.with_exact_below(if sampler.is_exact() { usize::MAX } else { 0 });
    let mut fresh = proposal.build(&layer.vectors()).unwrap();
    let removed: Vec<usize> = (0..sampler.classes()).filter(|class| !sampler.is_present(*class)).collect();
    fresh.remove(&removed).unwrap();
    for h in h.rows() {
        let [found, built] =
            [sampler, &fresh].map(|sampler| sampler.log_probabilities(&h, &all(sampler.classes())).unwrap());
        assert!(found.iter().zip(built).all(|(a, b)| *a == b || (a - b).abs() < 1e-10));
    }
}

#[test]
fn training_keeps_vectors_and_sampler_in_step() {
    let targets = [3, 9, 20, 44];
    for (leaf, exact) in [(1, 0), (8, 0), (1, usize::MAX)] {
        let (mut layer, h) = layer(leaf, exact);
        let full = |layer: &SampledSoftmax<f64>| {
            let loss = |(i, t): (usize, &usize)| {
                let logits = layer.vectors().dot(&h.row(i));
                log_sum(logits.as_slice().unwrap()) - logits[*t]
            };
            targets.iter().enumerate().map(loss).sum::<f64>() / 4.0
        };
        let before = full(&layer);
        for step in 0..50 {
            let loss = layer.loss(&h, &targets, 8, step).unwrap();
            layer.step(&loss, 0.5).unwrap();
        }
        assert!(full(&layer) < before - 1.0, "{} {before}", full(&layer));
        in_step(&layer, &h);
        // Classes that come and go.
        assert_eq!(layer.add(&points(9, 4, 1.0)).unwrap(), 50..59);
        layer.remove(&[9, 50]).unwrap();
        in_step(&layer, &h);
        assert!(layer.vectors().row(9).iter().all(|v| *v == 0.0));
        let error = layer.loss(&h, &targets, 8, 1).unwrap_err().to_string();
        assert_eq!(error, "row 1 of the targets is 9, but must be a class that was not removed");
        let loss = layer.loss(&h, &[3, 51, 20, 58], 8, 1).unwrap();
        layer.step(&loss, 0.1).unwrap();
        in_step(&layer, &h);
        let z = layer.partition(&h.row(0), 5000, 2).unwrap();
        let (low, high) = z.log_interval(1.0 - 1e-5).unwrap();
        let present: Vec<usize> = (0..59).filter(|class| layer.sampler().is_present(*class)).collect();
        let logits = layer.vectors().select(Axis(0), &present).dot(&h.row(0));
        let exact = log_sum(logits.as_slice().unwrap());
        assert!(low - 1e-12 <= exact && exact <= high + 1e-12, "{low} {exact} {high}");
    }
}

/// Adagrad by hand.
#[test]
fn any_optimiser_can_move_the_vectors() {
    let (mut layer, h) = layer(1, 0);
    let mut squares = Array2::<f64>::from_elem((50, 4), 1e-4);
    let loss = layer.loss(&h, &[1, 2, 3, 4], 8, 7).unwrap();
    let before = layer.vectors().to_owned();
    layer
        .update(&loss, |class, gradient, mut vector| {
            for ((v, square), g) in vector.iter_mut().zip(squares.row_mut(class)).zip(gradient) {
                *square += g * g;
                *v -= 0.3 * g / square.sqrt();
            }
        })
        .unwrap();
    for (row, class) in loss.classes().iter().enumerate() {
        for k in 0..4 {
            let g = loss.class_gradients()[[row, k]];
            let expected = before[[*class, k]] - 0.3 * g / (1e-4 + g * g).sqrt();
            assert!((layer.vectors()[[*class, k]] - expected).abs() < 1e-14);
        }
    }
    in_step(&layer, &h);
}

/// Vectors that have moved far have references of their own after that.
#[test]
fn a_layer_can_be_made_anew() {
    for leaf in [1, 8] {
        let (mut layer, h) = layer(leaf, 0);
        let far = points::<f64>(50, 4, 12.0);
        layer.replace(&all(50), &far).unwrap();
        layer.remove(&[3]).unwrap();
        in_step(&layer, &h);
        layer.rebuild().unwrap();
        in_step(&layer, &h);
        let proposal =
            tree(layer.sampler().map().clone()).with_uniform(0.2).unwrap().with_leaf_size(leaf).unwrap();
        let mut built = proposal.build(&layer.vectors()).unwrap();
        built.remove(&[3]).unwrap();
        assert_eq!(layer.sample(&h, 30, 1).unwrap(), built.sample(&h, 30, 1).unwrap());
    }
}

/// A step to NaN changes neither vectors nor draws.
#[test]
fn a_step_that_fails_changes_nothing() {
    for exact in [0, usize::MAX] {
        let (mut layer, h) = layer(1, exact);
        let loss = layer.loss(&h, &[1, 2, 3, 4], 8, 7).unwrap();
        let (vectors, draws) = (layer.vectors().to_owned(), layer.sample(&h, 20, 1).unwrap());
        assert!(matches!(layer.step(&loss, f64::NAN), Err(Error::Parameter { .. })));
        assert!(matches!(layer.step(&loss, -1.0), Err(Error::Parameter { .. })));
        assert!(layer.replace(&[1, 50], &points(2, 4, 1.0)).is_err());
        assert!(layer.add(&points(2, 3, 1.0)).is_err());
        assert!(layer.loss(&h, &[1, 2, 3], 8, 7).is_err());
        assert!(layer.loss(&h.slice(s![.., ..3]), &[1, 2, 3, 4], 8, 7).is_err());
        assert_eq!((layer.vectors().to_owned(), layer.sample(&h, 20, 1).unwrap()), (vectors, draws));
        // A loss of points of another dimension.
        let (c, h) = data::<f64>(50, 3);
        let sampler = tree(non_negative(3, 16).remove(0)).build(&c).unwrap();
        let draws = sampler.sample(&h, 8, 7).unwrap();
        let other = SampledLoss::new(&h, &c, &[1, 2, 3, 4], &draws).unwrap();
        assert!(matches!(layer.step(&other, 0.1), Err(Error::Shape { .. })));
        layer.remove(&[loss.classes()[0]]).unwrap();
        assert!(matches!(layer.step(&loss, 0.1), Err(Error::Entry { what: "the classes of the loss", .. })));
    }
}
