//! Features as arrays with their scales: `transform` and its like have the bits of `features` and `into_array`.

use ndarray::{Array2, Axis, ShapeBuilder, s};
use num_complex::Complex64;
use random_features::compose::{Coefficient, Hybrid};
use random_features::frequency::{Coupling, Hadamard, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::Transform;
use random_features::theory::complex_exponential::Symmetry;
use random_features::{ComplexExponential, Error, Map, Points, Positive, Real, Side, Trigonometric};

use crate::common::points;

fn bits<T: Real>(a: &Array2<T>) -> (usize, usize, Vec<u64>) {
    (a.nrows(), a.ncols(), a.iter().map(|v| v.widen().to_bits()).collect())
}

fn omega(m: usize, seed: u64) -> random_features::frequency::Frequencies {
    Orthogonal.draw(5, m, seed).unwrap()
}

/// Maps whose sides are equal: plain, structured and composed.
fn symmetric<T: Real>() -> Vec<Map<T>> {
    let parts = [Positive.softmax(omega(9, 1)).unwrap(), Trigonometric.softmax(omega(7, 2)).unwrap()];
    vec![
        Trigonometric.gaussian(omega(70, 3), 1.5).unwrap(),
        Positive.softmax(omega(33, 4)).unwrap(),
        Positive.softmax(Hadamard::default().draw(5, 64, 5).unwrap()).unwrap(),
        Hybrid::sum(vec![(Coefficient::constant(0.5).unwrap(), parts[0].clone())], parts[1].clone()).unwrap(),
    ]
}

fn two_sided<T: Real>() -> Map<T> {
    let a = Transform::diagonal(vec![Complex64::new(1.2, 0.1); 5]).unwrap();
    ComplexExponential::new(a, Symmetry::Plain).build(omega(20, 6), Softmax::default()).unwrap()
}

/// Rows of ordinary, huge and no norm, and one that is not finite.
fn rows<T: Real>(n: usize) -> Array2<T> {
    let mut x = points::<T>(n, 5, 1.0);
    for (i, factor) in [(0, 0.0), (1, 30.0), (2, 1e4), (3, f64::NAN)] {
        if i < n {
            x.row_mut(i).mapv_inplace(|v| T::narrow(v.widen() * factor));
        }
    }
    x
}

fn check<'a, T: Real, X: Into<Points<'a, T>> + Clone>(map: &Map<T>, x: X) {
    let by = |side| map.features(side, x.clone()).unwrap().into_array();
    assert_eq!(bits(&map.transform_queries(x.clone()).unwrap()), bits(&by(Side::X)), "{map}");
    assert_eq!(bits(&map.transform_keys(x.clone()).unwrap()), bits(&by(Side::Y)), "{map}");
    if map.facts().symmetric {
        assert_eq!(bits(&map.transform(x.clone()).unwrap()), bits(&by(Side::X)), "{map}");
    }
}

fn of_scalar<T: Real>() {
    let maps = symmetric::<T>();
    for map in maps.iter().chain([&two_sided()]) {
        for n in [0, 1, 4, 300] {
            let x = rows::<T>(n);
            check(map, &x);
            check(map, &x.t().to_owned().reversed_axes());
            check(map, &x.slice(s![..;-1, ..]));
            let mut columns = Array2::zeros((n, 5).f());
            columns.assign(&x);
            check(map, &columns);
        }
    }
}

#[test]
fn arrays_have_the_bits_of_features() {
    of_scalar::<f32>();
    of_scalar::<f64>();
}

#[test]
fn huge_norms_and_rows_that_are_not_finite() {
    let map: Map<f32> = Positive.softmax(omega(33, 4)).unwrap();
    let phi = map.transform(&rows::<f32>(6)).unwrap();
    assert!(phi.row(3).iter().all(|v| v.is_nan()));
    assert!([0, 4, 5].iter().all(|i| phi.row(*i).iter().all(|v| *v > 0.0 && v.is_finite())));
    let far = phi.row(2);
    assert!(far.iter().all(|v| *v == 0.0 || v.is_infinite()), "{far}");
    let gaussian: Map<f32> = Trigonometric.gaussian(omega(33, 4), 1.0).unwrap();
    let phi = gaussian.transform(&rows::<f32>(6)).unwrap();
    assert!(phi.row(2).iter().all(|v| v.abs() <= 1.0));
    let norms = phi.map_axis(Axis(1), |row| row.dot(&row));
    assert!((norms[1] - 1.0).abs() < 1e-5 && norms[3].is_nan());
}

#[test]
fn threads_do_not_change_them() {
    let x = rows::<f32>(900);
    for map in symmetric::<f32>() {
        let alone = bits(&map.transform(&x).unwrap());
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| bits(&map.transform(&x).unwrap())), alone, "{threads} threads, {map}");
        }
    }
}

#[cfg(feature = "sparse")]
#[test]
fn sparse_points_have_the_bits_of_dense_ones() {
    let dense = points::<f64>(40, 5, 1.0).mapv(|v| if v.abs() < 0.5 { 0.0 } else { v });
    let sparse = random_features::sprs::CsMat::csr_from_dense(dense.view(), 0.0);
    for map in symmetric::<f64>() {
        assert_eq!(bits(&map.transform(&sparse).unwrap()), bits(&map.transform(&dense).unwrap()));
    }
}

#[test]
fn refusals_name_the_other_calls() {
    let map = two_sided::<f64>();
    let message = map.transform(&points::<f64>(3, 5, 1.0)).unwrap_err().to_string();
    assert!(message.contains("transform_queries") && message.contains("transform_keys"), "{message}");
    assert!(matches!(map.transform_keys(&points::<f64>(3, 4, 1.0)), Err(Error::Shape { .. })));
    let gaussian = Map::<f64>::for_kernel(Gaussian::default(), 5, 4, 1).unwrap();
    assert!(matches!(gaussian.transform(&points::<f64>(3, 4, 1.0)), Err(Error::Shape { .. })));
}
