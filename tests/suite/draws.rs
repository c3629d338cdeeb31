//! Draws: pinned streams, the law of radii, orthogonality, refusals.

use std::collections::HashSet;

use crate::common::{
    Ones, approximate_couplings, couplings, couplings_from_two_dimensions, frequencies, normal_cdf,
    quasi_couplings,
};
use approx::assert_abs_diff_eq;
use ndarray::Array2;
use rand::Rng;
use random_features::extend::{Coupling, Radii, Radius, Rows};
use random_features::frequency::{
    Antithetic, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Product, Simplex,
    SimplexPlus, Sobol,
};
use random_features::kernel::{
    Gaussian, Laplace, Matern, PoweredExponential, RationalQuadratic, RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::recipe::{AnyCoupling, Draw};
use random_features::theory::{BlockLaw, Dependence, Law};
use random_features::workbench::{Cauchy, Chi, RootDim, RotationLaw, Run, draw_with};
use random_features::{Error, rng, rng_of_step};

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
            -0.7970391491454131,
            0.6515834686190523,
            -1.5651822464365066,
            1.1582507026147304,
            0.5998875022779889,
            -0.24686555382038275,
        ],
        [
            1.1769773714119016,
            -0.7382634618066651,
            -0.667952975872253,
            0.7805856751662683,
            0.8531610588713807,
            0.43247661100801943,
        ],
        [
            -0.7216417466930516,
            0.785841100479587,
            0.22657077602160466,
            0.7216417466930516,
            -0.785841100479587,
            -0.22657077602160466,
        ],
        [
            -1.8417074476014286,
            -1.11446352819586,
            -1.9079605046012835,
            -0.09721530258960537,
            1.1493478649225857,
            0.32605007162246563,
        ],
        [
            -0.218144532229974,
            -0.693422872952752,
            0.1408469198107565,
            -0.20784842781926333,
            -0.6456363451656649,
            0.14720445260808762,
        ],
        [
            1.6729457059076687,
            -1.1949612185054777,
            -1.6729457059076687,
            0.9314590133358935,
            2.173404364450418,
            -0.9314590133358935,
        ],
        [
            0.23436006482647237,
            1.6046808135517596,
            1.356124838013102,
            -0.6800308732793188,
            0.1473991369257593,
            -0.05689482653098143,
        ],
        [
            0.33466670012252464,
            0.5783622422801787,
            -1.9535519673304849,
            -0.30269346792315194,
            -1.6274239584685344,
            -0.7541582131417846,
        ],
        [
            0.12670787458300248,
            -2.2600693211047416,
            0.9443286715463728,
            -0.1514794639252698,
            0.8732704282923018,
            -0.48719836924047155,
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

/// First entries of draws of other laws with seed 42.
#[test]
fn laws_are_pinned() {
    let golden: [(Radius, [f64; 3]); 3] = [
        (
            Radius::Matern(Smoothness::of(0.8).unwrap()),
            [-0.7941408757351024, 0.2588531048886881, 0.385649849291561],
        ),
        (
            Radius::RationalQuadratic { alpha: 1.5 },
            [-0.6678610696995754, 0.40208520606351367, -0.47634454443776425],
        ),
        (
            Radius::PoweredExponential { alpha: 1.5 },
            [-1.059443254409463, 2.7951294040773713, -0.4849856481494075],
        ),
    ];
    let found: Vec<Vec<f64>> = golden
        .iter()
        .map(|(law, _)| Orthogonal.with_radii(*law).draw(3, 4, 42).unwrap())
        .map(|omega| omega.rows().iter().take(3).copied().collect())
        .collect();
    let close = |(found, (_, golden)): (&Vec<f64>, &(Radius, [f64; 3]))| {
        found.iter().zip(golden).all(|(a, b)| (a - b).abs() < 1e-13)
    };
    assert!(found.iter().zip(&golden).all(close), "{found:?}");
}

/// The words of the crate's generator are those of ChaCha8 in `rand`, whole and in parts.
#[test]
fn generators_give_the_words_of_chacha() {
    use rand::{RngExt, SeedableRng};

    let mut expected = rand::rngs::ChaCha8Rng::seed_from_u64(7);
    expected.set_stream(3);
    let mut found = rng_of_step(7, 3);
    assert_eq!(found.next_u64(), expected.next_u64());
    assert_eq!(found.uniform(), expected.random::<f64>());
    assert_eq!(found.random_range(0..1000), expected.random_range(0..1000));
    assert_eq!(found.next_u32(), expected.next_u32());
    let (mut some, mut others) = ([0; 11], [0; 11]);
    found.fill_bytes(&mut some);
    expected.fill_bytes(&mut others);
    assert_eq!(some, others);
    assert_eq!(found.normal(), expected.sample::<f64, _>(rand_distr::StandardNormal));
    assert_eq!(rng_of_step(7, 0), rng(7));
}

/// The frequencies of a kernel are the draw of its law, which is not stated again.
#[test]
fn kernels_draw_frequencies_of_their_own_law() {
    let drawn = |coupling: AnyCoupling, radii: &dyn Radii| {
        let mut draw = Draw::new(5, 9, coupling);
        draw.radii = radii.law();
        draw.draw(7).unwrap()
    };
    let hadamard = Hadamard::default();
    assert_eq!(Gaussian::new(2.0).unwrap().draw(&Orthogonal, 5, 9, 7), Ok(drawn(Orthogonal.into(), &Chi)));
    assert_eq!(Softmax::default().draw(&hadamard, 5, 9, 7), Ok(drawn(hadamard.into(), &Chi)));
    let matern = Matern::new(Smoothness::ThreeHalves, 2.0).unwrap();
    assert_eq!(matern.draw(&Sobol, 5, 9, 7), Ok(drawn(Sobol.into(), &Smoothness::ThreeHalves)));
    let rational = RationalQuadratic::new(1.5, 2.0).unwrap();
    assert_eq!(rational.draw(&Orthogonal, 5, 9, 7), Ok(drawn(Orthogonal.into(), &rational)));
    let powered = PoweredExponential::new(1.5, 2.0).unwrap();
    assert_eq!(powered.draw(&Orthogonal, 5, 9, 7), Ok(drawn(Orthogonal.into(), &powered)));
    let regularised = RegularisedSoftmax::default();
    assert_eq!(regularised.draw(&Independent, 5, 9, 7), Ok(drawn(Independent.into(), &RootDim)));
    let laplace = Laplace::new(2.0).unwrap();
    assert_eq!(laplace.draw(&Independent, 5, 9, 7), Product(Cauchy).draw(5, 9, 7));
    assert_eq!(laplace.draw(&Sobol, 5, 9, 7), Sobol.with_marginal(Cauchy).draw(5, 9, 7));
    assert_eq!(laplace.draw(&Halton, 5, 9, 7), Halton.with_marginal(Cauchy).draw(5, 9, 7));
    assert_eq!(laplace.draw(&Antithetic(Independent), 5, 9, 7), Antithetic(Product(Cauchy)).draw(5, 9, 7));
    assert_eq!(laplace.draw(&Product(Cauchy), 5, 9, 7), Product(Cauchy).draw(5, 9, 7));
    let refused = |omega: random_features::Result<Frequencies>| {
        assert!(matches!(omega, Err(Error::Unsupported { .. })), "{omega:?}");
    };
    refused(laplace.draw(&Orthogonal, 5, 9, 7));
    refused(laplace.draw(&Hadamard::default(), 5, 9, 7));
    refused(matern.draw(&Product(Cauchy), 5, 9, 7));
    refused(matern.draw(&Orthogonal.with_radii(RootDim), 5, 9, 7));
    refused(matern.draw(&Antithetic(Sobol.with_marginal(Cauchy)), 5, 9, 7));
}

/// The law and the padded dimension of a draw are known before it is drawn, for every coupling, and rows have the angles
/// that it states.
#[test]
fn laws_are_known_before_drawing() {
    let all = couplings_from_two_dimensions().into_iter().chain(quasi_couplings());
    let products: [Box<dyn Coupling>; 5] = [
        Box::new(Product(Cauchy)),
        Box::new(Halton.with_marginal(Cauchy)),
        Box::new(Sobol.with_marginal(Cauchy)),
        Box::new(SimplexPlus::on(RotationLaw::Hadamard(Hadamard::default()))),
        Box::new(SimplexPlus::on(RotationLaw::Givens(Givens::default()))),
    ];
    let mut named = 0;
    for coupling in all.chain(approximate_couplings()).chain(products) {
        for (d, m) in [(2, 1), (2, 2), (3, 7), (5, 5), (5, 13), (16, 16), (17, 100)] {
            for radii in [&Chi as &dyn Radii, &RootDim, &Smoothness::Half] {
                let omega = draw_with(d, m, coupling.as_ref(), radii, 3).unwrap();
                assert_eq!(omega.law().len(), m);
                check_angles(&omega);
                let Some(recipe) = coupling.recipe() else { continue };
                let mut draw = Draw::new(d, m, recipe);
                draw.radii = radii.law();
                assert_eq!((&draw.law(), draw.padded_dim()), (omega.law(), omega.padded_dim()), "{draw:?}");
                assert_eq!(draw.draw(3).unwrap(), omega, "{draw:?}");
                named += 1;
            }
        }
    }
    // All but the pairs of pairs.
    assert_eq!(named, 7 * 3 * (8 + 3 + 9 + 5 - 1));
    // Nothing is drawn, and nothing grows with m.
    let huge = Draw::new(64, usize::MAX, Antithetic(Orthogonal)).law();
    assert_eq!((huge.len(), huge.runs().len()), (usize::MAX, 2));
}

/// Rows of a block are at the angles that the law states for them.
fn check_angles(omega: &Frequencies) {
    let (rows, mut start) = (omega.rows(), 0);
    let cosine = |i: usize, j: usize| {
        let (a, b) = (rows.row(i), rows.row(j));
        a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt()
    };
    for block in omega.law().runs().iter().flat_map(|run| vec![&run.block; run.count]) {
        let expected = match block.dependence {
            Dependence::Orthogonal => Some(0.0),
            Dependence::Angle { cos } => Some(cos),
            _ => None,
        };
        for (i, j) in (0..block.size).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let found = cosine(start + i, start + j);
            if block.antithetic && i % 2 == 1 && j == i - 1 {
                assert_eq!(rows.row(start + i), -&rows.row(start + j));
            } else if let Some(cos) = expected {
                let sign = if block.antithetic && (i + j) % 2 == 1 { -1.0 } else { 1.0 };
                assert!((found - sign * cos).abs() < 1e-12, "{block:?}: {found}");
            }
        }
        start += block.size;
    }
}

