//! The ends of a sampler's range: norms, masses, numbers of draws, memory, and what is refused.

use ndarray::{Array1, Array2, s};
use random_features::apply::softmax_sampling::{Draws, SampledSoftmax};
use random_features::frequency::Orthogonal;
use random_features::{Error, Map, Positive};

use super::sampler::linear_scan;
use super::{all, data, log_sum, non_negative, signed, tree};
use crate::common::{point, points};

/// Classes and h of norm 20: all around h, in its direction, and opposite to it.
#[test]
fn large_norms_neither_overflow_nor_vanish() {
    let d = 8;
    let h = point::<f32>(d, 1, 20.0);
    let around: Vec<Array1<f32>> = (0..40).map(|seed| point(d, seed + 2, 20.0)).collect();
    for (towards, tolerance) in [(0.0, 1e-3), (3.0, 1e-3), (-3.0, 1e-3)] {
        let class = |i: usize| {
            let x = &around[i] + &(&h * towards);
            let norm = x.dot(&x).sqrt();
            x * (20.0 / norm)
        };
        let c = Array2::from_shape_fn((40, d), |(i, k)| class(i)[k]);
        for (narrow, wide) in non_negative::<f32>(d, 64).into_iter().zip(non_negative::<f64>(d, 64)).take(2) {
            let exact = linear_scan(&wide, h.mapv(f64::from).view(), &c.mapv(f64::from));
            for leaf in [1, 4] {
                let sampler = tree(narrow.clone()).with_leaf_size(leaf).unwrap().build(&c).unwrap();
                let found = sampler.log_probabilities(&h, &all(40)).unwrap();
                let likely = exact.iter().zip(&found).filter(|(exact, _)| **exact > -30.0);
                for (exact, found) in likely {
                    assert!((exact - found).abs() < tolerance, "{towards}, L = {leaf}: {found} {exact}");
                }
                let draws = sampler.sample_of(&h, 100, 1).unwrap();
                assert!(draws.log_probabilities.iter().all(|log| *log <= 0.0 && log.is_finite()));
            }
        }
    }
}

/// Of a map without negative features no class has probability 0: e^−3600 is below the range, its logarithm is not.
#[test]
fn probabilities_below_the_range_have_logarithms() {
    let map = Positive.softmax::<f64>(Orthogonal.draw(3, 64, 1).unwrap()).unwrap();
    let h = point::<f64>(3, 1, 60.0);
    let mut c = points::<f64>(30, 3, 60.0);
    c.row_mut(7).assign(&h);
    c.row_mut(21).assign(&-&h);
    for leaf in [1, 4, 64] {
        let sampler = tree(map.clone()).with_leaf_size(leaf).unwrap().build(&c).unwrap();
        let found = sampler.log_probabilities(&h, &all(30)).unwrap();
        let exact = linear_scan(&map, h.view(), &c);
        assert!(exact.iter().any(|log| *log < -750.0), "{exact:?}");
        for (found, exact) in found.iter().zip(exact) {
            assert!((found - exact).abs() < 1e-8, "L = {leaf}: {found} {exact}");
        }
    }
}

/// A class that has all the mass, up to e^−1000, is drawn, with a probability of at most 1, mixed or not.
#[test]
fn a_class_may_have_all_the_mass() {
    let map = non_negative::<f64>(3, 64).remove(0);
    for classes in [1, 2, 5, 70] {
        // Features hold e^−‖c‖²/2: the zero vector among those of norm 60.
        let mut c = Array2::from_shape_fn((classes, 3), |(i, k)| point::<f64>(3, i + 2, 60.0)[k]);
        let (h, top) = (point::<f64>(3, 1, 2.0), classes / 2);
        c.row_mut(top).fill(0.0);
        for uniform in [0.0, 0.1] {
            let sampler = tree(map.clone()).with_uniform(uniform).unwrap().build(&c).unwrap();
            let q = sampler.log_probabilities(&h, &all(classes)).unwrap();
            let expected = 1.0 - uniform + uniform / classes as f64;
            assert!(q[top] <= 0.0 && (q[top] - expected.ln()).abs() < 1e-8, "{classes}: {q:?}");
            let draws = sampler.sample_of(&h, 1000, 1).unwrap();
            let hits = draws.classes.iter().filter(|class| **class == top).count();
            assert!(hits == 1000 || (uniform > 0.0 && hits > 850), "{classes}: {hits}");
        }
    }
}

