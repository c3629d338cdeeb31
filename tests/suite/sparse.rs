//! Sparse points: the bits of dense ones, through every method that takes points.

use ndarray::{Array1, Array2, arr2, s};
use random_features::apply::{
    Criterion, ExactSmoother, RidgeClassifier, RidgeSearch, RidgeStatistics, Smoother, Standardisation,
};
use random_features::frequency::Orthogonal;
use random_features::kernel::Gaussian;
use random_features::sprs::{CsMat, TriMat};
use random_features::{Error, Map, Points, Positive, Real, Side, Trigonometric};

use crate::common::{frequencies, weigh};
use crate::layouts::same_features;

/// n points of which a share of about 1/`step` of the coordinates is not 0, and some rows have none.
fn sparse<T: Real>(n: usize, d: usize, step: usize, size: f64) -> CsMat<T> {
    let mut entries = TriMat::new((n, d));
    for i in (0..n).filter(|i| i % 7 != 3) {
        for k in (i % step..d).step_by(step) {
            entries.add_triplet(i, k, T::narrow((((i * 31 + k * 17) % 23) as f64 / 11.0 - 1.0) * size));
        }
    }
    entries.to_csr()
}

fn features<T: Real>() {
    for (n, d, step) in [(1, 5, 2), (30, 60, 7), (300, 20, 3)] {
        let x = sparse::<T>(n, d, step, 0.6);
        same_features(&Points::from(&x), &x.to_dense());
    }
}

#[test]
fn features_have_the_bits_of_dense_points() {
    features::<f32>();
    features::<f64>();
}

#[test]
fn any_form_of_the_matrix() {
    let (d, map) = (50, Positive.gaussian::<f32>(frequencies(50, 30, &Orthogonal, 1), 1.5).unwrap());
    let x = sparse::<f32>(40, d, 4, 0.5);
    let expected = map.features(Side::X, &x.to_dense()).unwrap();
    fn values<'a>(map: &Map<f32>, x: impl Into<Points<'a, f32>>) -> Array2<f32> {
        map.features(Side::X, x).unwrap().into_parts().0
    }
    assert_eq!(values(&map, &x), expected.mantissas());
    assert_eq!(values(&map, x.view()), expected.mantissas());
    let columns = x.to_csc();
    assert_eq!(values(&map, &columns), expected.mantissas());
    let converted = Points::from(columns.view());
    assert_eq!(values(&map, &converted), expected.mantissas());
    assert_eq!(values(&map, converted), expected.mantissas());
    assert_eq!(values(&map, x.slice_outer(11..29)), expected.mantissas().slice(s![11..29, ..]));
    assert_eq!(values(&map, x.slice_outer(7..7)).dim(), (0, 30));
    // Columns of the transposed matrix are rows of points.
    assert_eq!(values(&map, columns.transpose_view().to_csr().transpose_view()), expected.mantissas());
    // Zeros that are stored.
    let stored =
        CsMat::new((40, d), (0..=40).map(|i| i * d).collect(), (0..40 * d).map(|i| i % d).collect(), {
            x.to_dense().into_raw_vec_and_offset().0
        });
    assert_eq!(values(&map, &stored), expected.mantissas());
    assert_eq!(values(&map, &CsMat::zero((0, d))).dim(), (0, 30));
    assert_eq!(values(&map, &CsMat::zero((2, d))), values(&map, &Array2::zeros((2, d))));
}

/// Arrays as SciPy has them, in integers of every width: the bits of dense points.
#[test]
fn compressed_rows_of_scipy() {
    fn of_widths<T: Real>() {
        let (n, d) = (300, 60);
        let x = sparse::<T>(n, d, 7, 0.6);
        let (starts, columns, values) = x.clone().into_raw_storage();
        let dense = x.to_dense();
        macro_rules! with {
            ($C:ty, $O:ty, $rows:expr) => {{
                let columns: Vec<$C> = columns.iter().map(|k| *k as $C).collect();
                let offsets: Vec<$O> = starts.iter().map(|start| *start as $O).collect();
                let points = Points::of_csr(&values, &columns, &offsets, d).unwrap();
                assert!(points.is_sparse());
                let first = Points::of_csr(&values, &columns, &offsets[..=$rows], d).unwrap();
                same_features(&first, &dense.slice(s![..$rows, ..]).to_owned());
                let slice = Points::of_csr(&values, &columns, &offsets[11..=29], d).unwrap();
                assert_eq!(slice.to_dense().unwrap(), dense.slice(s![11..29, ..]));
                let rows = [7, 3, 299, 3];
                assert_eq!(
                    points.select(&rows).unwrap().to_dense().unwrap(),
                    dense.select(ndarray::Axis(0), &rows)
                );
                assert_eq!(Points::from(&points).to_dense().unwrap(), dense);
            }};
        }
        // More rows than are taken at a time, and fewer.
        with!(i32, i32, n);
        with!(u32, i64, 40);
        with!(usize, u32, n);
        with!(i64, usize, 40);
        with!(u64, u64, 40);
    }
    of_widths::<f32>();
    of_widths::<f64>();
    let none: [f64; 0] = [];
    assert_eq!(Points::of_csr(&none, &[0i32; 0], &[0i32], 5).unwrap().to_dense().unwrap().dim(), (0, 5));
    assert_eq!(
        Points::of_csr(&none, &[0i32; 0], &[0i32, 0, 0], 5).unwrap().to_dense().unwrap(),
        Array2::<f64>::zeros((2, 5))
    );
    // Columns beyond the range of i32.
    let far = Points::of_csr(&[1.0], &[3_000_000_000u32], &[0usize, 1], 4_000_000_000).unwrap();
    assert_eq!((far.nrows(), far.ncols()), (1, 4_000_000_000));
}