/// Draws of one seed that differ in anything share no numbers; equal ones are equal to the bit, however they are asked for.
#[test]
fn unequal_draws_share_no_numbers() {
    let seed = 5;
    let first = |draw: &Draw| draw.draw(seed).unwrap().squared_norms()[0].to_bits();
    let hadamard = Hadamard::default();
    let couplings: Vec<AnyCoupling> = vec![
        Independent.into(),
        Orthogonal.into(),
        Simplex::default().into(),
        Simplex::default().with_truncated_blocks().into(),
        Simplex::on(RotationLaw::Hadamard(hadamard)).into(),
        Simplex::on(RotationLaw::Givens(Givens::default())).into(),
        SimplexPlus::default().into(),
        SimplexPlus::default().with_passes(2).into(),
        hadamard.into(),
        hadamard.with_rounds(2).into(),
        Givens::default().into(),
        Givens::default().with_rounds(18).into(),
        Halton.into(),
        Sobol.into(),
        Product(Cauchy).into(),
        Halton.with_marginal(Cauchy).into(),
        Sobol.with_marginal(Cauchy).into(),
        Antithetic(Independent).into(),
        Antithetic(Orthogonal).into(),
        Antithetic(Halton).into(),
    ];
    let mut norms = HashSet::new();
    for coupling in couplings {
        for (d, m) in [(8, 64), (8, 32), (8, 1), (9, 64)] {
            for stream in [0, 1, 1 << 63] {
                for radii in [Radius::Chi, Radius::Matern(Smoothness::Half)] {
                    let mut draw = Draw::new(d, m, coupling).with_stream(stream);
                    draw.radii = radii;
                    assert!(norms.insert(first(&draw)), "{draw:?}");
                    assert_eq!(draw.draw(seed).unwrap(), draw.draw(seed).unwrap());
                }
            }
        }
    }
    let omega = Draw::new(8, 64, Orthogonal).with_radii(RootDim).draw(seed).unwrap();
    assert_eq!(Orthogonal.with_radii(RootDim).draw(8, 64, seed).unwrap(), omega);
    let pairs = Draw::new(8, 64, Antithetic(Orthogonal)).with_radii(RootDim).draw(seed).unwrap();
    assert_eq!(Antithetic(Orthogonal.with_radii(RootDim)).draw(8, 64, seed).unwrap(), pairs);
    assert!(pairs.law().runs().iter().all(|run| run.block.radius == Radius::RootDim && run.block.antithetic));
    // The first radii win: a coupling that has its own ignores others.
    assert_eq!(Orthogonal.with_radii(RootDim).with_radii(Chi).draw(8, 64, seed).unwrap(), omega);
}

