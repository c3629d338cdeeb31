//! Ridge leverage scores against their definition, and landmarks that are drawn by them.

use std::collections::HashSet;

use super::choices::{clouds, rows};
use super::{eigenvalues, gaussian, kernels};
use crate::common::points;
use ndarray::{Array2, Axis, arr2, concatenate, s};
use random_features::Error;
use random_features::kernel::{Activation, ActivationKernel, Softmax};
use random_features::map::{AnyKernel, Nystroem};
use random_features::workbench::leverage_scores;

/// The Gram matrix of a kernel.
fn exact(kernel: &AnyKernel, x: &Array2<f64>) -> Array2<f64> {
    kernel.kernel::<f64>().unwrap().gram(x, x).unwrap()
}

/// [K(K + λI)⁻¹]ᵢᵢ = 1 − λ[(K + λI)⁻¹]ᵢᵢ, by elimination in place.
fn definition(gram: &Array2<f64>, lambda: f64) -> Vec<f64> {
    let n = gram.nrows();
    let mut a = gram + lambda * Array2::<f64>::eye(n);
    for k in 0..n {
        let pivot = std::mem::replace(&mut a[[k, k]], 1.0);
        let row = a.row(k).mapv(|v| v / pivot);
        for i in (0..n).filter(|i| *i != k) {
            let factor = std::mem::replace(&mut a[[i, k]], 0.0);
            a.row_mut(i).scaled_add(-factor, &row);
        }
        a.row_mut(k).assign(&row);
    }
    a.diag().iter().map(|own| 1.0 - lambda * own).collect()
}

/// (tr K − the sum of the k largest eigenvalues)/k.
fn ridge(gram: &Array2<f64>, k: usize) -> f64 {
    eigenvalues(gram.clone())[k..].iter().sum::<f64>() / k as f64
}

/// Where there are at most 2m points, each is kept, and scores are exact.
#[test]
fn scores_of_few_points_are_exact() {
    let x = points::<f64>(24, 3, 1.3);
    for kernel in kernels() {
        let gram = exact(&kernel, &x);
        for m in [1, 12, 24] {
            let few = if m == 1 { 2 } else { 24 };
            let (x, gram) = (x.slice(s![..few, ..]).to_owned(), gram.slice(s![..few, ..few]).to_owned());
            let (lambda, scores) = leverage_scores(&kernel, &x, m, 5).unwrap();
            let expected = ridge(&gram, (m / 4).max(1));
            assert!((lambda - expected).abs() < 1e-10 * gram.diag().sum(), "{kernel}: {lambda} {expected}");
            for (score, expected) in scores.iter().zip(definition(&gram, lambda)) {
                assert!((score - expected).abs() < 1e-8, "{kernel}, {m}: {score} {expected}");
            }
        }
    }
}

/// Scores of given λ, of all kernels and both scalars.
#[test]
fn exact_scores_have_their_definition() {
    let x = points::<f64>(24, 3, 1.3);
    for kernel in kernels() {
        let gram = exact(&kernel, &x);
        let unit = gram.diag().sum();
        for lambda in [1e-6, 0.01, 3.0].map(|lambda| lambda * unit) {
            let expected = definition(&gram, lambda);
            let scores = Nystroem::leverage_scores(kernel.clone(), &x, lambda).unwrap();
            let single = Nystroem::leverage_scores(kernel.clone(), &x.mapv(|v| v as f32), lambda).unwrap();
            for ((score, single), expected) in scores.iter().zip(&single).zip(expected) {
                assert!((score - expected).abs() < 1e-9, "{kernel}, {lambda}: {score} {expected}");
                let room = (1e-6 + 1e-6 * unit / lambda).min(0.1);
                assert!((single - expected).abs() < room, "{kernel}, {lambda}: {single} {expected}");
            }
        }
    }
    let of = |x: &Array2<f64>, lambda| Nystroem::leverage_scores(gaussian(1.0), x, lambda);
    for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(of(&x, lambda), Err(Error::Parameter { .. })), "{lambda}");
    }
    assert!(matches!(of(&Array2::zeros((0, 3)), 1.0), Err(Error::NoData { .. })));
    assert!(of(&arr2(&[[f64::NAN]]), 1.0).is_err());
}

