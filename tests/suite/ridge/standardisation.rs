//! One rule of what is constant, for batches, weights, streams and merged parts.

use ndarray::{Array1, Array2, Axis, array, concatenate, s};
use random_features::apply::{RidgeSearch, RidgeStatistics, Standardisation};
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::Orthogonal;
use random_features::theory::gerf::GerfSign;
use random_features::{Error, Points, Real, Trigonometric};

use super::trigonometric;
use crate::common::{points, weigh};

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
        for (k, (scale, expected)) in inputs.scales().iter().zip(expected).enumerate() {
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
    assert!(ways(&wide).iter().all(|inputs| inputs.scales()[0] < 1e-7));
    // Deviations below the least normal number.
    scales(&column([1e-310, 2e-310]), &[1.0]);
    // A batch in `f32` makes the rest of a stream no more precise.
    let mut mixed = Statistics::of(&wide).unwrap();
    mixed.merge(&Statistics::of(&wide.mapv(|v| v as f32)).unwrap()).unwrap();
    assert_eq!(Standardisation::of_statistics(&mixed).unwrap().scales(), [1.0]);
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
    assert!((inputs.scales()[0] / (8.0f64 / 3.0).sqrt() - 1e300).abs() < 1e287, "{inputs:?}");
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
    let weighted = search.fit(&x, weigh(&y, &Array1::ones(400))).unwrap();
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
    let weighted = search.fit(&x, weigh(&y, &Array1::ones(200))).unwrap();
    let at = array![[0.5, 0.3], [-0.2, 0.1 + 0.2]];
    let (a, b) = (plain.model().predict(&at).unwrap(), weighted.model().predict(&at).unwrap());
    assert!((a - b).iter().all(|e| e.abs() < 1e-3));
}

/// Rows whose second column is constant up to rounding, and the numbers of a constant that the training data never had.
fn with_a_constant<T: Real>(n: usize, at: impl Fn(usize) -> f64) -> (Array2<T>, Array2<T>) {
    let x = points::<T>(n, 3, 1.0);
    let column = |i: usize| T::narrow(at(i)) * if i % 3 == 1 { T::one() + T::epsilon() } else { T::one() };
    let known = Array2::from_shape_fn((n, 3), |(i, k)| if k == 1 { column(i) } else { x[[i, k]] });
    let new = |i: usize| T::narrow(at(i) * 2.0 + i as f64);
    let unknown = Array2::from_shape_fn((n, 3), |(i, k)| if k == 1 { new(i) } else { x[[i, k]] });
    (known, unknown)
}

/// Times that differ by a spacing of the scalar, and a constant of any size, are 0 for all paths and all inputs.
fn constant_columns_are_zero<T: Real>() {
    for constant in [1.7e9, -0.3, 0.0, 1e-30] {
        let (x, unknown) = with_a_constant::<T>(60, |_| constant);
        let y = x.map_axis(Axis(1), |x| (x[0] + x[2]).sin()).insert_axis(Axis(1));
        for (way, inputs) in ways(&x).into_iter().enumerate() {
            assert_eq!(inputs.constant_columns(), [1], "{constant}, way {way}");
            for x in [&x, &unknown] {
                assert!(inputs.apply(x).unwrap().column(1).iter().all(|v| *v == T::zero()), "way {way}");
            }
            let mut wrong = unknown.clone();
            (wrong[[0, 1]], wrong[[1, 1]]) = (T::nan(), T::infinity());
            assert!(inputs.apply(&wrong).unwrap().column(1).iter().take(2).all(|v| v.is_nan()));
            let statistics = RidgeStatistics::new(trigonometric::<T>(20, 1.0), 1).unwrap();
            let mut statistics = statistics.with_standardisation(inputs).unwrap();
            statistics.update(&x, &y).unwrap();
            predicts_alike(&statistics, &x, &unknown);
        }
    }
}

/// All predictions are those of rows that differ in the constant column alone.
fn predicts_alike<T: Real>(statistics: &RidgeStatistics<T>, x: &Array2<T>, unknown: &Array2<T>) {
    let spectrum = statistics.spectrum().unwrap();
    let posterior = spectrum.posterior(0.1).unwrap().with_landmarks(&x.slice(s![..10, ..])).unwrap();
    let expected = posterior.predict(x).unwrap();
    assert_eq!(posterior.predict(unknown).unwrap(), expected);
    let (model, mut one) = (spectrum.model(0.1).unwrap(), [T::zero()]);
    model.predictor().predict_into(&unknown.row(3), &mut one).unwrap();
    assert_eq!(one[0], expected.mean[[3, 0]]);
    assert_eq!(
        model.predict(sparse(unknown).as_ref().map_or(unknown.into(), Points::from)).unwrap(),
        expected.mean
    );
    #[cfg(feature = "serde")]
    {
        let read: random_features::apply::RidgePosterior<T> =
            postcard::from_bytes(&postcard::to_stdvec(&posterior).unwrap()).unwrap();
        assert_eq!(read.predict(unknown).unwrap(), expected);
        assert_eq!(read.model().standardisation().unwrap().constant_columns(), [1]);
    }
}

