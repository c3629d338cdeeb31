//! Kernel PCA: against PCA of the Gram matrix, on streams, and what it refuses.

use ndarray::{Array1, Array2, Axis, s};
use num_complex::Complex64;
use random_features::apply::pca::{KernelPca, PcaStatistics};
use random_features::apply::{RidgeStatistics, Standardisation};
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Kernel};
use random_features::linalg::Backend;
use random_features::map::Transform;
use random_features::theory::complex_exponential::Symmetry;
use random_features::workbench::factors::Factorise;
use random_features::{ComplexExponential, Error, Map, Real, Side, Trigonometric};

use crate::common::{frequencies, points};

fn map<T: Real>(m: usize) -> Map<T> {
    Trigonometric.gaussian(frequencies(3, m, &Orthogonal, 7), 1.0).unwrap()
}

fn fitted<T: Real>(map: Map<T>, x: &Array2<T>, k: usize) -> KernelPca<T> {
    let mut statistics = PcaStatistics::new(map).unwrap();
    statistics.update(x).unwrap();
    statistics.components(k).unwrap()
}

/// Components and variances by the definition of kernel PCA: eigenvectors of the centred Gram matrix times the roots of its
/// eigenvalues.
fn dense(gram: &Array2<f64>, k: usize) -> (Array2<f64>, Vec<f64>) {
    let n = gram.nrows() as f64;
    let rows = gram.mean_axis(Axis(1)).unwrap();
    let columns = gram.mean_axis(Axis(0)).unwrap();
    let centred = gram - &rows.insert_axis(Axis(1)) - &columns + gram.sum() / (n * n);
    let eigen = Backend::default().eigen(&centred).unwrap();
    let last = eigen.values.len();
    let mut scores = Array2::zeros((gram.nrows(), k));
    for (j, mut column) in scores.columns_mut().into_iter().enumerate() {
        column.assign(&(&eigen.vectors.column(last - 1 - j) * eigen.values[last - 1 - j].sqrt()));
    }
    (scores, (0..k).map(|j| eigen.values[last - 1 - j] / n).collect())
}

/// The largest difference of columns, up to their signs.
fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let of = |(a, b): (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>)| {
        let difference = |sign: f64| a.iter().zip(b).fold(0.0, |w: f64, (a, b)| w.max((a - sign * b).abs()));
        difference(1.0).min(difference(-1.0))
    };
    a.columns().into_iter().zip(b.columns()).map(of).fold(0.0, f64::max)
}

#[test]
fn components_are_those_of_the_gram_matrix_of_estimates() {
    let (x, other) = (points::<f64>(150, 3, 1.5), points::<f64>(40, 3, 1.0));
    let map = map(30);
    let pca = fitted(map.clone(), &x, 4);
    let features = map.features(Side::X, &x).unwrap();
    let gram = features.gram(&map.features(Side::Y, &x).unwrap()).unwrap();
    let (scores, variances) = dense(&gram, 4);
    assert!(distance(&pca.transform(&x).unwrap(), &scores) < 1e-9);
    for (a, b) in pca.explained_variance().iter().zip(&variances) {
        assert!((a / b - 1.0).abs() < 1e-9);
    }
    // The variance of all features about their mean: 1 − the mean of the Gram matrix.
    let ratio = pca.explained_variance_ratio();
    assert!((ratio[1] * (1.0 - gram.mean().unwrap()) / variances[1] - 1.0).abs() < 1e-9);
    // Of other points, by definition.
    let plain = |x: &Array2<f64>| {
        let features = map.features(Side::X, x).unwrap();
        features.mantissas().to_owned() * &features.log_scales().mapv(f64::exp)
    };
    let expected = (plain(&other) - plain(&x).mean_axis(Axis(0)).unwrap()).dot(&pca.directions().t());
    assert!(distance(&pca.transform(&other).unwrap(), &expected) < 1e-10);
    let mut out = Array2::zeros((40, 4));
    pca.transform_into(&other, &mut out).unwrap();
    assert_eq!(out, pca.transform(&other).unwrap());
    let gram = pca.directions().dot(&pca.directions().t());
    assert!((gram - Array2::<f64>::eye(4)).iter().all(|v| v.abs() < 1e-10));
}

