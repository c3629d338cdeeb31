//! Left-out rows, groups, folds and blocks against regressions that are fitted without them.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use random_features::apply::{Criterion, RidgeGrid, RidgeSearch, RidgeStatistics, RidgeWarning};
use random_features::{Error, Map, Real, Targets};

use super::{data, features, naive, trigonometric, weights};

const LAMBDAS: [f64; 3] = [1e-2, 1.0, 1e3];

/// Predictions at some rows by the definition, fitted to others.
fn predicted<T: Real>(
    map: &Map<T>,
    (x, y, w): (&Array2<T>, &Array2<T>, &Array1<f64>),
    (train, test): (&[usize], &[usize]),
    options: (f64, bool),
) -> Array2<f64> {
    let (z, y) = (features(map, x), y.mapv(|v| v.widen()));
    let of = |a: &Array2<f64>| a.select(Axis(0), train);
    let (beta, b) = naive(&of(&z), &of(&y), &w.select(Axis(0), train), options);
    z.select(Axis(0), test).dot(&beta) + &b
}

/// The weighted mean of squared errors over pairs of rows to train on and rows to test on.
fn naive_error<T: Real>(
    map: &Map<T>,
    data: (&Array2<T>, &Array2<T>, &Array1<f64>),
    splits: &[(Vec<usize>, Vec<usize>)],
    options: (f64, bool),
) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for (train, test) in splits {
        let errors =
            predicted(map, data, (train, test), options) - data.1.select(Axis(0), test).mapv(|v| v.widen());
        for (row, i) in errors.rows().into_iter().zip(test) {
            sum += data.2[*i] * row.dot(&row);
            weight += data.2[*i];
        }
    }
    sum / weight
}

/// For each label, the rows of others and those of it.
fn splits(labels: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let most = labels.iter().max().unwrap();
    let all = 0..labels.len();
    let with = |own: bool, label: usize| {
        all.clone().filter(|i| (labels[*i] == label) == own).collect::<Vec<usize>>()
    };
    (0..=*most)
        .map(|label| (with(false, label), with(true, label)))
        .filter(|(_, own)| !own.is_empty())
        .collect()
}

fn near(found: f64, expected: f64, tolerance: f64, case: &str) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{case}: {found} for {expected}");
}

/// Weights of 0 among others.
fn uneven(n: usize) -> Array1<f64> {
    let mut weights = weights(n);
    weights[3] = 0.0;
    weights[n - 1] = 0.0;
    weights
}

fn check_groups<T: Real>(tolerance: f64, intercept: bool) {
    let (n, map) = (90, trigonometric::<T>(6, 1.0));
    let ((x, y), w) = (data::<T>(n), uneven(n));
    let targets = || Targets::from(&y).with_weights(&w).unwrap();
    let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
    if !intercept {
        statistics = statistics.without_intercept();
    }
    statistics.update(&x, targets()).unwrap();
    let spectrum = statistics.spectrum().unwrap();
    // Groups of one to four rows; few with many; one with most rows, more than there are features.
    let kinds: [Vec<usize>; 3] = [
        (0..n).map(|i| (i * i + 3 * i) % 37).collect(),
        (0..n).map(|i| i % 9).collect(),
        (0..n).map(|i| if i % 5 == 0 { i % 3 } else { 3 + i % 2 }).collect(),
    ];
    for groups in &kinds {
        let criterion = Criterion::leave_groups_out(&x, targets(), groups);
        let errors = spectrum.errors(&criterion, &LAMBDAS).unwrap();
        for (error, lambda) in errors.iter().zip(LAMBDAS) {
            let expected = naive_error(&map, (&x, &y, &w), &splits(groups), (lambda, intercept));
            near(*error, expected, tolerance, &format!("{groups:?} {lambda}"));
            let left_out = spectrum.left_out(&criterion, lambda).unwrap();
            for (train, test) in splits(groups) {
                let expected = predicted(&map, (&x, &y, &w), (&train, &test), (lambda, intercept));
                let found = left_out.select(Axis(0), &test).mapv(|v| v.widen());
                let worst = (found - expected).iter().fold(0.0, |worst: f64, e| worst.max(e.abs()));
                assert!(worst <= 10.0 * tolerance, "{worst} {lambda}");
            }
        }
    }
    // Groups of one row are left-out rows.
    let each: Vec<usize> = (0..n).rev().collect();
    let by_groups = spectrum.errors(&Criterion::leave_groups_out(&x, targets(), &each), &LAMBDAS).unwrap();
    let by_rows = spectrum.errors(&Criterion::leave_one_out(&x, targets()), &LAMBDAS).unwrap();
    by_groups.iter().zip(&by_rows).for_each(|(found, expected)| near(*found, *expected, 1e-13, "rows"));
}

