//! Factorisations against their definitions, for every backend. Tolerances are multiples of n · ε.
#![cfg(any(feature = "faer", feature = "ndarray-linalg"))]

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ShapeBuilder, array, s};
use random_features::Error;
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;

const SIZES: [usize; 9] = [1, 2, 3, 5, 17, 64, 65, 130, 200];
const SHAPES: [(usize, usize); 10] =
    [(1, 1), (1, 7), (7, 1), (2, 3), (5, 9), (9, 5), (64, 65), (40, 130), (130, 40), (300, 20)];

/// Runs checks for all backends.
macro_rules! everywhere {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            for &backend in Backend::ALL {
                checks::$name(backend);
            }
        }
    )*};
}

everywhere!(
    cholesky_reconstructs,
    large_matrices_are_factored_in_parts,
    solutions_have_small_residuals,
    eigenvectors_diagonalise,
    known_eigenvalues,
    singular_vectors_reconstruct,
    known_singular_values,
    units_do_not_matter,
    the_largest_numbers_are_factorised,
    signs_are_fixed,
    layouts_give_the_same_bits,
    only_the_lower_triangle_is_read,
    indefinite_matrices_name_their_row,
    ill_conditioned_matrices,
    bad_input_is_an_error,
    backends_agree,
);

/// n · ε · scale.
fn tolerance(n: usize, scale: f64) -> f64 {
    n as f64 * f64::EPSILON * scale
}

fn column(v: &ArrayRef1<f64>) -> Array2<f64> {
    v.to_owned().insert_axis(ndarray::Axis(1))
}

/// The largest entry in size.
fn size(a: &ArrayRef2<f64>) -> f64 {
    assert!(a.iter().all(|entry| entry.is_finite()), "{a}");
    a.iter().fold(0.0, |largest, entry| largest.max(entry.abs()))
}

#[track_caller]
fn close(a: &ArrayRef2<f64>, b: &ArrayRef2<f64>, tolerance: f64) {
    assert_eq!(a.dim(), b.dim());
    let error = size(&(a - b));
    assert!(error <= tolerance, "{error:e} > {tolerance:e} for {:?}", a.dim());
}

/// Numbers in (−1, 1), the same ones for the same seed.
fn matrix(m: usize, n: usize, seed: u32) -> Array2<f64> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    Array2::from_shape_simple_fn((m, n), || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state as i32) / 2f64.powi(31)
    })
}

/// Symmetric with eigenvalues in about (0.5, 2).
fn definite(n: usize) -> Array2<f64> {
    let g = matrix(n, n, n as u32);
    g.dot(&g.t()) / n as f64 + Array2::<f64>::eye(n) * 0.5
}

/// 2 on the diagonal, −1 beside it: λₖ = 2 − 2 cos(kπ/(n + 1)) for k = 1, …, n.
fn string(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, n), |(i, j)| match i.abs_diff(j) {
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    })
}

fn parameter<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Parameter { .. }))
}

fn shape<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Shape { .. }))
}

#[track_caller]
fn fails_at<T: std::fmt::Debug>(result: Result<T, Error>, expected: usize) {
    match result {
        Err(Error::Factorisation { row, .. }) => assert_eq!(row, Some(expected)),
        other => panic!("{other:?}"),
    }
}

mod checks {
    use super::*;

    pub fn cholesky_reconstructs(backend: Backend) {
        for n in SIZES {
            let a = definite(n);
            let factor = backend.cholesky(&a).unwrap();
            let l = factor.lower();
            assert_eq!(factor.dim(), n);
            assert!(l.indexed_iter().all(|((i, j), &entry)| i >= j || entry == 0.0));
            assert!(l.diag().iter().all(|&entry| entry > 0.0));
            close(&l.dot(&l.t()), &a, tolerance(n, 4.0));
            let eigen = backend.eigen(&a).unwrap();
            let expected: f64 = eigen.values.iter().map(|value| value.ln()).sum();
            assert!((factor.log_determinant() - expected).abs() < tolerance(n * n, 4.0));
        }
    }

    /// Above the diagonal, what is not read is NaN.
    pub fn large_matrices_are_factored_in_parts(backend: Backend) {
        for n in [257, 700, 1100] {
            let a = definite(n);
            let mut lower = a.clone();
            lower.indexed_iter_mut().filter(|((i, j), _)| j > i).for_each(|(_, entry)| *entry = f64::NAN);
            let factor = backend.cholesky(&lower).unwrap();
            let l = factor.lower();
            assert!(l.indexed_iter().all(|((i, j), &entry)| i >= j || entry == 0.0));
            close(&l.dot(&l.t()), &a, tolerance(n, 4.0));
            for row in [n / 3, n / 2, n - 1] {
                let mut indefinite = lower.clone();
                indefinite[[row, row]] = -0.25;
                fails_at(backend.cholesky(&indefinite), row);
                indefinite[[row, 0]] = f64::INFINITY;
                let error = backend.cholesky(&indefinite).unwrap_err();
                assert!(matches!(error, Error::NotFinite { row: found, .. } if found == row));
            }
        }
    }

