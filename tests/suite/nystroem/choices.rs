//! Landmarks that are chosen among points, and features that are fitted to them.

use std::collections::HashSet;

use super::{eigenvalues, gaussian, gram, kernels};
use crate::common::{frequencies, points};
use ndarray::{Array1, Array2, Axis, concatenate};
use random_features::apply::RidgeStatistics;
use random_features::frequency::Orthogonal;
use random_features::map::Nystroem;
use random_features::{Map, Real, Trigonometric, rng};

/// The rows of x that are landmarks, in their order.
pub fn rows(features: &Nystroem, x: &Array2<f64>) -> Vec<usize> {
    let row = |z: ndarray::ArrayView1<'_, f64>| x.rows().into_iter().position(|x| x == z).unwrap();
    features.landmarks().rows().into_iter().map(row).collect()
}

/// Points on a plane with two clouds of different sizes.
pub fn clouds(n: usize) -> Array2<f64> {
    let mut rng = rng(5);
    let cloud = |i: usize| if i.is_multiple_of(5) { (4.0, 0.3) } else { (0.0, 1.0) };
    Array2::from_shape_fn((n, 2), |(i, _)| cloud(i).0 + cloud(i).1 * rng.normal())
}

/// A choice of so many landmarks.
type Choice = fn(usize) -> Nystroem;

const CHOICES: [Choice; 3] = [
    |m| Nystroem::uniform(gaussian(1.0), &clouds(200), m, 3).unwrap(),
    |m| Nystroem::pivoted(gaussian(1.0), &clouds(200), m, 3).unwrap(),
    |m| Nystroem::greedy(gaussian(1.0), &clouds(200), m).unwrap(),
];

#[test]
fn landmarks_are_different_points() {
    let x = clouds(200);
    for choice in CHOICES {
        for m in [1, 7, 60] {
            let chosen = rows(&choice(m), &x);
            assert_eq!((chosen.len(), chosen.iter().collect::<HashSet<_>>().len()), (m, m));
        }
        // More landmarks are the first ones and others.
        assert_eq!(rows(&choice(30), &x)[..10], rows(&choice(10), &x));
        assert!(choice(60).trace_error(&x).unwrap() < 0.2 * choice(7).trace_error(&x).unwrap());
    }
    let seeded = |seed| Nystroem::pivoted(gaussian(1.0), &x, 9, seed).unwrap();
    assert_eq!(seeded(3), seeded(3));
    assert_ne!(seeded(3).landmarks(), seeded(4).landmarks());
    // All points have the same K(x, x): the first one is the first landmark.
    assert_eq!(rows(&CHOICES[2](2), &x)[0], 0);
}

/// Pivots by the definition: each is drawn with probabilities proportional to the residual. Of 4000 draws of two pivots the counts of
/// the second one are within 5 standard deviations.
#[test]
fn pivots_follow_what_is_left() {
    let x = ndarray::arr2(&[[0.0], [0.5], [2.0]]);
    let mut counts = [[0.0; 3]; 3];
    for seed in 0..4000 {
        let pivots = rows(&Nystroem::pivoted(gaussian(1.0), &x, 2, seed).unwrap(), &x);
        counts[pivots[0]][pivots[1]] += 1.0;
    }
    let left = |i: usize, j: usize| -(-(x[[i, 0]] - x[[j, 0]]).powi(2)).exp_m1();
    for (i, counts) in counts.iter().enumerate() {
        let all: f64 = counts.iter().sum();
        assert!((all - 4000.0 / 3.0).abs() < 150.0, "{all}");
        for (j, count) in counts.iter().enumerate() {
            let share = left(i, j) / (0..3).map(|j| left(i, j)).sum::<f64>();
            assert!(
                (count - all * share).abs() <= 5.0 * (all * share * (1.0 - share)).sqrt(),
                "{i} {j} {count}"
            );
        }
    }
}

/// Copies of points are never two pivots, and nothing is left after the last different one.
#[test]
fn pivots_end_where_nothing_is_left() {
    let (x, other) = (clouds(12), clouds(200));
    let copies = concatenate![Axis(0), x, x, x];
    for features in [
        Nystroem::pivoted(gaussian(0.5), &copies, 30, 1).unwrap(),
        Nystroem::greedy(gaussian(0.5), &copies, 30).unwrap(),
        Nystroem::fit(gaussian(0.5), &copies, 30, 1).unwrap(),
        Nystroem::uniform(gaussian(0.5), &copies, 36, 1).unwrap(),
    ] {
        assert_eq!(features.feature_dim(), 12);
        assert!(features.trace_error(&copies).unwrap() < 1e-12);
        let exact = Nystroem::new(gaussian(0.5), &x).unwrap();
        assert!((gram(&features, &other) - gram(&exact, &other)).iter().all(|v| v.abs() < 1e-9));
    }
}

