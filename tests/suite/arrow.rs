//! Points in columns and lists of Apache Arrow: the bits of dense ones, and what is refused.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, Axis, array, s};
use random_features::apply::{
    Criterion, ExactSmoother, RidgeSearch, RidgeStatistics, Smoother, Standardisation,
};
use random_features::arrow::column;
use random_features::arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use random_features::arrow_array::cast::AsArray;
use random_features::arrow_array::types::{Float32Type, Float64Type};
use random_features::arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    PrimitiveArray, RecordBatch,
};
use random_features::frequency::Orthogonal;
use random_features::kernel::Gaussian;
use random_features::{Error, Map, Points, Positive, Real, Side, Trigonometric};

use crate::common::{frequencies, points, weigh};
use crate::layouts::same_features;

/// A column for each coordinate.
fn columns<A: ArrowPrimitiveType<Native: Real>>(x: &Array2<A::Native>) -> Vec<ArrayRef> {
    let column = |x: ArrayView1<'_, A::Native>| -> ArrayRef {
        Arc::new(PrimitiveArray::<A>::from_iter_values(x.iter().copied()))
    };
    x.columns().into_iter().map(column).collect()
}

/// A list for each point.
fn list<A: ArrowPrimitiveType<Native: Real>>(x: &Array2<A::Native>) -> FixedSizeListArray {
    let rows = x.rows().into_iter().map(|row| Some(row.to_vec().into_iter().map(Some)));
    FixedSizeListArray::from_iter_primitive::<A, _, _>(rows, x.ncols() as i32)
}

fn map<T: Real>(d: usize) -> Map<T> {
    Trigonometric.gaussian(frequencies(d, 40, &Orthogonal, 2), 1.5).unwrap()
}

fn features<A: ArrowPrimitiveType<Native: Real>>() {
    for (n, d) in [(1, 5), (17, 1), (30, 60), (300, 20)] {
        let x = points::<A::Native>(n, d, 0.6);
        same_features(&Points::of_columns(&columns::<A>(&x)).unwrap(), &x);
        same_features(&Points::of_list(&list::<A>(&x)).unwrap(), &x);
    }
}

#[test]
fn features_have_the_bits_of_dense_points() {
    features::<Float32Type>();
    features::<Float64Type>();
}

#[test]
fn any_form_of_the_arrays() {
    let x = points::<f64>(40, 3, 1.0);
    let part = x.slice(s![11..29, ..]);
    let columns = columns::<Float64Type>(&x);
    let batch = RecordBatch::try_from_iter(["a", "b", "c"].into_iter().zip(columns.iter().cloned())).unwrap();
    let same = |points: Points<'_, f64>| {
        assert_eq!((points.nrows(), points.ncols()), part.dim());
        assert!(!points.is_sparse());
        assert_eq!(points.to_dense().unwrap(), part);
        assert_eq!(Points::from(&points).to_dense().unwrap(), part);
        assert_eq!(
            points.clone().select(&[7, 0, 7]).unwrap().to_dense().unwrap(),
            part.select(Axis(0), &[7, 0, 7])
        );
        assert!(matches!(points.select(&[0, 18]), Err(Error::Entry { row: 1, .. })));
        let features = map(3).features(Side::X, &points).unwrap();
        assert_eq!(features.mantissas(), map(3).features(Side::X, part).unwrap().mantissas());
    };
    let slice = batch.slice(11, 18);
    same(Points::of_columns(slice.columns()).unwrap());
    same(Points::of_columns(["a", "b", "c"].map(|name| &slice[name])).unwrap());
    let typed: Vec<&Float64Array> = slice.columns().iter().map(|column| column.as_primitive()).collect();
    same(Points::of_columns(typed).unwrap());
    let list = list::<Float64Type>(&x);
    let sliced = list.slice(1, 39).slice(10, 18);
    same(Points::of_list(&sliced).unwrap());
    let shared: ArrayRef = Arc::new(sliced.clone());
    same(Points::of_list(&shared).unwrap());
    // Lists over a slice of numbers, and lists that passed through their raw data.
    same(Points::of_list(&FixedSizeListArray::from(sliced.to_data())).unwrap());

    let empty = batch.slice(5, 0);
    assert_eq!(Points::<f64>::of_columns(empty.columns()).unwrap().to_dense().unwrap().dim(), (0, 3));
    assert_eq!(Points::<f64>::of_list(&list.slice(40, 0)).unwrap().to_dense().unwrap().dim(), (0, 3));
    let none = map::<f64>(3).features(Side::X, Points::of_columns(empty.columns()).unwrap()).unwrap();
    assert_eq!(none.mantissas().dim(), (0, 80));
}

#[test]
fn lists_and_targets_are_not_copied() {
    let list = list::<Float32Type>(&points(9, 4, 1.0));
    let points = Points::<f32>::of_list(&list).unwrap();
    let dense = points.to_dense().unwrap();
    assert!(dense.is_view());
    assert!(std::ptr::eq(dense.as_ptr(), list.values().as_primitive::<Float32Type>().values().as_ptr()));
    let y = Float64Array::from(vec![1.0, 2.0, 3.0]).slice(1, 2);
    let view = column::<f64>(&y).unwrap();
    assert_eq!(view, array![2.0, 3.0]);
    assert!(std::ptr::eq(view.as_ptr(), y.values().as_ptr()));
}

