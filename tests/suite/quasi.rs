//! Quasi-Monte-Carlo frequencies: their law, their evenness, their errors.
//!
//! Seeds are fixed; bounds say how often an honest implementation would have failed with another seed.

use crate::common::{Name, Sample, frequencies, gaussian, normal_cdf, point, shifted, softmax};
use ndarray::{Array1, Array2};
use random_features::extend::{Coupling, Radii, Radius, Rows};
use random_features::frequency::{Halton, Sobol};
use random_features::map::AnyKernel;
use random_features::theory::{self, Dependence, Law, Pair};
use random_features::workbench::{Chi, RootDim, Run};
use random_features::{Error, rng};

const COUPLINGS: [&dyn Coupling; 2] = [&Halton, &Sobol];

/// The points of the unit cube that frequencies are images of.
fn uniform(d: usize, m: usize, coupling: &dyn Coupling, seed: u64) -> Array2<f64> {
    frequencies(d, m, coupling, seed).rows().mapv(normal_cdf)
}

#[test]
fn laws_are_stated() {
    for coupling in COUPLINGS {
        for (m, dependence) in [(1, Dependence::Independent), (100, Dependence::Unknown)] {
            let omega = frequencies(3, m, coupling, 1);
            let [Run { block, count: 1, .. }] = omega.law().runs() else {
                panic!("{coupling:?}: {:?}", omega.law())
            };
            assert_eq!((block.size, block.dependence), (m, dependence));
            assert_eq!((block.radius, block.antithetic), (Radius::Chi, false));
        }
    }
}

#[test]
fn dimensions_end_where_the_numbers_do() {
    assert_eq!((Sobol.capacity(0), Sobol.capacity(1112)), (0, 0));
    assert_eq!((Sobol.capacity(1) as u64, Sobol.capacity(1111) as u64), (1 << 32, 1 << 32));
    let direct = Sobol.draw_block(1112, 1, &Chi, &mut rng(0)).map(drop);
    for refusal in [direct, Sobol.draw(1112, 3, rng(0).next_u64()).map(drop)] {
        assert!(matches!(refusal, Err(Error::Parameter { value: 1112.0, .. })), "{refusal:?}");
        assert!(refusal.unwrap_err().to_string().contains(&Sobol::MAX_DIMENSION.to_string()));
    }
    assert_eq!(frequencies(1112, 2, &Halton, 0).dim(), 1112);
}

/// All sizes work, and no two coordinates or points are the same.
#[test]
fn every_size_is_finite() {
    for coupling in COUPLINGS {
        for (d, m) in [(1, 1), (1, 2), (1, 3), (2, 1), (5, 63), (5, 64), (5, 65), (1111, 1), (1111, 3)] {
            let omega = frequencies(d, m, coupling, 9);
            let mut all = omega.rows().iter().copied().collect::<Vec<_>>();
            all.sort_by(f64::total_cmp);
            assert!(all.iter().all(|w| w.abs() < 9.2), "{coupling:?}, d {d}, m {m}");
            assert!(all.windows(2).all(|w| w[0] < w[1]), "{coupling:?}, d {d}, m {m}");
        }
    }
}

/// Radii of another law stretch the rows, whose directions stay if the generator is the same.
#[test]
fn rows_take_other_radii() {
    for coupling in COUPLINGS {
        let block = |radii: &dyn Radii| match coupling.draw_block(3, 20, radii, &mut rng(4)).unwrap() {
            Rows::Dense(rows) => rows,
            other => panic!("{other:?}"),
        };
        let stretched = coupling.with_radii(RootDim).draw(3, 20, 4).unwrap();
        for (a, b) in block(&RootDim).rows().into_iter().zip(block(&Chi).rows()) {
            assert!((a.dot(&a) - 3.0).abs() < 1e-14);
            assert!((a.dot(&b).powi(2) - 3.0 * b.dot(&b)).abs() < 1e-12);
        }
        assert_eq!(stretched.law().radius(), RootDim.law());
    }
}