/// The error of fitted features is near the least of any D features, and below that of landmarks at random.
#[test]
fn fitted_features_are_near_the_best() {
    let (x, m) = (clouds(150), 12);
    for kernel in kernels().into_iter().filter(|kernel| kernel.lengthscale().check_dim(2).is_ok()) {
        let exact = kernel.kernel::<f64>().unwrap().gram(&x, &x).unwrap();
        let norm = |rest: &[f64]| rest.iter().map(|v| v * v).sum::<f64>().sqrt();
        let error = |features: &Nystroem| norm((gram(features, &x) - &exact).as_slice().unwrap());
        let features = Nystroem::fit(kernel.clone(), &x, m, 1).unwrap();
        let (fitted, least) = (error(&features), norm(&eigenvalues(exact.clone())[features.feature_dim()..]));
        let uniform = error(&Nystroem::uniform(kernel.clone(), &x, m, 1).unwrap());
        assert!(fitted < 1.5 * least + 1e-9, "{kernel}: {fitted} {least}");
        assert!(fitted < 0.9 * uniform + 1e-9, "{kernel}: {fitted} {uniform}");
    }
}

#[test]
fn choices_do_not_depend_on_threads() {
    let x = clouds(3000);
    let all = || {
        [
            Nystroem::fit(gaussian(1.0), &x, 40, 1).unwrap(),
            Nystroem::pivoted(gaussian(1.0), &x, 40, 1).unwrap(),
            Nystroem::uniform(gaussian(1.0), &x, 40, 1).unwrap(),
            Nystroem::leverage(gaussian(1.0), &x, 40, 1).unwrap(),
        ]
    };
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(all);
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(all);
    assert_eq!(one, three);
}

/// Any layout and any scalar of points gives features for the same landmarks.
#[test]
fn points_may_have_any_layout() {
    let x = points::<f32>(60, 3, 1.0);
    let columns = x.t().as_standard_layout().into_owned().reversed_axes();
    let wide = x.mapv(f64::from);
    let fitted = Nystroem::fit(gaussian(1.0), &x, 10, 1).unwrap();
    assert_eq!(Nystroem::fit(gaussian(1.0), &columns, 10, 1).unwrap(), fitted);
    assert_eq!(Nystroem::fit(gaussian(1.0), &wide, 10, 1).unwrap(), fitted);
    let by_leverage = Nystroem::leverage(gaussian(1.0), &x, 10, 1).unwrap();
    assert_eq!(Nystroem::leverage(gaussian(1.0), &columns, 10, 1).unwrap(), by_leverage);
    assert_eq!(Nystroem::leverage(gaussian(1.0), &wide, 10, 1).unwrap(), by_leverage);
    assert_eq!(
        Nystroem::from_parts(gaussian(1.0), fitted.landmarks().clone(), fitted.factor().clone()),
        Ok(fitted)
    );
}

/// The root mean square of the errors of a ridge regression at the points themselves.
fn ridge_error<T: Real>(map: Map<T>, x: &Array2<T>, y: &Array1<T>) -> f64 {
    let mut sums = RidgeStatistics::new(map, 1).unwrap();
    sums.update(x, y).unwrap();
    let rest = sums.solve(1e-6).unwrap().predict_single(x).unwrap() - y;
    rest.iter().map(|v| v.widen().powi(2)).sum::<f64>().sqrt()
}

/// A regression takes the map as any other. With a smooth kernel the error is far below that of as many random features.
#[test]
fn regressions_take_the_map() {
    let x = clouds(1000);
    let y: Array1<f64> =
        x.rows().into_iter().map(|x| (x[0] - 0.5 * x[1]).sin() + (0.3 * x[0] * x[1]).cos()).collect();
    let fitted = Nystroem::fit(gaussian(3.0), &x, 60, 1).unwrap().map().unwrap();
    let random = Trigonometric.gaussian(frequencies(2, 30, &Orthogonal, 7), 3.0).unwrap();
    let (fitted, random) = (ridge_error(fitted, &x, &y), ridge_error(random, &x, &y));
    assert!(fitted < 0.3 * random, "{fitted} {random}");
}
