//! Parameters from data, against loops over all pairs.

use crate::common::points;
use ndarray::{Array1, Array2, arr1, arr2, concatenate, s};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use random_features::data::{PairStatistics, Statistics, lengthscale};
use random_features::kernel::Gaussian;
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::{Law, Pair, counts};
use random_features::{Error, Real, rng};

const SIGNS: [GerfSign; 2] = [GerfSign::Plus, GerfSign::Minus];

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + b.abs())
}

/// All accessors side by side.
fn numbers(statistics: &Statistics) -> Vec<f64> {
    let lists = [
        statistics.mean(),
        statistics.variance(),
        statistics.mean_squares(),
        statistics.mean_magnitudes(),
        statistics.min(),
        statistics.max(),
    ];
    let scalars = [statistics.mean_squared_norm().unwrap(), statistics.overall_variance().unwrap()];
    let counts = [statistics.rows() as f64, statistics.weight()];
    lists.into_iter().flat_map(Result::unwrap).chain(scalars).chain(counts).collect()
}

fn same(a: &Statistics, b: &Statistics, tolerance: f64) {
    for (a, b) in numbers(a).into_iter().zip(numbers(b)) {
        assert!(close(a, b, tolerance), "{a} instead of {b}");
    }
}

/// The definitions, each a loop over the points.
fn naive(x: &Array2<f64>, weights: &Array1<f64>) -> Vec<f64> {
    let (n, d, total) = (x.nrows() as f64, x.ncols(), weights.sum());
    let mean = |f: &dyn Fn(f64) -> f64, l: usize| {
        x.column(l).iter().zip(weights).map(|(v, w)| w * f(*v)).sum::<f64>() / total
    };
    let each = |f: &dyn Fn(usize) -> f64| (0..d).map(f).collect::<Vec<_>>();
    let means = each(&|l| mean(&|v| v, l));
    let centre = means.iter().sum::<f64>() / d as f64;
    let squares = each(&|l| mean(&|v| v * v, l));
    [
        means.clone(),
        each(&|l| mean(&|v| (v - means[l]).powi(2), l)),
        squares.clone(),
        each(&|l| mean(&f64::abs, l)),
        each(&|l| x.column(l).iter().copied().fold(f64::INFINITY, f64::min)),
        each(&|l| x.column(l).iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        vec![squares.iter().sum()],
        vec![each(&|l| mean(&|v| (v - centre).powi(2), l)).iter().sum::<f64>() / d as f64],
        vec![n, total],
    ]
    .concat()
}

#[test]
fn statistics_are_their_definitions() {
    for (n, d) in [(1, 1), (2, 3), (63, 2), (64, 5), (65, 5), (1000, 17)] {
        let x = points::<f64>(n, d, 3.0) + 0.5;
        let ones = Array1::ones(n);
        for (a, b) in numbers(&Statistics::of(&x).unwrap()).into_iter().zip(naive(&x, &ones)) {
            assert!(close(a, b, 1e-13), "{n} × {d}: {a} instead of {b}");
        }
        let weights = Array1::from_shape_fn(n, |i| 0.5 + (i % 7) as f64);
        let mut weighted = Statistics::new(d).unwrap();
        weighted.update_weighted(&x, &weights).unwrap();
        for (a, b) in numbers(&weighted).into_iter().zip(naive(&x, &weights)) {
            assert!(close(a, b, 1e-13), "{n} × {d}: {a} instead of {b}");
        }
    }
}

proptest! {
    // The same cases in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// Any split into batches, merged in any order.
    #[test]
    fn merging_is_seeing_it_all(
        n in 1usize..300,
        d in 1usize..9,
        cuts in (0.0f64..1.0, 0.0f64..1.0),
        shift in -1e3f64..1e3,
    ) {
        let x = points::<f64>(n, d, 2.0) + shift;
        let (a, b) = ((cuts.0 * n as f64) as usize, (cuts.1 * n as f64) as usize);
        let (a, b) = (a.min(b), a.max(b));
        let part = |range| Statistics::of(&x.slice(s![range, ..])).unwrap();
        let parts = [part(0..a), part(a..b), part(b..n)];
        let whole = Statistics::of(&x).unwrap();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = Statistics::new(d).unwrap();
            order.iter().for_each(|k| merged.merge(&parts[*k]).unwrap());
            same(&merged, &whole, 1e-13 * (1.0 + shift.abs()));
        }
        let mut batches = part(0..a);
        batches.update(&x.slice(s![a.., ..])).unwrap();
        same(&batches, &whole, 1e-13 * (1.0 + shift.abs()));
    }

    /// Whole weights are repetitions.
    #[test]
    fn weights_are_repetitions(times in proptest::collection::vec(0usize..4, 1..150), d in 1usize..5) {
        prop_assume!(times.iter().any(|t| *t > 0));
        let x = points::<f64>(times.len(), d, 2.0);
        let rows: Vec<usize> = times.iter().enumerate().flat_map(|(i, t)| vec![i; *t]).collect();
        let repeated = Statistics::of(&x.select(ndarray::Axis(0), &rows)).unwrap();
        let mut weighted = Statistics::new(d).unwrap();
        weighted.update_weighted(&x, &times.iter().map(|t| *t as f64).collect::<Array1<_>>()).unwrap();
        prop_assert_eq!(weighted.rows(), times.iter().filter(|t| **t > 0).count() as u64);
        prop_assert_eq!(weighted.weight(), repeated.weight());
        let counted = |s: &Statistics| numbers(s).split_last_chunk::<2>().map(|(rest, _)| rest.to_vec());
        for (a, b) in counted(&weighted).unwrap().into_iter().zip(counted(&repeated).unwrap()) {
            prop_assert!(close(a, b, 1e-13), "{} instead of {}", a, b);
        }
    }

    /// Averages over all pairs, without a loop over pairs.
    #[test]
    fn sides_are_loops_over_pairs(n in 1usize..20, l in 1usize..20, d in 1usize..6, scale in 0.01f64..30.0) {
        let (x, y) = (points::<f64>(n, d, scale) + 0.2, points::<f64>(l + 7, d, scale).slice_move(s![7.., ..]));
        let (of_x, of_y) = (Statistics::of(&x).unwrap(), Statistics::of(&y).unwrap());
        let pairs = PairStatistics::new(&of_x, &of_y).unwrap();
        let over_pairs = |term: &dyn Fn(usize, usize) -> f64| {
            let pairs = (0..n).flat_map(|i| (0..l).map(move |j| (i, j)));
            pairs.map(|(i, j)| term(i, j)).sum::<f64>() / (n * l) as f64
        };
        for sign in SIGNS {
            let naive = over_pairs(&|i, j| (&x.row(i) + &(&y.row(j) * sign.value())).powi(2).sum());
            prop_assert!(close(pairs.mean_squared_sum(sign), naive, 1e-12));
        }
        let (root_mean_squares, magnitudes) = (pairs.root_mean_square_products(), pairs.magnitude_products());
        let each = pairs.poisson_per_dimension();
        let mut total = 0.0;
        for k in 0..d {
            let square = over_pairs(&|i, j| (x[[i, k]] * y[[j, k]]).powi(2));
            total += square;
            prop_assert!(close(root_mean_squares[k], square.sqrt(), 1e-12));
            prop_assert!(close(each[k], square.sqrt(), 1e-12));
            prop_assert!(close(magnitudes[k], over_pairs(&|i, j| (x[[i, k]] * y[[j, k]]).abs()), 1e-12));
        }
        prop_assert!(close(pairs.poisson(), (total / d as f64).sqrt(), 1e-12));
        let shift = pairs.shift(1e-8).unwrap();
        let positive = |side: &Array2<f64>| side.rows().into_iter().all(|row| (&row - &arr1(&shift)).iter().all(|v| *v > 0.0));
        prop_assert!(positive(&x) && positive(&y));
    }
}

