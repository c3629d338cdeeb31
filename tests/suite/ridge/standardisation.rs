//! One rule of what is constant, for batches, weights, streams and merged parts.

use ndarray::{Array1, Array2, Axis, array, concatenate, s};
use random_features::apply::{RidgeSearch, Standardisation};
use random_features::data::Statistics;
use random_features::frequency::{Coupling, Orthogonal};
use random_features::{Real, Trigonometric};

use crate::common::points;

/// Standardisations of rows in one batch, with weights of 1, in a stream, and merged in another order.
fn ways<T: Real>(x: &Array2<T>) -> Vec<Standardisation> {
    let n = x.nrows();
    let mut weighted = Statistics::new(x.ncols()).unwrap();
    weighted.update_weighted(x, &Array1::ones(n)).unwrap();
    let mut stream = Statistics::new(x.ncols()).unwrap();
    for start in (0..n).step_by(7) {
        stream.update(&x.slice(s![start..n.min(start + 7), ..])).unwrap();
    }
    let (middle, mut merged) = (n / 3, Statistics::new(x.ncols()).unwrap());
    merged.update(&x.slice(s![middle.., ..])).unwrap();
    merged.merge(&Statistics::of(&x.slice(s![..middle, ..])).unwrap()).unwrap();
    let of = |statistics: &Statistics| Standardisation::of_statistics(statistics).unwrap();
    vec![Standardisation::of(x).unwrap(), of(&weighted), of(&stream), of(&merged)]
}

/// The scales are those of each way, to rounding.
fn scales<T: Real>(x: &Array2<T>, expected: &[f64]) {
    for (way, inputs) in ways(x).into_iter().enumerate() {
        for (k, (scale, expected)) in inputs.scale().iter().zip(expected).enumerate() {
            assert!((scale / expected - 1.0).abs() < 1e-9, "way {way}, column {k}: {scale} {expected}");
        }
        for (column, centre) in x.columns().into_iter().zip(inputs.centre()) {
            let mean = column.iter().map(|v| v.widen()).sum::<f64>() / x.nrows() as f64;
            assert!((centre - mean).abs() <= 1e-12 * mean.abs(), "way {way}: {centre} {mean}");
        }
    }
}

#[test]
fn what_differs_by_rounding_is_constant() {
    let column = |values: [f64; 2]| Array2::from_shape_fn((40, 1), |(i, _)| values[i % 2]);
    scales(&column([0.3, 0.1 + 0.2]), &[1.0]);
    scales(&column([-7.0, -7.0]), &[1.0]);
    scales(&column([0.0, 0.0]), &[1.0]);
    scales(&column([0.3, 0.1 + 0.2]).mapv(|v| v as f32), &[1.0]);
    let f32s = [0.3f32, 0.1f32 + 0.2f32, 0.3f32 * (1.0 + f32::EPSILON)];
    scales(&Array2::from_shape_fn((40, 1), |(i, _)| f32s[i % 3]), &[1.0]);
    // The same numbers in `f64` differ by more than rounding.
    let wide = Array2::from_shape_fn((40, 1), |(i, _)| f64::from(f32s[i % 3]));
    assert!(ways(&wide).iter().all(|inputs| inputs.scale()[0] < 1e-7));
    // Deviations below the least normal number.
    scales(&column([1e-310, 2e-310]), &[1.0]);
    // A batch in `f32` makes the rest of a stream no more precise.
    let mut mixed = Statistics::of(&wide).unwrap();
    mixed.merge(&Statistics::of(&wide.mapv(|v| v as f32)).unwrap()).unwrap();
    assert_eq!(Standardisation::of_statistics(&mixed).unwrap().scale(), [1.0]);
}

#[test]
fn seconds_since_1970_over_half_an_hour_are_not_constant() {
    // Steps of 128 seconds, which `f32` can tell apart.
    let time = |i: usize| 1.7e9 + 128.0 * (i % 15) as f64;
    let wide = Array2::from_shape_fn((150, 1), |(i, _)| time(i));
    let deviation = 128.0 * (224.0f64 / 12.0).sqrt();
    scales(&wide, &[deviation]);
    scales(&wide.mapv(|v| v as f32), &[deviation]);
    // Nanoseconds in `f64`, whose spacing is 256.
    scales(&wide.mapv(|v| v * 1e9), &[deviation * 1e9]);
    // Extremes, whose squares are out of range for a batch of columns alone.
    let inputs = Standardisation::of(&array![[1e300], [3e300], [-1e300]]).unwrap();
    assert!((inputs.scale()[0] / (8.0f64 / 3.0).sqrt() - 1e300).abs() < 1e287, "{inputs:?}");
    assert!(Standardisation::of(&array![[f64::MAX], [-f64::MAX]]).is_err());
}

/// A regression on times, which it would not see if they counted as constant.
#[test]
fn a_search_sees_times() {
    let x = points::<f32>(400, 2, 1.0);
    let time = Array2::from_shape_fn((400, 1), |(i, _)| 1.7e9 + 128.0 * (i % 29) as f32);
    let x = concatenate![Axis(1), time, x.slice(s![.., 1..]).to_owned()];
    let y = x.map_axis(Axis(1), |x| ((x[0] - 1.7e9) / 600.0).sin() + 0.1 * x[1]).insert_axis(Axis(1));
    let search =
        RidgeSearch::new(Orthogonal.draw(2, 64, 1).unwrap(), |omega, ell| Trigonometric.gaussian(omega, ell));
    let plain = search.fit(&x, &y).unwrap();
    let weighted = search.fit_weighted(&x, &y, &Array1::ones(400)).unwrap();
    for fit in [plain, weighted] {
        let error = (fit.model().predict(&x).unwrap() - &y).mapv(|e| e * e).mean().unwrap();
        assert!(error < 0.01, "{error}");
    }
}

/// A constant column does not turn a fit with weights of 1 into another one.
#[test]
fn weights_of_one_are_no_weights() {
    let x = points::<f64>(200, 1, 1.0);
    let constant = Array2::from_shape_fn((200, 1), |(i, _)| if i % 2 == 0 { 0.3 } else { 0.1 + 0.2 });
    let y = x.mapv(|x| (2.0 * x).sin());
    let x = concatenate![Axis(1), x, constant];
    let search =
        RidgeSearch::new(Orthogonal.draw(2, 32, 1).unwrap(), |omega, ell| Trigonometric.gaussian(omega, ell));
    let plain = search.fit(&x, &y).unwrap();
    let weighted = search.fit_weighted(&x, &y, &Array1::ones(200)).unwrap();
    let at = array![[0.5, 0.3], [-0.2, 0.1 + 0.2]];
    let (a, b) = (plain.model().predict(&at).unwrap(), weighted.model().predict(&at).unwrap());
    assert!((a - b).iter().all(|e| e.abs() < 1e-3));
}

/// The first entry may be the largest or the least.
#[test]
fn columns_that_fall_and_rise() {
    let deviation = (8.0f64 / 3.0).sqrt();
    scales(&array![[5.0, 1.0], [3.0, 3.0], [1.0, 5.0]], &[deviation; 2]);
    let inputs = Standardisation::of(&array![[5e300], [3e300], [1e300]]).unwrap();
    assert!((inputs.scale()[0] / deviation - 1e300).abs() < 1e287, "{inputs:?}");
}