    pub fn solutions_have_small_residuals(backend: Backend) {
        for n in SIZES {
            let a = definite(n);
            let factor = backend.cholesky(&a).unwrap();
            for k in [0, 1, 3, 70] {
                let b = matrix(n, k, 7);
                let u = factor.solve(&b).unwrap();
                let scale = size(&u) * size(&a) * 8.0;
                close(&a.dot(&u), &b, tolerance(n, scale));
                let mut fortran = Array2::zeros((n, k).f());
                fortran.assign(&b);
                factor.solve_inplace(&mut fortran).unwrap();
                close(&fortran, &u, tolerance(n, scale));
            }
            let b = matrix(n, 1, 8);
            let u = factor.solve_vector(&b.column(0)).unwrap();
            assert_eq!(u, factor.solve(&b).unwrap().column(0));
        }
    }

    pub fn eigenvectors_diagonalise(backend: Backend) {
        for n in SIZES {
            let g = matrix(n, n, n as u32);
            let rank_one = matrix(n, 1, 3);
            let clustered = Array2::from_diag(&Array1::from_shape_fn(n, |i| (i % 2) as f64));
            for a in [
                &g + &g.t(),
                rank_one.dot(&rank_one.t()),
                Array2::eye(n),
                Array2::zeros((n, n)),
                Array2::ones((n, n)),
                clustered,
                string(n),
            ] {
                let eigen = backend.eigen(&a).unwrap();
                let v = &eigen.vectors;
                let norm = a.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
                let scaled = v * &eigen.values;
                close(&a.dot(v), &scaled, tolerance(n, 4.0 * norm));
                close(&v.t().dot(v), &Array2::eye(n), tolerance(n, 8.0));
                assert!(eigen.values.windows(2).into_iter().all(|pair| pair[0] <= pair[1]));
            }
        }
    }

    pub fn known_eigenvalues(backend: Backend) {
        for n in SIZES {
            let values = backend.eigen(&string(n)).unwrap().values;
            for (k, value) in values.iter().enumerate() {
                let angle = (k + 1) as f64 * std::f64::consts::PI / (n + 1) as f64;
                assert!((value - (2.0 - 2.0 * angle.cos())).abs() < tolerance(n, 8.0));
            }
        }
        let one = backend.eigen(&array![[-3.0]]).unwrap();
        assert_eq!((one.values[0], one.vectors[[0, 0]]), (-3.0, 1.0));
    }

    pub fn singular_vectors_reconstruct(backend: Backend) {
        for (m, n) in SHAPES {
            let full = matrix(m, n, 4);
            let low = matrix(m, 1, 1).dot(&matrix(1, n, 2));
            for a in [full, low, Array2::zeros((m, n)), Array2::ones((m, n))] {
                let svd = backend.svd(&a).unwrap();
                let (u, v) = (&svd.left, &svd.right);
                let values = &svd.values;
                let norm = values.dot(values).sqrt();
                close(&(u * values).dot(&v.t()), &a, tolerance(m.max(n), 4.0 * norm));
                close(&u.t().dot(u), &Array2::eye(m.min(n)), tolerance(m.max(n), 8.0));
                close(&v.t().dot(v), &Array2::eye(m.min(n)), tolerance(m.max(n), 8.0));
                assert!(values.iter().all(|&value| value >= 0.0));
                assert!(values.windows(2).into_iter().all(|pair| pair[0] >= pair[1]));
                let alone = column(&backend.singular_values(&a).unwrap());
                close(&alone, &column(&svd.values), tolerance(m.max(n), 4.0 * norm));
            }
        }
    }

    /// A string with its ends held has stretches as a bidiagonal matrix B with BBᵀ = the matrix of `string`.
    pub fn known_singular_values(backend: Backend) {
        for n in SIZES {
            let b = Array2::from_shape_fn((n, n + 1), |(i, j)| {
                f64::from(i8::from(i == j) - i8::from(i + 1 == j))
            });
            let values = backend.singular_values(&b).unwrap();
            for (k, value) in values.iter().rev().enumerate() {
                let angle = (k + 1) as f64 * std::f64::consts::FRAC_PI_2 / (n + 1) as f64;
                assert!((value - 2.0 * angle.sin()).abs() < tolerance(n, 8.0));
            }
        }
    }

