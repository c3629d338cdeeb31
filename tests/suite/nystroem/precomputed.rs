//! Kernels that are given by their values: the same factor and landmarks as from points, and refusals.

use super::{gaussian, kernels};
use crate::common::points;
use crate::nystroem::choices::{clouds, rows};
use ndarray::{Array2, Axis, s};
use random_features::Error;
use random_features::map::Nystroem;

#[test]
fn factors_are_those_of_points() {
    let (z, x) = (points::<f64>(9, 3, 1.2), points::<f64>(20, 3, 1.0));
    for kernel in kernels() {
        let exact = kernel.kernel::<f64>().unwrap();
        let near = exact.gram(&x, &z).unwrap();
        let factor = Nystroem::factor_of_gram(&exact.gram(&z, &z).unwrap()).unwrap();
        let features = near.dot(&factor.t());
        let map = Nystroem::new(kernel.clone(), &z).unwrap().map::<f64>().unwrap();
        let expected = map.gram(&x, &x).unwrap();
        let found = features.dot(&features.t());
        let size = expected.iter().fold(1.0, |top: f64, v| top.max(v.abs()));
        assert!((found - expected).iter().all(|v| v.abs() < 1e-8 * size), "{kernel}");
    }
}

#[test]
fn pivots_are_those_of_points() {
    let x = clouds(200);
    let gram = random_features::kernel::Kernel::gram(&gaussian(1.0), &x, &x).unwrap();
    for seed in 0..5 {
        let pivots = Nystroem::pivots_of_gram(&gram, 12, seed).unwrap();
        assert_eq!(pivots, rows(&Nystroem::pivoted(gaussian(1.0), &x, 12, seed).unwrap(), &x));
    }
    // Copies add nothing: of rank 2, two pivots at most.
    let two = Array2::from_shape_fn((6, 6), |(i, j)| f64::from(u8::from(i % 2 == j % 2)));
    assert_eq!(Nystroem::pivots_of_gram(&two, 6, 1).unwrap().len(), 2);
    assert_eq!(Nystroem::factor_of_gram(&two).unwrap().dim(), (2, 6));
}

/// Ranks are those of the scalar: values of `f32` have rounding errors of their own.
#[test]
fn single_precision_has_its_own_rank() {
    let x = points::<f64>(30, 2, 0.5);
    let gram = random_features::kernel::Kernel::gram(&gaussian(2.0), &x, &x).unwrap();
    let narrow = gram.mapv(|v| v as f32);
    let [wide, single] =
        [Nystroem::factor_of_gram(&gram), Nystroem::factor_of_gram(&narrow)].map(Result::unwrap);
    assert!(single.nrows() < wide.nrows());
    let features = gram.dot(&single.t());
    assert!((features.dot(&features.t()) - &gram).iter().all(|v| v.abs() < 1e-3));
}

#[test]
fn what_is_no_kernel_is_refused() {
    let gram = random_features::kernel::Kernel::gram(
        &gaussian(1.0),
        &points::<f64>(5, 2, 1.0),
        &points::<f64>(5, 2, 1.0),
    )
    .unwrap();
    let changed = |i: usize, j: usize, value: f64| {
        let mut gram = gram.clone();
        gram[[i, j]] = value;
        let both =
            [Nystroem::factor_of_gram(&gram).map(drop), Nystroem::pivots_of_gram(&gram, 2, 1).map(drop)];
        both.map(Result::unwrap_err)
    };
    for error in [changed(3, 1, f64::NAN), changed(0, 0, f64::INFINITY)].concat() {
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    }
    for error in [changed(3, 1, 0.9), changed(2, 2, -1.0)].concat() {
        assert!(matches!(error, Error::Entry { .. }), "{error}");
    }
    // No kernel has a value above √(K(x, x)K(y, y)), even where that is 0.
    for [own, other] in [[0.0, 1.0], [1e308, 1e308]] {
        let wrong = ndarray::arr2(&[[own, 1e308], [-1e308, other]]);
        assert!(matches!(Nystroem::factor_of_gram(&wrong), Err(Error::Entry { .. })));
    }
    let wrong = ndarray::arr2(&[[0.0, 1.0], [1.0, 1.0]]);
    assert!(matches!(Nystroem::pivots_of_gram(&wrong, 1, 1), Err(Error::Entry { .. })));
    let mut indefinite = Array2::<f64>::eye(3);
    for (i, j) in [(0, 1), (1, 2)] {
        indefinite[[i, j]] = 0.9;
        indefinite[[j, i]] = 0.9;
    }
    assert!(matches!(Nystroem::factor_of_gram(&indefinite), Err(Error::Parameter { .. })));
    let wide = gram.slice(s![..3, ..]);
    assert!(matches!(Nystroem::factor_of_gram(&wide), Err(Error::Shape { .. })));
    assert!(matches!(Nystroem::pivots_of_gram(&gram, 6, 1), Err(Error::Parameter { .. })));
    assert!(matches!(Nystroem::pivots_of_gram(&gram, 0, 1), Err(Error::Parameter { .. })));
    let none = Array2::<f64>::zeros((0, 0));
    assert!(matches!(Nystroem::pivots_of_gram(&none, 1, 1), Err(Error::NoData { .. })));
    assert!(matches!(Nystroem::factor_of_gram(&none), Err(Error::Parameter { .. })));
    let zeros = Array2::<f32>::zeros((4, 4));
    assert!(matches!(Nystroem::factor_of_gram(&zeros), Err(Error::Unsupported { .. })));
    assert!(Nystroem::pivots_of_gram(&zeros, 3, 1).unwrap().is_empty());
    // Sizes near the ends of the range.
    for scale in [1e-200, 1e200] {
        let factor = Nystroem::factor_of_gram(&(&gram * scale)).unwrap();
        let features = (&gram * scale).dot(&factor.t());
        assert!((features.dot(&features.t()) / scale - &gram).iter().all(|v| v.abs() < 1e-9));
        assert_eq!(gram.len_of(Axis(0)), factor.ncols());
    }
}
