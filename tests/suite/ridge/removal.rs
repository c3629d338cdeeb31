//! Rows that are removed by a list of their numbers, and rows that were never there.

use std::ops::Range;

use ndarray::{Array2, Axis, s};
use random_features::apply::RidgeStatistics;
use random_features::{Error, Real, Targets};

use super::{data, statistics, trigonometric, weights};

/// Numbers in disorder, with gaps, over two chunks of rows.
fn removed_rows<T: Real>(tolerance: f64) {
    let n = 5000;
    let (map, w) = (trigonometric::<T>(10, 1.0), weights(n));
    let (x, y) = data::<T>(n);
    let mut all = RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(100).unwrap();
    all.update(&x, Targets::from(&y).with_weights(&w).unwrap()).unwrap();
    let out: Vec<usize> = (0..n).rev().filter(|i| i % 3 == 0 || (2000..4500).contains(i)).collect();
    let kept: Vec<usize> = (0..n).filter(|i| i % 3 != 0 && !(2000..4500).contains(i)).collect();
    let numbers: Vec<u64> = out.iter().map(|i| 100 + *i as u64).collect();
    let part = |rows: &[usize]| (x.select(Axis(0), rows), y.select(Axis(0), rows), w.select(Axis(0), rows));
    let (gone, own) = (part(&out), part(&kept));
    all.downdate_rows(&numbers, &gone.0, Targets::from(&gone.1).with_weights(&gone.2).unwrap()).unwrap();
    let mut expected = RidgeStatistics::new(map, 2).unwrap();
    expected.update(&own.0, Targets::from(&own.1).with_weights(&own.2).unwrap()).unwrap();
    let (a, b) = (all.products().unwrap(), expected.products().unwrap());
    let scale = b.iter().fold(0.0, |s: f64, v| s.max(v.abs()));
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < tolerance * scale, "{a} {b}"));
    assert_eq!(all.rows(), kept.len() as u64);
    assert_eq!(all.row_ranges()[0], Range { start: 101, end: 103 });
    // The chunks that were added come back to the bit.
    let rest: Vec<u64> = kept.iter().map(|i| 100 + *i as u64).collect();
    all.downdate_rows(&rest, &own.0, Targets::from(&own.1).with_weights(&own.2).unwrap()).unwrap();
    assert_eq!((all.rows(), all.row_ranges().len()), (0, 0));
}

#[test]
fn rows_are_removed_by_a_list() {
    removed_rows::<f64>(1e-12);
    removed_rows::<f32>(1e-5);
}

/// A list of a whole chunk takes out what one update has added, to the bit.
#[test]
fn a_list_restores_bits() {
    let (x, y) = data::<f32>(600);
    let map = trigonometric::<f32>(10, 1.0);
    let before = statistics(&map, &x.slice(s![..200, ..]).to_owned(), &y.slice(s![..200, ..]).to_owned());
    let mut all = before.clone();
    all.update(x.slice(s![200.., ..]), y.slice(s![200.., ..])).unwrap();
    let numbers: Vec<u64> = (200..600).collect();
    all.downdate_rows(&numbers, x.slice(s![200.., ..]), y.slice(s![200.., ..])).unwrap();
    assert_eq!(all.products().unwrap(), before.products().unwrap());
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let (x, y) = data::<f64>(50);
    let mut all = statistics(&trigonometric::<f64>(10, 1.0), &x, &y);
    let before = all.products().unwrap();
    let (three, targets) = (x.slice(s![..3, ..]), y.slice(s![..3, ..]));
    let mut removed = |numbers: &[u64]| all.downdate_rows(numbers, three, targets);
    assert_eq!(removed(&[0, 2, 0]), Err(Error::Row { row: 0, reason: "is listed twice" }));
    assert_eq!(removed(&[0, 50, 1]), Err(Error::Row { row: 50, reason: "was never counted" }));
    assert!(matches!(removed(&[0, 1]), Err(Error::Shape { .. })));
    assert!(matches!(removed(&[0, 1, u64::MAX]), Err(Error::Row { .. })));
    assert_eq!(all.products().unwrap(), before);
    all.downdate_rows(&[], x.slice(s![..0, ..]), y.slice(s![..0, ..])).unwrap();
    assert_eq!(all.rows(), 50);
}

/// Other data than those that were added leave a matrix that no rows have.
#[test]
fn rows_that_were_never_there_are_noticed() {
    let (x, y) = data::<f64>(300);
    let map = trigonometric::<f64>(20, 1.0);
    let mut all = statistics(&map, &x, &y);
    let mut own = all.clone();
    own.downdate(0, x.slice(s![..290, ..]), y.slice(s![..290, ..])).unwrap();
    own.spectrum().unwrap();
    let other: Array2<f64> = x.mapv(|v| 3.0 - v);
    all.downdate(0, other.slice(s![..290, ..]), y.slice(s![..290, ..])).unwrap();
    let error = all.spectrum().map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Parameter { value, .. } if value < 0.0), "{error}");
}
