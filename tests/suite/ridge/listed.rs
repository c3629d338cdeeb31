//! Rows that are added by a list of their numbers.

use ndarray::{Array2, Axis, s};
use random_features::apply::RidgeStatistics;
use random_features::apply::pca::PcaStatistics;
use random_features::{Error, Real, Targets};

use super::{data, statistics, trigonometric, weights};

/// The rows of each third of the numbers, in disorder, have merged sums of all rows.
fn thirds<T: Real>(tolerance: f64) {
    let n = 9000;
    let (map, w) = (trigonometric::<T>(10, 1.0), weights(n));
    let (x, y) = data::<T>(n);
    let mut expected = RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(100).unwrap();
    expected.update(&x, Targets::from(&y).with_weights(&w).unwrap()).unwrap();
    let part = |third: usize| {
        let rows: Vec<usize> = (0..n).rev().filter(|i| i % 3 == third).collect();
        let numbers: Vec<u64> = rows.iter().map(|i| 100 + *i as u64).collect();
        let [x, y] = [&x, &y].map(|all| all.select(Axis(0), &rows));
        let w = w.select(Axis(0), &rows);
        let mut part = RidgeStatistics::new(map.clone(), 2).unwrap();
        part.update_rows(&numbers, &x, Targets::from(&y).with_weights(&w).unwrap()).unwrap();
        assert_eq!((part.rows(), part.row_ranges().len()), (rows.len() as u64, rows.len()));
        part
    };
    let mut all = part(2);
    all.merge(&part(0)).unwrap();
    all.merge(&part(1)).unwrap();
    assert_eq!(all.row_ranges(), std::slice::from_ref(&(100..100 + n as u64)));
    let (a, b) = (all.products().unwrap(), expected.products().unwrap());
    let scale = b.iter().fold(0.0, |s: f64, v| s.max(v.abs()));
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < tolerance * scale, "{a} {b}"));
    let error = all.merge(&part(1)).unwrap_err();
    assert_eq!(
        error,
        Error::Row { row: 101, reason: "is counted already: `with_first_row` numbers the rows of a part" }
    );
}

#[test]
fn parts_of_listed_rows_merge() {
    thirds::<f64>(1e-12);
    thirds::<f32>(1e-5);
}

/// A list of consecutive numbers is an update, and lists that are cut at chunks have the bits of one list, whatever their order.
#[test]
fn lists_have_the_bits_of_their_chunks() {
    let (x, y) = data::<f32>(9000);
    let map = trigonometric::<f32>(10, 1.0);
    let mut updated = RidgeStatistics::new(map.clone(), 2).unwrap();
    updated.update(&x, &y).unwrap();
    let mut listed = RidgeStatistics::new(map.clone(), 2).unwrap();
    for rows in [8192..9000, 0..4096, 4096..8192] {
        let numbers: Vec<u64> = rows.clone().map(|row| row as u64).collect();
        listed.update_rows(&numbers, x.slice(s![rows.clone(), ..]), y.slice(s![rows, ..])).unwrap();
    }
    assert_eq!(listed.products().unwrap(), updated.products().unwrap());
    assert_eq!(listed.solve(0.1).unwrap().weights(), updated.solve(0.1).unwrap().weights());
    // Every other row: of a chunk at once, and of all chunks.
    let rows: Vec<usize> = (0..9000).step_by(2).collect();
    let numbers: Vec<u64> = rows.iter().map(|row| *row as u64).collect();
    let of = |places: &[usize]| (x.select(Axis(0), places), y.select(Axis(0), places));
    let mut once = RidgeStatistics::new(map.clone(), 2).unwrap();
    let (a, b) = of(&rows);
    once.update_rows(&numbers, &a, &b).unwrap();
    let mut parts = RidgeStatistics::new(map, 2).unwrap();
    for part in [4096..4500, 0..2048, 2048..4096] {
        let (a, b) = of(&rows[part.clone()]);
        parts.update_rows(&numbers[part], &a, &b).unwrap();
    }
    assert_eq!(once.products().unwrap(), parts.products().unwrap());
}