/// The mean over pairs of the logarithm of the second moment, in a loop, is least at the chosen parameter.
#[test]
fn choices_minimise_the_mean_over_pairs() {
    let (x, y) = (points::<f64>(12, 3, 1.2) + 0.3, points::<f64>(30, 3, 0.8).slice_move(s![12.., ..]));
    let (of_x, of_y) = (Statistics::of(&x).unwrap(), Statistics::of(&y).unwrap());
    let pairs = PairStatistics::new(&of_x, &of_y).unwrap();
    let mean = |second_moment: &dyn Fn(&Array1<f64>, &Array1<f64>) -> f64| {
        let pairs = x.rows().into_iter().flat_map(|x| y.rows().into_iter().map(move |y| (x, y)));
        pairs.map(|(x, y)| second_moment(&x.to_owned(), &y.to_owned())).sum::<f64>()
    };
    let pair_of = |x: &Array1<f64>, y: &Array1<f64>| Pair::new(x.iter().copied().zip(y.iter().copied()));
    let ln_second_moment =
        |ln_variance: f64, pair: &Pair| (ln_variance.exp() + (-pair.difference).exp()).ln();
    let oprf = |a: f64| {
        mean(&|x, y| {
            let pair = pair_of(x, y);
            let ln = gerf::ln_variance(&pair, a.into(), GerfSign::Plus, &Law::independent(1)).unwrap();
            ln_second_moment(ln, &pair)
        })
    };
    let poisson = |lambda: f64| {
        mean(&|x, y| {
            let ln = counts::ln_poisson_variance(x.as_slice().unwrap(), y.as_slice().unwrap(), lambda, 1);
            ln_second_moment(ln, &pair_of(x, y))
        })
    };
    let a = pairs.oprf().0;
    let lambda = pairs.poisson();
    for factor in [0.5, 0.9, 0.99, 1.01, 1.1, 2.0] {
        assert!(oprf(a) < oprf(factor * a) && poisson(lambda) < poisson(factor * lambda), "{factor}");
    }
    // A rate for each coordinate: Σ λₗ + xₗ²yₗ²/λₗ, directly.
    let rates = pairs.poisson_per_dimension();
    let with =
        |rates: &[f64]| mean(&|x, y| (0..3).map(|l| rates[l] + (x[l] * y[l]).powi(2) / rates[l]).sum());
    assert!(with(&rates) < with(&[lambda; 3]));
    for l in 0..3 {
        for factor in [0.9, 1.1] {
            let mut other = rates.clone();
            other[l] *= factor;
            assert!(with(&rates) < with(&other), "{l}");
        }
    }
    let p = pairs.geometric();
    let objective = |p| counts::geometric_objective(&pairs.magnitude_products(), p);
    assert!(objective(p) < objective(0.99 * p) && objective(p) < objective(1.01 * p));
    let diagonal = pairs.robust_diagonal(1e-6).unwrap();
    let loss = |a: &[f64]| mean(&|x, y| (0..3).map(|k| (a[k] * x[k] + y[k] / a[k]).powi(2)).sum());
    for k in 0..3 {
        for factor in [0.95, 1.05] {
            let mut other = diagonal.clone();
            other[k] *= factor;
            assert!(loss(&diagonal) < loss(&other), "{k}");
        }
    }
}

