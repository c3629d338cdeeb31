//! Structured frequencies: their products are those of the rows written out, and what is approximate about them is
//! measured.

use crate::common::{
    Name, Sample, approximate_couplings, couplings_from_two_dimensions, points, quasi_couplings, softmax,
};
use ndarray::{Array1, Array2, s};
use random_features::extend::{Coupling, Radii, Rows};
use random_features::frequency::{Antithetic, Frequencies, Givens, Hadamard, Simplex, SimplexPlus};
use random_features::kernel::{Kernel, RegularisedSoftmax};
use random_features::theory::{self, Law, Pair};
use random_features::workbench::structured::{PlaneRotation, Rotated, Rotation, Structured};
use random_features::workbench::{Chi, Method, Projection, RootDim, RotationLaw, draw_with};
use random_features::{Error, Positive, Real, rng};

/// Exponents of all points and the squared norms, by a projection.
fn project<T: Real>(projection: &Projection<T>, x: &Array2<T>) -> (Array2<T>, Vec<f64>) {
    let (n, m) = (x.nrows(), projection.m());
    let (mut values, mut norms) = (Array2::from_elem((n, m), T::nan()), Array1::from_elem(n, f64::NAN));
    projection.project_into(x, &mut values, &mut norms).unwrap();
    (values, norms.to_vec())
}

fn products_agree<T: Real>(d: usize) {
    for coupling in approximate_couplings().into_iter().filter(|c| c.capacity(d) > 0) {
        // Less than a block, and a block and a part.
        for m in [d.div_ceil(2), coupling.capacity(d) + 3] {
            let omega = coupling.as_ref().draw(d, m, rng(d as u64).next_u64()).unwrap();
            assert!(omega.structured().is_some() && omega.m() == m && omega.dim() == d);
            let (rows, radii) = (omega.rows().into_owned(), radii(&omega));
            let x = points::<T>(19, d, 1.0);
            let per_dimension: Vec<f64> = (0..d).map(|k| 0.5 + (k % 3) as f64).collect();
            for lengthscale in [vec![0.7], per_dimension] {
                let projection = |method| match lengthscale[..] {
                    [ell] => Projection::<T>::with_method(omega.clone(), ell, method).unwrap(),
                    _ => Projection::with_method(omega.clone(), lengthscale.clone(), method).unwrap(),
                };
                let (fast, dense) = (projection(Method::Structured), projection(Method::Dense));
                assert_eq!((fast.method(), dense.method()), (Method::Structured, Method::Dense));
                assert_eq!((fast.m(), fast.dim()), (m, d));
                let ((p, norms), (_, dense_norms)) = (project(&fast, &x), project(&dense, &x));
                assert_eq!(norms, dense_norms);
                let divided = Array2::from_shape_fn(x.dim(), |(i, k)| {
                    x[[i, k]].widen() / lengthscale[k % lengthscale.len()]
                });
                let exact = divided.dot(&rows.t());
                for ((i, j), p) in p.indexed_iter() {
                    let exact = exact[[i, j]];
                    // Rotations are backward stable: an error of some eps for each stage, relative to the norms.
                    let stages = 12.0 + 4.0 * (d as f64).log2();
                    let tolerance = T::epsilon().widen() * stages * radii[j].abs() * norms[i].sqrt();
                    assert!(
                        (p.widen() - exact).abs() <= tolerance,
                        "{coupling:?}, d {d}, m {m}: {p} instead of {exact}"
                    );
                }
                // A row alone has the bits that it has among others.
                let (alone, _) = project(&fast, &x.slice(s![17..18, ..]).to_owned());
                assert_eq!(alone.row(0), p.row(17));
            }
        }
    }
}

/// The radii that the rows were drawn with, before they were cut, with signs.
fn radii(omega: &Frequencies) -> Vec<f64> {
    omega.structured().unwrap().blocks().iter().flat_map(|block| block.radii.clone()).collect()
}

