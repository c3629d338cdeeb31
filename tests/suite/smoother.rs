//! Kernel regression: features against the exact kernel, batches, threads, refusals.

use std::ops::Range;

use crate::common::{MAPS, Name, couplings, frequencies, gaussian, points, softmax};
use ndarray::{Array1, Array2, arr2, s};
use random_features::apply::{ExactSmoother, Smoother};
use random_features::frequency::Independent;
use random_features::kernel::{Activation, Gaussian, Softmax};
use random_features::reduce::KernelSums;
use random_features::{Error, Map, Nonlinear, Positive, Real};

fn targets<T: Real>(x: &Array2<T>) -> Array2<T> {
    Array2::from_shape_fn(
        (x.nrows(), 2),
        |(i, j)| if j == 0 { x[[i, 0]].sin() } else { x[[i, 1]] + T::one() },
    )
}

/// Σ K̂ y / Σ K̂ with one estimate for each pair.
fn naive<T: Real>(map: &Map<T>, x: &Array2<T>, train: &Array2<T>, y: &Array2<T>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), y.ncols()), |(i, j)| {
        let log = |k: usize| map.log_estimate(&x.row(i), &train.row(k)).unwrap();
        let top = (0..train.nrows()).map(|k| log(k).ln_abs).fold(f64::NEG_INFINITY, f64::max);
        let weights: Array1<f64> = (0..train.nrows()).map(|k| log(k).scaled(-top).value()).collect();
        let column = y.column(j).mapv(|v| v.widen());
        weights.dot(&column) / weights.sum()
    })
}

fn agrees<T: Real>(tolerance: f64) {
    for name in MAPS {
        for target in [softmax(), gaussian()] {
            let map = name.make::<T>(frequencies(3, 40, couplings()[1].as_ref(), 2), target);
            let train = points::<T>(300, 3, 1.2);
            let (x, y) = (train.slice(s![..20, ..]).mapv(|v| v * T::narrow(0.8)), targets(&train));
            let mut smoother = Smoother::new(map.clone(), 2).unwrap();
            smoother.update(&train, &y).unwrap();
            let predicted = smoother.predict(&x).unwrap();
            for (a, b) in predicted.iter().zip(naive(&map, &x, &train, &y)) {
                assert!((a.widen() - b).abs() < tolerance, "{name:?}: {a} instead of {b}");
            }
        }
    }
}

#[test]
fn sums_of_features_are_sums_of_estimates() {
    agrees::<f64>(1e-11);
    agrees::<f32>(2e-4);
}

#[test]
fn many_features_approach_the_exact_smoother() {
    let train = points::<f64>(200, 2, 1.0);
    let (x, y) = (points::<f64>(10, 2, 0.7), targets(&train));
    let mut exact = ExactSmoother::new(Gaussian::new(0.8).unwrap(), 2, 2).unwrap();
    exact.update(&train, &y).unwrap();
    let exact = exact.predict(&x).unwrap();
    let map =
        random_features::Trigonometric.gaussian::<f64>(frequencies(2, 20_000, &Independent, 1), 0.8).unwrap();
    let mut smoother = Smoother::new(map, 2).unwrap();
    smoother.update(&train, &y).unwrap();
    let error = (&smoother.predict(&x).unwrap() - &exact).mapv(f64::abs).fold(0.0, |a: f64, b| a.max(*b));
    // Each weight is a mean of 20 000 cosines (error 0.005), a prediction a ratio of means of 200 of them.
    assert!(error < 0.03, "{error}");
}

/// With the weights 1 and −1 + ε the regression is the difference of the targets divided by ε.
#[test]
fn regressions_beyond_the_scalar() {
    let (train, x) = (arr2(&[[1.0f32], [f32::EPSILON - 1.0]]), arr2(&[[1.0f32]]));
    let kernel = Activation::Identity.kernel().unwrap();
    let mut exact = ExactSmoother::new(kernel, 1, 1).unwrap();
    exact.update(&train, &arr2(&[[1e35f32], [-1e35]])).unwrap();
    assert_eq!(exact.predict(&x).unwrap(), arr2(&[[f32::MAX]]));
}