/// With features enough, those of the exact kernel: the error falls like 1/√m, of a fixed seed.
#[test]
fn components_approach_those_of_the_exact_kernel() {
    let x = points::<f64>(700, 3, 1.0);
    let exact = dense(&Gaussian::new(2.0).unwrap().gram(&x, &x).unwrap(), 3);
    let errors = [64, 1024].map(|m| {
        let map = Trigonometric.gaussian(frequencies(3, m, &Orthogonal, 5), 2.0).unwrap();
        let pca = fitted(map, &x, 3);
        let variances = pca.explained_variance().iter().zip(&exact.1);
        variances.map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
    });
    assert!(errors[0] < 0.25 && errors[1] < 0.06, "{errors:?}");
}

#[test]
fn parts_merge_to_the_bits_of_the_whole() {
    let chunk = RidgeStatistics::<f32>::CHUNK as usize;
    let x = points::<f32>(2 * chunk + 100, 3, 1.0);
    let whole = fitted(map(20), &x, 3);
    let mut right = PcaStatistics::new(map(20)).unwrap().with_first_row(chunk as u64).unwrap();
    right.update(x.slice(s![chunk.., ..])).unwrap();
    let mut left = PcaStatistics::new(map(20)).unwrap();
    left.update(x.slice(s![..chunk, ..])).unwrap();
    right.merge(&left).unwrap();
    assert_eq!(right.components(3).unwrap().directions(), whole.directions());
    assert_eq!((right.rows(), right.row_ranges().len()), (x.nrows() as u64, 1));
    assert!(matches!(right.merge(&left), Err(Error::Row { .. })));
    right.downdate(chunk as u64, x.slice(s![chunk.., ..]), None).unwrap();
    assert_eq!(right.components(3).unwrap().directions(), left.components(3).unwrap().directions());
}

#[test]
fn weights_count_rows_and_inputs_are_standardised() {
    let x = points::<f64>(100, 3, 1.0);
    let mut weighted = PcaStatistics::new(map(20)).unwrap();
    weighted.update_weighted(&x, &Array1::from_shape_fn(100, |i| if i < 60 { 2.0 } else { 0.0 })).unwrap();
    let (a, b) = (weighted.components(2).unwrap(), fitted(map(20), &x.slice(s![..60, ..]).to_owned(), 2));
    assert!(distance(&a.transform(&x).unwrap(), &b.transform(&x).unwrap()) < 1e-9);
    let inputs = Standardisation::of(&x).unwrap();
    let mut inside = PcaStatistics::new(map(20)).unwrap().with_standardisation(inputs.clone()).unwrap();
    inside.update(&x).unwrap();
    let inside = inside.components(2).unwrap();
    let outside = fitted(map(20), &inputs.apply(&x).unwrap(), 2);
    let moved = outside.transform(&inputs.apply(&x).unwrap()).unwrap();
    assert!(distance(&inside.transform(&x).unwrap(), &moved) < 1e-12);
    assert_eq!((inside.standardisation(), outside.standardisation()), (Some(&inputs), None));
}

/// The sums of a regression, with an intercept or without, have the same components.
#[test]
fn regressions_hold_the_same_sums() {
    let (x, y) = (points::<f64>(100, 3, 1.0), points::<f64>(100, 2, 1.0));
    let expected = fitted(map(20), &x, 3);
    for intercept in [true, false] {
        let ridge = RidgeStatistics::new(map(20), 2).unwrap();
        let mut ridge = if intercept { ridge } else { ridge.without_intercept() };
        ridge.update(&x, &y).unwrap();
        let pca = ridge.pca(3).unwrap();
        assert_eq!(pca.directions(), expected.directions());
        assert_eq!(pca.explained_variance(), expected.explained_variance());
    }
}

