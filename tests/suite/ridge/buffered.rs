//! Single rows: buffers against batches, ranges of inputs, and bytes.

use std::ops::Range;

use ndarray::{Array2, arr1, s};
use random_features::apply::{RidgeStatistics, RidgeWarning, Standardisation};
use random_features::frequency::Orthogonal;
use random_features::{Error, Map, Real, Trigonometric};

use super::{data, statistics, trigonometric, weights};
use crate::common::weigh;

const CHUNK: usize = RidgeStatistics::<f64>::CHUNK as usize;

fn same_bits<T: Real>() {
    let n = 2 * CHUNK + 500;
    let (map, (x, y)) = (trigonometric::<T>(10, 1.0), data::<T>(n));
    let mut buffer = RidgeStatistics::new(map.clone(), 2).unwrap().buffered();
    for (i, (x, y)) in x.rows().into_iter().zip(y.rows()).enumerate() {
        buffer.push(&x, &y).unwrap();
        assert_eq!(buffer.pending(), (i + 1) % CHUNK);
    }
    let whole = statistics(&map, &x, &y).solve(0.1).unwrap();
    assert_eq!(buffer.statistics().unwrap().solve(0.1).unwrap().weights(), whole.weights());
    assert_eq!((buffer.pending(), buffer.statistics().unwrap().rows()), (0, n as u64));
}

#[test]
fn single_rows_have_the_bits_of_batches() {
    same_bits::<f32>();
    same_bits::<f64>();
}

#[test]
fn weights_labels_and_places_are_kept() {
    let (map, (x, y), w) = (trigonometric::<f64>(10, 1.0), data::<f64>(300), weights(300));
    let mut buffer =
        RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(CHUNK as u64 - 100).unwrap().buffered();
    let mut batch = RidgeStatistics::new(map, 2).unwrap().with_first_row(CHUNK as u64 - 100).unwrap();
    for i in 0..300 {
        buffer.push_weighted(&x.row(i), &y.row(i), w[i]).unwrap();
    }
    assert_eq!(buffer.pending(), 200);
    batch.update(&x, weigh(&y, &w)).unwrap();
    for i in 0..300 {
        buffer.push_label(&x.row(i), i % 2).unwrap();
    }
    batch.update(&x, &(0..300).map(|i| i % 2).collect::<Vec<_>>()).unwrap();
    let buffer = buffer.into_statistics().unwrap();
    assert_eq!(buffer.rows(), batch.rows());
    let (a, b) = (buffer.solve(0.1).unwrap(), batch.solve(0.1).unwrap());
    assert!(a.weights().iter().zip(b.weights()).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn buffers_refuse_rows_and_keep_others() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(20));
    let mut buffer = RidgeStatistics::new(map.clone(), 2).unwrap().buffered();
    buffer.push(&x.row(0), &y.row(0)).unwrap();
    assert!(matches!(buffer.push(&arr1(&[1.0]), &y.row(0)), Err(Error::Shape { .. })));
    assert!(matches!(buffer.push(&x.row(0), &arr1(&[1.0])), Err(Error::Shape { .. })));
    assert!(matches!(buffer.push(&arr1(&[f64::NAN; 3]), &y.row(0)), Err(Error::NotFinite { what: "x", .. })));
    assert!(matches!(buffer.push(&x.row(0), &arr1(&[1.0, f64::INFINITY])), Err(Error::NotFinite { .. })));
    assert!(matches!(buffer.push_weighted(&x.row(0), &y.row(0), -1.0), Err(Error::Entry { .. })));
    assert!(matches!(buffer.push_label(&x.row(0), 2), Err(Error::Entry { .. })));
    assert_eq!(buffer.pending(), 1);
    // A row that is counted already.
    let mut later = RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(2).unwrap();
    later.update(x.slice(s![2..5, ..]), y.slice(s![2..5, ..])).unwrap();
    let mut first = RidgeStatistics::new(map, 2).unwrap();
    first.merge(&later).unwrap();
    let mut buffer = first.with_first_row(0).unwrap().buffered();
    buffer.push(&x.row(0), &y.row(0)).unwrap();
    buffer.push(&x.row(1), &y.row(1)).unwrap();
    assert!(matches!(buffer.push(&x.row(2), &y.row(2)), Err(Error::Row { row: 2, .. })));
    assert_eq!(buffer.into_statistics().unwrap().row_ranges(), [Range { start: 0, end: 5 }]);
    // Sums that cannot be added stay pending until they are discarded.
    let map: Map<f64> = Trigonometric.softmax(Orthogonal.draw(3, 10, 1).unwrap()).unwrap();
    let mut buffer = RidgeStatistics::new(map, 2).unwrap().buffered();
    buffer.push(&arr1(&[40.0; 3]), &y.row(0)).unwrap();
    assert!(buffer.flush().is_err() && buffer.statistics().is_err());
    assert_eq!(buffer.pending(), 1);
    buffer.discard();
    assert_eq!(buffer.statistics().unwrap().rows(), 0);
}