/// Statistics of two sides in ℝᵈ with given means of ‖x+y‖² and ‖x−y‖²: one point each.
fn opposite(d: usize, plus: f64, minus: f64) -> (Statistics, Statistics) {
    let (u, v) = (0.5 * plus.sqrt(), 0.5 * minus.sqrt());
    let mut points = [vec![0.0; d], vec![0.0; d]];
    // Sum and difference along different axes, or along one.
    let other = usize::from(d > 1);
    for (point, sign) in points.iter_mut().zip([1.0, -1.0]) {
        point[0] += u;
        point[other] += sign * v;
    }
    let [x, y] = points.map(|p| Statistics::of(&Array1::from(p).insert_axis(ndarray::Axis(0))).unwrap());
    (x, y)
}

/// No complex A and no sign is better than what is found.
///
/// The grid has A = (1 − c)/8 with ln |c| and arg c in steps of 1/40 and 1/25, and finer about the minimum.
#[test]
fn gerf_is_the_minimum_over_the_half_plane() {
    let mut signs = Vec::new();
    for d in [1, 2, 4, 16, 64, 1024] {
        for (plus, minus) in [
            (0.01, 3.0),
            (0.1, 0.1),
            (1.0, 0.2),
            (3.0, 1.0),
            (10.0, 30.0),
            (30.0, 0.3),
            (100.0, 10.0),
            (1e4, 4.0),
        ] {
            let (x, y) = opposite(d, plus, minus);
            let pairs = PairStatistics::new(&x, &y).unwrap();
            let (best, sign) = pairs.gerf();
            signs.push(sign);
            let mut pair = Pair::new([(0.0, 0.0)]);
            (pair.dim, pair.norms, pair.dot) = (d, 0.5 * (plus + minus), 0.25 * (plus - minus));
            (pair.sum, pair.difference) = (plus, minus);
            let at =
                |a: num_complex::Complex64, s| gerf::ln_variance(&pair, a, s, &Law::independent(1)).unwrap();
            let least = at(best.into(), sign);
            // What rounding of V leaves.
            let slack = 1e-9;
            let log_radii = (-200..560).map(|i| f64::from(i) / 40.0);
            let turns = (0..39).map(|j| f64::from(j) / 25.0);
            let coarse = log_radii.flat_map(|r| turns.clone().map(move |t| (r, t)));
            let centre = (1.0 - 8.0 * best).ln();
            let steps = (-8..=8).map(|i| f64::from(i) * 1e-3);
            let turns = (0..30).map(|j| if j == 0 { 0.0 } else { 1e-4 * 1.3f64.powi(j) });
            let fine = steps.flat_map(|r| turns.clone().map(move |t| (centre + r, t)));
            for (r, t) in coarse.chain(fine) {
                let a = (1.0 - num_complex::Complex64::from_polar(r.exp(), t)) / 8.0;
                for s in SIGNS {
                    assert!(
                        at(a, s) >= least - slack,
                        "d {d}, {plus}, {minus}: A = {a}, {s:?} beats {best}, {sign:?}"
                    );
                }
            }
        }
    }
    assert!(SIGNS.iter().all(|sign| signs.contains(sign)));
}