#[test]
fn groups_are_those_of_regressions_without_them() {
    for intercept in [true, false] {
        check_groups::<f64>(1e-9, intercept);
        check_groups::<f32>(2e-3, intercept);
    }
}

/// The statistics of consecutive runs of rows that begin at these places.
fn parts<T: Real>(
    map: &Map<T>,
    (x, y, w): (ArrayView2<'_, T>, ArrayView2<'_, T>, &Array1<f64>),
    cuts: &[usize],
    intercept: bool,
) -> Vec<RidgeStatistics<T>> {
    let part = |ends: &[usize]| {
        let (start, end) = (ends[0], ends[1]);
        let mut part = RidgeStatistics::new(map.clone(), y.ncols()).unwrap();
        part = part.with_first_row(start as u64).unwrap();
        if !intercept {
            part = part.without_intercept();
        }
        let w = w.slice(s![start..end]);
        let targets = Targets::from(y.slice(s![start..end, ..]));
        part.update(x.slice(s![start..end, ..]), targets.with_weights(&w).unwrap()).unwrap();
        part
    };
    cuts.windows(2).map(part).collect()
}

fn merged<T: Real>(parts: &[RidgeStatistics<T>]) -> RidgeStatistics<T> {
    let mut all = parts[0].clone();
    parts[1..].iter().for_each(|part| all.merge(part).unwrap());
    all
}

fn check_folds<T: Real>(tolerance: f64, intercept: bool) {
    let (n, map) = (120, trigonometric::<T>(6, 1.0));
    let ((x, y), w) = (data::<T>(n), uneven(n));
    let cuts = [0, 25, 40, 41, 90, 120];
    let labels: Vec<usize> = (0..n).map(|i| cuts.iter().filter(|cut| **cut <= i).count() - 1).collect();
    let parts = parts(&map, (x.view(), y.view(), &w), &cuts, intercept);
    let spectrum = merged(&parts).spectrum().unwrap();
    let check = |criterion: Criterion<'_, T>, splits: &[(Vec<usize>, Vec<usize>)]| {
        let errors = spectrum.errors(&criterion, &LAMBDAS).unwrap();
        for (error, lambda) in errors.iter().zip(LAMBDAS) {
            let expected = naive_error(&map, (&x, &y, &w), splits, (lambda, intercept));
            near(*error, expected, tolerance, &format!("{lambda}"));
        }
        errors
    };
    let errors = check(Criterion::folds_of(&parts), &splits(&labels));
    // The order of folds does not matter, and those of another map are left alone.
    let other = trigonometric::<T>(6, 2.0);
    let others = self::parts(&other, (x.view(), y.view(), &w), &cuts, intercept);
    let again = Criterion::folds_of(others.iter().chain(parts.iter().rev()));
    let again = spectrum.errors(&again, &LAMBDAS).unwrap();
    again.iter().zip(&errors).for_each(|(found, expected)| near(*found, *expected, 1e-12, "reversed"));
    for gap in [0, 1] {
        let forward = |k: usize| {
            let before = (0..n).filter(|i| labels[*i] < k - gap).collect();
            (before, (0..n).filter(|i| labels[*i] == k).collect())
        };
        let splits: Vec<_> = (gap + 1..5).map(forward).collect();
        check(Criterion::forward_of(&parts, gap), &splits);
    }
}

#[test]
fn folds_and_blocks_of_sums_are_those_of_rows() {
    for intercept in [true, false] {
        check_folds::<f64>(1e-9, intercept);
        check_folds::<f32>(5e-3, intercept);
    }
}