#[test]
fn batches_and_threads() {
    let map = Name::Positive.make::<f32>(frequencies(4, 64, &Independent, 2), gaussian());
    let train = points::<f32>(5000, 4, 2.0);
    let y = targets(&train);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut smoother = Smoother::new(map.clone(), 2).unwrap();
            smoother.update(&train, &y).unwrap();
            smoother.predict(&train).unwrap()
        })
    };
    let whole = run(1);
    assert_eq!(run(2), whole);
    assert_eq!(run(5), whole);
    let mut parts = Smoother::new(map.clone(), 2).unwrap();
    for run in [0..1, 1..700, 700..700, 700..5000] {
        parts.update(train.slice(s![run.clone(), ..]), y.slice(s![run, ..])).unwrap();
    }
    assert_eq!(parts.rows(), 5000);
    assert!(parts.predict(&train).unwrap().iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// The sums over some rows, as a machine of its own takes them.
fn part<T: Real>(map: &Map<T>, x: &Array2<T>, y: &Array2<T>, rows: Range<usize>) -> KernelSums<T> {
    let mut part = Smoother::new(map.clone(), y.ncols()).unwrap().with_first_row(rows.start as u64).unwrap();
    part.update(x.slice(s![rows.clone(), ..]), y.slice(s![rows, ..])).unwrap();
    part.sums().clone()
}

/// In the order of the rows to the bit, in any order to rounding, without the map at hand; each row once.
fn merges<T: Real>(tolerance: f64) {
    let omega = || frequencies(3, 40, &Independent, 2);
    let mut maps: Vec<Map<T>> = MAPS.iter().map(|name| name.make(omega(), gaussian())).collect();
    maps.push(Nonlinear::new(Activation::Relu).build(omega(), 1.0).unwrap());
    let x = points::<T>(1300, 3, 1.2);
    let cuts = [0..200, 200..201, 201..900, 900..1300];
    for (map, columns) in maps.iter().flat_map(|map| [(map, 2), (map, 9)]) {
        let y = Array2::from_shape_fn((1300, columns), |(i, j)| x[[i, j % 3]] + T::one());
        let mut one = Smoother::new(map.clone(), columns).unwrap();
        for rows in &cuts {
            one.update(x.slice(s![rows.clone(), ..]), y.slice(s![rows.clone(), ..])).unwrap();
        }
        let expected = one.predict(&x).unwrap();
        let parts = cuts.clone().map(|rows| part(map, &x, &y, rows));
        for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
            let mut sums = parts[order[0]].clone();
            order[1..].iter().for_each(|k| sums.merge(&parts[*k]).unwrap());
            assert_eq!(
                (sums.rows(), sums.row_ranges(), sums.targets()),
                (1300, vec![Range { start: 0, end: 1300 }], columns)
            );
            assert_eq!(sums.identity(), map.identity());
            let merged = Smoother::of_sums(map.clone(), sums).unwrap();
            let found = merged.predict(&x).unwrap();
            let near =
                |(a, b): (&T, &T)| (a.widen() - b.widen()).abs() <= tolerance * (1.0 + b.widen().abs());
            assert!(found.iter().zip(&expected).all(near), "{order:?} {map:?}");
            if order[0] == 0 {
                assert_eq!(found, expected, "{map:?}");
            }
        }
    }
}

#[test]
fn sums_merge() {
    merges::<f32>(1e-3);
    merges::<f64>(1e-10);
}