#[test]
fn layouts_and_scalars_are_the_same_points() {
    let x = points::<f64>(200, 6, 1.0).mapv(|v| f64::from(v as f32));
    let plain = Statistics::of(&x).unwrap();
    let columns = x.t().as_standard_layout().reversed_axes().to_owned();
    assert_eq!(Statistics::of(&columns).unwrap(), plain);
    // They know the rounding error of their scalar, and are equal in all else.
    let single = Statistics::of(&x.mapv(|v| v as f32)).unwrap();
    assert_eq!(
        (single.rows(), single.mean(), single.variance()),
        (plain.rows(), plain.mean(), plain.variance())
    );
    let mut wide = Array2::zeros((400, 12));
    wide.slice_mut(s![..;2, ..;-2]).assign(&x);
    assert_eq!(Statistics::of(&wide.slice(s![..;2, ..;-2])).unwrap(), plain);
}

#[test]
fn constants_have_no_variance_and_means_far_off_do_not_drown_it() {
    let constant = Statistics::of(&Array2::from_elem((1000, 3), 0.1)).unwrap();
    assert_eq!((constant.mean().unwrap(), constant.variance().unwrap()), (vec![0.1; 3], vec![0.0; 3]));
    assert_eq!(constant.overall_variance().unwrap(), 0.0);
    let far = Statistics::of(&Array2::from_shape_fn((1000, 1), |(i, _)| 1e9 + (i % 2) as f64)).unwrap();
    assert_eq!(far.variance().unwrap(), [0.25]);
    assert!((far.mean().unwrap()[0] - 1e9 - 0.5).abs() < 1e-6);
}

#[test]
fn dividing_statistics_is_dividing_points() {
    let x = points::<f64>(50, 3, 2.0) + 0.1;
    let statistics = Statistics::of(&x).unwrap();
    same(&statistics.divided_by(0.7).unwrap(), &Statistics::of(&(&x / 0.7)).unwrap(), 1e-14);
    let scales = vec![0.5, 3.0, 1e3];
    let divided = Statistics::of(&(&x / &arr1(&scales))).unwrap();
    same(&statistics.divided_by(scales).unwrap(), &divided, 1e-14);
    assert!(matches!(statistics.divided_by(vec![1.0]), Err(Error::Shape { .. })));
    assert!(matches!(statistics.divided_by(-1.0), Err(Error::Parameter { .. })));
    let huge = Statistics::of(&arr2(&[[1e150]])).unwrap();
    assert!(matches!(huge.divided_by(1e-10), Err(Error::Parameter { .. })));
}