/// What no memory can hold is refused.
#[test]
fn points_that_no_memory_holds_are_not_written_out() {
    let offsets = vec![1u64; 100_001];
    let many = Points::of_csr(&[1.0], &[3u64], &offsets, 1 << 36).unwrap();
    assert!(matches!(many.to_dense(), Err(Error::Memory { count: 100_000, .. })));
}

#[test]
fn arrays_that_are_no_compressed_rows_are_refused() {
    let refused = |values: &[f64], columns: &[i32], offsets: &[i64], dim: usize| {
        Points::of_csr(values, columns, offsets, dim).map(drop).unwrap_err().to_string()
    };
    let ones = [1.0; 3];
    assert_eq!(refused(&ones, &[0, 1], &[0, 2], 5), "the number of columns of entries is 2, but must be 3");
    assert_eq!(refused(&[], &[], &[], 5), "the number of offsets is 0, but must be one more than rows");
    for (offsets, reason) in [
        (&[-1, 2][..], "row 0 of the offsets is -1, but must be 0 or above"),
        (&[0, 2, 1], "row 2 of the offsets is 1, but must be at least the offset before it"),
        (&[0, 2, -1], "row 2 of the offsets is -1, but must be at least the offset before it"),
        (&[0, 4], "row 1 of the offsets is 4, but must be at most the number of entries"),
    ] {
        assert_eq!(refused(&ones, &[0, 1, 2], offsets, 5), reason);
    }
    assert!(refused(&ones, &[0, 1, 2], &[0, i64::MAX], 5).ends_with("at most the number of entries"));
    for (columns, reason) in [
        ([0, 1, 5], "row 1 of the columns is 5, but must be 0 or above, and below the number of columns d"),
        ([0, 1, -1], "row 1 of the columns is -1, but must be 0 or above, and below the number of columns d"),
        (
            [1, 0, 2],
            "row 0 of the columns is 0, but must be above the one before it in the row, as SciPy's sum_duplicates() leaves them",
        ),
        (
            [1, 1, 2],
            "row 0 of the columns is 1, but must be above the one before it in the row, as SciPy's sum_duplicates() leaves them",
        ),
    ] {
        assert_eq!(refused(&ones, &columns, &[0, 2, 3], 5), reason);
    }
    // What is not finite is left to those who read the points, as for all others.
    let x = Points::of_csr(&[f64::NAN, 1.0], &[0, 1], &[0, 1, 2], 5).unwrap();
    let map = Trigonometric.gaussian::<f64>(frequencies(5, 8, &Orthogonal, 1), 1.0).unwrap();
    let mut smoother = Smoother::new(map, 1).unwrap();
    assert_eq!(
        smoother.update(&x, &arr2(&[[0.0], [1.0]])),
        Err(Error::NotFinite { what: "x", row: 0, column: Some(0) })
    );
}

#[test]
fn points_know_their_size_and_are_written_out() {
    let x = sparse::<f64>(9, 5, 2, 1.0);
    let (dense, columns) = (x.to_dense(), x.to_csc());
    for points in [Points::from(&x), Points::from(&columns), Points::from(&dense)] {
        assert_eq!((points.nrows(), points.ncols()), (9, 5));
        assert_eq!(points.to_dense().unwrap(), dense);
        assert_eq!(Points::from(&points).to_dense().unwrap(), dense);
    }
    let rows = Points::from(x.slice_outer(2..6));
    assert_eq!((rows.nrows(), rows.to_dense().unwrap()), (4, dense.slice(s![2..6, ..]).into()));
}

