//! Points on circles have the periodic kernel.

use ndarray::{Array2, Axis, arr2, concatenate, s};
use random_features::Error;
use random_features::data::periodic;
use random_features::kernel::{Gaussian, Kernel};
use std::f64::consts::PI;

/// The formula of the kernel, at numbers near 0 and thousands of periods away.
#[test]
fn the_gaussian_kernel_is_the_periodic_one() {
    let t: Vec<f64> =
        (0..12).map(|i| 0.7 * i as f64 + if i % 3 == 0 { 365.0 * 24.0 } else { -1.3 }).collect();
    let x = Array2::from_shape_fn((12, 3), |(i, k)| if k == 1 { t[i] } else { 0.1 * (i * (k + 1)) as f64 });
    for (period, ell) in [(24.0, 0.7), (1.0, 3.0), (1e3, 0.3)] {
        let points = periodic(&x, &[(1, period)]).unwrap();
        assert_eq!(points.dim(), (12, 4));
        assert_eq!(points.select(Axis(1), &[0, 3]), x.select(Axis(1), &[0, 2]));
        let circle = points.slice(s![.., 1..3]).to_owned();
        let gram = Gaussian::new(ell).unwrap().gram(&circle, &circle).unwrap();
        for ((i, j), found) in gram.indexed_iter() {
            let wave = (PI * (t[i] - t[j]) / period).sin() / ell;
            let exact = (-2.0 * wave * wave).exp();
            assert!((found - exact).abs() < 1e-10, "{i} {j}, period {period}: {found}, {exact}");
        }
        // With the column itself the kernel is locally periodic.
        let local = concatenate![Axis(1), circle, x.slice(s![.., 1..2])];
        let both = Gaussian::new(vec![ell, ell, 50.0]).unwrap().gram(&local, &local).unwrap();
        let slow = Gaussian::new(50.0).unwrap();
        let slow = slow.gram(&x.slice(s![.., 1..2]).to_owned(), &x.slice(s![.., 1..2]).to_owned()).unwrap();
        assert!((both - gram * slow).iter().all(|v: &f64| v.abs() < 1e-14));
    }
}

/// A whole number of periods changes nothing, up to the rounding of its sum with t.
#[test]
fn whole_periods_make_no_difference() {
    let x = arr2(&[[0.25f64, -0.75], [1.25, 7.25]]);
    let points = periodic(&x, &[(1, 1.0), (0, 1.0)]).unwrap();
    assert!(points.axis_iter(Axis(0)).all(|row| row == points.row(0)), "{points}");
    let far = periodic(&arr2(&[[2f64.powi(70)], [0.0]]), &[(0, 2f64.powi(-3))]).unwrap();
    assert_eq!(far.row(0), far.row(1));
    let single = periodic(&arr2(&[[0.25f32]]), &[(0, 1.0)]).unwrap();
    assert!(single[[0, 1]] == 1.0 && single[[0, 0]].abs() < 1e-7);
}

#[test]
fn no_period_and_no_row_are_fine() {
    let x = arr2(&[[1.0f64, 2.0]]);
    assert_eq!(periodic(&x, &[]), Ok(x.clone()));
    assert_eq!(periodic(&Array2::<f32>::zeros((0, 2)), &[(1, 2.0)]).unwrap().dim(), (0, 3));
    let nan = arr2(&[[f64::NAN, 2.0]]);
    assert!(periodic(&nan, &[(1, 4.0)]).unwrap()[[0, 0]].is_nan());
}

#[test]
fn mistakes_are_refused() {
    let x = arr2(&[[1.0f64, 2.0], [f64::INFINITY, 3.0]]);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(periodic(&x, &[(1, bad)]), Err(Error::Parameter { .. })), "{bad}");
    }
    assert!(matches!(periodic(&x, &[(2, 1.0)]), Err(Error::Parameter { .. })));
    assert!(matches!(periodic(&x, &[(1, 1.0), (1, 2.0)]), Err(Error::Parameter { .. })));
    assert!(matches!(periodic(&x, &[(0, 1.0)]), Err(Error::NotFinite { row: 1, .. })));
}
