//! Draws: pinned streams, the law of radii, orthogonality, refusals.

use crate::common::{couplings, couplings_from_two_dimensions, frequencies, normal_cdf, quasi_couplings};
use approx::assert_abs_diff_eq;
use ndarray::Array2;
use rand::Rng;
use random_features::frequency::{
    Antithetic, Coupling, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Partial, Rows,
    Simplex, SimplexPlus, Sobol, draw,
};
use random_features::kernel::{Radii, Radius};
use random_features::theory::{BlockLaw, Dependence, Law, Run};
use random_features::{Error, rng};

#[test]
fn the_generator_is_pinned() {
    let mut rng = rng(42);
    let words: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
    assert_eq!(words, [12_578_764_544_318_200_737, 17_529_487_244_874_322_312, 7_886_285_670_807_131_020]);
}

/// First entries of draws with seed 42. A change of stream must be announced in the changelog.
#[test]
fn draws_are_pinned() {
    let first = |coupling: &dyn Coupling| {
        let omega = frequencies(3, 4, coupling, 42);
        omega.rows().iter().take(6).copied().collect::<Vec<_>>()
    };
    let golden: [[f64; 6]; 9] = [
        [
            1.7782750937939897,
            -0.6022760908519877,
            0.026301311385818302,
            0.6239697352341066,
            1.2134405473262848,
            0.21221028663213418,
        ],
        [
            -0.7471355183868875,
            0.6832472483190632,
            1.5813450833482783,
            -0.4512535828593552,
            -1.2620953301288083,
            0.33210688002475536,
        ],
        [
            -0.6574029722776625,
            -1.1990069378880113,
            -1.2868155472862062,
            0.6574029722776625,
            1.1990069378880113,
            1.2868155472862062,
        ],
        [
            0.39932432594655254,
            1.8345315024703206,
            -0.026922238983945364,
            0.41393828557561824,
            -0.8120022754070277,
            -1.0373604959726654,
        ],
        [
            0.290316564327542,
            1.8471663777349159,
            0.17141535299765448,
            0.2588677835939196,
            -1.0551355912487241,
            -0.8523413358704974,
        ],
        [
            0.5323225307731086,
            1.5969675923193258,
            1.5969675923193258,
            -0.47095313686250223,
            -0.47095313686250223,
            0.47095313686250223,
        ],
        [
            -0.8421451965808493,
            -1.4104241941735907,
            0.9094974536336913,
            0.8918521221266849,
            -0.8934093395331862,
            -0.5596686005388648,
        ],
        [
            -0.9081624788363204,
            -0.5721542452892592,
            0.32528260573760154,
            1.490063214147953,
            0.29745933278001835,
            0.9443962554393531,
        ],
        [
            -0.7141447064465195,
            0.9424159580589119,
            -0.7539127967889341,
            0.271194037531114,
            -0.1232155862329711,
            2.299001299117199,
        ],
    ];
    let couplings: [&dyn Coupling; 9] = [
        &Independent,
        &Orthogonal,
        &Antithetic(Independent),
        &Simplex::default(),
        &SimplexPlus::default(),
        &Hadamard::default(),
        &Givens::default(),
        &Halton,
        &Sobol,
    ];
    for (coupling, golden) in couplings.into_iter().zip(golden) {
        for (value, golden) in first(coupling).iter().zip(golden) {
            assert_abs_diff_eq!(*value, golden, epsilon = 1e-13);
        }
    }
}

#[test]
fn any_generator_draws_the_same() {
    let seeded = frequencies(5, 9, &Orthogonal, 7);
    // A generator gives its next word as the seed.
    let (mut boxed, word): (Box<dyn Rng>, u64) = (Box::new(rng(7)), rng(7).next_u64());
    let drawn = draw(5, 9, &Orthogonal, &mut boxed).unwrap();
    let unsized_rng: &mut dyn Rng = &mut rng(7);
    assert_eq!(draw(5, 9, &Orthogonal, unsized_rng).unwrap(), drawn);
    assert_eq!(frequencies(5, 9, &Orthogonal, word), drawn);
    assert_ne!(seeded, drawn);
    assert_ne!(frequencies(5, 9, &Orthogonal, 8), seeded);
}