/// Rows of another coupling, of which a parameter says nothing but its own stream.
#[derive(Debug)]
struct Own(#[expect(dead_code, reason = "its text counts")] u8);

impl Coupling for Own {
    fn capacity(&self, d: usize) -> usize {
        Independent.capacity(d)
    }

    fn draw_block(
        &self,
        d: usize,
        size: usize,
        radii: &dyn Radii,
        rng: &mut random_features::extend::Generator,
    ) -> random_features::Result<Rows> {
        Independent.draw_block(d, size, radii, rng)
    }
}

/// Couplings and radii of one's own have streams of their own, and their draws are numbers that were given.
#[test]
fn own_couplings_are_kept_apart() {
    let draws = [
        Softmax::default().draw(&Own(0), 3, 4, 7).unwrap(),
        Softmax::default().draw(&Own(1), 3, 4, 7).unwrap(),
        Softmax::default().draw(&Own(0), 3, 5, 7).unwrap(),
        Softmax::default().draw(&Own(0), 3, 4, 8).unwrap(),
        draw_with(3, 4, &Own(0), &Ones, 7).unwrap(),
        Independent.with_radii(Ones).draw(3, 4, 7).unwrap(),
        draw_with(3, 4, &Independent, &Ones, 7).unwrap(),
        Independent.draw(3, 4, 7).unwrap(),
    ];
    let entries: HashSet<u64> = draws.iter().map(|omega| omega.rows()[[0, 0]].to_bits()).collect();
    assert_eq!(entries.len(), draws.len());
    let named = |omega: &Frequencies| omega.drawn_from().is_some();
    assert_eq!(draws.iter().filter(|omega| named(omega)).count(), 1);
    assert_eq!(draws[0], Softmax::default().draw(&Own(0), 3, 4, 7).unwrap());
    assert_eq!(*draws[0].law(), Law::blocks(4, 4, Dependence::Unknown, Radius::Chi));
    assert_eq!(*draws[4].law(), Law::blocks(4, 4, Dependence::Unknown, Radius::Other));
    assert_eq!(*draws[5].law(), Law::blocks(4, 4, Dependence::Independent, Radius::Other));
    assert!(draws[6].rows().rows().into_iter().all(|row| (row.dot(&row) - 1.0).abs() < 1e-14));
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
    for simplex in [Simplex::default(), Simplex::default().with_truncated_blocks()] {
        let omega = frequencies(5, 13, &simplex, 1);
        let mut start = 0;
        for block in omega.law().runs().iter().flat_map(|run| vec![&run.block; run.count]) {
            let Dependence::Angle { cos } = block.dependence else { panic!("{block:?}") };
            let vertices = if simplex == Simplex::default() { block.size } else { 5 };
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
        let single = frequencies(5, 6, &simplex, 1);
        assert_eq!(single.law().runs()[1].block.dependence, Dependence::Independent);
        let error = simplex.draw(1, 3, rng(0).next_u64()).unwrap_err();
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
        _: &mut random_features::extend::Generator,
    ) -> random_features::Result<Rows> {
        unreachable!("nothing to draw")
    }
}

#[test]
fn refusals_are_sentences() {
    for d in [1, 2] {
        let error = draw_with(d, 2, &Nowhere, &Chi, rng(0).next_u64()).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }));
        assert!(
            error.to_string().ends_with("one in which the coupling exists: its capacity there is 0"),
            "{error}"
        );
    }
    // One dimension has no simplex; a single frequency of several dimensions is one.
    for coupling in [&Simplex::default() as &dyn Coupling, &SimplexPlus::default()] {
        let error = coupling.draw(1, 1, rng(0).next_u64()).unwrap_err();
        assert!(error.to_string().ends_with("take Orthogonal or Independent in one dimension"), "{error}");
        assert_eq!(coupling.draw(4, 1, rng(0).next_u64()).unwrap().m(), 1);
    }
    let mut rng = rng(0);
    for coupling in couplings() {
        for (d, m) in [(0, 3), (3, 0)] {
            let error = coupling.as_ref().draw(d, m, rng.next_u64()).unwrap_err();
            assert!(matches!(error, Error::Parameter { .. }), "{error:?}");
            assert!(error.to_string().contains("must be"), "{error}");
        }
        for (d, m) in [(usize::MAX, 2), (2, usize::MAX)] {
            let error = coupling.as_ref().draw(d, m, rng.next_u64()).unwrap_err();
            assert!(matches!(error, Error::Memory { .. }), "{error:?}");
        }
    }
    assert!(matches!(Frequencies::from_rows(Array2::zeros((0, 3))), Err(Error::Parameter { .. })));
    assert!(matches!(Frequencies::from_rows(Array2::zeros((3, 0))), Err(Error::Parameter { .. })));
    let nan = Array2::from_shape_fn((3, 2), |(i, _)| if i == 1 { f64::NAN } else { 0.0 });
    assert_eq!(
        Frequencies::from_rows(nan),
        Err(Error::NotFinite { what: "the frequencies", row: 1, column: Some(0) })
    );
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