#[test]
fn sums_of_other_maps_and_rows_held_twice_are_refused() {
    let map = |seed| Name::Positive.make::<f64>(frequencies(3, 16, &Independent, seed), gaussian());
    let (x, y) = (points::<f64>(30, 3, 1.0), points::<f64>(30, 2, 1.0));
    let sums = part(&map(1), &x, &y, 0..10);
    let mut own = sums.clone();
    let reason = |error: Error| error.to_string();
    assert!(reason(own.merge(&part(&map(2), &x, &y, 10..20)).unwrap_err()).contains("their maps differ"));
    let fewer = y.slice(s![.., ..1]).to_owned();
    let error = own.merge(&part(&map(1), &x, &fewer, 10..20)).unwrap_err();
    assert!(reason(error).contains("numbers of targets differ"));
    let twice =
        Error::Row { row: 5, reason: "is counted already: `with_first_row` numbers the rows of a part" };
    assert_eq!(own.merge(&part(&map(1), &x, &y, 5..20)).unwrap_err(), twice);
    assert_eq!((own.rows(), own.row_ranges()), (10, vec![Range { start: 0, end: 10 }]));
    let error = Smoother::of_sums(map(2), sums.clone()).unwrap_err();
    assert_eq!(reason(error), "statistics cannot be merged: the sums were taken with another map");

    let mut smoother = Smoother::of_sums(map(1), sums.clone()).unwrap();
    assert_eq!(
        smoother.merge_sums(&sums).unwrap_err(),
        Error::Row { row: 0, reason: "is counted already: `with_first_row` numbers the rows of a part" }
    );
    assert!(matches!(smoother.clone().with_first_row(9), Err(Error::Row { row: 9, .. })));
    smoother.merge(&Smoother::of_sums(map(1), part(&map(1), &x, &y, 20..25)).unwrap()).unwrap();
    assert_eq!((smoother.rows(), smoother.row_ranges()), (15, vec![0..10, 20..25]));
    // It goes on after the last row, or in the gap up to the next row that is held.
    let mut after = smoother.clone();
    after.update(&x, &y).unwrap();
    assert_eq!(after.row_ranges(), &[0..10, 20..55]);
    let mut within = smoother.clone().with_first_row(12).unwrap();
    assert!(matches!(within.update(&x, &y), Err(Error::Row { row: 20, .. })));
    assert_eq!(within.row_ranges(), smoother.row_ranges());
    assert_eq!(within.predict(&x).unwrap(), smoother.predict(&x).unwrap());
    let mut last = smoother.with_first_row(u64::MAX - 3).unwrap();
    assert!(matches!(last.update(&x, &y), Err(Error::Row { row: u64::MAX, .. })));
}

/// Parts at norms of 1e3 and near 0: nothing overflows, and no part vanishes for the queries that know it alone.
#[test]
fn sums_of_any_norm_merge() {
    fn at_norms<T: Real>(tolerance: f64) {
        let map = Name::Positive.make::<T>(frequencies(2, 32, &Independent, 3), gaussian());
        let rows = [[1000.0, 0.0], [1001.0, 1.0], [0.0, 1000.0], [-1000.0, 5.0], [0.1, -0.2], [0.0, 0.3]];
        let x = Array2::from_shape_fn((6, 2), |(i, k)| T::narrow(rows[i][k]));
        let y = Array2::from_shape_fn((6, 1), |(i, _)| T::narrow(i as f64 + 1.0));
        let mut sums = part(&map, &x, &y, 4..6);
        for rows in [0..2, 3..4, 2..3] {
            sums.merge(&part(&map, &x, &y, rows)).unwrap();
        }
        let merged = Smoother::of_sums(map.clone(), sums).unwrap();
        for queries in [x.mapv(|v| -v), x.clone()] {
            let found = merged.predict(&queries).unwrap();
            let close = |(a, b): (&T, f64)| (a.widen() - b).abs() < tolerance;
            assert!(found.iter().zip(naive(&map, &queries, &x, &y)).all(close), "{found}");
        }
    }
    at_norms::<f32>(0.5);
    at_norms::<f64>(1e-6);
}