/// The distribution function of χ² with 2 or 4 degrees of freedom, which are elementary.
fn chi_squared(d: usize, q: f64) -> f64 {
    let h = q / 2.0;
    1.0 - (-h).exp() * if d == 2 { 1.0 } else { 1.0 + h }
}

/// Kolmogorov–Smirnov on one vector of each independent draw, α = 1e-6 for each of the 24 cases: false alarms
/// below 3e-5.
#[test]
fn radii_follow_chi() {
    const N: usize = 5000;
    let critical = (-(1e-6f64 / 2.0).ln() / 2.0).sqrt() / (N as f64).sqrt();
    for d in [2, 4] {
        for coupling in couplings_from_two_dimensions() {
            for row in [0, 1, 2] {
                let of_draw = |seed| {
                    let omega = frequencies(d, 3, coupling.as_ref(), seed);
                    let row = omega.rows().row(row).to_owned();
                    chi_squared(d, row.dot(&row))
                };
                let distance = kolmogorov_smirnov((0..N as u64).map(of_draw).collect());
                assert!(distance < critical, "{coupling:?}, d {d}, row {row}: {distance}");
            }
        }
    }
}

/// Kolmogorov–Smirnov on one coordinate of one vector of each independent draw, α = 1e-6 for each of some 60 cases:
/// false alarms below 1e-4.
#[test]
fn coordinates_are_normal() {
    const N: usize = 4000;
    let critical = (-(1e-6f64 / 2.0).ln() / 2.0).sqrt() / (N as f64).sqrt();
    for coupling in couplings_from_two_dimensions().into_iter().chain(quasi_couplings()) {
        for d in [2, 5] {
            for (row, k) in [(0, 0), (d - 1, d - 1)] {
                let of_draw =
                    |seed| normal_cdf(frequencies(d, d + 1, coupling.as_ref(), seed).rows()[[row, k]]);
                let distance = kolmogorov_smirnov((0..N as u64).map(of_draw).collect());
                assert!(distance < critical, "{coupling:?}, d {d}, row {row}: {distance}");
            }
        }
    }
}

/// The largest distance between the distribution of a sample and the uniform one on [0, 1].
fn kolmogorov_smirnov(mut u: Vec<f64>) -> f64 {
    u.sort_by(f64::total_cmp);
    let n = u.len() as f64;
    let distance = |(i, u): (usize, &f64)| (u - i as f64 / n).abs().max(((i + 1) as f64 / n - u).abs());
    u.iter().enumerate().map(distance).fold(0.0, f64::max)
}

#[test]
fn orthogonal_blocks_are_orthogonal_and_independent() {
    let (d, m) = (6, 16);
    let omega = frequencies(d, m, &Orthogonal, 1);
    let runs = omega.law().runs();
    let sizes: Vec<_> = runs.iter().map(|run| (run.block.size, run.count)).collect();
    assert_eq!(sizes, [(6, 2), (4, 1)]);
    assert!(runs.iter().all(|run| run.block.dependence == Dependence::Orthogonal));
    let rows = omega.rows();
    let cosine = |i: usize, j: usize| {
        let (a, b) = (rows.row(i), rows.row(j));
        a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt()
    };
    for i in 0..m {
        for j in 0..i {
            assert_eq!(cosine(i, j).abs() < 1e-13, i / d == j / d, "rows {i} and {j}");
        }
    }
    // Norms are drawn, not shared: they differ within and between blocks.
    let mut norms: Vec<f64> = rows.rows().into_iter().map(|r| r.dot(&r)).collect();
    norms.sort_by(f64::total_cmp);
    assert!(norms.windows(2).all(|w| w[1] - w[0] > 1e-9));
}

