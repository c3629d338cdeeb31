//! Faults that published libraries have shipped, each as a test that this crate does not have it.
//!
//! Seeds are fixed; a z-score beyond 4.5 has probability 7e-6, and there are below 40 here: false alarms below 3e-4.

use crate::common::{Sample, couplings_from_two_dimensions, frequencies, points, quasi_couplings};
use ndarray::{Array1, Axis, s};
use random_features::extend::Coupling;
use random_features::frequency::{Givens, Hadamard, Independent, Orthogonal, SimplexPlus};
use random_features::workbench::structured::Rotation;
use random_features::{Positive, Side, Trigonometric, rng, rng_of_step};

const LIMIT: f64 = 4.5;

/// Orthogonal frequencies from a QR decomposition whose signs are dropped: exp features are biased by −26 % at d = 16
/// along (1, …, 1), and by +28 % against it.
#[test]
fn exponential_features_are_unbiased_along_both_diagonals() {
    let d = 16;
    for sign in [1.0, -1.0] {
        let x = Array1::from_elem(d, sign / (d as f64).sqrt());
        let estimate = |seed| {
            Positive.softmax::<f64>(frequencies(d, d, &Orthogonal, seed)).unwrap().estimate(&x, &x).unwrap()
        };
        let sample = Sample::of(&(0..30_000).map(estimate).collect::<Vec<_>>());
        assert!(sample.z(1f64.exp()).abs() < LIMIT, "{}", sample.mean);
        assert!(0.26 * 1f64.exp() > 20.0 * sample.error);
    }
}

/// Rows and columns of an orthogonal matrix mixed up, so that norms scale coordinates instead of frequencies: 0.002
/// instead of 0.1353 at d = 2, ‖x−y‖ = 2 along the diagonal.
#[test]
fn norms_belong_to_frequencies() {
    for d in [2, 8, 32] {
        let x = Array1::from_elem(d, 2.0 / (d as f64).sqrt());
        let zero = Array1::zeros(d);
        let estimate = |seed| {
            let map = Trigonometric.gaussian::<f64>(frequencies(d, d, &Orthogonal, seed), 1.0).unwrap();
            map.estimate(&x, &zero).unwrap()
        };
        let sample = Sample::of(&(0..10_000).map(estimate).collect::<Vec<_>>());
        assert!(sample.z((-2f64).exp()).abs() < LIMIT, "d {d}: {}", sample.mean);
    }
}

/// More rows than dimensions from one tall orthogonal matrix: rows of a block are hardly less correlated than
/// independent ones. Here every run of d rows is orthogonal.
#[test]
fn tall_draws_are_orthogonal_in_blocks() {
    let (d, m) = (16, 64);
    let omega = frequencies(d, m, &Orthogonal, 3);
    for block in omega.rows().axis_chunks_iter(Axis(0), d) {
        let gram = block.dot(&block.t());
        assert!(gram.indexed_iter().all(|((i, j), g)| i == j || g.abs() < 1e-12));
    }
}

/// Norms taken from the matrix that the directions come from: they would be functions of each other. Drawn radii are
/// independent of the directions: the correlation of ‖ω‖² with the square of the first direction is 0.
#[test]
fn norms_are_independent_of_directions() {
    let d = 3;
    for coupling in couplings_from_two_dimensions() {
        let products: Vec<f64> = (0..20_000)
            .map(|seed| {
                let omega = frequencies(d, d, coupling.as_ref(), seed);
                let row = omega.rows().row(d - 1).to_owned();
                let squared: f64 = row.dot(&row);
                (squared - d as f64) * (row[0] * row[0] / squared - 1.0 / d as f64)
            })
            .collect();
        assert!(Sample::of(&products).z(0.0).abs() < LIMIT, "{coupling:?}");
    }
}

/// One set of radii, or one rotation, for all blocks.
#[test]
fn blocks_are_drawn_afresh() {
    let d = 16;
    let couplings: [&dyn Coupling; 4] =
        [&Orthogonal, &SimplexPlus::default(), &Hadamard::default(), &Givens::default()];
    for coupling in couplings {
        let omega = frequencies(d, 3 * d, coupling, 1);
        let rows = omega.rows();
        for (i, j) in (0..3 * d).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let (a, b) = (rows.row(i), rows.row(j));
            assert!((a.dot(&a) - b.dot(&b)).abs() > 1e-9, "{coupling:?}: rows {i} and {j} share a radius");
        }
        if let Some(structured) = omega.structured() {
            let blocks = structured.blocks();
            assert!(blocks[0].rotation != blocks[1].rotation && blocks[1].rotation != blocks[2].rotation);
        }
    }
}

/// Plane rotations drawn with replacement, i = j: Q is not orthogonal then.
#[test]
fn products_of_rotations_are_orthogonal() {
    for d in [2, 8, 16, 64] {
        let omega = frequencies(d, d, &Givens::default(), 5);
        let Rotation::Givens(rotations) = &omega.structured().unwrap().blocks()[0].rotation else { panic!() };
        assert!(rotations.iter().all(|r| r.axes[0] != r.axes[1]));
        let gram = omega.rows().dot(&omega.rows().t());
        assert!(gram.indexed_iter().all(|((i, j), g)| i == j || g.abs() < 1e-12), "d {d}");
    }
}

/// Numbers of features rounded up to what a transform likes, or refused.
#[test]
fn any_number_of_frequencies_in_any_dimension() {
    for coupling in couplings_from_two_dimensions()
        .into_iter()
        .chain(quasi_couplings())
        .chain([Box::new(Hadamard::default()) as Box<dyn Coupling>, Box::new(Givens::default())])
    {
        for (d, m) in [(2, 1), (3, 7), (5, 13), (12, 30)] {
            let map = Positive.softmax::<f32>(frequencies(d, m, coupling.as_ref(), 1)).unwrap();
            assert_eq!((map.dim(), map.feature_dim()), (d, m), "{coupling:?}");
        }
    }
}

/// Redraws seeded by the data: the same points would always give the same draw, and future queries choose it.
#[test]
fn redraws_depend_on_the_step_alone() {
    let at = |step| Orthogonal.draw(4, 6, rng_of_step(9, step).next_u64()).unwrap();
    let steps: Vec<_> = (0..50).map(at).collect();
    for i in 0..50 {
        assert_eq!(at(i as u64), steps[i]);
        assert!((0..i).all(|j| steps[i] != steps[j]));
    }
    assert_eq!(steps[0], Orthogonal.draw(4, 6, rng(9).next_u64()).unwrap());
    // Streams of steps are independent: products of first entries of neighbouring steps have mean 0.
    let first: Vec<f64> = (0..20_000)
        .map(|step| Independent.draw(1, 1, rng_of_step(9, step).next_u64()).unwrap().rows()[[0, 0]])
        .collect();
    let products: Vec<f64> = first.windows(2).map(|w| w[0] * w[1]).collect();
    assert!(Sample::of(&products).z(0.0).abs() < LIMIT && Sample::of(&first).z(0.0).abs() < LIMIT);
}

/// Maps that are drawn again on each call, or that differ for queries and keys.
#[test]
fn a_map_is_the_same_map_every_time() {
    let map = Positive.softmax::<f32>(frequencies(4, 8, &Orthogonal, 2)).unwrap();
    let x = points::<f32>(5, 4, 1.0);
    let (first, second) = (map.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(first, second);
    assert_eq!(map.features(Side::Y, &x).unwrap().mantissas(), first.mantissas());
    assert_eq!(
        map.features(Side::X, x.slice(s![..1, ..])).unwrap().mantissas(),
        first.mantissas().slice(s![..1, ..])
    );
}