#[cfg(feature = "sparse")]
fn sparse<T: Real>(x: &Array2<T>) -> Option<sprs::CsMat<T>> {
    let mut entries = sprs::TriMat::new(x.dim());
    x.indexed_iter().for_each(|((i, k), v)| entries.add_triplet(i, k, *v));
    Some(entries.to_csr())
}

#[cfg(not(feature = "sparse"))]
fn sparse<T: Real>(_: &Array2<T>) -> Option<Array2<T>> {
    None
}

#[test]
fn constant_columns_are_zero_for_every_input() {
    constant_columns_are_zero::<f64>();
    constant_columns_are_zero::<f32>();
    // Part of what is compared, and checked.
    let plain = Standardisation::new(vec![0.0; 3], vec![1.0; 3]).unwrap();
    assert!(plain.constant_columns().is_empty());
    assert_ne!(plain.clone().with_constant_columns(vec![0, 2]).unwrap(), plain);
    for wrong in [vec![3], vec![1, 1], vec![2, 0]] {
        assert!(matches!(plain.clone().with_constant_columns(wrong), Err(Error::Entry { .. })));
    }
}

/// Squares of such numbers are out of range.
#[test]
fn weights_of_one_are_no_weights_at_any_scale() {
    let x = points::<f64>(100, 2, 1.0);
    let y = x.map_axis(Axis(1), |x| (2.0 * x[0]).sin() + x[1]).insert_axis(Axis(1));
    let search =
        RidgeSearch::new(Orthogonal.draw(2, 16, 1).unwrap(), |omega, ell| Trigonometric.gaussian(omega, ell));
    for power in [-532, 0, 532] {
        let scaled = &x * 2f64.powi(power);
        let plain = search.fit(&scaled, &y).unwrap();
        let weighted = search.fit(&scaled, weigh(&y, &Array1::ones(100))).unwrap();
        let halves = search.fit(&scaled, weigh(&y, &Array1::from_elem(100, 0.5))).unwrap();
        let inputs = plain.model().standardisation().unwrap();
        assert!(inputs.constant_columns().is_empty());
        assert_eq!(weighted.model().standardisation(), Some(inputs));
        assert_eq!(halves.model().standardisation(), Some(inputs));
        assert_eq!(weighted.model().predict(&scaled), plain.model().predict(&scaled));
        // A power of two changes nothing but scales.
        let unscaled = search.fit(&x, &y).unwrap();
        assert_eq!(plain.model().predict(&scaled), unscaled.model().predict(&x));
    }
    // Statistics hold variances, and say where these are lost.
    let mut statistics = Statistics::of(&(&x * 1e-160)).unwrap();
    assert!(matches!(Standardisation::of_statistics(&statistics), Err(Error::Entry { .. })));
    assert!(matches!(statistics.update(&(&x * 1e160)), Err(Error::NotFinite { .. })));
}

/// The deviation of an f64 column with whole counts as weights, beside a row that makes differences small and exact, with the
/// words of a twofold sum for their mean.
fn deviation(column: &[f64], weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    let heaviest = (0..column.len()).fold(0, |best, i| if weights[i] > weights[best] { i } else { best });
    let offsets = || column.iter().map(|v| v - column[heaviest]).zip(weights);
    let mean = offsets().map(|(v, w)| v * w).sum::<f64>() / total;
    let left = offsets().map(|(v, w)| (v - mean) * w).sum::<f64>() / total;
    (offsets().map(|(v, w)| ((v - mean) - left).powi(2) * w).sum::<f64>() / total).sqrt()
}