/// Targets far from 0 and constant ones, and a class that only one fold has.
#[test]
fn folds_of_awkward_targets() {
    let (n, map) = (100, trigonometric::<f64>(6, 1.0));
    let (x, y) = data::<f64>(n);
    let awkward = Array2::from_shape_fn((n, 3), |(i, j)| match j {
        0 => y[[i, 0]] + 1e9,
        1 => 7.5,
        _ => f64::from(u8::from((20..30).contains(&i))),
    });
    let w = Array1::ones(n);
    let cuts = [0, 20, 50, 100];
    let labels: Vec<usize> = (0..n).map(|i| cuts[1..3].iter().filter(|cut| **cut <= i).count()).collect();
    let parts = parts(&map, (x.view(), awkward.view(), &w), &cuts, true);
    let errors = merged(&parts).spectrum().unwrap().errors(&Criterion::folds_of(&parts), &LAMBDAS).unwrap();
    let near_zero = Array2::from_shape_fn((n, 3), |(i, j)| awkward[[i, j]] - [1e9, 7.5, 0.0][j]);
    for (error, lambda) in errors.iter().zip(LAMBDAS) {
        near(
            *error,
            naive_error(&map, (&x, &near_zero, &w), &splits(&labels), (lambda, true)),
            1e-8,
            "awkward",
        );
    }
}

/// Where noise is far below what sums of single precision keep, errors are infinite and never wrong.
#[test]
fn rounding_makes_no_errors() {
    let (n, map) = (200, trigonometric::<f32>(8, 1.5));
    let x = data::<f32>(n).0;
    let y = Array2::from_shape_fn((n, 1), |(i, _)| (x[[i, 0]]).sin() + 1e-6 * (1e3 * i as f32).sin());
    let w = Array1::ones(n);
    let cuts = [0, 50, 100, 150, 200];
    let labels: Vec<usize> = (0..n).map(|i| i / 50).collect();
    let parts = parts(&map, (x.view(), y.view(), &w), &cuts, true);
    let spectrum = merged(&parts).spectrum().unwrap();
    // The default grid ends where all errors are known.
    let below = [3.0, 1.1].map(|factor| factor * spectrum.resolution());
    let lambdas: Vec<f64> = spectrum.lambdas().into_iter().chain(below).collect();
    let of_sums = spectrum.errors(&Criterion::folds_of(&parts), &lambdas).unwrap();
    let of_groups = spectrum.errors(&Criterion::leave_groups_out(&x, &y, &labels), &lambdas).unwrap();
    for (lambda, (sums, groups)) in lambdas.iter().zip(of_sums.iter().zip(&of_groups)) {
        let expected = naive_error(&map, (&x, &y, &w), &splits(&labels), (*lambda, true));
        assert!(sums.is_infinite() || (sums / expected - 1.0).abs() < 0.5, "{lambda}: {sums} {expected}");
        assert!(
            groups.is_infinite() || (groups / expected - 1.0).abs() < 0.5,
            "{lambda}: {groups} {expected}"
        );
    }
    assert!(of_sums.iter().any(|error| error.is_infinite()) && of_sums.iter().any(|error| error.is_finite()));
}