    pub fn the_largest_numbers_are_factorised(backend: Backend) {
        let max = f64::MAX;
        let eigen = backend.eigen(&array![[max]]).unwrap();
        assert_eq!((eigen.values[0], eigen.vectors[[0, 0]]), (max, 1.0));
        let a = array![[max, 0.0], [0.0, 1.0]];
        for values in [backend.singular_values(&a).unwrap(), backend.svd(&a).unwrap().values] {
            // What is small beside the largest is only as accurate as that.
            assert!(values[0] == max && values[1] >= 0.0 && values[1] <= 1.0, "{values}");
        }
    }

    /// Entries whose squares overflow or vanish.
    pub fn units_do_not_matter(backend: Backend) {
        for n in [2, 20, 70] {
            let a = string(n);
            let plain = (backend.eigen(&a).unwrap(), backend.svd(&a).unwrap());
            let limit = f64::MAX.log2().floor();
            for unit in [(limit - 8.0).exp2(), (20.0 - limit).exp2()] {
                let a = &a * unit;
                let eigen = backend.eigen(&a).unwrap();
                assert_eq!(
                    (&eigen.values / unit, eigen.vectors),
                    (plain.0.values.clone(), plain.0.vectors.clone())
                );
                let svd = backend.svd(&a).unwrap();
                assert_eq!((&svd.values / unit, svd.right), (plain.1.values.clone(), plain.1.right.clone()));
                let factor = backend.cholesky(&a).unwrap();
                let l = factor.lower();
                close(&(l.dot(&l.t()) / unit), &(a / unit), tolerance(n, 8.0));
            }
        }
    }

    pub fn signs_are_fixed(backend: Backend) {
        let a = definite(20);
        let (eigen, svd) = (backend.eigen(&a).unwrap(), backend.svd(&a).unwrap());
        for vector in eigen.vectors.columns().into_iter().chain(svd.right.columns()) {
            let largest = vector.iter().map(|entry| entry.abs()).fold(0.0, f64::max);
            let first = vector.iter().find(|entry| entry.abs() > 0.9 * largest);
            assert!(*first.unwrap() > 0.0);
        }
    }

    pub fn layouts_give_the_same_bits(backend: Backend) {
        let (m, n) = (23, 23);
        let a = definite(n);
        let mut fortran = Array2::zeros((m, n).f());
        fortran.assign(&a);
        let mut wide = Array2::from_elem((2 * m, 3 * n), f64::NAN);
        wide.slice_mut(s![..;2, ..;3]).assign(&a);
        let mut reversed = Array2::zeros((m, n));
        reversed.slice_mut(s![..;-1, ..;-1]).assign(&a);
        let transposed = a.t().to_owned();
        let views =
            [fortran.view(), wide.slice(s![..;2, ..;3]), reversed.slice(s![..;-1, ..;-1]), transposed.t()];
        for view in views {
            assert_eq!(backend.cholesky(&view).unwrap(), backend.cholesky(&a).unwrap());
            assert_eq!(backend.eigen(&view).unwrap(), backend.eigen(&a).unwrap());
            assert_eq!(backend.svd(&view).unwrap(), backend.svd(&a).unwrap());
            assert_eq!(backend.singular_values(&view).unwrap(), backend.singular_values(&a).unwrap());
        }
    }

    pub fn only_the_lower_triangle_is_read(backend: Backend) {
        let a = definite(9);
        let lower = Array2::from_shape_fn((9, 9), |(i, j)| if i < j { f64::NAN } else { a[[i, j]] });
        assert_eq!(backend.cholesky(&lower).unwrap(), backend.cholesky(&a).unwrap());
        assert_eq!(backend.eigen(&lower).unwrap(), backend.eigen(&a).unwrap());
    }

    pub fn indefinite_matrices_name_their_row(backend: Backend) {
        let two = [1.0, 2.0, 2.0, 1.0];
        fails_at(backend.cholesky(&Array2::from_shape_vec((2, 2), two.to_vec()).unwrap()), 1);
        fails_at(backend.cholesky(&Array2::ones((3, 3))), 1);
        for n in SIZES {
            fails_at(backend.cholesky(&Array2::zeros((n, n))), 0);
            for row in [0, n / 2, n - 1] {
                let mut a = definite(n);
                a[[row, row]] = -1.0;
                fails_at(backend.cholesky(&a), row);
            }
        }
        let message = backend.cholesky(&Array2::ones((2, 2))).unwrap_err().to_string();
        assert_eq!(
            message,
            "the Cholesky factorisation failed at row 1: the matrix is not positive definite"
        );
    }