#[test]
fn structured_products_are_dense_ones() {
    // All small sizes, and those around powers of two; 520 is padded to 1024.
    for d in (1..36).chain([50, 63, 64, 65, 97, 127, 128, 129, 256, 257, 520]) {
        products_agree::<f64>(d);
    }
    for d in (1..70).step_by(7).chain([128, 129, 520]) {
        products_agree::<f32>(d);
    }
}

#[test]
fn written_out_rows_are_the_definition() {
    for coupling in approximate_couplings() {
        let omega = coupling.as_ref().draw(5, 21, rng(3).next_u64()).unwrap();
        let x = Array1::from(vec![0.3, -1.0, 0.2, 0.9, -0.4]);
        let structured = omega.structured().unwrap();
        let (p, q) = (omega.rows().dot(&x), structured.project(x.view()).unwrap());
        assert!(p.iter().zip(&q).all(|(p, q)| (p - q).abs() < 1e-13));
        assert!(structured.project(x.slice(s![..4])).is_err());
    }
    let antithetic = Antithetic(Hadamard::default()).draw(6, 13, rng(1).next_u64()).unwrap();
    for i in (0..12).step_by(2) {
        let rows = antithetic.rows();
        assert_eq!(rows.row(i + 1), -&rows.row(i));
    }
}

/// Before the cut, rows of a block are orthogonal or have the angle of the simplex; blocks are drawn afresh.
/// A fitted simplex of two rows is a pair of opposite directions.
#[test]
fn two_rows_of_a_simplex_oppose_each_other() {
    let simplex = Simplex::on(RotationLaw::Hadamard(Hadamard::default()));
    for coupling in [simplex, Simplex::default()] {
        let omega = coupling.draw(16, 18, rng(2).next_u64()).unwrap();
        let (rows, law) = (omega.rows(), omega.law().clone());
        let (a, b) = (rows.row(16), rows.row(17));
        let cos = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
        assert!((cos + 1.0).abs() < 1e-13, "{coupling:?}: {cos}");
        assert_eq!(law.len(), 18);
    }
}

#[test]
fn blocks_have_their_gram_matrix() {
    let d = 16;
    for coupling in approximate_couplings() {
        let m = 2 * coupling.capacity(d);
        let omega = coupling.as_ref().draw(d, m, rng(2).next_u64()).unwrap();
        let (rows, radii) = (omega.rows(), radii(&omega));
        let size = m / 2;
        assert_ne!(
            rows.slice(s![..size, ..]),
            rows.slice(s![size.., ..]),
            "{coupling:?}: a block drawn twice"
        );
        let name = format!("{coupling:?}");
        let cos = if name.contains("Simplex") { -1.0 / 15.0 } else { 0.0 };
        let copies = omega.structured().unwrap().blocks()[0].copies;
        for i in 0..size {
            for j in (0..size).filter(|j| j / copies != i / copies) {
                let (a, b) = (rows.row(i), rows.row(j));
                let sign = (radii[i] * radii[j]).signum();
                let found = sign * a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
                assert!((found - cos).abs() < 1e-13, "{name}: {i}, {j}: {found}");
            }
        }
    }
}