/// Every choice for two sides.
fn choices(x: &Statistics, y: &Statistics) -> Vec<f64> {
    let pairs = PairStatistics::new(x, y).unwrap();
    let (oprf, plus) = pairs.oprf();
    let (a, sign) = pairs.gerf();
    assert!(plus == GerfSign::Plus && oprf.is_finite() && oprf <= 0.0, "{oprf}");
    assert!(a < 0.125 && (sign == GerfSign::Minus || a == oprf));
    let p = pairs.geometric();
    assert!(p > 0.0 && p < 1.0);
    let lambdas = [vec![pairs.poisson()], pairs.poisson_per_dimension()].concat();
    assert!(lambdas.iter().all(|lambda| *lambda >= 1e-12));
    [vec![oprf, a, p], lambdas, pairs.shift(1e-8).unwrap(), pairs.robust_diagonal(1e-6).unwrap()].concat()
}

#[test]
fn degenerate_data_has_parameters() {
    let of = |x: Array2<f64>| Statistics::of(&x).unwrap();
    let zeros = of(Array2::zeros((5, 2)));
    let pairs = PairStatistics::new(&zeros, &zeros).unwrap();
    assert_eq!(pairs.oprf(), (0.0, GerfSign::Plus));
    assert_eq!(pairs.gerf(), (0.0, GerfSign::Plus));
    assert_eq!((pairs.poisson(), pairs.poisson_per_dimension()), (1e-12, vec![1e-12; 2]));
    assert_eq!(pairs.geometric(), 1.0 - 1e-12);
    assert_eq!(
        (pairs.shift(1e-8).unwrap(), pairs.robust_diagonal(0.1).unwrap()),
        (vec![-1e-8; 2], vec![1.0; 2])
    );
    // Queries that are their keys, all alike: the trigonometric map is exact there.
    let alike = of(arr2(&[[1.0, 2.0]]));
    assert_eq!(PairStatistics::new(&alike, &alike).unwrap().gerf(), (0.0, GerfSign::Minus));
    let sized = |size: f64| of(arr2(&[[size, -size], [0.5 * size, size]]));
    for (a, b) in [(1e150, 1e150), (1e150, 1e-150), (9e153, 9e153), (1e-200, 1e-200), (5e-324, 1.0)] {
        for pair in [(sized(a), sized(b)), (sized(a), zeros.clone())] {
            assert!(choices(&pair.0, &pair.1).iter().all(|v| v.is_finite()), "{a}, {b}");
        }
    }
    // Mean squares of 0.625 and 1, times 1e300: T itself overflows.
    let huge = sized(1e150);
    let lambda = 1e300 * (0.5f64 * (0.625 * 0.625 + 1.0)).sqrt();
    assert!((PairStatistics::new(&huge, &huge).unwrap().poisson() / lambda - 1.0).abs() < 1e-14);
    // An ε below the resolution.
    let large = of(arr2(&[[1e10]]));
    assert!(PairStatistics::new(&large, &large).unwrap().shift(1e-8).unwrap()[0] < 1e10);
}

#[test]
fn refusals_leave_nothing_behind() {
    let x = points::<f64>(200, 2, 1.0);
    let mut statistics = Statistics::of(&x).unwrap();
    let before = statistics.clone();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut y = x.clone();
        y[[150, 1]] = bad;
        assert_eq!(statistics.update(&y), Err(Error::NotFinite { what: "x", row: 150, column: Some(1) }));
        let mut weights = Array1::ones(200);
        weights[150] = 0.0;
        assert_eq!(
            statistics.update_weighted(&y, &weights),
            Err(Error::NotFinite { what: "x", row: 150, column: Some(1) })
        );
    }
    let error = statistics.update(&arr2(&[[0.0, 0.0], [1e154, 1e154]])).unwrap_err();
    assert_eq!(error, Error::NotFinite { what: "the squared norms of x", row: 1, column: None });
    for bad in [-1.0, f64::INFINITY, f64::NAN] {
        let mut weights = Array1::ones(200);
        weights[130] = bad;
        let error = statistics.update_weighted(&x, &weights).unwrap_err();
        assert!(matches!(error, Error::Entry { what: "the weights", row: 130, .. }), "{error}");
        assert!(error.to_string().starts_with("row 130 of the weights is "), "{error}");
    }
    assert!(matches!(statistics.update_weighted(&x, &Array1::ones(3)), Err(Error::Shape { .. })));
    assert!(matches!(statistics.update(&Array2::<f64>::zeros((2, 3))), Err(Error::Shape { .. })));
    assert!(matches!(statistics.merge(&Statistics::new(3).unwrap()), Err(Error::Shape { .. })));
    let mut heavy = Array1::ones(200);
    heavy.fill(f64::MAX);
    assert!(matches!(statistics.update_weighted(&x, &heavy), Err(Error::Parameter { .. })));
    assert_eq!(statistics, before);
    assert!(matches!(Statistics::new(0), Err(Error::Parameter { .. })));
    assert!(matches!(Statistics::of(&Array2::<f32>::zeros((3, 0))), Err(Error::Parameter { .. })));
}