    /// Hilbert's matrix: the residual stays small though the solution is not accurate.
    pub fn ill_conditioned_matrices(backend: Backend) {
        let n = 11;
        let a = Array2::from_shape_fn((n, n), |(i, j)| 1.0 / (1 + i + j) as f64);
        let factor = backend.cholesky(&a).unwrap();
        let b = matrix(n, 2, 3);
        let u = factor.solve(&b).unwrap();
        let scale = 4.0 * size(&u);
        close(&a.dot(&u), &b, tolerance(n, scale));

        // Units alone are no matter.
        let units = Array1::from_shape_fn(3, |i| 10f64.powi(12 * (i as i32 - 1)));
        let u = backend.cholesky(&Array2::from_diag(&units)).unwrap().solve_vector(&units).unwrap();
        close(&column(&u), &Array2::ones((3, 1)), tolerance(1, 4.0));
    }

    pub fn bad_input_is_an_error(backend: Backend) {
        let empty = Array2::zeros((0, 0));
        assert!(parameter(backend.cholesky(&empty)) && parameter(backend.eigen(&empty)));
        for (m, n) in [(0, 0), (0, 3), (3, 0)] {
            let empty = Array2::zeros((m, n));
            assert!(parameter(backend.svd(&empty)) && parameter(backend.singular_values(&empty)));
        }
        for (m, n) in [(2, 3), (3, 2), (3, 0)] {
            let oblong = Array2::zeros((m, n));
            assert!(shape(backend.cholesky(&oblong)) && shape(backend.eigen(&oblong)));
        }
        for wrong in [f64::NAN, f64::INFINITY, -f64::INFINITY] {
            let mut a = definite(3);
            a[[2, 0]] = wrong;
            let lower = Error::NotFinite { what: "the lower triangle of the matrix", row: 2, column: None };
            assert_eq!(backend.cholesky(&a), Err(lower.clone()));
            assert_eq!(backend.eigen(&a), Err(lower));
            let all = Error::NotFinite { what: "the matrix", row: 2, column: Some(0) };
            assert_eq!(backend.svd(&a), Err(all.clone()));
            assert_eq!(backend.singular_values(&a), Err(all));
        }
        let factor = backend.cholesky(&definite(3)).unwrap();
        assert!(shape(factor.solve(&Array2::zeros((2, 1)))));
        assert!(shape(factor.solve_vector(&Array1::zeros(4))));
        let mut rhs = Array2::zeros((3, 2));
        rhs[[1, 1]] = f64::NAN;
        assert_eq!(
            factor.solve(&rhs),
            Err(Error::NotFinite { what: "the right-hand side", row: 1, column: None })
        );
    }

    /// With the default backend: factors, values, and vectors of values that are far apart.
    pub fn backends_agree(backend: Backend) {
        let first = Backend::default();
        for n in [1, 2, 10, 100] {
            let a = definite(n);
            let (ours, theirs) = (backend.cholesky(&a).unwrap(), first.cholesky(&a).unwrap());
            close(&ours.lower(), &theirs.lower(), tolerance(n, 16.0));
            let (ours, theirs) = (backend.eigen(&a).unwrap(), first.eigen(&a).unwrap());
            close(&column(&ours.values), &column(&theirs.values), tolerance(n, 16.0));
            let b = matrix(2 * n, n, 9);
            let (ours, theirs) = (backend.singular_values(&b).unwrap(), first.singular_values(&b).unwrap());
            close(&column(&ours), &column(&theirs), tolerance(n, 16.0));
        }
        // The gaps of these eigenvalues are at least 0.04.
        let a = string(12);
        let (ours, theirs) = (backend.eigen(&a).unwrap(), first.eigen(&a).unwrap());
        close(&ours.vectors, &theirs.vectors, tolerance(12, 100.0));
        let (ours, theirs) = (backend.svd(&a).unwrap(), first.svd(&a).unwrap());
        close(&ours.right, &theirs.right, tolerance(12, 100.0));
        close(&ours.left, &theirs.left, tolerance(12, 100.0));
    }
}

#[cfg(feature = "faer")]
#[test]
fn threads_do_not_change_bits_of_faer() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (a, large) = (definite(400), definite(1100));
            (
                Backend::Faer.cholesky(&large).unwrap(),
                Backend::Faer.eigen(&a).unwrap(),
                Backend::Faer.svd(&a).unwrap(),
            )
        })
    };
    let one = on(1);
    assert!(one == on(2) && one == on(3));
}