/// One round with ‖ω‖ = √N has the kernel Π cosh z_k; three come near the regularised softmax kernel (SPEC: 1.446913,
/// 1.444864, 1.444127). Means over all sign patterns of one row, so that nothing is left to chance.
#[test]
fn the_bias_of_hadamard_rows_is_what_is_known() {
    let z = [0.7, -0.3, 0.4, 0.2];
    let mean = |rounds: usize| {
        let patterns = 1usize << (4 * rounds);
        let estimate = |pattern: usize| {
            let flips = Array2::from_shape_fn((rounds, 4), |(r, k)| pattern >> (4 * r + k) & 1 == 1);
            let mut v = Array1::from(z.to_vec());
            Rotation::Hadamard(flips).apply(&mut v).unwrap();
            v.iter().map(|v| (2.0 * v).exp()).sum::<f64>() / 4.0
        };
        (0..patterns).map(estimate).sum::<f64>() / patterns as f64
    };
    let cosh: f64 = z.iter().map(|z: &f64| z.cosh()).product();
    assert!((mean(1) - cosh).abs() < 1e-13 && (cosh - 1.446913).abs() < 1e-6);
    assert!((mean(3) - 1.444864).abs() < 1e-6, "{}", mean(3));
    let x = Array1::from(z.to_vec());
    let norm: f64 = x.dot(&x);
    let sphere: f64 =
        RegularisedSoftmax::default().value(&x, &Array1::zeros(4)).unwrap() * (0.5 * norm).exp();
    assert!((sphere - 1.444127).abs() < 1e-6, "{sphere}");
}

/// With the radii of the padded dimension the bias of estimates of the softmax kernel stays small, where radii χ_d on
/// padded rows would have E‖ω‖² = d²/N instead of d. Deviations are measured with standard errors below 0.4 %: what
/// is asserted is below 1.5 %, and the wrong radii would give −13 % at d = 5.
#[test]
fn biases_of_approximate_couplings_are_small() {
    let biases = |d: usize, coupling: &dyn Coupling| {
        // Four points that differ in signs, at which each draw is seen.
        let x = Array2::from_shape_fn((4, d), |(i, k)| {
            let sign = if (i & k).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * 0.5 / (d as f64).sqrt()
        });
        let one = |seed| {
            let omega = coupling.draw(d, 2 * d, rng(seed).next_u64()).unwrap();
            let map = Name::Positive.make::<f64>(omega, softmax());
            map.estimate_rows(&x, &x).unwrap().mean().unwrap()
        };
        let sample = Sample::of(&(0..7_000).map(one).collect::<Vec<_>>());
        let exact = 0.25f64.exp();
        ((sample.mean - exact) / exact, sample.error / exact)
    };
    for d in [5, 16] {
        let hadamard = RotationLaw::Hadamard(Hadamard::default());
        let couplings: [&dyn Coupling; 6] = [
            &Hadamard::default(),
            &Simplex::on(hadamard),
            &SimplexPlus::on(hadamard),
            &SimplexPlus::on(RotationLaw::Givens(Givens::default())),
            &Givens::default(),
            &Antithetic(Hadamard::default()),
        ];
        for coupling in couplings {
            let (bias, error) = biases(d, coupling);
            println!("{coupling:?}, d {d}: bias {:.3} ± {:.3} %", 100.0 * bias, 100.0 * error);
            assert!(error < 0.004, "{coupling:?}, d {d}: standard error {error}");
            assert!(bias.abs() < 0.015, "{coupling:?}, d {d}: bias {bias} ± {error}");
        }
    }
}

/// On a fast rotation that does not pad, blocks of SimRF+ have the sums that their radii allow, and the radii drawn.
#[test]
fn simplices_placed_by_radii_take_fast_rotations() {
    for rotation in [RotationLaw::Hadamard(Hadamard::default()), RotationLaw::Givens(Givens::default())] {
        let omega = SimplexPlus::on(rotation).draw(16, 40, 4).unwrap();
        for block in omega.rows().axis_chunks_iter(ndarray::Axis(0), 16) {
            let (sum, norms) =
                (block.sum_axis(ndarray::Axis(0)), block.map_axis(ndarray::Axis(1), |w| w.dot(&w).sqrt()));
            assert!(sum.dot(&sum).sqrt() < 1e-2 * norms.sum(), "{rotation:?}: {}", sum.dot(&sum).sqrt());
        }
        // Radii are drawn before the rotation.
        let block = SimplexPlus::on(rotation).draw_block(16, 16, &Chi, &mut rng(4)).unwrap();
        let Rows::Dense(rows) = block else { panic!("{block:?}") };
        let radii = Chi.draw(16, 16, &mut rng(4)).unwrap();
        assert!(rows.rows().into_iter().zip(radii).all(|(row, r)| (row.dot(&row) - r * r).abs() < 1e-12));
        assert!(Positive.softmax::<f64>(omega).unwrap().kernel().is_some());
    }
    // Cut rows have no norm √d any more, so nothing is claimed of their kernel.
    let cut = SimplexPlus::on(RotationLaw::Hadamard(Hadamard::default()))
        .with_radii(RootDim)
        .draw(5, 16, 1)
        .unwrap();
    assert_eq!(cut.law().radius(), random_features::extend::Radius::Other);
}