/// Batches of columns, and of lists, against the same dense points.
fn models<A: ArrowPrimitiveType<Native: Real>>() {
    let (n, d) = (5000, 16);
    let dense = points::<A::Native>(n, d, 0.9);
    let y = Array2::from_shape_fn((n, 2), |(i, j)| A::Native::narrow(((i + 3 * j) as f64).sin()));
    let (columns, list) = (columns::<A>(&dense), list::<A>(&dense));
    let targets: Vec<ArrayRef> = self::columns::<A>(&y);
    for x in [Points::of_columns(&columns).unwrap(), Points::of_list(&list).unwrap()] {
        let [mut left, mut right] = [(); 2].map(|()| Smoother::new(map(d), 2).unwrap());
        left.update(&x, &y).unwrap();
        right.update(&dense, &y).unwrap();
        assert_eq!(left.predict(&x).unwrap(), right.predict(&dense).unwrap());
        assert_eq!(left.predict_and_report(&x).unwrap(), right.predict_and_report(&dense).unwrap());
    }
    let batches: Vec<Vec<ArrayRef>> = [(0, 3000), (3000, 1900), (4900, 100)]
        .map(|(start, rows)| columns.iter().map(|column| column.slice(start, rows)).collect())
        .into();
    for inputs in [None, Some(Standardisation::of(&dense).unwrap())] {
        let [mut of_columns, mut of_lists, mut of_rows] = [(); 3].map(|()| {
            let statistics = RidgeStatistics::new(map(d), 1).unwrap();
            inputs
                .clone()
                .map_or(Ok(statistics.clone()), |inputs| statistics.with_standardisation(inputs))
                .unwrap()
        });
        let mut start = 0;
        for batch in &batches {
            let rows = batch[0].len();
            let target = targets[1].slice(start, rows);
            let y = column::<A::Native>(&target).unwrap().insert_axis(Axis(1));
            of_columns.update(Points::of_columns(batch).unwrap(), y).unwrap();
            of_lists.update(Points::of_list(&list.slice(start, rows)).unwrap(), y).unwrap();
            of_rows.update(dense.slice(s![start..start + rows, ..]), y).unwrap();
            start += rows;
        }
        for statistics in [&of_columns, &of_lists] {
            assert_eq!(statistics.rows(), n as u64);
            assert_eq!(statistics.input_warnings(), of_rows.input_warnings());
            assert!(statistics.products().unwrap() == of_rows.products().unwrap());
        }
        if cfg!(any(feature = "faer", feature = "ndarray-linalg")) {
            let [left, right] = [of_columns, of_rows].map(|statistics| statistics.solve(0.1).unwrap());
            let x = Points::of_columns(&columns).unwrap();
            assert_eq!(left.weights(), right.weights());
            assert_eq!(left.predict(&x).unwrap(), right.predict(&dense).unwrap());
            assert!(
                left.classify(x).is_err() && right.classify(&dense).is_err(),
                "one target names no class"
            );
        }
    }
}

#[test]
fn models_have_the_bits_of_dense_points() {
    models::<Float32Type>();
    models::<Float64Type>();
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn components_have_the_bits_of_dense_points() {
    use random_features::apply::pca::PcaStatistics;

    let dense = points::<f32>(700, 9, 1.0);
    let (columns, list) = (columns::<Float32Type>(&dense), list::<Float32Type>(&dense));
    let fitted = |x: &Points<'_, f32>| {
        let mut statistics = PcaStatistics::new(map(9)).unwrap();
        statistics.update(x).unwrap();
        let pca = statistics.components(3).unwrap();
        (pca.transform(x).unwrap(), pca.explained_variance().to_vec())
    };
    let expected = fitted(&Points::from(&dense));
    assert_eq!(fitted(&Points::of_columns(&columns).unwrap()), expected);
    assert_eq!(fitted(&Points::of_list(&list).unwrap()), expected);
}