/// The whole draw counts, not its first block: what no machine has memory for is refused before any of it is drawn.
#[test]
fn draws_beyond_memory_are_refused() {
    let memory = |d, m, coupling: &dyn Coupling| {
        let refused = coupling.draw(d, m, rng(0).next_u64()).unwrap_err();
        assert!(matches!(refused, Error::Memory { .. }), "{coupling:?} of {m} in {d}: {refused}");
    };
    let hadamard = RotationLaw::Hadamard(Hadamard::default());
    let givens = RotationLaw::Givens(Givens::default());
    let fast = [SimplexPlus::on(hadamard), SimplexPlus::on(givens)];
    for coupling in couplings().iter().chain(&couplings_from_two_dimensions()).chain(&approximate_couplings())
    {
        for (d, m) in [(3, 1 << 46), (64, 1 << 50)] {
            memory(d, m, coupling.as_ref());
        }
    }
    for coupling in &fast {
        memory(3, 1 << 46, coupling);
    }
    memory(1, 1 << 46, &Orthogonal);
    memory(1, 1 << 46, &Antithetic(Orthogonal));
    // One row of a huge block: a rotation of its dimension, a whole simplex, a sieve of primes.
    let truncated = Simplex::default().with_truncated_blocks();
    let one: [&dyn Coupling; 8] = [
        &Hadamard::default(),
        &Givens::default(),
        &Simplex::on(hadamard),
        &Simplex::on(givens),
        &fast[0],
        &fast[1],
        &Halton,
        &Orthogonal,
    ];
    for coupling in one {
        memory(1 << 46, 1, coupling);
    }
    memory(1 << 24, 1, &truncated);
    for radii in [&Chi as &dyn Radii, &RootDim, &Smoothness::Half] {
        assert!(matches!(radii.draw(4, 1 << 48, &mut rng(0)), Err(Error::Memory { .. })), "{radii:?}");
    }
}

