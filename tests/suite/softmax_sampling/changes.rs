//! Classes that are added and removed: the sampler is the one that is built of the classes that are there.

use ndarray::{Array2, s};
use random_features::Error;
use random_features::apply::softmax_sampling::{Proposal, SoftmaxSampler};

use super::sampler::deviate;
use super::{all, data, log_sum, non_negative, signed, tree};
use crate::common::points;

/// Maps, and the weights of the uniform distribution that they need.
fn proposals() -> Vec<Proposal<f64>> {
    let positive = non_negative(4, 12).into_iter().map(tree);
    positive.chain(signed(4, 12).into_iter().map(|map| tree(map).with_uniform(0.1).unwrap())).collect()
}

fn same(a: &SoftmaxSampler<f64>, b: &SoftmaxSampler<f64>, h: &Array2<f64>) {
    assert_eq!((a.classes(), a.present_classes()), (b.classes(), b.present_classes()));
    for h in h.rows() {
        let [a, b] = [a, b].map(|sampler| sampler.log_probabilities(&h, &all(sampler.classes())).unwrap());
        for (a, b) in a.iter().zip(b) {
            assert!((a.exp() - b.exp()).abs() < 1e-11, "{a} {b}");
        }
    }
}

/// From one class to several levels of nodes, by steps of all kinds.
#[test]
fn adding_classes_is_building_again() {
    let (c, h) = data::<f64>(700, 4);
    for proposal in proposals() {
        for leaf in [1, 3, 8, 64] {
            let proposal = proposal.clone().with_leaf_size(leaf).unwrap();
            let mut sampler = proposal.clone().build(&c.slice(s![..1, ..])).unwrap();
            let mut first = 1;
            for last in [2, 2, 5, 9, 64, 65, 70, 300, 700] {
                assert_eq!(sampler.add(&c.slice(s![first..last, ..])).unwrap(), first..last);
                same(&sampler, &proposal.clone().build(&c.slice(s![..last, ..])).unwrap(), &h);
                first = last;
            }
        }
    }
}

/// Without negative features the probabilities of the others are those of a sampler that never had what was removed.
#[test]
fn removed_classes_have_no_probability() {
    let (c, h) = data::<f64>(70, 4);
    let removed = [3, 0, 69, 12, 13, 14, 15, 3];
    let present: Vec<usize> = (0..70).filter(|class| !removed.contains(class)).collect();
    for (map, uniform) in non_negative::<f64>(4, 12).into_iter().zip([0.0, 0.2, 1.0]) {
        for leaf in [1, 3, 8, 4096] {
            let proposal = tree(map.clone()).with_leaf_size(leaf).unwrap().with_uniform(uniform).unwrap();
            let mut sampler = proposal.clone().build(&c).unwrap();
            sampler.remove(&removed[..4]).unwrap();
            sampler.remove(&removed[4..7]).unwrap();
            let fewer = proposal.build(&c.select(ndarray::Axis(0), &present)).unwrap();
            for h in h.rows() {
                let found = sampler.log_probabilities(&h, &all(70)).unwrap();
                let expected = fewer.log_probabilities(&h, &all(present.len())).unwrap();
                assert!(
                    present.iter().zip(expected).all(|(class, ln_q)| (found[*class] - ln_q).abs() < 1e-10)
                );
                assert!(removed.iter().all(|class| found[*class] == f64::NEG_INFINITY));
            }
            assert_eq!((sampler.classes(), sampler.present_classes()), (70, 63));
        }
    }
}