/// Queries that oppose all training points, at norms where every product of scaled features underflows.
#[test]
fn weights_never_vanish() {
    let map = Name::Positive.make::<f32>(frequencies(2, 32, &Independent, 3), gaussian());
    let train = ndarray::arr2(&[[200.0f32, 0.0], [201.0, 1.0], [0.0, 200.0]]);
    let y = ndarray::arr2(&[[1.0f32], [2.0], [3.0]]);
    let mut smoother = Smoother::new(map.clone(), 1).unwrap();
    smoother.update(&train, &y).unwrap();
    let x = train.mapv(|v| -v);
    let predicted = smoother.predict(&x).unwrap();
    assert!(predicted.iter().all(|v| (1.0..=3.0).contains(v)), "{predicted}");
    assert!(predicted.iter().zip(naive(&map, &x, &train, &y)).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-2));
}

/// Signed features may weigh a point negatively in all; then the mean of the targets stands in.
#[test]
fn weights_that_are_not_positive_give_the_mean() {
    let omega = random_features::frequency::Frequencies::from_rows(ndarray::arr2(&[[1.0]])).unwrap();
    let map = Name::Trigonometric.make::<f64>(omega, gaussian());
    let mut smoother = Smoother::new(map, 1).unwrap();
    smoother.update(&ndarray::arr2(&[[0.0], [0.1]]), &ndarray::arr2(&[[1.0], [2.0]])).unwrap();
    assert_eq!(smoother.predict(&ndarray::arr2(&[[std::f64::consts::PI]])).unwrap()[[0, 0]], 1.5);
    let x = ndarray::arr2(&[[0.0], [std::f64::consts::PI], [f64::NAN], [0.1], [3.0]]);
    let (predicted, rows) = smoother.predict_and_report(&x).unwrap();
    assert_eq!(rows, [1, 4]);
    let plain = smoother.predict(&x).unwrap();
    assert!(predicted.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn labels() {
    let map = Name::Hyperbolic.make::<f64>(frequencies(2, 128, &Independent, 3), gaussian());
    let train = ndarray::arr2(&[[1.0, 1.0], [1.1, 0.8], [-1.0, 1.0], [-0.9, 1.2], [0.0, -1.0]]);
    let labels = [0, 0, 1, 1, 2];
    let mut smoother = Smoother::new(map, 3).unwrap();
    smoother.update(&train, &labels).unwrap();
    assert_eq!(smoother.classify(&train).unwrap(), labels);
    let probabilities = smoother.predict(&train).unwrap();
    assert!(probabilities.rows().into_iter().all(|p| (p.sum() - 1.0).abs() < 1e-12));
    let mut exact = ExactSmoother::new(Gaussian::default(), 2, 3).unwrap();
    exact.update(&train, &labels).unwrap();
    assert_eq!(exact.classify(&train).unwrap(), labels);
}

#[test]
fn the_first_of_equal_scores_wins() {
    let map = Name::Positive.make::<f64>(frequencies(2, 16, &Independent, 3), gaussian());
    let train = ndarray::arr2(&[[0.3, 1.0], [0.3, 1.0], [0.3, 1.0], [-2.0, 0.1]]);
    for (labels, first) in [([1, 2, 3, 0], 1), ([3, 1, 2, 0], 1), ([3, 2, 2, 0], 2), ([0, 3, 1, 2], 0)] {
        let mut smoother = Smoother::new(map.clone(), 4).unwrap();
        smoother.update(&train, &labels).unwrap();
        assert_eq!(smoother.classify(train.slice(s![..1, ..])).unwrap(), [first], "{labels:?}");
        let mut exact = ExactSmoother::new(Gaussian::default(), 2, 4).unwrap();
        exact.update(&train, &labels).unwrap();
        assert_eq!(exact.classify(train.slice(s![..1, ..])).unwrap(), [first], "{labels:?}");
    }
}

#[test]
fn refusals_take_nothing_in() {
    let map = Name::Positive.make::<f64>(frequencies(2, 4, &Independent, 3), gaussian());
    assert!(matches!(Smoother::new(map.clone(), 0), Err(Error::Parameter { .. })));
    let mut smoother = Smoother::new(map.clone(), 2).unwrap();
    let mut exact = ExactSmoother::new(Gaussian::default(), 2, 2).unwrap();
    let x = points::<f64>(3, 2, 1.0);
    assert!(matches!(smoother.predict(&x), Err(Error::NoData { .. })));
    assert!(matches!(exact.predict(&x), Err(Error::NoData { .. })));
    let mut nan = x.clone();
    nan[[1, 0]] = f64::NAN;
    let refused: [(Array2<f64>, Array2<f64>); 5] = [
        (points(3, 3, 1.0), points(3, 2, 1.0)),
        (x.clone(), points(2, 2, 1.0)),
        (x.clone(), points(3, 1, 1.0)),
        (nan.clone(), x.clone()),
        (x.clone(), nan.clone()),
    ];
    for (x, y) in &refused {
        assert!(smoother.update(x, y).is_err() && exact.update(x, y).is_err());
    }
    let error = smoother.update(&x, &[0, 1, 2]).unwrap_err().to_string();
    assert_eq!(error, "row 2 of the labels is 2, but must be below the number of classes");
    assert!(smoother.update(&x, &[0]).is_err());
    assert_eq!(smoother.rows(), 0);
    smoother.update(&x, &[0, 1, 1]).unwrap();
    exact.update(&x, &[0, 1, 1]).unwrap();
    assert!(smoother.predict(&nan).unwrap().row(1).iter().all(|v| v.is_nan()));
    assert!(exact.predict(&nan).unwrap().row(1).iter().all(|v| v.is_nan()));
    assert!(matches!(smoother.classify(&nan), Err(Error::NotFinite { row: 1, .. })));
    for bad in [usize::MAX, usize::MAX / 16] {
        assert!(Smoother::new(map.clone(), bad).is_err());
        assert!(ExactSmoother::<f64, _>::new(Gaussian::default(), 2, bad).is_err());
        assert!(ExactSmoother::<f64, _>::new(Gaussian::default(), bad, 2).is_err());
    }
    // A finite point whose squared norm overflows has no features; with exact kernels it weighs nothing.
    let far = ndarray::arr2(&[[1e160, 0.0]]);
    assert!(matches!(smoother.update(&far, &[0]), Err(Error::NotFinite { row: 0, .. })));
    assert_eq!(smoother.rows(), 3);
    assert!(exact.predict(&far).unwrap().iter().all(|v| v.is_finite()));
}

#[test]
fn no_points_are_no_predictions() {
    let map = Name::Positive.make::<f32>(frequencies(2, 100, &Independent, 3), gaussian());
    let mut smoother = Smoother::new(map.clone(), 2).unwrap();
    let x = points::<f32>(3, 2, 1.0);
    smoother.update(&x, &[0, 1, 1]).unwrap();
    assert_eq!(smoother.predict(x.slice(s![..0, ..])).unwrap().dim(), (0, 2));
    assert!(smoother.classify(x.slice(s![..0, ..])).unwrap().is_empty());
}

/// e^(x·y) beyond the range of the logarithm: only points with infinite weights count, all alike.
#[test]
fn infinite_weights_count_alone() {
    let mut smoother = ExactSmoother::new(Softmax::default(), 2, 2).unwrap();
    let train = ndarray::arr2(&[[1e200, 0.0], [1.0, 0.0], [-1e200, 0.0], [2e200, 1.0], [0.0, 0.0]]);
    let y = ndarray::arr2(&[[1.0, -4.0], [100.0, 1e5], [7.0, 7.0], [2.0, 4.0], [9.0, 9.0]]);
    smoother.update(&train, &y).unwrap();
    let predicted = smoother.predict(&ndarray::arr2(&[[1e200, 0.0], [1e200, 1.0], [-1e200, 3.0]])).unwrap();
    assert_eq!(predicted, ndarray::arr2(&[[1.5, 0.0], [1.5, 0.0], [7.0, 7.0]]));
    // Logarithms of 1e200 are weights like others: the largest is alone.
    let predicted = smoother.predict(&ndarray::arr2(&[[1.0, 0.0], [-1.0, 0.0]])).unwrap();
    assert_eq!(predicted, ndarray::arr2(&[[2.0, 4.0], [7.0, 7.0]]));
    assert_eq!(smoother.classify(&ndarray::arr2(&[[1e200, 0.0]])).unwrap(), [0]);
    // Where all weights are 0 to any precision, all points are as good.
    let mut opposed = ExactSmoother::new(Softmax::default(), 2, 2).unwrap();
    opposed.update(train.slice(s![..1, ..]), y.slice(s![..1, ..])).unwrap();
    opposed.update(train.slice(s![3..4, ..]), y.slice(s![3..4, ..])).unwrap();
    assert_eq!(opposed.predict(&ndarray::arr2(&[[-1e200, 0.0]])).unwrap(), ndarray::arr2(&[[1.5, 0.0]]));
}

/// Points that come one by one cost what they cost together: no update copies those before it. Were each of these a
/// copy of all before it, 20 000 of them would move 77 GB.
#[test]
fn many_small_updates_are_one_large_one() {
    let n = 20_000;
    let (x, y) = (points::<f32>(n, 48, 1.0), points::<f32>(n, 48, 3.0));
    let mut whole = ExactSmoother::new(Gaussian::default(), 48, 48).unwrap();
    whole.update(&x, &y).unwrap();
    let mut single = ExactSmoother::new(Gaussian::default(), 48, 48).unwrap();
    for i in 0..n {
        single.update(x.slice(s![i..=i, ..]), y.slice(s![i..=i, ..])).unwrap();
    }
    let queries = x.slice(s![..5, ..]);
    assert_eq!(single.predict(queries).unwrap(), whole.predict(queries).unwrap());
}

/// More targets, or predictions, than any machine has memory for.
#[test]
fn sums_beyond_memory_are_refused() {
    let map = Name::Positive.make::<f64>(frequencies(2, 20, &Independent, 1), softmax());
    let refused = Smoother::new(map.clone(), 1 << 44).unwrap_err();
    assert!(matches!(refused, Error::Memory { .. }), "{refused}");
    let (x, y) = (points::<f64>(5, 2, 1.0), points::<f64>(5, 40, 1.0));
    let row = x.row(0);
    let many = row.broadcast((1 << 46, 2)).unwrap();
    let mut smoother = Smoother::new(map, 40).unwrap();
    smoother.update(&x, &y).unwrap();
    assert!(matches!(smoother.predict(many), Err(Error::Memory { .. })));
    let mut exact = ExactSmoother::new(Gaussian::default(), 2, 40).unwrap();
    exact.update(&x, &y).unwrap();
    assert!(matches!(exact.predict(many), Err(Error::Memory { .. })));
}

/// Sums that have travelled go on after their last row, and targets whose sum is beyond the range are refused.
#[test]
fn sums_go_on_after_their_last_row() {
    let map: Map<f64> = Positive.gaussian(Independent.draw(2, 32, 5).unwrap(), 1.0).unwrap();
    let (x, y) = (Array2::from_elem((5, 2), 0.5), Array2::from_elem((5, 1), 1.0));
    let mut first = Smoother::new(map.clone(), 1).unwrap().with_first_row(150).unwrap();
    first.update(&x, &y).unwrap();
    let first = first.with_first_row(10).unwrap();
    let mut next = Smoother::of_sums(map.clone(), first.sums().clone()).unwrap();
    next.update(&x, &y).unwrap();
    assert_eq!(next.row_ranges(), std::slice::from_ref(&(150..160)));
    let before = next.clone();
    assert!(
        next.update(&x, &Array2::from_elem((5, 1), 1e308))
            .unwrap_err()
            .to_string()
            .contains("scale the targets")
    );
    assert_eq!(next.row_ranges(), before.row_ranges());
    assert_eq!(next.predict(&x).unwrap(), before.predict(&x).unwrap());
}