#[test]
fn badly_scaled_inputs_are_warned_of() {
    let (mut x, y) = data::<f64>(200);
    let fit = |x: &Array2<f64>| statistics(&trigonometric(10, 1.0), x, &y);
    assert!(fit(&x).input_warnings().is_empty());
    x.column_mut(2).mapv_inplace(|v| 1e4 * v);
    let warned = fit(&x);
    let warnings = warned.input_warnings();
    let [RidgeWarning::UnequalInputs { wide: 2, wide_range, .. }] = warnings[..] else {
        panic!("{warnings:?}")
    };
    let (least, largest) = x.column(2).iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
    assert_eq!(wide_range, largest - least);
    let standardised = RidgeStatistics::new(trigonometric(10, 1.0), 2).unwrap();
    let mut standardised = standardised.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
    standardised.update(&x, &y).unwrap();
    assert!(standardised.input_warnings().is_empty());
    // Merged and stored ranges are those of all rows; those of lengthscales of one's own are in these.
    let own = Trigonometric.gaussian(Orthogonal.draw(3, 10, 1).unwrap(), vec![1.0, 1.0, 1e4]).unwrap();
    assert!(statistics(&own, &x, &y).input_warnings().is_empty());
    let mut part = RidgeStatistics::new(trigonometric(10, 1.0), 2).unwrap();
    part.update(x.slice(s![..50, ..]), y.slice(s![..50, ..])).unwrap();
    let mut rest = RidgeStatistics::new(trigonometric(10, 1.0), 2).unwrap().with_first_row(50).unwrap();
    rest.update(x.slice(s![50.., ..]), y.slice(s![50.., ..])).unwrap();
    part.merge(&rest).unwrap();
    assert_eq!(part.input_warnings(), warned.input_warnings());
    let wide: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(3, 10, 1).unwrap(), 1e-7).unwrap();
    x.column_mut(2).mapv_inplace(|v| 1e-4 * v);
    assert!(matches!(statistics(&wide, &x, &y).input_warnings()[..], [RidgeWarning::WideInputs { .. }]));
}

#[test]
fn bytes_are_known_before_there_is_data() {
    let bytes = |m| RidgeStatistics::bytes(&trigonometric::<f32>(m, 1.0), 3).unwrap();
    let (small, large) = (bytes(512), bytes(1024));
    for step in [0, 2, 3] {
        let (a, b) = (small[step], large[step]);
        assert!((3.5..4.1).contains(&(b as f64 / a as f64)), "{a}, {b}");
    }
    assert_eq!(large[1] - large[0], 2 * (small[1] - small[0]));
    assert!(RidgeStatistics::bytes(&trigonometric::<f64>(10, 1.0), 0).unwrap()[0] > 0);
}