/// The mean of ‖ω‖² is d for rows that are cut from N dimensions too: z-scores beyond 4.5 have probability 7e-6 each.
#[test]
fn cut_rows_have_the_right_norm() {
    for (d, coupling) in
        [(5, Hadamard::default()), (17, Hadamard::default()), (100, Hadamard::default().with_rounds(2))]
    {
        let norms: Vec<f64> = (0..3000)
            .map(|seed| {
                let omega = coupling.draw(d, 1, rng(seed).next_u64()).unwrap();
                let row = omega.rows().row(0).to_owned();
                row.dot(&row)
            })
            .collect();
        let mean = Sample::of(&norms);
        assert!(mean.z(d as f64).abs() < 4.5, "d {d}: {} ± {}", mean.mean, mean.error);
    }
}

/// Points along an axis, where plane rotations mix slowest: with d log₂ d planes drawn one by one, the mean was 1.9 K at
/// d = 16 and above 20 K at d = 64. What is left of the bias is below 1 %, besides 4.5 standard errors (eight of them:
/// false alarms below 1e-4).
#[test]
fn plane_rotations_have_no_bias_along_axes() {
    for d in [4, 5, 16, 64] {
        // The mean of e^{2rc − 2} and e^{−2rc − 2} over r ~ χ_d, by a sum over r.
        let ln_density = |r: f64| (d as f64 - 1.0) * r.ln() - 0.5 * r * r;
        let nodes = (1..80).map(|i| (d as f64).sqrt() + 0.15 * f64::from(i) - 6.0).filter(|r| *r > 0.0);
        let top = ln_density((d as f64).sqrt());
        let nodes: Vec<(f64, f64)> = nodes.map(|r| (r, (ln_density(r) - top).exp())).collect();
        let total: f64 = nodes.iter().map(|(_, weight)| weight).sum();
        let mean =
            |c: f64| nodes.iter().map(|(r, w)| w / total * (2.0 * r * c).cosh()).sum::<f64>() / 2f64.exp();
        for entries in [vec![1.0], vec![0.5f64.sqrt(); 2]] {
            let mut x = Array1::zeros(d);
            x.iter_mut().zip(&entries).for_each(|(x, v)| *x = *v);
            let one = |seed| {
                let omega = Givens::default().draw(d, d, rng(seed).next_u64()).unwrap();
                let structured = omega.structured().unwrap();
                let products = structured.project(x.view()).unwrap();
                let radii = &structured.blocks()[0].radii;
                products.iter().zip(radii).map(|(p, r)| mean(p / r)).sum::<f64>() / d as f64
            };
            // A draw is a mean over d rows.
            let draws = (80_000 / d as u64).max(4000);
            let sample = Sample::of(&(0..draws).map(one).collect::<Vec<_>>());
            let bias = sample.mean - 1.0;
            println!("d {d}, {entries:?}: {bias:.4} ± {:.4}", sample.error);
            assert!(sample.error < 0.01 && bias.abs() < 0.01 + 4.5 * sample.error, "d {d}: bias {bias}");
        }
    }
}