#[test]
fn nothing_is_an_identity_without_averages() {
    let empty = Statistics::new(2).unwrap();
    let some = Statistics::of(&points::<f32>(10, 2, 1.0)).unwrap();
    let (mut left, mut right) = (empty.clone(), some.clone());
    left.merge(&some).unwrap();
    right.merge(&empty).unwrap();
    right.update(&Array2::<f32>::zeros((0, 2))).unwrap();
    right.update_weighted(&points::<f32>(3, 2, 9.0), &Array1::zeros(3)).unwrap();
    assert_eq!((&left, &right), (&some, &some));
    assert_eq!((empty.rows(), empty.weight(), empty.dim()), (0, 0.0, 2));
    let none = |result: Result<Vec<f64>, Error>| matches!(result, Err(Error::NoData { .. }));
    assert!(none(empty.mean()) && none(empty.variance()) && none(empty.mean_squares()));
    assert!(none(empty.mean_magnitudes()) && none(empty.min()) && none(empty.max()));
    assert!(
        none(empty.mean_squared_norm().map(|v| vec![v])) && none(empty.overall_variance().map(|v| vec![v]))
    );
    assert!(matches!(PairStatistics::new(&some, &empty), Err(Error::NoData { .. })));
    assert!(matches!(PairStatistics::new(&empty, &some), Err(Error::NoData { .. })));
    let other = Statistics::of(&points::<f32>(10, 3, 1.0)).unwrap();
    assert!(matches!(PairStatistics::new(&some, &other), Err(Error::Shape { .. })));
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let pairs = PairStatistics::new(&some, &some).unwrap();
        assert!(pairs.shift(epsilon).is_err() && pairs.robust_diagonal(epsilon).is_err());
    }
    assert!(matches!(lengthscale::of_statistics(&empty), Err(Error::NoData { .. })));
}

/// The median of all distances, by sorting.
fn brute_median<T: Real>(x: &Array2<T>) -> f64 {
    let distance = |i: usize, j: usize| {
        let squares =
            x.row(i).iter().zip(x.row(j)).map(|(a, b)| (a.widen() - b.widen()).powi(2)).sum::<f64>();
        squares.sqrt()
    };
    let mut all: Vec<f64> =
        (0..x.nrows()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| distance(i, j)).collect();
    all.sort_by(f64::total_cmp);
    0.5 * (all[(all.len() - 1) / 2] + all[all.len() / 2])
}

#[test]
fn medians_of_all_pairs() {
    for (n, d) in [(2, 1), (3, 2), (4, 2), (5, 1), (40, 3), (41, 7)] {
        let x = points::<f64>(n, d, 2.0);
        let expected = brute_median(&x);
        let ell = lengthscale::median_of_subsample(&x, n, 1).unwrap();
        assert!(close(ell, expected, 1e-15), "{ell} {expected}");
        let columns = x.t().as_standard_layout().reversed_axes().to_owned();
        assert_eq!(lengthscale::median_of_subsample(&columns, usize::MAX, 2).unwrap(), ell);
        let single = x.mapv(|v| v as f32);
        let ell = lengthscale::median_of_subsample(&single, n, 1).unwrap();
        assert!(close(ell, brute_median(&single), 1e-15));
        assert!(Gaussian::new(ell).is_ok());
    }
}