#[test]
fn what_cannot_be_left_out_is_refused() {
    let (n, map) = (40, trigonometric::<f64>(4, 1.0));
    let ((x, y), w) = (data::<f64>(n), Array1::ones(n));
    let parts = parts(&map, (x.view(), y.view(), &w), &[0, 10, 20, 40], true);
    let spectrum = merged(&parts).spectrum().unwrap();
    let error = |criterion: Criterion<'_, f64>| spectrum.errors(&criterion, &[1.0]).unwrap_err();
    let groups = |groups: &[usize]| error(Criterion::leave_groups_out(&x, &y, groups));
    assert!(matches!(groups(&[0; 40]), Error::Parameter { value: 1.0, .. }));
    assert!(matches!(groups(&[0; 39]), Error::Shape { expected: 40, found: 39, .. }));
    let short = error(Criterion::folds_of(&parts[..2]));
    assert!(matches!(short, Error::Shape { expected: 40, found: 20, .. }), "{short}");
    let all = merged(&parts);
    assert!(matches!(error(Criterion::folds_of([&all])), Error::Parameter { value: 1.0, .. }));
    assert!(matches!(error(Criterion::forward_of(&parts, 2)), Error::Parameter { value: 3.0, .. }));
    assert!(matches!(error(Criterion::forward_of(&parts, usize::MAX)), Error::Parameter { .. }));
    let none = RidgeStatistics::new(map.clone(), 2).unwrap();
    let empty = error(Criterion::folds_of(parts.iter().chain([&none])));
    assert!(matches!(empty, Error::Entry { row: 3, .. }), "{empty}");
    let other = RidgeStatistics::new(trigonometric::<f64>(4, 2.0), 2).unwrap();
    assert!(matches!(error(Criterion::folds_of([&other])), Error::Merge { .. }));
    assert!(matches!(error(Criterion::Folds(5)), Error::Unsupported { .. }));
    assert!(matches!(error(Criterion::Forward { blocks: 4, gap: 0 }), Error::Unsupported { .. }));
    assert!(matches!(error(Criterion::LeaveGroupsOut(&[0; 40])), Error::Unsupported { .. }));
    let left_out = spectrum.left_out(&Criterion::LogEvidence, 1.0);
    assert!(matches!(left_out, Err(Error::Unsupported { .. })));
}

/// A grid is chosen from by the folds of each of its maps, without rows.
#[test]
fn grids_are_chosen_from_by_folds() {
    let maps = || [0.3, 1.0, 3.0].map(|ell| trigonometric::<f64>(16, ell));
    let grid = |start: usize| {
        let (x, y) = data::<f64>(300);
        let (x, y) = (x.slice(s![start..start + 100, ..]), y.slice(s![start..start + 100, ..]));
        let mut grid = RidgeGrid::new(maps(), 2).unwrap().with_first_row(start as u64).unwrap();
        grid.update(x, y).unwrap();
        grid
    };
    let parts = [0, 100, 200].map(grid);
    let mut all = parts[0].clone();
    parts[1..].iter().for_each(|part| all.merge(part).unwrap());
    let folds = || parts.iter().flat_map(|part| part.statistics());
    let chosen = all.choose(&Criterion::folds_of(folds()), None).unwrap();
    assert_eq!(chosen.trials().len(), 3);
    for (k, trial) in chosen.trials().iter().enumerate() {
        let own = parts.iter().map(|part| &part.statistics()[k]);
        let spectrum = all.statistics()[k].spectrum().unwrap();
        let (lambda, error) = spectrum.choose(&Criterion::folds_of(own), &trial.lambdas).unwrap();
        assert_eq!((trial.lambda(), trial.error()), (Some(lambda), error));
    }
}

/// A search by groups is told the truth where rows are copies.
#[test]
fn searches_leave_groups_out() {
    let (x, y) = data::<f64>(60);
    let noise = Array2::from_shape_fn((60, 1), |(i, _)| 0.5 * (1e4 * i as f64).sin());
    let y = y.slice(s![.., ..1]).to_owned() + noise;
    let (x, y) = (concatenate![Axis(0), x, x, x], concatenate![Axis(0), y, y, y]);
    let groups: Vec<usize> = (0..180).map(|i| i % 60).collect();
    let search = || RidgeSearch::gaussian(3, 32, 5).unwrap();
    let by_rows = search().fit(&x, &y).unwrap();
    let by_groups = search().with_criterion(Criterion::LeaveGroupsOut(&groups)).fit(&x, &y).unwrap();
    assert!(by_rows.error() < 1e-2 && by_groups.error() > 0.05, "{by_rows}\n{by_groups}");
    let repeats = |fit: &random_features::apply::RidgeFit<f64>| {
        fit.warnings().iter().any(|warning| matches!(warning, RidgeWarning::Repeated { .. }))
    };
    assert!(repeats(&by_rows) && !repeats(&by_groups));
    // Whole groups are drawn where rows are few, and rows of weight 0 shift no label.
    let few = search().with_criterion(Criterion::LeaveGroupsOut(&groups)).with_rows(90).fit(&x, &y).unwrap();
    assert!(few.error() > 0.05, "{few}");
    let mut w = Array1::ones(180);
    (0..30).for_each(|i| w[i] = 0.0);
    let targets = Targets::from(&y).with_weights(&w).unwrap();
    let weighted = search().with_criterion(Criterion::LeaveGroupsOut(&groups)).fit(&x, targets).unwrap();
    assert!(weighted.error() > 0.05, "{weighted}");
    let wrong = search().with_criterion(Criterion::LeaveGroupsOut(&groups[1..])).fit(&x, &y).unwrap_err();
    assert!(matches!(wrong, Error::Shape { expected: 180, found: 179, .. }), "{wrong}");
}