/// Passes and rounds of which nobody has a use would never end.
#[test]
fn passes_and_rounds_are_limited() {
    let parameter = |coupling: &dyn Coupling| {
        let refused = coupling.draw(4, 4, rng(0).next_u64()).unwrap_err();
        assert!(matches!(refused, Error::Parameter { .. }), "{coupling:?}: {refused}");
    };
    for many in [1001, 1 << 40, usize::MAX] {
        let (hadamard, givens) = (Hadamard::default().with_rounds(many), Givens::default().with_rounds(many));
        parameter(&SimplexPlus::default().with_passes(many));
        parameter(&hadamard);
        parameter(&givens);
        for rotation in [RotationLaw::Hadamard(hadamard), RotationLaw::Givens(givens)] {
            parameter(&Simplex::on(rotation));
            parameter(&SimplexPlus::on(rotation));
        }
    }
    parameter(&Hadamard::default().with_rounds(65));
    parameter(&Givens::default().with_rounds(513));
    for coupling in [
        &SimplexPlus::default().with_passes(1000) as &dyn Coupling,
        &Hadamard::default().with_rounds(64),
        &Givens::default().with_rounds(512),
    ] {
        assert_eq!(coupling.draw(4, 4, rng(0).next_u64()).unwrap().m(), 4);
    }
}