#[test]
fn searches_and_labels_have_the_bits_of_dense_points() {
    let dense = points::<f64>(300, 6, 1.0);
    let columns = columns::<Float64Type>(&dense);
    let x = Points::of_columns(&columns).unwrap();
    let labels: Vec<usize> = (0..300).map(|i| i % 7 % 3).collect();
    let [mut left, mut right] = [(); 2].map(|()| ExactSmoother::new(Gaussian::default(), 6, 3).unwrap());
    left.update(&x, &labels).unwrap();
    right.update(&dense, &labels).unwrap();
    assert_eq!(left.predict(&x).unwrap(), right.predict(&dense).unwrap());
    if cfg!(any(feature = "faer", feature = "ndarray-linalg")) {
        let y = Array2::from_shape_fn((300, 1), |(i, _)| (i as f64 * 0.1).sin());
        let weights: Array1<f64> = (0..300).map(|i| (i % 4) as f64).collect();
        let mut statistics = RidgeStatistics::new(map(6), 1).unwrap();
        statistics.update(&x, weigh(&y, &weights)).unwrap();
        let spectrum = statistics.spectrum().unwrap();
        let [left, right] = [x.clone(), Points::from(&dense)].map(|x| {
            let left_out = Criterion::leave_one_out(x.clone(), weigh(&y, &weights));
            let criteria = [left_out, Criterion::held_out(x, &y)];
            criteria.map(|criterion| spectrum.errors(&criterion, &[1e-3, 1.0]).unwrap())
        });
        assert_eq!(left, right);
        let omega = Orthogonal.draw(6, 40, 3).unwrap();
        let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell)).with_rows(200);
        let (found, expected) = (search.fit(&x, &y).unwrap(), search.fit(&dense, &y).unwrap());
        assert_eq!((found.trials(), found.lambda()), (expected.trials(), expected.lambda()));
        assert_eq!(found.model().standardisation(), expected.model().standardisation());
        assert!(found.model().standardisation().is_some());
    }
}

#[test]
fn rows_that_are_not_finite() {
    let mut dense = points::<f32>(40, 5, 0.5);
    (dense[[33, 0]], dense[[8, 4]]) = (f32::NAN, f32::INFINITY);
    let columns = columns::<Float32Type>(&dense);
    let x = Points::of_columns(&columns).unwrap();
    let map = Positive.gaussian::<f32>(frequencies(5, 20, &Orthogonal, 1), 1.0).unwrap();
    let found = map.features(Side::X, &x).unwrap();
    for (i, row) in found.mantissas().rows().into_iter().enumerate() {
        assert!(row.iter().all(|v| v.is_nan() == [8, 33].contains(&i)), "row {i}");
    }
    let y = Array2::zeros((40, 1));
    let not_finite = Err(Error::NotFinite { what: "x", row: 8, column: Some(4) });
    assert_eq!(Smoother::new(map.clone(), 1).unwrap().update(&x, &y), not_finite);
    assert_eq!(RidgeStatistics::new(map, 1).unwrap().update(&x, &y), not_finite);
}

/// The message of an error.
fn refused<T>(result: Result<T, Error>, expected: &str) {
    assert_eq!(result.err().map(|error| error.to_string()).as_deref(), Some(expected));
}

#[test]
fn columns_that_are_refused() {
    let good: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    let holes: ArrayRef = Arc::new(Float32Array::from(vec![None, Some(1.0), None, Some(2.0)]));
    let wide: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 4]));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1; 4]));
    let of = |columns: &[&ArrayRef]| Points::<f32>::of_columns(columns.iter().copied()).map(|x| x.nrows());
    refused(of(&[]), "the number of columns is 0, but must be at least 1");
    refused(of(&[&good, &holes]), "column 1 holds nulls in 2 of 4 places");
    refused(of(&[&wide, &good]), "column 0 holds elements of type Float64, not Float32");
    refused(of(&[&good, &good, &whole]), "column 2 holds elements of type Int64, not Float32");
    refused(of(&[&good, &good.slice(1, 3)]), "column 1 has 3 rows, but column 0 has 4");
    let error = of(&[&good, &holes]).unwrap_err();
    assert!(matches!(error, Error::Arrow { array, .. } if array == "column 1"));
    // Nulls outside a slice are none of its own.
    assert_eq!(of(&[&good.slice(1, 1), &holes.slice(1, 1)]), Ok(1));

    refused(column::<f64>(&good), "the column holds elements of type Float32, not Float64");
    refused(column::<f32>(&holes), "the column holds nulls in 2 of 4 places");
    // The map says so of another number of columns.
    let x = Points::<f32>::of_columns([&good; 3]).unwrap();
    let error = map(5).features(Side::X, x).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 5, found: 3, .. }), "{error}");
}

#[test]
fn lists_that_are_refused() {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for (numbers, valid) in [([Some(1.0), None], true), ([Some(2.0); 2], false), ([Some(3.0); 2], true)] {
        numbers.into_iter().for_each(|number| builder.values().append_option(number));
        builder.append(valid);
    }
    let list = builder.finish();
    let of = |list: &dyn Array| Points::<f32>::of_list(list).and_then(|x| Ok(x.to_dense()?.into_owned()));
    refused(of(&list), "the list holds nulls in 1 of 3 places");
    refused(of(&list.slice(0, 1)), "the array of the list's numbers holds nulls in 1 of 2 places");
    assert_eq!(of(&list.slice(2, 1)), Ok(array![[3.0, 3.0]]));
    let wide = self::list::<Float64Type>(&points(3, 2, 1.0));
    refused(of(&wide), "the array of the list's numbers holds elements of type Float64, not Float32");
    let plain = Float32Array::from(vec![1.0]);
    refused(of(&plain), "the list holds elements of type Float32, not FixedSizeList");
}
