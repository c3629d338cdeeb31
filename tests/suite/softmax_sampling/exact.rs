//! Draws from the exact softmax, where there are few classes.

use ndarray::{Array2, s};
use random_features::apply::softmax_sampling::Proposal;
use random_features::{Error, Real};

use super::sampler::{deviate, in_a_pool};
use super::{all, data, log_sum, non_negative, signed, tree};

fn softmaxes<T: Real>(tolerance: f64) {
    for classes in [1, 2, 63, 64, 65, 1000] {
        let (c, h) = data::<T>(classes, 5);
        // Whatever the options of the tree are.
        let map = signed(5, 6).remove(0);
        let proposal = Proposal::new(map)
            .with_uniform(0.3)
            .unwrap()
            .with_cosine(0.1)
            .unwrap()
            .with_leaf_size(7)
            .unwrap();
        let sampler = proposal.build(&c).unwrap();
        assert!(sampler.is_exact());
        let wide = c.mapv(|v| v.widen());
        for (i, h) in h.rows().into_iter().enumerate() {
            let logits = wide.dot(&h.mapv(|v| v.widen()));
            let log_z = log_sum(logits.as_slice().unwrap());
            let found = sampler.log_probabilities(&h, &all(classes)).unwrap();
            assert!(found.iter().zip(&logits).all(|(ln_q, o)| (ln_q - (o - log_z)).abs() < tolerance));
            let draws = sampler.sample(&h.insert_axis(ndarray::Axis(0)), 40, i as u64).unwrap();
            let pairs = draws.classes.iter().zip(&draws.log_probabilities);
            assert!(pairs.into_iter().all(|(class, ln_q)| *ln_q == found[*class]));
            assert_eq!(draws.clipped, [0.0]);
        }
    }
}

#[test]
fn few_classes_have_the_probabilities_of_the_softmax() {
    softmaxes::<f64>(1e-13);
    softmaxes::<f32>(1e-5);
}

/// A deviate above 4.8 is exceeded with a probability below 1e-6.
#[test]
fn exact_draws_follow_the_softmax() {
    let (c, h) = data::<f32>(300, 3);
    let sampler = Proposal::new(non_negative(3, 8).remove(0)).build(&c).unwrap();
    let draws = sampler.sample_of(&h.row(0), 200_000, 5).unwrap();
    let mut counts = vec![0; 300];
    draws.classes.iter().for_each(|class| counts[*class] += 1);
    let q = sampler.log_probabilities(&h.row(0), &all(300)).unwrap();
    let q: Vec<f64> = q.iter().map(|log| log.exp()).collect();
    assert!(deviate(&counts, &q) < 4.8);
    // The partition function is then known up to the rounding of the logits.
    let z = sampler.partition(&h.row(0), &c, 50, 1).unwrap();
    assert!(z.relative_error() < 1e-6);
}

#[test]
fn exact_draws_do_not_depend_on_threads_or_neighbours() {
    let (c, _) = data::<f32>(500, 6);
    let h = crate::common::points::<f32>(301, 6, 1.0);
    let sampler = Proposal::new(non_negative(6, 8).remove(0)).build(&c).unwrap();
    let one = in_a_pool(1, || sampler.sample(&h, 9, 11).unwrap());
    assert_eq!(one, in_a_pool(3, || sampler.sample(&h, 9, 11).unwrap()));
    let columns = h.t().as_standard_layout().into_owned().reversed_axes();
    assert_eq!(one, sampler.sample(&columns, 9, 11).unwrap());
    let part = sampler.sample(&h.slice(s![..7, ..]), 9, 11).unwrap();
    assert_eq!(part.classes, one.classes.slice(s![..7, ..]));
}

/// What is added makes a tree of it, and the classes stay what they were.
#[test]
fn a_tree_takes_over_from_some_number_of_classes_on() {
    let (c, h) = data::<f64>(100, 4);
    let proposal = tree(non_negative(4, 16).remove(0)).with_exact_below(80);
    let mut sampler = proposal.clone().build(&c.slice(s![..40, ..])).unwrap();
    sampler.remove(&[5, 6]).unwrap();
    sampler.add(&c.slice(s![40..79, ..])).unwrap();
    assert!(sampler.is_exact() && sampler.present_classes() == 77);
    sampler.replace(&[3], &c.slice(s![90..91, ..])).unwrap();
    sampler.add(&c.slice(s![79.., ..])).unwrap();
    assert!(!sampler.is_exact());
    let mut moved = c.clone();
    moved.row_mut(3).assign(&c.row(90));
    let mut built = proposal.build(&moved).unwrap();
    built.remove(&[5, 6]).unwrap();
    for h in h.rows() {
        let [a, b] = [&sampler, &built].map(|sampler| sampler.log_probabilities(&h, &all(100)).unwrap());
        assert!(a.iter().zip(b).all(|(a, b)| *a == b || (a - b).abs() < 1e-12));
    }
}

#[test]
fn logits_beyond_the_range_are_refused() {
    let c = Array2::from_elem((5, 2), 1e200);
    let sampler = Proposal::new(non_negative::<f64>(2, 8).remove(0)).build(&c).unwrap();
    let h = ndarray::arr2(&[[1.0, 0.0], [1e200, 0.0]]);
    assert_eq!(
        sampler.sample(&h, 3, 1),
        Err(Error::NotFinite { what: "the logits of h", row: 1, column: None })
    );
    assert!(matches!(sampler.log_probabilities(&h.row(1), &[0]), Err(Error::NotFinite { row: 0, .. })));
    // One class has all of it.
    let mut c = c;
    c.row_mut(2).fill(2e200);
    let sampler = Proposal::new(non_negative::<f64>(2, 8).remove(0)).build(&c).unwrap();
    let draws = sampler.sample(&h.slice(s![..1, ..]), 100, 1).unwrap();
    assert!(
        draws.classes.iter().all(|class| *class == 2)
            && draws.log_probabilities.iter().all(|log| *log == 0.0)
    );
}

/// A removed class, however far away, is no longer met; perfect draws are reliable.
#[test]
fn removed_classes_and_perfect_draws_do_no_harm() {
    let (mut c, h) = data::<f32>(300, 3);
    c.row_mut(3).fill(1e38);
    let mut sampler = Proposal::new(non_negative(3, 8).remove(0)).build(&c).unwrap();
    let h = h.mapv(|v| 1.0 + v);
    assert!(matches!(sampler.sample(&(&h * 1e3), 5, 1), Err(Error::NotFinite { .. })));
    sampler.remove(&[3]).unwrap();
    assert!(sampler.sample(&(&h * 1e3), 5, 1).unwrap().classes.iter().all(|class| *class != 3));
    let (c, h) = data::<f64>(500, 3);
    let sampler = Proposal::new(non_negative(3, 8).remove(0)).build(&c).unwrap();
    for seed in 0..100 {
        let z = sampler.partition(&h.row(0), &c, 50, seed).unwrap();
        assert!(z.is_reliable(), "{seed}: {}", z.relative_error());
    }
}