/// Points follow Halton's sequence up to one shift of each coordinate, mod 1.
#[test]
fn halton_points_are_shifted_radical_inverses() {
    let u = uniform(6, 500, &Halton, 3);
    for (column, prime) in u.columns().into_iter().zip([2, 3, 5, 7, 11, 13]) {
        // The digits of n, mirrored at the radix point.
        let digits = |n: u64| std::iter::successors(Some(n), move |n| Some(n / prime).filter(|n| *n > 0));
        let mirrored =
            |n| digits(n).zip(1..).map(|(n, k)| (n % prime) as f64 / (prime as f64).powi(k)).sum::<f64>();
        let shift = |(u, n)| (u - mirrored(n) + 1.0) % 1.0;
        let shifts: Vec<f64> = column.iter().copied().zip(1..).map(shift).collect();
        assert!(shifts.iter().all(|s| (s - shifts[0]).abs() < 1e-14), "{prime}: {shifts:?}");
    }
}

/// Kolmogorov–Smirnov on one coordinate of one vector of each independent draw, α = 1e-6 for each of the 24
/// cases: false alarms below 3e-5.
#[test]
fn coordinates_are_normal() {
    const N: usize = 5000;
    const M: usize = 13;
    let critical = (-(1e-6f64 / 2.0).ln() / 2.0).sqrt() / (N as f64).sqrt();
    for coupling in COUPLINGS {
        let draws: Vec<Array2<f64>> = (0..N as u64).map(|seed| uniform(40, M, coupling, seed)).collect();
        for (row, column) in [0, 1, 7, M - 1].into_iter().flat_map(|row| [0, 1, 39].map(|l| (row, l))) {
            let mut u: Vec<f64> = draws.iter().map(|draw| draw[[row, column]]).collect();
            u.sort_by(f64::total_cmp);
            let distance = u.iter().enumerate().map(|(i, u)| {
                let (low, high) = (i as f64 / N as f64, (i + 1) as f64 / N as f64);
                (u - low).abs().max((high - u).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < critical, "{coupling:?}, row {row}, coordinate {column}: {distance}");
        }
    }
}

/// Products of two coordinates of one vector have mean 0; so have those of the digits of two points behind
/// different first digits, which scrambling by one shift for all points would not give. A z-score beyond 4.5
/// has probability 7e-6, and there are six: false alarms below 5e-5.
#[test]
fn coordinates_and_lower_digits_are_independent() {
    const N: u64 = 20_000;
    let z = |of_draw: &dyn Fn(u64) -> f64| Sample::of(&(0..N).map(of_draw).collect::<Vec<_>>()).z(0.0);
    for coupling in COUPLINGS {
        for (a, b) in [(0, 1), (1, 4)] {
            let product = |seed| {
                let omega = frequencies(5, 6, coupling, seed);
                omega.rows()[[4, a]] * omega.rows()[[4, b]]
            };
            assert!(z(&product).abs() < 4.5, "{coupling:?}, {a}, {b}: {}", z(&product));
        }
    }
    // The points 0 and ½ of the sequence, as numbers and in their second digits.
    let digits = |seed| {
        let u = uniform(1, 2, &Sobol, seed);
        let rest = [u[[0, 0]], u[[1, 0]]].map(|u| (2.0 * u).fract() - 0.5);
        rest[0] * rest[1]
    };
    assert!(z(&digits).abs() < 4.5, "{}", z(&digits));
    let four = |seed| {
        let u = uniform(1, 4, &Sobol, seed);
        let second = |n: usize| if (2.0 * u[[n, 0]]).fract() < 0.5 { -1.0 } else { 1.0 };
        second(0) * second(1)
    };
    assert!(z(&four).abs() < 4.5, "{}", z(&four));
}

/// 2ᵏ scrambled points: one in each interval of length 2⁻ᵏ, in all coordinates.
#[test]
fn sobol_coordinates_are_nets() {
    for k in 1..=12 {
        let m = 1 << k;
        let d = if k <= 6 { 1111 } else { 40 };
        for column in uniform(d, m, &Sobol, k as u64).columns() {
            let mut cells: Vec<usize> = column.iter().map(|u| (u * m as f64) as usize).collect();
            cells.sort_unstable();
            assert!(cells.into_iter().eq(0..m), "k {k}");
        }
    }
}

/// The first two coordinates are a (0, k, 2)-net: one point in each rectangle of area 2⁻ᵏ whose sides are
/// dyadic intervals.
#[test]
fn the_first_two_sobol_coordinates_are_a_net() {
    for k in 1..=10 {
        let u = uniform(2, 1 << k, &Sobol, 77 + k);
        for a in 0..=k {
            let cell = |u: f64, digits: u64| (u * (1 << digits) as f64) as usize;
            let mut cells: Vec<usize> =
                u.rows().into_iter().map(|u| cell(u[0], a) << (k - a) | cell(u[1], k - a)).collect();
            cells.sort_unstable();
            assert!(cells.into_iter().eq(0..1 << k), "k {k}, a {a}");
        }
    }
}

fn target(name: Name) -> AnyKernel {
    if name == Name::Positive { softmax() } else { gaussian() }
}

fn estimates(
    name: Name,
    coupling: &dyn Coupling,
    m: usize,
    draws: u64,
    (x, y): (&Array1<f64>, &Array1<f64>),
) -> Vec<f64> {
    let one = |seed| {
        let omega = frequencies(x.len(), m, coupling, seed);
        name.make::<f64>(omega, target(name)).estimate(x, y).unwrap()
    };
    (0..draws).map(one).collect()
}

/// The positive map for the softmax and the trigonometric one for the Gaussian kernel. Forty z-scores beyond
/// 4.5, probability 7e-6: false alarms below 3e-4.
#[test]
fn estimates_are_unbiased() {
    let (x, y) = (point::<f64>(4, 1, 0.6), point::<f64>(4, 11, 0.5));
    let exact = |name| match name {
        Name::Positive => x.dot(&y).exp(),
        _ => (-0.5 * (&x - &y).mapv(|v| v * v).sum()).exp(),
    };
    let names = [Name::Positive, Name::Trigonometric];
    // Each draw is seen by both maps, at four pairs of one kernel value: by their mean, and alone, since coordinates may have laws of
    // their own, so that errors could cancel.
    let pairs = [&x, &y].map(|x| shifted(x, 1));
    for coupling in COUPLINGS {
        for m in [7, 32] {
            let mut samples = [const { Vec::<Array1<f64>>::new() }; 2];
            for seed in 0..8_000 {
                let omega = frequencies(4, m, coupling, seed);
                for (name, sample) in names.into_iter().zip(&mut samples) {
                    let map = name.make::<f64>(omega.clone(), target(name));
                    sample.push(map.estimate_rows(&pairs[0], &pairs[1]).unwrap());
                }
            }
            for (name, sample) in names.into_iter().zip(&samples) {
                let means: Vec<f64> = sample.iter().map(|draw| draw.mean().unwrap()).collect();
                let alone =
                    (0..4).map(|pair: usize| sample.iter().map(|draw| draw[pair]).collect::<Vec<_>>());
                for estimates in alone.chain([means]) {
                    let sample = Sample::of(&estimates);
                    let z = sample.z(exact(name));
                    assert!(
                        z.abs() < 4.5,
                        "{coupling:?}, {name:?}, m {m}: {} of {}, z {z}",
                        sample.mean,
                        exact(name)
                    );
                }
            }
        }
    }
}

/// The mean squared error in two dimensions, with 1024 frequencies and 400 draws: some 26 times (Halton) and
/// 1000 times (Sobol) below the closed form of independent frequencies, each within 8 %. The bounds lie
/// nine standard errors and more from that.
#[test]
fn errors_are_smaller_than_independent_ones() {
    let (x, y) = (point::<f64>(2, 1, 0.6), point::<f64>(2, 5, 0.5));
    let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
    let (m, exact) = (1024, (-0.5 * pair.difference).exp());
    let independent = theory::trigonometric(&pair, &Law::independent(m)).unwrap() - pair.norms;
    for (coupling, least) in COUPLINGS.into_iter().zip([15.0, 500.0]) {
        let errors = estimates(Name::Trigonometric, coupling, m, 400, (&x, &y));
        let mse = Sample::of(&errors.iter().map(|v| (v - exact).powi(2)).collect::<Vec<_>>());
        let gain = independent.exp() / mse.mean;
        assert!(gain > least, "{coupling:?}: {gain}");
    }
}