/// Each case raises a false alarm with a probability below 1e-6: a deviate above 4.8.
#[test]
fn draws_after_changes_have_the_stated_probabilities() {
    let (c, h) = data::<f64>(150, 4);
    for proposal in proposals() {
        for (leaf, exact) in [(1, 0), (8, 0), (1, usize::MAX)] {
            let proposal = proposal.clone().with_leaf_size(leaf).unwrap().with_exact_below(exact);
            let mut sampler = proposal.build(&c.slice(s![..90, ..])).unwrap();
            let gone: Vec<usize> = (8..40).chain([89]).collect();
            sampler.remove(&gone).unwrap();
            sampler.add(&c.slice(s![90.., ..])).unwrap();
            sampler.replace(&[88], &c.slice(s![..1, ..])).unwrap();
            let q = sampler.log_probabilities(&h.row(0), &all(150)).unwrap();
            assert!(log_sum(&q).abs() < 1e-10);
            let draws = sampler.sample_of(&h.row(0), 100_000, 3).unwrap();
            let mut counts = vec![0; 150];
            for (class, log) in draws.classes.iter().zip(&draws.log_probabilities) {
                counts[*class] += 1;
                assert_eq!(*log, q[*class]);
            }
            assert!(gone.iter().all(|class| counts[*class] == 0));
            let q: Vec<f64> = q.iter().map(|log| log.exp()).collect();
            assert!(deviate(&counts, &q) < 4.8, "L = {leaf}");
        }
    }
}

/// Whatever is refused changes nothing.
#[test]
fn changes_are_made_as_a_whole_or_not_at_all() {
    let (c, h) = data::<f64>(70, 4);
    let far = points::<f64>(9, 4, 1e200);
    for (leaf, exact) in [(1, 0), (8, 0), (1, usize::MAX)] {
        let proposal =
            tree(non_negative(4, 12).remove(0)).with_leaf_size(leaf).unwrap().with_exact_below(exact);
        let mut sampler = proposal.build(&c).unwrap();
        sampler.remove(&[7]).unwrap();
        let before = sampler.sample(&h, 50, 1).unwrap();
        let mut wrong = c.slice(s![..9, ..]).to_owned();
        wrong[[5, 1]] = f64::NAN;
        assert!(matches!(
            sampler.add(&wrong),
            Err(Error::NotFinite { what: "the vectors", row: 5, column: Some(1) })
        ));
        wrong.row_mut(5).assign(&far.row(5));
        if exact == 0 {
            let error = Error::NotFinite { what: "the features of the vectors", row: 5, column: None };
            assert_eq!(sampler.add(&wrong), Err(error.clone()));
            assert_eq!(sampler.replace(&[1, 2, 3, 4, 5, 6, 0, 8, 9], &wrong), Err(error));
        }
        let removed = "row 1 of the classes is 7, but must be a class that was not removed";
        assert_eq!(sampler.remove(&[1, 7]).unwrap_err().to_string(), removed);
        assert_eq!(sampler.replace(&[1, 7], &c.slice(s![..2, ..])).unwrap_err().to_string(), removed);
        let absent = "row 2 of the classes is 70, but must be below the number of classes";
        assert_eq!(sampler.remove(&[1, 2, 70]).unwrap_err().to_string(), absent);
        assert_eq!(sampler.log_probabilities(&h.row(0), &[1, 2, 70]).unwrap_err().to_string(), absent);
        let others: Vec<usize> = (0..70).filter(|class| *class != 7).collect();
        assert!(matches!(sampler.remove(&others), Err(Error::Parameter { .. })));
        assert!(matches!(sampler.add(&c.slice(s![.., ..3])), Err(Error::Shape { .. })));
        assert_eq!(sampler.add(&c.slice(s![..0, ..])), Ok(70..70));
        sampler.remove(&[]).unwrap();
        assert_eq!(sampler.sample(&h, 50, 1).unwrap(), before);
        // Once, though it stands twice.
        let mut twice = sampler.clone();
        twice.remove(&[9, 9]).unwrap();
        assert_eq!(twice.present_classes(), 68);
        assert!(log_sum(&twice.log_probabilities(&h.row(0), &all(70)).unwrap()).abs() < 1e-10);
        // All but one.
        sampler.remove(&others[1..]).unwrap();
        let draws = sampler.sample(&h, 5, 1).unwrap();
        assert!(draws.classes.iter().all(|class| *class == others[0]));
        assert!(draws.log_probabilities.iter().all(|log| log.abs() < 1e-12));
    }
}
