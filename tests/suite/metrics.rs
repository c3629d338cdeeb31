//! Distances of matrices and of distributions: hand values, closed forms, and what is refused.

use ndarray::{Array1, Array2, ArrayView1, ShapeBuilder, arr1, arr2, concatenate, s};
use random_features::apply::metrics::{
    SPECTRAL_TOLERANCE, frobenius_error, kolmogorov_smirnov, largest_relative_error, negative_fraction,
    spectral_error, total_variation, wasserstein,
};
use random_features::{Error, Real};

/// Numbers in (−½, ½), the same ones for the same seed.
fn numbers<T: Real>(rows: usize, columns: usize, seed: u64) -> Array2<T> {
    use random_features::rand::RngExt;
    let mut rng = random_features::rng(seed);
    Array2::from_shape_simple_fn((rows, columns), || T::narrow(rng.random::<f64>() - 0.5))
}

/// The m × n matrix with these singular values: reflections of a diagonal one, which are orthogonal.
fn with_singular_values((m, n): (usize, usize), values: impl Fn(usize) -> f64) -> Array2<f64> {
    let mut a = Array2::from_shape_fn((m, n), |(i, j)| if i == j { values(i) } else { 0.0 });
    let reflected = |a: Array2<f64>, v: ArrayView1<'_, f64>| {
        let along = v.dot(&a).insert_axis(ndarray::Axis(0)) * (2.0 / v.dot(&v));
        a - v.insert_axis(ndarray::Axis(1)).dot(&along)
    };
    a = reflected(a, numbers(1, m, 1).row(0));
    reflected(a.reversed_axes(), numbers(1, n, 2).row(0)).reversed_axes()
}

/// ‖A‖₂, as the error of I₁ ⊕ 0 + A.
fn norm(a: &Array2<f64>) -> f64 {
    let mut unit = Array2::zeros(a.dim());
    unit[[0, 0]] = 1.0;
    spectral_error(&(a + &unit), &unit).unwrap()
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} instead of {expected}");
}

fn hand_values<T: Real>() {
    let t = |v: f64| T::narrow(v);
    let exact = arr2(&[[t(3.0), t(0.0)], [t(0.0), t(4.0)], [t(0.0), t(0.0)]]);
    let estimate = arr2(&[[t(3.0), t(1.0)], [t(-2.0), t(4.0)], [t(0.0), t(2.0)]]);
    assert_eq!(frobenius_error(&estimate, &exact).unwrap(), 0.6);
    // (K̂ − K)ᵀ(K̂ − K) = diag(4, 5).
    close(spectral_error(&estimate, &exact).unwrap(), 5f64.sqrt() / 4.0, 1e-15);
    assert_eq!(negative_fraction(&estimate).unwrap(), 1.0 / 6.0);
    assert_eq!(largest_relative_error(&estimate, &exact).unwrap(), f64::INFINITY);
    let positive = arr2(&[[t(3.0), t(-8.0)], [t(0.5), t(4.0)]]);
    assert_eq!(largest_relative_error(&(&positive * t(1.5)), &positive).unwrap(), 0.5);
    for error in [frobenius_error(&exact, &exact), spectral_error(&exact, &exact)] {
        assert_eq!(error, Ok(0.0));
    }
    let (p, q) = (arr1(&[t(1.0), t(2.0), t(5.0)]), arr1(&[t(-7.0), t(3.0), t(1.0)]));
    // p = (1, 2, 5)/8, q = (0, 6, 2)/8: sums (1, 3)/8 and (0, 6)/8.
    assert_eq!(wasserstein(&p, &q).unwrap(), 0.5);
    assert_eq!(kolmogorov_smirnov(&p, &q).unwrap(), 0.375);
    assert_eq!(total_variation(&p, &q).unwrap(), 0.5);
    assert_eq!(negative_fraction(&q).unwrap(), 1.0 / 3.0);
    assert_eq!(negative_fraction(&arr1(&[t(-0.0), t(0.0)])).unwrap(), 0.0);
}

#[test]
fn values_by_hand() {
    hand_values::<f32>();
    hand_values::<f64>();
}

#[test]
fn norms_of_known_matrices() {
    for shape in
        [(1, 1), (7, 3), (3, 7), (120, 90), (1001, 1), (1, 1001), (1100, 40), (30, 1100), (1001, 300)]
    {
        let rank_one = with_singular_values(shape, |i| f64::from(u8::from(i == 0)) * 3.0);
        close(norm(&rank_one), 3.0, 1e-12);
        close(norm(&with_singular_values(shape, |i| 2.0 / (i + 1) as f64)), 2.0, 1e-10);
        // All are the largest.
        close(norm(&with_singular_values(shape, |_| 5.0)), 5.0, 1e-12);
        // Nothing stands out: singular values are dense at the largest.
        close(norm(&with_singular_values(shape, |i| 1.0 - 1e-3 * i as f64)), 1.0, SPECTRAL_TOLERANCE);
        // A pair that is closer than the tolerance.
        close(norm(&with_singular_values(shape, |i| [1.0, 1.0 - 1e-9, 0.5][i.min(2)])), 1.0, 1e-8);
    }
}