#[test]
fn nothing_is_projected_without_data() {
    let empty = PcaStatistics::new(map::<f64>(20)).unwrap();
    assert!(matches!(empty.components(2), Err(Error::NoData { .. })));
    let x = points::<f64>(50, 3, 1.0);
    let mut some = empty.clone();
    some.update(&x).unwrap();
    for k in [0, 41] {
        assert!(matches!(some.components(k), Err(Error::Parameter { .. })));
    }
    assert_eq!(some.components(40).unwrap().explained_variance().len(), 40);
    assert!(matches!(some.update(x.slice(s![.., ..2])), Err(Error::Shape { .. })));
    let mut holed = x.clone();
    holed[[3, 1]] = f64::NAN;
    assert!(matches!(some.update(&holed), Err(Error::NotFinite { row: 3, .. })));
    let z = some.components(2).unwrap().transform(&holed).unwrap();
    assert!(z.row(3).iter().all(|v| v.is_nan()) && z.row(4).iter().all(|v| v.is_finite()));
    // Asymmetric features have no kernel of their own.
    let omega = Orthogonal.draw(3, 8, 1).unwrap();
    let a = Transform::full(Array2::from_diag_elem(3, Complex64::new(1.2, 0.0))).unwrap();
    let asymmetric: Map<f64> = ComplexExponential::new(a, Symmetry::Plain).softmax(omega).unwrap();
    assert!(matches!(PcaStatistics::new(asymmetric), Err(Error::Unsupported { .. })));
    // One point, whose variance is 0.
    let mut one = PcaStatistics::new(map::<f64>(20)).unwrap();
    one.update(x.slice(s![..1, ..])).unwrap();
    let pca = one.components(2).unwrap();
    assert!(pca.explained_variance().iter().all(|v| *v < 1e-14));
    assert!(pca.explained_variance_ratio().iter().all(|v| v.is_finite()));
    // Equal points, whose features differ by rounding alone.
    let mut equal = PcaStatistics::new(map::<f32>(20)).unwrap();
    equal.update(&Array2::from_elem((1000, 3), 0.3f32)).unwrap();
    assert!(equal.components(3).unwrap().explained_variance_ratio().iter().sum::<f64>() <= 1.0);
}