/// Walks are taken some ten thousands at a time, and no one can tell.
#[test]
fn many_walks_are_those_of_few() {
    let (c, h) = data::<f64>(30, 3);
    let sampler = tree(non_negative(3, 8).remove(0)).build(&c).unwrap();
    let classes: Vec<usize> = (0..140_000).map(|i| (i * 7) % 30).collect();
    let q = sampler.log_probabilities(&h.row(0), &all(30)).unwrap();
    let many = sampler.log_probabilities(&h.row(0), &classes).unwrap();
    assert!(many.len() == classes.len() && many.iter().zip(classes).all(|(log, class)| *log == q[class]));
}

#[test]
fn no_draws_and_more_than_there_is_memory_for() {
    let (c, h) = data::<f64>(30, 3);
    let sampler = tree(signed(3, 8).remove(0)).with_uniform(0.1).unwrap().build(&c).unwrap();
    let none = sampler.sample(&h, 0, 1).unwrap();
    assert_eq!(none.classes.dim(), (4, 0));
    assert!(none.clipped.iter().all(|clipped| clipped.to_bits() == 0), "no sign: {:?}", none.clipped);
    for k in [1 << 59, usize::MAX / 4, usize::MAX] {
        let Err(error) = sampler.sample_of(&h.row(0), k, 1) else { panic!("{k} draws") };
        assert_eq!(error.to_string(), format!("there is no memory for {k} draws"));
        assert!(matches!(sampler.sample(&h, k, 1), Err(Error::Memory { what: "draws", .. })));
    }
}

/// Rows of 64 features and a scale, and points of 4 coordinates where a leaf has several classes: ⌈64/16⌉ = 4 unless stated.
#[test]
fn memory_is_that_of_the_leaves() {
    let (c, _) = data::<f64>(100, 4);
    let bytes = |leaf: Option<usize>| {
        let proposal = tree(non_negative::<f64>(4, 64).remove(0));
        let proposal = if let Some(leaf) = leaf { proposal.with_leaf_size(leaf).unwrap() } else { proposal };
        proposal.build(&c).unwrap().bytes()
    };
    let (row, points) = (65 * 8, 100 * 4 * 8);
    assert_eq!(bytes(Some(1)), (100 + 25 + 7 + 2) * row);
    assert_eq!(bytes(None), (25 + 7 + 2) * row + points);
    assert_eq!(bytes(Some(100)), row + points);
}