/// Rows of weight 0 are absent with their groups, and of few rows there are two groups all the same.
#[test]
fn groups_are_those_of_the_rows_that_count() {
    let (x, y) = data::<f64>(90);
    let groups: Vec<usize> = (0..90).map(|i| i * i % 11).collect();
    let search = |groups| {
        let search = RidgeSearch::gaussian(3, 8, 5).unwrap().with_lengthscales([1.0]);
        search.with_criterion(Criterion::LeaveGroupsOut(groups))
    };
    let w = Array1::from_shape_fn(90, |i| f64::from(u8::from(i >= 30)));
    let absent = search(&groups).fit(&x, Targets::from(&y).with_weights(&w).unwrap()).unwrap();
    let without = search(&groups[30..]).fit(x.slice(s![30.., ..]), y.slice(s![30.., ..])).unwrap();
    near(absent.error(), without.error(), 1e-9, "rows of weight 0");
    let thirds: Vec<usize> = (0..90).map(|i| i % 3).collect();
    assert!(search(&thirds).with_rows(10).fit(&x, &y).unwrap().error().is_finite());
}

/// A λ that is chosen by some of the rows is at least the one that all of them are told to need.
#[test]
fn all_rows_need_a_larger_lambda() {
    let (x, y) = data::<f64>(200);
    let search = |lambda: f64| {
        let search = RidgeSearch::gaussian(3, 8, 5).unwrap().with_lengthscales([30.0]).with_lambdas([lambda]);
        search.with_criterion(Criterion::HeldOutShare(0.5)).fit(&x, &y)
    };
    let Err(Error::Singular { least, .. }) = search(1e-300) else { panic!("λ is hidden by rounding") };
    near(search(0.7 * least).unwrap().lambda(), least, 1e-12, "least");
}

#[test]
fn searches_take_folds_blocks_and_rows_of_the_user() {
    let (x, y) = data::<f64>(240);
    let search = |criterion| {
        let search = RidgeSearch::gaussian(3, 32, 5).unwrap().with_lengthscales([0.5, 1.0, 2.0]);
        search.with_criterion(criterion)
    };
    let by_folds = search(Criterion::Folds(5)).fit(&x, &y).unwrap();
    let forward = search(Criterion::Forward { blocks: 6, gap: 1 }).fit(&x, &y).unwrap();
    let (train, test) = (s![..200, ..], s![200.., ..]);
    let own = Criterion::held_out(x.slice(test), y.slice(test));
    let held_out = search(own).fit(x.slice(train), y.slice(train)).unwrap();
    for fit in [&by_folds, &forward, &held_out] {
        assert!(fit.error() < 0.1 * fit.best().mean_error, "{fit}");
    }
    // The user's rows are not in the model, and their error is that of the model.
    let error = held_out.model().predict(x.slice(test)).unwrap() - y.slice(test);
    let error = error.iter().map(|e| e * e).sum::<f64>() / 40.0;
    near(held_out.error(), error, 1e-9, "held out");
    let wrong = |criterion| search(criterion).fit(&x, &y).unwrap_err();
    assert!(matches!(wrong(Criterion::Folds(1)), Error::Parameter { .. }));
    assert!(matches!(wrong(Criterion::Folds(241)), Error::Parameter { .. }));
    assert!(matches!(wrong(Criterion::Forward { blocks: 2, gap: 1 }), Error::Parameter { .. }));
    let known = wrong(Criterion::leave_groups_out(&x, &y, &[0; 240]));
    assert!(matches!(known, Error::Unsupported { .. }), "{known}");
}