/// Beyond, λ is that of a half of the points, about ½ of the whole, and scores are a little too large on average.
#[test]
fn scores_of_many_points_are_near_their_definition() {
    let x = clouds(400);
    for kernel in [AnyKernel::from(gaussian(1.0)), Softmax::new(2.0).unwrap().into()] {
        let gram = exact(&kernel, &x);
        let least = ridge(&gram, 5);
        for seed in 0..4 {
            let (lambda, scores) = leverage_scores(&kernel, &x, 20, seed).unwrap();
            let share = lambda / least;
            let ratios = scores.iter().zip(definition(&gram, lambda)).map(|(score, exact)| score / exact);
            let ratio = ratios.sum::<f64>() / 400.0;
            assert!(share > 0.2 && share < 0.8, "{kernel}, {seed}: {share}");
            assert!(ratio > 1.0 && ratio < 3.5, "{kernel}, {seed}: {ratio}");
        }
    }
}

fn landmarks(m: usize, seed: u64) -> Nystroem {
    Nystroem::leverage(gaussian(1.0), &clouds(200), m, seed).unwrap()
}

#[test]
fn landmarks_are_different_points() {
    let x = clouds(200);
    for m in [1, 2, 7, 60, 150, 200] {
        let chosen = rows(&landmarks(m, 3), &x);
        assert_eq!((chosen.len(), chosen.iter().collect::<HashSet<_>>().len()), (m, m));
    }
    assert_eq!(landmarks(9, 3), landmarks(9, 3));
    assert_ne!(landmarks(9, 3).landmarks(), landmarks(9, 4).landmarks());
}

/// Four points far from 396 copies of another one have scores near 1, and the copies have one together. Points at random would have
/// all five among twelve once in a million times.
#[test]
fn single_points_are_found_beside_copies() {
    let mut x = Array2::<f64>::zeros((400, 2));
    for (i, row) in [17, 101, 222, 399].into_iter().enumerate() {
        x[[row, 0]] = 10.0 * (i + 1) as f64;
    }
    let found = (0..20).filter(|seed| {
        let features = Nystroem::leverage(gaussian(1.0), &x, 12, *seed).unwrap();
        features.feature_dim() == 5 && features.trace_error(&x).unwrap() < 1e-12
    });
    let found = found.count();
    assert!(found >= 18, "{found}");
}

/// λ would be 0 where fewer points differ than eigenvalues are left out: scores then share 1 among copies.
#[test]
fn copies_share_a_score() {
    let some = points::<f64>(3, 2, 2.0);
    let x = concatenate![Axis(0), some, some, some, some.slice(s![..1, ..])];
    let (lambda, scores) = leverage_scores(&gaussian(1.0).into(), &x, 16, 1).unwrap();
    assert!(lambda > 0.0 && lambda < 1e-9, "{lambda}");
    for (i, score) in scores.iter().enumerate() {
        let copies = if i % 3 == 0 { 4.0 } else { 3.0 };
        assert!((score * copies - 1.0).abs() < 1e-4, "{i}: {score}");
    }
    // Samples are smaller than the points here.
    let many = Array2::from_shape_fn((600, 2), |(i, k)| some[[i % 3, k]]);
    let features = Nystroem::leverage(gaussian(1.0), &many, 16, 1).unwrap();
    assert_eq!((features.landmarks().nrows(), features.feature_dim()), (16, 3));
    assert!(features.trace_error(&many).unwrap() < 1e-12);
}