/// Few dimensions are padded to 16: means of cos ω·z at ‖z‖ = 2 along an axis and along (1, …, 1), where without
/// padding they were 0.362 instead of 0.135 (d = 2). What is allowed is 0.006 and 4.5 standard errors: 18 times,
/// false alarms below 2e-4.
#[test]
fn few_dimensions_are_padded_enough() {
    let simplex = Simplex::on(RotationLaw::Hadamard(Hadamard::default()));
    for (coupling, least) in [(&Hadamard::default() as &dyn Coupling, 1), (&simplex, 2)] {
        for d in [1, 2, 3, 5, 8].into_iter().filter(|d| *d >= least) {
            let mut axis = Array1::zeros(d);
            axis[0] = 2.0;
            for z in [axis, Array1::from_elem(d, 2.0 / (d as f64).sqrt())] {
                let one = |seed| {
                    let omega = coupling.draw(d, 16, rng(seed).next_u64()).unwrap();
                    assert_eq!((omega.padded_dim(), omega.structured().unwrap().blocks().len()), (16, 1));
                    let products = omega.structured().unwrap().project(z.view()).unwrap();
                    products.mapv(f64::cos).sum() / 16.0
                };
                let sample = Sample::of(&(0..20_000).map(one).collect::<Vec<_>>());
                let bias = sample.mean - (-2f64).exp();
                println!("{coupling:?}, z {z}: {bias:.4} ± {:.4}", sample.error);
                assert!(sample.error < 0.0015, "{coupling:?}, z {z}: standard error {}", sample.error);
                assert!(bias.abs() < 0.006 + 4.5 * sample.error, "{coupling:?}, z {z}: bias {bias}");
            }
        }
    }
    assert_eq!(Hadamard::default().draw(17, 3, rng(0).next_u64()).unwrap().padded_dim(), 32);
}

/// Rounds of disjoint planes: every coordinate is in one plane of a round, pairs are equally frequent, and blocks have
/// planes of their own.
#[test]
fn plane_rotations_come_in_rounds_of_disjoint_planes() {
    for (d, planes) in [(6, 3), (7, 3)] {
        let omega = Givens::default().with_rounds(500).draw(d, 3 * d, rng(9).next_u64()).unwrap();
        let mut seen = Array2::<usize>::zeros((d, d));
        let mut products = Vec::new();
        for block in omega.structured().unwrap().blocks() {
            let Rotation::Givens(rotations) = &block.rotation else { panic!("{block:?}") };
            assert_eq!(rotations.len(), 500 * planes);
            for round in rotations.chunks(planes) {
                let mut axes: Vec<usize> = round.iter().flat_map(|rotation| rotation.axes).collect();
                axes.sort_unstable();
                axes.dedup();
                assert_eq!(axes.len(), 2 * planes, "{round:?}");
            }
            for rotation in rotations {
                let [i, j] = rotation.axes;
                assert!(i < j && j < d && (0.0..std::f64::consts::TAU).contains(&rotation.angle));
                seen[[i, j]] += 1;
            }
            products.push(rotations);
        }
        assert!(products[0] != products[1] && products[1] != products[2]);
        // 4500 planes on the pairs, within 5.5 standard deviations (false alarms below 1e-6 for each of 36).
        let share = 2.0 * planes as f64 / (d * (d - 1)) as f64;
        let expected = 1500.0 * share;
        for i in 0..d {
            for j in i + 1..d {
                let off = (seen[[i, j]] as f64 - expected).abs();
                assert!(off < 5.5 * (expected * (1.0 - share)).sqrt(), "{seen}");
            }
        }
    }
}

#[test]
fn one_dimension() {
    assert!(Givens::default().draw(1, 2, rng(0).next_u64()).is_err());
    assert!(Simplex::on(RotationLaw::Hadamard(Hadamard::default())).draw(1, 2, rng(0).next_u64()).is_err());
    let omega = Hadamard::default().draw(1, 50, rng(0).next_u64()).unwrap();
    let rows = omega.rows();
    assert!(rows.iter().any(|v| *v > 0.0) && rows.iter().any(|v| *v < 0.0));
}