#[test]
fn simplex_blocks_have_the_angles_that_they_state() {
    for partial in [Partial::Fitted, Partial::Truncated] {
        let omega = frequencies(5, 13, &Simplex::default().with_partial(partial), 1);
        let mut start = 0;
        for block in omega.law().runs().iter().flat_map(|run| vec![&run.block; run.count]) {
            let Dependence::Angle { cos } = block.dependence else { panic!("{block:?}") };
            let vertices = if partial == Partial::Fitted { block.size } else { 5 };
            assert_abs_diff_eq!(cos, -1.0 / (vertices as f64 - 1.0), epsilon = 1e-15);
            for i in start..start + block.size {
                for j in start..i {
                    let (a, b) = (omega.rows().row(i).to_owned(), omega.rows().row(j).to_owned());
                    let found = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
                    assert_abs_diff_eq!(found, cos, epsilon = 1e-13);
                }
            }
            start += block.size;
        }
        let single = frequencies(5, 6, &Simplex::default().with_partial(partial), 1);
        assert_eq!(single.law().runs()[1].block.dependence, Dependence::Independent);
        let error = draw(1, 3, &Simplex::default().with_partial(partial), &mut rng(0)).unwrap_err();
        assert!(error.to_string().contains("dimension d is 1"), "{error}");
    }
}

#[test]
fn antithetic_pairs_are_opposite() {
    for (m, last_alone) in [(8, false), (7, true), (1, true)] {
        let omega = frequencies(3, m, &Antithetic(Orthogonal), 2);
        for i in (0..m - m % 2).step_by(2) {
            assert_eq!(omega.rows().row(i + 1), -&omega.rows().row(i));
        }
        assert_eq!(m % 2 == 1, last_alone);
        assert_eq!(omega.law().len(), m);
        assert!(omega.law().runs().iter().all(|run| run.block.antithetic && run.block.size <= 6));
    }
}

#[test]
fn one_dimension_works() {
    for coupling in couplings() {
        let omega = frequencies(1, 5, coupling.as_ref(), 3);
        assert!(omega.rows().iter().all(|v| v.is_finite() && *v != 0.0));
    }
}

/// A coupling that does not exist anywhere.
#[derive(Debug)]
struct Nowhere;

impl Coupling for Nowhere {
    fn capacity(&self, _: usize) -> usize {
        0
    }

    fn draw_block(
        &self,
        _: usize,
        _: usize,
        _: &dyn Radii,
        _: &mut dyn Rng,
    ) -> random_features::Result<Rows> {
        unreachable!("nothing to draw")
    }
}

#[test]
fn refusals_are_sentences() {
    assert!(matches!(draw(2, 2, &Nowhere, &mut rng(0)), Err(Error::Parameter { .. })));
    let mut rng = rng(0);
    for coupling in couplings() {
        for (d, m) in [(0, 3), (3, 0), (usize::MAX, 2), (2, usize::MAX)] {
            let error = draw(d, m, coupling.as_ref(), &mut rng).unwrap_err();
            assert!(matches!(error, Error::Parameter { .. }), "{error:?}");
            assert!(error.to_string().contains("must be"), "{error}");
        }
    }
    assert!(matches!(Frequencies::from_rows(Array2::zeros((0, 3))), Err(Error::Parameter { .. })));
    assert!(matches!(Frequencies::from_rows(Array2::zeros((3, 0))), Err(Error::Parameter { .. })));
    let nan = Array2::from_shape_fn((3, 2), |(i, _)| if i == 1 { f64::NAN } else { 0.0 });
    assert_eq!(Frequencies::from_rows(nan), Err(Error::NotFinite { what: "the frequencies", row: 1 }));
    let block = |size| BlockLaw::new(size, Dependence::Independent, Radius::Chi);
    let laws = [
        Law::independent(4),
        Law::of_blocks([block(usize::MAX), block(4)]),
        Law::of_blocks([Run::new(block(1 << 40), 1 << 40)]),
    ];
    for law in laws {
        let refused = Frequencies::from_parts(Array2::zeros((3, 2)), law);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
}