/// 2 on the diagonal, 1 beside it: the largest eigenvalue is 2 + 2 cos(π/(n + 1)), and the next is near. Rows of zeros below make a
/// matrix of more than 1000 rows, which is iterated on.
#[test]
fn norms_of_a_second_difference() {
    for (rows, n) in [(2, 2), (50, 50), (300, 300), (1001, 300)] {
        let of = |i: usize, j: usize| if i < n { [2.0, 1.0, 0.0][i.abs_diff(j).min(2)] } else { 0.0 };
        let a = Array2::from_shape_fn((rows, n), |(i, j)| of(i, j));
        let expected = 2.0 + 2.0 * (std::f64::consts::PI / (n + 1) as f64).cos();
        close(norm(&a), expected, if rows <= 1000 { 1e-13 } else { SPECTRAL_TOLERANCE });
    }
}

/// One entry stands out of a unit matrix, most of them with next to no part in any start: its vector is nearly singular for 1,
/// which is not the largest singular value.
#[test]
fn one_that_stands_out_is_found() {
    for at in [0, 17, 491, 1000] {
        let mut a = Array2::eye(1001);
        a[[at, at]] += 1e-3;
        close(norm(&a), 1.001, 1e-9);
    }
}

/// A matrix with rows of zeros below is iterated on, where that without is decomposed, if a backend is enabled.
#[test]
fn iterations_agree_with_the_decomposition() {
    for (m, n) in [(1, 1), (2, 5), (40, 40), (300, 150)] {
        let [exact, noise] = [3, 4].map(|seed| numbers::<f64>(m, n, seed));
        let estimate = &exact + &(noise * 1e-3);
        let padded = |a: &Array2<f64>| concatenate![ndarray::Axis(0), *a, Array2::zeros((1001 - m, n))];
        let decomposed = spectral_error(&estimate, &exact).unwrap();
        close(spectral_error(&padded(&estimate), &padded(&exact)).unwrap(), decomposed, 1e-9);
        let frobenius = frobenius_error(&estimate, &exact).unwrap();
        close(frobenius_error(&padded(&estimate), &padded(&exact)).unwrap(), frobenius, 1e-14);
    }
}

#[test]
fn units_do_not_matter() {
    for n in [30, 1001] {
        let [exact, noise] = [5, 6].map(|seed| numbers::<f64>(n, 30, seed));
        let estimate = &exact + &noise;
        let all = |a: &Array2<f64>, b: &Array2<f64>| {
            [frobenius_error, spectral_error, largest_relative_error].map(|error| error(a, b).unwrap())
        };
        let expected = all(&estimate, &exact);
        // Beyond these entries overflow, or are rounded.
        for unit in [2f64.powi(1022), 2f64.powi(-960)] {
            assert_eq!(all(&(&estimate * unit), &(&exact * unit)), expected);
        }
        // Differences beyond the range, and ones whose squares are below it.
        let opposite = &exact * 2.0 * (-2f64.powi(1024 - 1) * 1.9);
        assert!(opposite.iter().any(|entry| (entry + entry).is_infinite()));
        assert_eq!(all(&opposite, &-&opposite), [2.0; 3]);
        let mut moved = exact.clone();
        moved[[3, 4]] = 0.0;
        let mut base = moved.clone();
        base[[3, 4]] = 1e-200;
        let expected = 1e-200 / exact.slice(s![.., ..]).iter().map(|v| v * v).sum::<f64>().sqrt();
        close(frobenius_error(&moved, &base).unwrap(), expected, 0.01);
        assert!(spectral_error(&moved, &base).unwrap() > expected);
    }
}

#[test]
fn layouts_and_threads_give_the_same_bits() {
    let [exact, noise] = [7, 8].map(|seed| numbers::<f32>(1200, 300, seed));
    let estimate = &exact + &(noise * 0.1);
    let mut columns = Array2::zeros(exact.dim().f());
    columns.assign(&estimate);
    let wide = concatenate![ndarray::Axis(1), estimate, exact];
    let errors = |a: ndarray::ArrayView2<'_, f32>| {
        [frobenius_error, spectral_error].map(|error| error(&a, &exact).unwrap())
    };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| errors(estimate.view()))
    };
    let expected = on(1);
    assert_eq!(on(2), expected);
    assert_eq!(errors(columns.view()), expected);
    assert_eq!(errors(wide.slice(s![.., ..300])), expected);
    let reversed = estimate.slice(s![..;-1, ..]).to_owned();
    assert_eq!(errors(reversed.slice(s![..;-1, ..])), expected);
    let (p, q) = (exact.row(0).mapv(f32::abs), estimate.column(1).slice(s![..300]).to_owned());
    for distance in [wasserstein, kolmogorov_smirnov, total_variation] {
        let contiguous = distance(&p, &q).unwrap();
        assert_eq!(distance(&p, &estimate.slice(s![..300, 1])).unwrap(), contiguous);
    }
}