#[test]
fn rows_that_are_not_finite_or_large() {
    let mut x = sparse::<f32>(6, 9, 2, 1.0);
    let last = x.nnz() - 1;
    x.data_mut()[0] = f32::NAN;
    x.data_mut()[last] = f32::INFINITY;
    let map = Trigonometric.gaussian::<f32>(frequencies(9, 20, &Orthogonal, 1), 1.0).unwrap();
    let found = map.features(Side::X, x.view()).unwrap();
    let lost: Vec<bool> =
        found.mantissas().rows().into_iter().map(|row| row.iter().all(|v| v.is_nan())).collect();
    assert_eq!(lost, [true, false, false, false, false, true]);
    // Products that would overflow.
    for size in [1e-30, 1e20, 1e37, 3e38] {
        for map in [Positive.gaussian(frequencies(9, 20, &Orthogonal, 1), 0.5).unwrap(), map.clone()] {
            let x = sparse::<f32>(6, 9, 2, size);
            let expected = map.features(Side::Y, &x.to_dense()).unwrap();
            let found = map.features(Side::Y, x.view()).unwrap();
            assert_eq!(
                (found.mantissas(), found.log_scales()),
                (expected.mantissas(), expected.log_scales())
            );
            assert!(found.mantissas().iter().all(|v| v.is_finite()), "{size}");
        }
    }
}

fn models<T: Real>() {
    let (n, d) = (5000, 30);
    let x = sparse::<T>(n, d, 5, 0.5);
    let dense = x.to_dense();
    let y = Array2::from_shape_fn((n, 2), |(i, j)| T::narrow(((i + 3 * j) as f64).sin()));
    let map = || Trigonometric.gaussian::<T>(frequencies(d, 40, &Orthogonal, 2), 1.5).unwrap();
    let [mut left, mut right] = [(); 2].map(|()| Smoother::new(map(), 2).unwrap());
    left.update(&x, &y).unwrap();
    right.update(&dense, &y).unwrap();
    let expected = right.predict(&dense).unwrap();
    assert_eq!(left.predict(&x).unwrap(), expected);
    assert_eq!(left.predict(&dense).unwrap(), expected);
    assert_eq!(left.predict_and_report(&x).unwrap(), right.predict_and_report(&dense).unwrap());
    for inputs in [None, Some(Standardisation::of(&dense).unwrap())] {
        let [mut left, mut right] = [(); 2].map(|()| {
            let statistics = RidgeStatistics::new(map(), 2).unwrap();
            inputs
                .clone()
                .map_or(Ok(statistics.clone()), |inputs| statistics.with_standardisation(inputs))
                .unwrap()
        });
        left.update(x.slice_outer(0..3000), y.slice(s![..3000, ..])).unwrap();
        left.update(x.slice_outer(3000..n), y.slice(s![3000.., ..])).unwrap();
        left.update(&x, &y).unwrap();
        left.downdate(n as u64, &x, &y).unwrap();
        right.update(dense.slice(s![..3000, ..]), y.slice(s![..3000, ..])).unwrap();
        right.update(dense.slice(s![3000.., ..]), y.slice(s![3000.., ..])).unwrap();
        right.update(&dense, &y).unwrap();
        right.downdate(n as u64, &dense, &y).unwrap();
        if cfg!(any(feature = "faer", feature = "ndarray-linalg")) {
            let [left, right] = [left, right].map(|statistics| statistics.solve(0.1).unwrap());
            assert_eq!(left.weights(), right.weights());
            assert_eq!(left.predict(&x).unwrap(), right.predict(&dense).unwrap());
            let mut out = Array2::zeros(y.dim());
            left.predict_into(&x, &mut out).unwrap();
            assert_eq!(out, right.predict(&dense).unwrap());
        }
    }
}

#[test]
fn models_have_the_bits_of_dense_points() {
    models::<f32>();
    models::<f64>();
}