/// Norms up to the end of the range saturate instead of overflowing on the way.
#[test]
fn no_norm_overflows() {
    let omega = Hadamard::default().draw(100, 64, rng(4).next_u64()).unwrap();
    for ell in [1e-3, 1.0, 1e10] {
        let projection = Projection::<f32>::with_method(omega.clone(), ell, Method::Structured).unwrap();
        for size in [1e-30f32, 1e30, 3e38] {
            let x = points::<f32>(3, 100, 1.0) * size;
            let (p, norms) = project(&projection, &x);
            assert!(p.iter().all(|v| v.is_finite()) && norms.iter().all(|v| v.is_finite()), "{size}, {ell}");
            let dense = Projection::<f32>::with_method(omega.clone(), ell, Method::Dense).unwrap();
            let (q, _) = project(&dense, &x);
            for (i, (p, q)) in p.rows().into_iter().zip(q.rows()).enumerate() {
                let tolerance = 1e-5 * 20.0 * norms[i].sqrt() + 1e-43 / ell;
                let limit = f64::from(f32::MAX) / 4.0;
                let near = |(p, q): (&f32, &f32)| {
                    let (p, q) = (f64::from(*p), f64::from(*q));
                    (p - q).abs() <= tolerance || p.abs() >= 0.99 * limit && q.abs() >= 0.99 * limit
                };
                assert!(p.iter().zip(q).all(near), "{size}, {ell}: {p} and {q}");
            }
        }
    }
    // 1/ℓ or r/ℓ beyond single precision is refused, on both sides: with ℓ = 1e44 products were off by 0.3 %, with 1e46
    // they were 0.
    for method in [Method::Structured, Method::Dense] {
        for ell in [1e38, 1e44, 1e46] {
            let refused = Projection::<f32>::with_method(omega.clone(), ell, method);
            assert!(matches!(refused, Err(Error::Parameter { name: "the lengthscale", .. })), "{ell}");
            assert!(Projection::<f64>::with_method(omega.clone(), ell, method).is_ok());
        }
        assert!(Projection::<f32>::with_method(omega.clone(), 8e37, method).is_ok());
        let mut each = vec![1.0; 100];
        each[7] = 1e40;
        assert!(Projection::<f32>::with_method(omega.clone(), each, method).is_err());
        assert!(Projection::<f64>::with_method(omega.clone(), 1e308, method).is_err());
    }
    let refused = Projection::<f32>::with_method(omega, 1e-39, Method::Structured);
    assert!(matches!(refused, Err(Error::NotFinite { .. })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let rotation = || Rotation::Givens(vec![PlaneRotation { axes: [0, 1], angle: 1.0 }]);
    let block = || Rotated { rotation: rotation(), vertices: 0, copies: 1, radii: vec![1.0; 3] };
    assert!(Structured::new(3, 3, vec![block()]).is_ok());
    assert!(Structured::new(3, 3, vec![Rotated { copies: 2, radii: vec![1.0; 6], ..block() }]).is_ok());
    let wrong = [
        Structured::new(0, 3, vec![block()]),
        Structured::new(3, 2, vec![block()]),
        Structured::new(3, 17, vec![block()]),
        Structured::new(3, 3, vec![]),
        Structured::new(2, 2, vec![block()]),
        Structured::new(3, 3, vec![Rotated { radii: vec![], ..block() }]),
        Structured::new(3, 3, vec![Rotated { radii: vec![f64::NAN], ..block() }]),
        Structured::new(3, 3, vec![Rotated { copies: 0, ..block() }]),
        Structured::new(3, 3, vec![Rotated { copies: 2, radii: vec![1.0; 7], ..block() }]),
        Structured::new(3, 3, vec![Rotated { vertices: 1, ..block() }]),
        Structured::new(3, 3, vec![Rotated { vertices: 4, ..block() }]),
        Structured::new(3, 3, vec![Rotated { vertices: 2, ..block() }]),
    ];
    for (i, wrong) in wrong.into_iter().enumerate() {
        assert!(wrong.is_err(), "case {i}");
    }
    let rotations = [
        Rotation::Givens(vec![PlaneRotation { axes: [1, 1], angle: 1.0 }]),
        Rotation::Givens(vec![PlaneRotation { axes: [0, 3], angle: 1.0 }]),
        Rotation::Givens(vec![PlaneRotation { axes: [0, 2], angle: f64::INFINITY }]),
        Rotation::Hadamard(Array2::from_elem((1, 3), true)),
        Rotation::Hadamard(Array2::from_elem((1, 4), true)),
        Rotation::Hadamard(Array2::from_elem((0, 3), true)),
    ];
    for rotation in rotations {
        assert!(rotation.clone().apply(&mut Array1::zeros(3)).is_err(), "{rotation:?}");
        assert!(Structured::new(3, 3, vec![Rotated { rotation, ..block() }]).is_err());
    }
    let structured = Structured::new(3, 3, vec![block()]).unwrap();
    assert!(matches!(Frequencies::from_structured(structured, Law::unknown(2)), Err(Error::Shape { .. })));
    for coupling in [&Hadamard::default().with_rounds(0) as &dyn Coupling, &Givens::default().with_rounds(0)]
    {
        assert!(matches!(coupling.draw(4, 4, rng(0).next_u64()), Err(Error::Parameter { .. })));
    }
}

/// A vector of any layout is rotated.
#[test]
fn strided_vectors_are_rotated() {
    let rotation = Rotation::Hadamard(Array2::from_elem((1, 4), false));
    let mut strided = Array1::from(vec![1.0, 9.0, 0.0, 9.0, 0.0, 9.0, 0.0, 9.0]).slice_move(s![..;2]);
    rotation.apply(&mut strided).unwrap();
    assert_eq!(strided.to_vec(), [0.5; 4]);
    let mut backwards = Array1::from(vec![0.0, 0.0, 0.0, 1.0]).slice_move(s![..;-1]);
    rotation.apply(&mut backwards).unwrap();
    assert_eq!(backwards.to_vec(), [0.5; 4]);
}

/// Radii that draw too few or too many, blocks that are too large, counts that no memory holds.
#[test]
fn extensions_that_break_their_promise_are_refused() {
    #[derive(Debug)]
    struct Off(usize);
    impl Radii for Off {
        fn draw(
            &self,
            _: usize,
            _: usize,
            _: &mut random_features::extend::Generator,
        ) -> random_features::Result<Vec<f64>> {
            Ok(vec![1.0; self.0])
        }
    }
    let others =
        crate::common::couplings_from_two_dimensions().into_iter().chain(crate::common::quasi_couplings());
    for coupling in others.chain(approximate_couplings()) {
        for count in [3, 9] {
            let refused = draw_with(4, 4, coupling.as_ref(), &Off(count), rng(0).next_u64());
            assert!(matches!(refused, Err(Error::Shape { .. })), "{coupling:?}: {refused:?}");
        }
        let most = coupling.capacity(4);
        if most < 100 {
            let refused = coupling.draw_block(4, most + 2, &Chi, &mut rng(0));
            assert!(matches!(refused, Err(Error::Parameter { .. })), "{coupling:?}");
        }
    }
    let huge: [&dyn Coupling; 2] =
        [&Hadamard::default().with_rounds(usize::MAX), &Givens::default().with_rounds(usize::MAX)];
    for coupling in huge {
        assert!(
            matches!(coupling.draw(4, 4, rng(0).next_u64()), Err(Error::Parameter { .. })),
            "{coupling:?}"
        );
    }
    assert!(Givens::default().draw_block(1, 1, &Chi, &mut rng(0)).is_err());
    let rotation = Rotation::Givens(vec![PlaneRotation { axes: [0, 1], angle: 1.0 }]);
    let block = Rotated { rotation, vertices: 0, copies: 1, radii: vec![1.0; 9] };
    assert!(Structured::new(1 << 61, 1 << 61, vec![block]).is_err());
    for cos in [f64::NAN, -5.0, 1.5] {
        let law = Law::blocks(2, 2, random_features::theory::Dependence::Angle { cos }, Chi.law());
        assert!(matches!(Frequencies::from_parts(Array2::zeros((2, 2)), law), Err(Error::Parameter { .. })));
    }
}

#[test]
fn radii_are_those_of_the_padded_dimension() {
    let omega = Hadamard::default().with_radii(RootDim).draw(5, 8, rng(1).next_u64()).unwrap();
    assert!(omega.structured().unwrap().blocks()[0].radii.iter().all(|r| *r == 4.0));
    let lengths = Chi.draw(16, 8, &mut rng(1)).unwrap();
    let block = Hadamard::default().draw_block(5, 8, &Chi, &mut rng(1)).unwrap();
    let Rows::Structured { padded: 16, block } = block else { panic!("{block:?}") };
    assert_eq!(block.radii, lengths);
}

/// Laws say which draws are approximate: those whose directions come from fast rotations, but rotations of the plane.
#[test]
fn approximate_laws_are_marked() {
    let fast = |rotation| Box::new(SimplexPlus::on(rotation)) as Box<dyn Coupling>;
    let on = [RotationLaw::Hadamard(Hadamard::default()), RotationLaw::Givens(Givens::default())].map(fast);
    for coupling in approximate_couplings().into_iter().chain(on) {
        let in_the_plane = format!("{coupling:?}").contains("Givens");
        for (d, m) in [(2, 1), (2, 7), (3, 1), (3, 9), (20, 70)] {
            let law = coupling.as_ref().draw(d, m, rng(1).next_u64()).unwrap().law().clone();
            assert_eq!(law.is_approximate(), d > 2 || !in_the_plane, "{coupling:?} in dimension {d}");
            assert_eq!(theory::positive(&Pair::new((0..d).map(|k| (0.1 * k as f64, 0.2))), &law), None);
        }
    }
    for coupling in couplings_from_two_dimensions().into_iter().chain(quasi_couplings()) {
        for (d, m) in [(2, 1), (3, 9)] {
            let omega = coupling.as_ref().draw(d, m, rng(1).next_u64()).unwrap();
            assert!(!omega.law().is_approximate(), "{coupling:?} in dimension {d}");
        }
    }
    assert!(!Law::unknown(3).is_approximate() && !Law::unknown(0).is_approximate());
}

/// Written out in runs of coordinates: across their ends too, each column is the product with its unit vector.
#[test]
fn rows_of_many_dimensions_are_products_with_unit_vectors() {
    let fast = [RotationLaw::Hadamard(Hadamard::default()), RotationLaw::Givens(Givens::default())];
    for (coupling, d) in fast.into_iter().flat_map(|law| [511, 513, 800].map(|d| (Simplex::on(law), d))) {
        let omega = coupling.draw(d, 600, rng(3).next_u64()).unwrap();
        let (rows, structured) = (omega.rows(), omega.structured().unwrap());
        for k in [0, 1, 255, 256, 257, 510, d - 2, d - 1] {
            let unit = Array1::from_shape_fn(d, |l| f64::from(u8::from(l == k)));
            let column = structured.project(unit.view()).unwrap();
            assert!((&column - &rows.column(k)).iter().all(|e| e.abs() < 1e-12), "{coupling:?}: {k} of {d}");
        }
    }
}

/// A matrix of 8 rows would take hours to be written out, by products with a million unit vectors.
#[test]
fn long_rows_stay_factors() {
    let omega = Hadamard::default().draw(1 << 20, 8, rng(1).next_u64()).unwrap();
    assert_eq!(Projection::<f32>::new(omega, 1.0).unwrap().method(), Method::Structured);
}
