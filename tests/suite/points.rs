//! What may be passed as points: dense arrays in every form in which programs hold them.

#![allow(clippy::needless_borrows_for_generic_args, reason = "both forms must compile")]

use ndarray::{Array2, ArrayRef2, ArrayView2, ArrayViewMut2, CowArray, Ix2, arr2, array, s};
use random_features::frequency::Orthogonal;
use random_features::{Features, Map, Points, Positive, Real, Result, Side};

fn map<T: Real>() -> Map<T> {
    Positive.gaussian(Orthogonal.draw(3, 8, 1).unwrap(), 1.0).unwrap()
}

/// A caller that is generic over the scalar and borrows rows.
fn of_reference<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Result<Features<T>> {
    map.features(Side::X, x)
}

/// A caller that passes on whatever it is given.
fn of_points<'a, T: Real>(map: &Map<T>, x: impl Into<Points<'a, T>>) -> Result<Features<T>> {
    let points = x.into();
    assert_eq!(map.dim(), points.ncols());
    map.features(Side::X, points)
}

#[test]
fn dense_points_in_any_form() {
    let map = map::<f32>();
    let x: Array2<f32> = array![[0.1, 0.2, 0.3], [-0.4, 0.5, 0.0]];
    let expected = map.features(Side::X, &x).unwrap().into_parts().0;
    let same = |features: Result<Features<f32>>| assert_eq!(features.unwrap().mantissas(), expected);
    same(map.features(Side::X, x.view()));
    same(map.features(Side::X, &x.view()));
    same(map.features(Side::X, &x.slice(s![.., ..])));
    same(map.features(Side::X, x.slice(s![.., ..])));
    same(map.features(Side::X, &x.clone().into_shared()));
    same(map.features(Side::X, &CowArray::<f32, Ix2>::from(&x)));
    same(map.features(Side::X, &*x));
    same(map.features(Side::X, &x.mapv(|v| v)));
    same(map.features(Side::X, &x.mapv(f64::from).mapv(|v| v as f32)));
    same(map.features(Side::X, &ArrayViewMut2::from(&mut x.clone())));
    same(map.features(Side::X, Points::from(&x)));
    same(map.features(Side::X, &Points::from(&x)));
    // Scalars of literals are those of the map.
    same(map.features(Side::X, &arr2(&[[0.1, 0.2, 0.3], [-0.4, 0.5, 0.0]])));
    same(of_reference(&map, &x));
    same(of_reference(&map, &x.slice(s![.., ..])));
    same(of_points(&map, &x));
    same(of_points(&map, x.view()));
    // Columns of a matrix, and rows in reverse.
    let transposed = x.t().as_standard_layout().into_owned();
    same(map.features(Side::X, transposed.t()));
    same(map.features(Side::X, &transposed.t()));
    let upside_down = x.slice(s![..;-1, ..]).into_owned();
    same(map.features(Side::X, &upside_down.slice(s![..;-1, ..])));
    // Rows in a caller's memory.
    let flat = x.as_slice().unwrap();
    same(map.features(Side::X, ArrayView2::from_shape((2, 3), flat).unwrap()));
}

#[test]
fn dense_points_are_not_copied() {
    let x: Array2<f64> = array![[1.0, 2.0], [3.0, 4.0]];
    let points = Points::from(x.slice(s![.., 1..]));
    assert_eq!((points.nrows(), points.ncols()), (2, 1));
    let dense = points.to_dense().unwrap();
    assert!(dense.is_view());
    assert_eq!(dense, array![[2.0], [4.0]]);
    assert!(std::ptr::eq(&dense[[1, 0]], &x[[1, 1]]));
}