/// Scales of a batch, a stream, merged parts in two orders and weighted rows are the deviation, at any offset.
fn keeps_digits<T: Real>(x: &Array2<T>, weights: &Array1<f64>) {
    let n = x.nrows();
    let column: Vec<f64> = x.iter().map(|v| v.widen()).collect();
    let near = |case: &str, statistics: &Statistics, weights: &[f64]| {
        let (scale, expected) = (statistics.variance().unwrap()[0].sqrt(), deviation(&column, weights));
        assert!((scale / expected - 1.0).abs() < 1e-14, "{case}: {scale:e} {expected:e}");
        let inputs = Standardisation::of_statistics(statistics).unwrap();
        assert_eq!((inputs.scales(), inputs.constant_columns()), (&[scale][..], &[][..]), "{case}");
    };
    let scale = Standardisation::of(x).unwrap().scales()[0];
    assert!((scale / deviation(&column, &vec![1.0; n]) - 1.0).abs() < 1e-14, "batch: {scale:e}");
    near("whole", &Statistics::of(x).unwrap(), &vec![1.0; n]);
    for parts in [1, 2, 7, 100] {
        let part = |start: usize| start..n.min(start + n.div_ceil(parts));
        let starts: Vec<usize> = (0..n).step_by(n.div_ceil(parts)).collect();
        let mut stream = Statistics::new(1).unwrap();
        let [mut back, mut weighted] = [stream.clone(), stream.clone()];
        for start in &starts {
            stream.update(&x.slice(s![part(*start), ..])).unwrap();
        }
        for start in starts.into_iter().rev() {
            back.merge(&Statistics::of(&x.slice(s![part(start), ..])).unwrap()).unwrap();
            weighted.update_weighted(&x.slice(s![part(start), ..]), &weights.slice(s![part(start)])).unwrap();
        }
        near(&format!("stream of {parts}"), &stream, &vec![1.0; n]);
        near(&format!("{parts} merged backwards"), &back, &vec![1.0; n]);
        near(&format!("{parts} weighted"), &weighted, weights.as_slice().unwrap());
    }
}

#[test]
fn deviations_of_streams_keep_their_digits_at_any_offset() {
    let u = points::<f64>(1000, 1, 1.0);
    let weights = Array1::from_shape_fn(1000, |i| (1 + i * i % 17) as f64);
    for (offset, unit) in [(1e9, 1e-3), (1e12, 1.0), (-1e12, 0.01), (1e30, 1e18), (0.0, 1.0)] {
        keeps_digits(&u.mapv(|u| offset + unit * u), &weights);
    }
    keeps_digits(&u.mapv(|u| (1.7e9 + 1800.0 * u) as f32), &weights);
    // A spacing of numbers near 1e30 is 2⁴⁷.
    let spacing = 2f64.powi(47);
    let few = array![[0.0], [14.0], [3.0], [-2.0], [9.0]].mapv(|k| 1e30 + k * spacing);
    keeps_digits(&few, &array![1.0, 5.0, 2.0, 9.0, 3.0]);
    // A first row of hardly any weight, which is far away.
    let far = array![[1e20], [1.0], [2.0], [4.0]];
    let weights = array![1e-60, 1.0, 1.0, 2.0];
    let expected = (27.0f64 / 16.0).sqrt();
    let mut all = Statistics::new(1).unwrap();
    all.update_weighted(&far, &weights).unwrap();
    let mut merged = Statistics::new(1).unwrap();
    for i in 0..4 {
        merged.update_weighted(&far.slice(s![i..=i, ..]), &weights.slice(s![i..=i])).unwrap();
    }
    for statistics in [all, merged] {
        let scale = Standardisation::of_statistics(&statistics).unwrap().scales()[0];
        assert!((scale / expected - 1.0).abs() < 1e-14, "{scale} {expected}");
    }
}

/// Statistics that are moved, and differences of two means, keep them too.
#[test]
fn moved_statistics_merge_without_loss() {
    let u = points::<f64>(600, 1, 1.0);
    let x = u.mapv(|u| 1e12 + u);
    let [all, first, second] =
        [s![.., ..], s![..250, ..], s![250.., ..]].map(|part| Statistics::of(&x.slice(part)).unwrap());
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-14, "{a:e} {b:e}");
    let moves: [&dyn Fn(&Statistics) -> Statistics; 2] =
        [&|one| one.divided_by(3.0).unwrap(), &|one| one.shifted(&[1e12 - 100.0]).unwrap()];
    for moved in moves {
        let mut merged = moved(&first);
        merged.merge(&moved(&second)).unwrap();
        near(merged.variance().unwrap()[0], moved(&all).variance().unwrap()[0]);
    }
    let exact = |x: &Array2<f64>| x.mapv(|v| v - 1e12);
    let (a, b) = (x.slice(s![..250, ..]).to_owned(), x.slice(s![250.., ..]).to_owned());
    let (a, b) = (exact(&a), exact(&b));
    let square = |x: &Array2<f64>| x.mapv(|v| v * v).mean().unwrap();
    let expected = square(&a) + square(&b) - 2.0 * a.mean().unwrap() * b.mean().unwrap();
    let pairs = PairStatistics::new(&first, &second).unwrap();
    near(pairs.mean_squared_sum(GerfSign::Minus), expected);
}

/// The first entry may be the largest or the least.
#[test]
fn columns_that_fall_and_rise() {
    let deviation = (8.0f64 / 3.0).sqrt();
    scales(&array![[5.0, 1.0], [3.0, 3.0], [1.0, 5.0]], &[deviation; 2]);
    let inputs = Standardisation::of(&array![[5e300], [3e300], [1e300]]).unwrap();
    assert!((inputs.scales()[0] / deviation - 1e300).abs() < 1e287, "{inputs:?}");
}