/// On clouds of different sizes, errors are at most 1.5 times as large as with landmarks at random.
#[test]
fn errors_are_near_those_of_random_landmarks() {
    let x = clouds(600);
    for (lengthscale, m) in [(1.0, 16), (0.5, 40)] {
        let error = |choice: &dyn Fn(u64) -> Result<Nystroem, Error>| -> f64 {
            (0..8).map(|seed| choice(seed).unwrap().trace_error(&x).unwrap()).sum()
        };
        let own = error(&|seed| Nystroem::leverage(gaussian(lengthscale), &x, m, seed));
        let uniform = error(&|seed| Nystroem::uniform(gaussian(lengthscale), &x, m, seed));
        assert!(own < 1.5 * uniform, "{lengthscale}: {own} {uniform}");
    }
}

/// Points at which the kernel is 0 are no landmarks, even where samples have no others.
#[test]
fn points_without_a_kernel_are_left_out() {
    let relu: AnyKernel = ActivationKernel::new(Activation::Relu).unwrap().into();
    for n in [30, 400] {
        let mut x = Array2::<f64>::zeros((n, 2));
        x.slice_mut(s![..10, ..]).assign(&points::<f64>(10, 2, 1.0));
        for seed in 0..5 {
            let mut chosen = rows(&Nystroem::leverage(relu.clone(), &x, 20, seed).unwrap(), &x);
            chosen.sort_unstable();
            assert_eq!(chosen, (0..10).collect::<Vec<_>>(), "{n}, {seed}");
        }
    }
    let single = arr2(&[[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]);
    let features = Nystroem::leverage(relu, &single, 1, 1).unwrap();
    assert_eq!(*features.landmarks(), arr2(&[[1.0, 2.0]]));
}

/// Scores are ratios, which values near the end of the range do not overflow.
#[test]
fn large_values_are_no_harm() {
    let angles = points::<f64>(300, 1, 3.0);
    let x = concatenate![Axis(1), angles.mapv(f64::cos), angles.mapv(f64::sin)] * 26.0;
    let features = Nystroem::leverage(Softmax::default(), &x, 40, 1).unwrap();
    assert_eq!(features.landmarks().nrows(), 40);
    let uniform = Nystroem::uniform(Softmax::default(), &x, 40, 1).unwrap();
    let [own, uniform] = [features, uniform].map(|features| features.trace_error(&x).unwrap());
    assert!(own < 1.5 * uniform, "{own} {uniform}");
}

/// Kernel values that are differences of larger numbers have eigenvalues below 0 by rounding, and scores that are all 0 by it.
#[test]
fn rounded_kernels_have_landmarks() {
    let kernel = ActivationKernel::new(Activation::Cos).unwrap().with_offset(-1.0).unwrap();
    for (n, size) in [(500, 1e-3), (60, 1e-5)] {
        let x = points::<f64>(n, 2, size);
        for seed in 0..5 {
            let features = Nystroem::leverage(kernel.clone(), &x, 40, seed).unwrap();
            // Some scores are 0 by rounding.
            assert!(features.landmarks().nrows() >= 10, "{n}, {seed}");
        }
    }
}

/// One landmark is drawn by scores too: eight large points among 400 have most of a softmax kernel and half of a linear one with a kink.
#[test]
fn one_landmark_is_drawn_by_its_score() {
    let mut x = points::<f64>(400, 2, 0.2);
    x.slice_mut(s![..8, 0]).fill(3.0);
    let relu: AnyKernel = ActivationKernel::new(Activation::Relu).unwrap().into();
    // Of 40 draws, with probabilities of some .9 and .5: the false-alarm rates are below 1e-4.
    for (kernel, least) in [(Softmax::default().into(), 24), (relu, 8)] {
        let heavy = (0..40).filter(|seed| {
            Nystroem::leverage(kernel.clone(), &x, 1, *seed).unwrap().landmarks()[[0, 0]] == 3.0
        });
        let heavy = heavy.count();
        assert!(heavy >= least, "{kernel}: {heavy}");
    }
}