#[test]
fn labels_and_weights_have_the_bits_of_dense_points() {
    let (n, d) = (300, 30);
    let x = sparse::<f64>(n, d, 5, 0.5);
    let dense = x.to_dense();
    let labels: Vec<usize> = (0..n).map(|i| i % 7 % 3).collect();
    let map = || Trigonometric.gaussian::<f64>(frequencies(d, 40, &Orthogonal, 2), 1.5).unwrap();
    let [mut left, mut right] = [(); 2].map(|()| Smoother::new(map(), 3).unwrap());
    left.update(x.view(), &labels).unwrap();
    right.update(&dense, &labels).unwrap();
    assert_eq!(left.classify(x.view()).unwrap(), right.classify(&dense).unwrap());
    let [mut left, mut right] = [(); 2].map(|()| ExactSmoother::new(Gaussian::default(), d, 3).unwrap());
    left.update(&x, &labels).unwrap();
    right.update(&dense, &labels).unwrap();
    assert_eq!(left.classify(&x).unwrap(), right.classify(&dense).unwrap());
    assert_eq!(left.predict(x.slice_outer(5..9)).unwrap(), right.predict(dense.slice(s![5..9, ..])).unwrap());
    let [mut left, mut right] = [(); 2].map(|()| RidgeStatistics::new(map(), 3).unwrap());
    left.update(x.view(), &labels).unwrap();
    right.update(&dense, &labels).unwrap();
    let y = Array2::from_shape_fn((n, 3), |(i, j)| ((i + 3 * j) as f64).sin());
    let weights: Array1<f64> = (0..n).map(|i| (i % 4) as f64).collect();
    left.update(x.view(), weigh(&y, &weights)).unwrap();
    right.update(&dense, weigh(&y, &weights)).unwrap();
    if cfg!(any(feature = "faer", feature = "ndarray-linalg")) {
        let mut weighted = RidgeStatistics::new(map(), 3).unwrap();
        weighted.update(x.view(), weigh(&y, &weights)).unwrap();
        let spectrum = weighted.spectrum().unwrap();
        let [of_sparse, of_dense] = [Points::from(&x), Points::from(&dense)].map(|points| {
            let left_out = Criterion::leave_one_out(points.clone(), weigh(&y, &weights));
            let criteria = [left_out, Criterion::held_out(points, &y)];
            criteria.map(|criterion| spectrum.errors(&criterion, &[1e-3, 1.0]).unwrap())
        });
        assert_eq!(of_sparse, of_dense);
        let [left, right] = [left, right].map(|statistics| statistics.solve(1e-2).unwrap());
        assert_eq!(left.weights(), right.weights());
        assert_eq!(left.classify(x.view()).unwrap(), right.classify(&dense).unwrap());
        let left = RidgeClassifier::new(left).unwrap().with_calibration(x.view(), &labels).unwrap();
        let right = RidgeClassifier::new(right).unwrap().with_calibration(&dense, &labels).unwrap();
        assert_eq!(left.classify(x.view()).unwrap(), right.classify(&dense).unwrap());
        assert_eq!(left.probabilities(x.view()).unwrap(), right.probabilities(&dense).unwrap());
    }
}

#[test]
fn refusals() {
    let map = Trigonometric.gaussian::<f64>(frequencies(5, 8, &Orthogonal, 1), 1.0).unwrap();
    let wide = sparse::<f64>(4, 6, 2, 1.0);
    let shape =
        |error: Error| assert!(matches!(error, Error::Shape { expected: 5, found: 6, .. }), "{error}");
    shape(map.features(Side::X, wide.view()).unwrap_err());
    let (mut smoother, mut ridge) =
        (Smoother::new(map.clone(), 1).unwrap(), RidgeStatistics::new(map, 1).unwrap());
    let y = arr2(&[[0.0], [1.0], [2.0], [3.0]]);
    shape(smoother.update(wide.view(), &y).unwrap_err());
    shape(ridge.update(wide.view(), &y).unwrap_err());
    let mut x = sparse::<f64>(4, 5, 2, 1.0);
    assert!(matches!(smoother.predict(x.view()), Err(Error::NoData { .. })));
    *x.get_mut(2, 2).unwrap() = f64::NAN;
    let not_finite = Err(Error::NotFinite { what: "x", row: 2, column: Some(2) });
    assert_eq!(smoother.update(x.view(), &y), not_finite);
    assert_eq!(ridge.update(x.view(), &y), not_finite);
    assert!(matches!(ridge.update(x.view(), y.slice(s![..3, ..])), Err(Error::Shape { .. })));
    assert_eq!(ridge.rows(), 0);
}

/// A search on sparse points, which it does not standardise, and the rows that it selects.
#[test]
fn searches_and_selections_have_the_bits_of_dense_points() {
    let x = sparse::<f64>(300, 20, 5, 1.0);
    let (dense, y) = (x.to_dense(), Array2::from_shape_fn((300, 1), |(i, _)| (i as f64 * 0.1).sin()));
    let omega = Orthogonal.draw(20, 40, 3).unwrap();
    let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell)).with_rows(200);
    let found = search.fit(&x, &y).unwrap();
    let expected = search.without_standardisation().fit(&dense, &y).unwrap();
    assert_eq!((found.trials(), found.lambda()), (expected.trials(), expected.lambda()));
    assert_eq!(found.model().standardisation(), None);
    let rows = [7, 3, 299, 3];
    let selected = Points::from(&x).select(&rows).unwrap();
    assert!(selected.is_sparse() && !Points::from(&dense).is_sparse());
    assert_eq!(selected.to_dense().unwrap(), dense.select(ndarray::Axis(0), &rows));
    assert_eq!(Points::from(&dense).select(&rows).unwrap().to_dense().unwrap(), selected.to_dense().unwrap());
    for points in [Points::from(&x), Points::from(&dense)] {
        assert!(matches!(points.select(&[0, 300]), Err(Error::Entry { row: 1, .. })));
    }
}