#[test]
fn distances_in_closed_form() {
    let all = |p: &Array1<f64>, q: &Array1<f64>| {
        [wasserstein, kolmogorov_smirnov, total_variation].map(|distance| distance(p, q).unwrap())
    };
    // One class alone.
    let point = |n: usize, at: usize| Array1::from_shape_fn(n, |i| f64::from(u8::from(i == at)));
    for (n, i, j) in [(2, 0, 1), (7, 5, 1), (100_000, 7, 99_999)] {
        assert_eq!(all(&point(n, i), &point(n, j)), [i.abs_diff(j) as f64, 1.0, 1.0]);
        assert_eq!(all(&point(n, j), &point(n, j)), [0.0; 3]);
    }
    assert_eq!(all(&arr1(&[0.3]), &arr1(&[2.5])), [0.0; 3]);
    // Equal weights, and weights that grow with the class: Pᵢ − Qᵢ = i(N − i)/(N(N + 1)).
    for n in [2, 10, 1000, 100_000] {
        let (equal, ramp) = (Array1::from_elem(n, 0.2), Array1::from_shape_fn(n, |i| (i + 1) as f64));
        let n = n as f64;
        let expected = [(n - 1.0) / 6.0, n / (4.0 * (n + 1.0)), n / (4.0 * (n + 1.0))];
        for (found, expected) in all(&equal, &ramp).into_iter().zip(expected) {
            close(found, expected, 1e-10);
        }
        assert_eq!(all(&ramp, &equal), all(&equal, &ramp));
    }
    // All of the mass moves: 1, and no more by rounding.
    for n in 2..300 {
        let weights = numbers::<f64>(1, n, n as u64).row(0).mapv(|v| v + 0.6);
        let side =
            |low: bool| Array1::from_shape_fn(n, |i| if (i < n / 2) == low { weights[i] } else { 0.0 });
        let [moved, highest, variation] = all(&side(true), &side(false));
        assert!((1.0 - 1e-13..=1.0).contains(&highest) && (1.0 - 1e-13..=1.0).contains(&variation), "{n}");
        assert!(moved <= (n - 1) as f64);
    }
    // Units, whose sums may overflow.
    let (p, q) = (arr1(&[1.0, 2.0, 0.5]), arr1(&[0.25, -3.0, 1.0]));
    for unit in [2f64.powi(1022), 2f64.powi(-1000)] {
        assert_eq!(all(&(&p * unit), &(&q * unit)), all(&p, &q));
    }
}

#[test]
fn refusals() {
    let (a, b) = (numbers::<f64>(3, 4, 1), numbers::<f64>(3, 5, 2));
    let (zero, none) = (Array2::<f64>::zeros((3, 4)), Array2::<f64>::zeros((0, 4)));
    let mut bad = a.clone();
    bad[[2, 1]] = f64::NAN;
    let mut infinite = a.clone();
    infinite[[1, 3]] = f64::INFINITY;
    for error in [frobenius_error, spectral_error, largest_relative_error] {
        assert!(matches!(error(&a, &b), Err(Error::Shape { expected: 5, found: 4, .. })));
        assert!(matches!(error(&a, &none), Err(Error::Shape { expected: 0, found: 3, .. })));
        assert!(matches!(error(&none, &none), Err(Error::Parameter { .. })));
        assert_eq!(error(&bad, &a), Err(Error::NotFinite { what: "the estimate", row: 2, column: None }));
        assert_eq!(
            error(&a, &infinite),
            Err(Error::NotFinite { what: "the exact values", row: 1, column: None })
        );
    }
    for error in [frobenius_error, spectral_error] {
        let sentence = error(&a, &zero).unwrap_err().to_string();
        assert_eq!(sentence, "the norm of the exact matrix is 0, but must be above 0");
    }
    assert_eq!(largest_relative_error(&zero, &zero), Ok(0.0));
    assert!(matches!(negative_fraction(&none), Err(Error::Parameter { .. })));
    assert!(matches!(negative_fraction(&bad), Err(Error::NotFinite { row: 2, .. })));
    let (p, q) = (arr1(&[1.0, 2.0]), arr1(&[0.5, 1.0]));
    for distance in [wasserstein, kolmogorov_smirnov, total_variation] {
        let sentence = distance(&p, &arr1(&[1.0])).unwrap_err().to_string();
        assert_eq!(sentence, "the number of weights of p is 2, but must be 1");
        let none = Array1::<f64>::zeros(0);
        assert!(matches!(distance(&none, &none), Err(Error::Parameter { .. })));
        let bad = arr1(&[1.0, f64::NEG_INFINITY]);
        assert_eq!(distance(&bad, &q), Err(Error::NotFinite { what: "p", row: 1, column: None }));
        let clipped = arr1(&[-1.0, -0.5]);
        let sentence = distance(&p, &clipped).unwrap_err().to_string();
        assert_eq!(sentence, "the largest weight of q is -0.5, but must be above 0");
    }
}