#[test]
fn what_is_wrong_is_refused() {
    let (c, h) = data::<f64>(30, 4);
    let positive = non_negative::<f64>(4, 6).remove(0);
    let trigonometric = signed::<f64>(4, 6).remove(0);
    let new = |c: &Array2<f64>| tree(positive.clone()).build(c);
    assert!(matches!(new(&Array2::zeros((0, 4))), Err(Error::Parameter { .. })));
    assert!(matches!(new(&Array2::zeros((3, 5))), Err(Error::Shape { .. })));
    assert!(matches!(tree(trigonometric).build(&c), Err(Error::Parameter { .. })));
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let mut wrong = c.clone();
        wrong[[17, 2]] = bad;
        assert!(matches!(new(&wrong), Err(Error::NotFinite { row: 17, .. })), "{bad}");
    }
    let proposal = || tree(positive.clone());
    for bad in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(proposal().with_uniform(bad), Err(Error::Parameter { .. })));
    }
    assert!(proposal().with_cosine(0.0).is_err() && proposal().with_cosine(f64::NAN).is_err());
    assert!(proposal().with_leaf_size(0).is_err() && proposal().with_leaf_size(5000).is_err());
    let mut sampler = new(&c).unwrap();
    assert!(matches!(sampler.sample(&h.slice(s![.., ..3]), 2, 1), Err(Error::Shape { .. })));
    let mut wrong = h.clone();
    wrong[[2, 0]] = f64::NAN;
    assert!(matches!(sampler.sample(&wrong, 2, 1), Err(Error::NotFinite { row: 2, .. })));
    let sentence = "row 2, column 0 of h, both counted from 0, holds a number that is not finite";
    assert_eq!(sampler.sample(&wrong, 2, 1).unwrap_err().to_string(), sentence);
    wrong[[2, 0]] = 1e300;
    assert!(matches!(sampler.sample(&wrong, 2, 1), Err(Error::NotFinite { row: 2, .. })));
    assert!(matches!(sampler.log_probabilities(&h.row(0), &[30]), Err(Error::Entry { row: 0, .. })));
    assert!(matches!(sampler.replace(&[30], &h.slice(s![..1, ..])), Err(Error::Entry { row: 0, .. })));
    assert!(matches!(sampler.replace(&[1, 2], &h.slice(s![..1, ..])), Err(Error::Shape { .. })));
    assert!(matches!(sampler.replace(&[1], &wrong.slice(s![2..3, ..])), Err(Error::NotFinite { .. })));
    // Rows of later tiles.
    let (mut many, _) = data::<f64>(700, 4);
    let mut large = new(&many).unwrap();
    many[[517, 1]] = 1e300;
    assert!(matches!(new(&many), Err(Error::NotFinite { row: 517, .. })));
    assert!(matches!(large.replace(&all(700), &many), Err(Error::NotFinite { row: 517, .. })));
    // Nothing is asked for.
    assert_eq!(sampler.sample(&h, 0, 1).unwrap().classes.dim(), (4, 0));
    assert_eq!(sampler.sample(&h.slice(s![..0, ..]), 3, 1).unwrap().classes.dim(), (0, 3));
    assert!(sampler.log_probabilities(&h.row(0), &[]).unwrap().is_empty());
    sampler.replace(&[], &h.slice(s![..0, ..])).unwrap();
}

/// Sizes from 1e-30 to 1e30: finite and right, or refused.
#[test]
fn any_norm_is_sampled_or_refused() {
    let omega = Orthogonal.draw(3, 16, 1).unwrap();
    for size in [1e-30, 1e-3, 1e2, 1e3, 1e30, 1e150] {
        let map: Map<f64> = Positive.softmax(omega.clone()).unwrap();
        let (c, h) = (points::<f64>(20, 3, size), points::<f64>(2, 3, size));
        let sampler = tree(map).build(&c).unwrap();
        let draws = sampler.sample(&h, 30, 1).unwrap();
        assert!(draws.log_probabilities.iter().all(|log| log.is_finite() && *log <= 1e-12), "{size}");
        let q = sampler.log_probabilities(&h.row(0), &all(20)).unwrap();
        assert!(log_sum(&q).abs() < 1e-9, "{size}: {q:?}");
    }
}

/// Broadcast views of 2⁴⁵ points cost nothing: they are refused before anything is read or computed for each of them.
#[test]
fn more_points_than_there_is_memory_for_are_refused_at_once() {
    let (c, _) = data::<f64>(30, 3);
    let many = c.slice(s![..1, ..]);
    let many = many.broadcast((1 << 45, 3)).unwrap();
    let memory = |error: Option<Error>| matches!(error, Some(Error::Memory { .. }));
    for exact_below in [0, usize::MAX] {
        let proposal = || {
            let map = signed(3, 8).remove(0);
            tree(map).with_uniform(0.1).unwrap().with_exact_below(exact_below)
        };
        assert!(memory(proposal().build(&many).err()));
        assert!(memory(SampledSoftmax::new(proposal(), &many).err()));
        let mut layer = SampledSoftmax::new(proposal(), &c).unwrap();
        assert!(memory(layer.add(&many).err()));
        let mut sampler = proposal().build(&c).unwrap();
        assert!(memory(sampler.add(&many).err()));
        for k in [0, 1, 1 << 20] {
            assert!(memory(sampler.sample(&many, k, 1).err()), "{k}");
        }
        assert!(layer.vectors() == c && sampler.classes() == 30);
        // Points of which one is not finite: memory is asked for first.
        let wrong = Array2::from_elem((1, 3), f64::NAN);
        assert!(memory(sampler.sample(&wrong.broadcast((1 << 45, 3)).unwrap(), 1, 1).err()));
    }
    let draws = Draws::new(Array2::zeros((1 << 50, 0)), Array2::zeros((1 << 50, 0)));
    assert!(memory(draws.err()));
}