/// The next update begins after the largest number, and lists that do not fit change nothing.
#[test]
fn wrong_lists_change_nothing() {
    let (x, y) = data::<f64>(50);
    let mut all = statistics(&trigonometric::<f64>(10, 1.0), &x, &y);
    let before = all.products().unwrap();
    let (three, targets) = (x.slice(s![..3, ..]), y.slice(s![..3, ..]));
    let mut added = |numbers: &[u64]| all.update_rows(numbers, three, targets);
    assert_eq!(added(&[60, 62, 60]), Err(Error::Row { row: 60, reason: "is listed twice" }));
    assert_eq!(
        added(&[60, 49, 61]),
        Err(Error::Row {
            row: 49,
            reason: "is counted already: `with_first_row` numbers the rows of a part"
        })
    );
    assert!(matches!(added(&[60, 61]), Err(Error::Shape { .. })));
    assert!(matches!(added(&[60, 61, u64::MAX]), Err(Error::Row { .. })));
    let few = ndarray::arr1(&[1.0, 2.0]);
    let weighted = Targets::from(targets).with_weights(&few).map(|targets| (&mut all, targets));
    assert!(weighted.is_err_and(|error| matches!(error, Error::Shape { .. })));
    let nan = Array2::from_elem((3, x.ncols()), f64::NAN);
    assert!(matches!(all.update_rows(&[60, 70, 65], &nan, targets), Err(Error::NotFinite { .. })));
    assert_eq!((all.products().unwrap(), all.rows()), (before, 50));
    all.update_rows(&[], x.slice(s![..0, ..]), y.slice(s![..0, ..])).unwrap();
    all.update_rows(&[90, 60, 75], three, targets).unwrap();
    all.update(three, targets).unwrap();
    assert_eq!(all.row_ranges(), [0..50, 60..61, 75..76, 90..94]);
}

/// As [`parts_of_listed_rows_merge`], of a PCA with weights.
#[test]
fn listed_rows_of_a_pca() {
    let (x, w) = (data::<f64>(300).0, weights(300));
    let map = trigonometric::<f64>(10, 1.0);
    let mut expected = PcaStatistics::new(map.clone()).unwrap();
    expected.update_weighted(&x, &w).unwrap();
    let mut all = PcaStatistics::new(map).unwrap();
    for odd in [1, 0] {
        let rows: Vec<usize> = (0..300).filter(|i| i % 2 == odd).collect();
        let numbers: Vec<u64> = rows.iter().map(|row| *row as u64).collect();
        all.update_rows(&numbers, &x.select(Axis(0), &rows), Some(&w.select(Axis(0), &rows))).unwrap();
    }
    assert_eq!(all.row_ranges(), std::slice::from_ref(&(0..300)));
    let differences = all.products().unwrap() - expected.products().unwrap();
    assert!(differences.iter().all(|d| d.abs() < 1e-10));
}

/// Means and variances of targets against their definition, for a target of any mean, a constant one, and weights.
#[test]
fn means_and_variances_of_targets() {
    let (x, y) = data::<f64>(500);
    let w = weights(500);
    let columns = [y.column(0).mapv(|y| y + 1e9), y.column(0).mapv(|_| 7.5), y.column(1).mapv(|y| 1e-3 * y)];
    let targets = ndarray::stack(Axis(1), &columns.each_ref().map(|column| column.view())).unwrap();
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(10, 1.0), 3).unwrap();
    statistics.update(&x, Targets::from(&targets).with_weights(&w).unwrap()).unwrap();
    let (means, variances) = (statistics.mean_targets().unwrap(), statistics.target_variances().unwrap());
    for (j, column) in targets.columns().into_iter().enumerate() {
        let mean = column[0] + column.iter().zip(&w).map(|(y, w)| w * (y - column[0])).sum::<f64>() / w.sum();
        let variance = column.iter().zip(&w).map(|(y, w)| w * (y - mean).powi(2)).sum::<f64>() / w.sum();
        assert!((means[j] - mean).abs() < 1e-15 * (1.0 + mean.abs()), "{} {mean}", means[j]);
        assert!((variances[j] - variance).abs() <= 1e-7 * variance, "{} {variance}", variances[j]);
    }
    assert_eq!(variances[1], 0.0);
    let empty = RidgeStatistics::new(trigonometric::<f64>(10, 1.0), 3).unwrap();
    assert!(matches!(empty.mean_targets(), Err(Error::NoData { .. })));
    assert!(matches!(empty.target_variances(), Err(Error::NoData { .. })));
}