/// Subsamples are without replacement and uniform: of 5 points each pair is drawn with probability 1/10.
///
/// Points whose distances are all different tell which pair was drawn. Counts of 10000 draws are binomial:
/// bounds of 4.9 standard errors on 10 counts, false-alarm rate below 1e-5.
#[test]
fn subsamples_are_uniform() {
    let x = arr2(&[[0.0], [1.0], [4.0], [9.0], [11.0]]);
    let distances = |x: &Array2<f64>| {
        (0..5)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| x[[i, 0]] - x[[j, 0]])
            .collect::<Vec<f64>>()
    };
    let mut rng = rng(4);
    let mut drawn = vec![0.0; 10];
    for _ in 0..10_000 {
        let ell = lengthscale::median_of_subsample(&x, 2, rng.next_u64()).unwrap();
        let pair = distances(&x).iter().position(|d| *d == ell).unwrap();
        drawn[pair] += 1.0;
    }
    for count in drawn {
        assert!((count - 1000.0f64).abs() < 4.9 * 900f64.sqrt(), "{count}");
    }
}

/// 500 points in ten dimensions give a normal sample's median to 0.8 %; 3 % is more than three of that, and
/// draws are fixed.
#[test]
fn subsamples_come_close() {
    let x = points::<f64>(5000, 10, 1.0);
    let all = lengthscale::median_of_subsample(&x, 2000, 1).unwrap();
    let some = lengthscale::median_of_subsample(&x, 500, 2).unwrap();
    assert!(some != all && (some / all - 1.0).abs() < 0.03, "{some} {all}");
    assert_eq!(lengthscale::median_of_subsample(&x, 500, 2).unwrap(), some);
}

#[test]
fn medians_of_degenerate_points() {
    let median = lengthscale::median::<f64>;
    // Six of ten distances are 0: of the others, all 2.
    assert_eq!(median(&arr2(&[[1.0], [1.0], [1.0], [1.0], [3.0]])), Ok(2.0));
    for constant in [0.0, 0.1, 1e150] {
        let error = median(&Array2::from_elem((4, 2), constant)).unwrap_err();
        assert!(error.to_string().contains("two points must differ"), "{error}");
    }
    assert!(matches!(
        median(&arr2(&[[1.0, 2.0]])),
        Err(Error::Parameter { name: "the number of points", .. })
    ));
    assert!(matches!(median(&Array2::zeros((0, 2))), Err(Error::Parameter { .. })));
    assert!(matches!(median(&Array2::zeros((3, 0))), Err(Error::Parameter { .. })));
    assert!(lengthscale::median_of_subsample(&points::<f64>(4, 2, 1.0), 1, 1).is_err());
    let mut x = points::<f64>(6, 2, 1.0);
    x[[4, 0]] = f64::NAN;
    assert_eq!(
        lengthscale::median_of_subsample(&x, 2, 1),
        Err(Error::NotFinite { what: "the points", row: 4, column: Some(0) })
    );
    for size in [1e160, 1e-160] {
        assert!(matches!(median(&(points::<f64>(6, 2, 1.0) * size)), Err(Error::Parameter { .. })), "{size}");
    }
    assert!(Gaussian::new(median(&(points::<f64>(6, 2, 1.0) * 1e150)).unwrap()).is_ok());
}

/// γ = 1/(d X.var()) with the variance of the flattened array.
#[test]
fn scale_is_that_of_scikit_learn() {
    let x = points::<f64>(40, 3, 1.0) + &arr1(&[0.0, 5.0, -2.0]);
    let mean = x.mean().unwrap();
    let variance = x.mapv(|v| (v - mean).powi(2)).mean().unwrap();
    let gamma = 1.0 / (3.0 * variance);
    let ell = lengthscale::of_statistics(&Statistics::of(&x).unwrap()).unwrap();
    assert!(close(0.5 / (ell * ell), gamma, 1e-14));
    let parts = concatenate![ndarray::Axis(0), x, x];
    assert!(close(lengthscale::of_statistics(&Statistics::of(&parts).unwrap()).unwrap(), ell, 1e-14));
    let constant = Statistics::of(&Array2::from_elem((7, 3), 0.1)).unwrap();
    let error = lengthscale::of_statistics(&constant).unwrap_err().to_string();
    assert!(error.contains("at least two coordinates must differ"), "{error}");
}