/// With fewer points than features, from the points' products, and with many features, by Lanczos: the components are those of the
/// whole decomposition.
#[test]
fn few_points_and_few_components() {
    let x = points::<f64>(60, 3, 1.5);
    let wide = map::<f64>(150);
    let rows = KernelPca::fit(wide.clone(), &x, 5).unwrap();
    let sums = fitted(wide.clone(), &x, 61);
    assert!(
        distance(&rows.directions().t().to_owned(), &sums.directions().slice(s![..5, ..]).t().to_owned())
            < 1e-8
    );
    let plenty = points::<f64>(900, 3, 1.5);
    let (few, all) = (fitted(wide.clone(), &plenty, 5), fitted(wide.clone(), &plenty, 61));
    for (a, b) in [(&rows, &sums), (&few, &all)] {
        for (a, b) in a.explained_variance().iter().zip(b.explained_variance()) {
            assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
        let ratios = [a, b].map(|pca| pca.explained_variance_ratio()[0]);
        assert!((ratios[0] / ratios[1] - 1.0).abs() < 1e-9);
    }
    let first = |pca: &KernelPca<f64>| pca.directions().slice(s![..5, ..]).t().to_owned();
    assert!(distance(&first(&few), &first(&all)) < 1e-5);
    // The sign: the entry of largest magnitude is positive.
    for direction in few.directions().rows().into_iter().chain(rows.directions().rows()) {
        let (least, most) = direction.iter().fold((0.0f64, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        assert!(most >= -least * (1.0 - 1e-5), "{least} {most}");
    }
    // More components than points have directions: sums give them.
    assert_eq!(KernelPca::fit(wide.clone(), &x, 70).unwrap().explained_variance()[69], 0.0);
    for k in [0, 301] {
        assert!(matches!(KernelPca::fit(wide.clone(), &x, k), Err(Error::Parameter { .. })));
    }
    let mut holed = x.clone();
    holed[[3, 1]] = f64::NAN;
    assert!(matches!(KernelPca::fit(wide.clone(), &holed, 2), Err(Error::NotFinite { row: 3, .. })));
    assert!(matches!(KernelPca::fit(wide.clone(), x.slice(s![..0, ..]), 2), Err(Error::NoData { .. })));
    assert!(KernelPca::fit(wide, x.slice(s![..1, ..]), 2).unwrap().explained_variance()[0] < 1e-14);
}

/// Directions of few points are orthonormal, however small their variance is.
#[test]
fn directions_of_few_points_are_orthonormal() {
    let x = Array2::from_shape_fn((11, 1), |(i, _)| (i as f64 * 0.37).sin());
    let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(1, 32, 1).unwrap(), 1.0).unwrap();
    let pca = KernelPca::fit(map, &x, 7).unwrap();
    let v = pca.directions();
    assert!(distance(&v.dot(&v.t()), &Array2::eye(7)) < 1e-13, "{:?}", pca.explained_variance());
}

/// Whitened components have the identity as covariance. The way back from all components is the features themselves, and from few
/// of them the nearest features in their span.
#[test]
fn whitening_and_the_way_back() {
    fn check<T: Real>(tolerance: f64) {
        let (x, map) = (points::<T>(80, 3, 1.5), map::<T>(20));
        let pca = fitted(map.clone(), &x, 6);
        let white = pca.transform_whitened(&x).unwrap().mapv(|z| z.widen());
        let covariance = white.t().dot(&white) / 80.0 - Array2::<f64>::eye(6);
        assert!(covariance.iter().all(|v| v.abs() < tolerance), "{covariance}");
        let features = map.features(Side::X, &x).unwrap();
        let mantissas = features.mantissas().mapv(|v| v.widen());
        let plain = &mantissas * &features.log_scales().mapv(f64::exp);
        let all = fitted(map, &x, 40);
        let back = all.inverse_transform(&all.transform(&x).unwrap()).unwrap().mapv(|v| v.widen());
        assert!((&back - &plain).iter().all(|v| v.abs() < tolerance));
        // What is left of the features is orthogonal to the directions.
        let near = pca.inverse_transform(&pca.transform(&x).unwrap()).unwrap().mapv(|v| v.widen());
        let left = (&plain - &near).dot(&pca.directions().t());
        assert!(left.iter().all(|v| v.abs() < tolerance));
        assert!(matches!(pca.inverse_transform(&Array2::zeros((2, 5))), Err(Error::Shape { .. })));
        assert!(matches!(pca.inverse_transform_whitened(&Array2::zeros((2, 5))), Err(Error::Shape { .. })));
        // Whitened components have a way back of their own.
        let whitened = pca.transform_whitened(&x).unwrap();
        let again = pca.inverse_transform_whitened(&whitened).unwrap().mapv(|v| v.widen());
        assert!((&again - &near).iter().all(|v| v.abs() < tolerance));
    }
    check::<f64>(1e-9);
    check::<f32>(2e-4);
    // Directions without variance are not blown up.
    let equal = Array2::from_elem((50, 3), 0.3);
    let white = fitted(map::<f64>(20), &equal, 3).transform_whitened(&equal).unwrap();
    assert!(white.iter().all(|v| *v == 0.0), "{white}");
}

/// Points that are removed by a list of numbers were never there.
#[test]
fn points_are_removed_by_a_list() {
    let x = points::<f64>(300, 3, 1.0);
    let mut all = PcaStatistics::new(map(20)).unwrap();
    all.update(&x).unwrap();
    let numbers: Vec<u64> = (0..300).filter(|i| i % 3 == 1).rev().collect();
    let places: Vec<usize> = numbers.iter().map(|i| *i as usize).collect();
    all.downdate_rows(&numbers, &x.select(Axis(0), &places), None).unwrap();
    let kept: Vec<usize> = (0..300).filter(|i| i % 3 != 1).collect();
    let (a, b) = (all.components(3).unwrap(), fitted(map(20), &x.select(Axis(0), &kept), 3));
    assert!(distance(&a.directions().t().to_owned(), &b.directions().t().to_owned()) < 1e-9);
    assert_eq!((all.rows(), all.row_ranges().len()), (200, 101));
}
