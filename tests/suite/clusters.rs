//! The cluster hybrid: one map for each pair of clusters; and the k-means that finds them.

use crate::common::{Sample, frequencies, gaussian, point, points, softmax};
use ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, arr1, arr2, concatenate, s};
use num_complex::Complex64;
use random_features::apply::Smoother;
use random_features::compose::{Centres, Clustered, Coefficient, Diagonal, Hybrid};
use random_features::data::Clustering;
use random_features::extend::{Coupling, Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Hadamard, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::{AnyKernel, Recipe, Transform};
use random_features::recipe::Draw;

use random_features::testing::conform;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::diagonal;
use random_features::workbench::{Composite, Formula};
use random_features::{ComplexExponential, Error, Features, Map, Positive, Real, Side, Trigonometric, rng};

const FORMULAS: [Formula; 4] = [Formula::Complex, Formula::Real, Formula::Robust, Formula::RobustReal];
const D: usize = 6;

/// Three clusters of queries and two of keys, in ℝ⁶, with centres of this norm.
fn centres(norm: f64) -> [Array2<f64>; 2] {
    let side = |seeds: &[usize]| {
        let rows: Vec<f64> = seeds.iter().flat_map(|seed| point::<f64>(D, *seed, norm).to_vec()).collect();
        Array2::from_shape_vec((seeds.len(), D), rows).unwrap()
    };
    [side(&[0, 4, 9]), side(&[2, 6])]
}

/// `n` points around the centres, in turn.
fn around<T: Real>(centres: &Array2<f64>, n: usize, spread: f64) -> Array2<T> {
    let offsets = points::<f64>(n, centres.ncols(), spread);
    Array2::from_shape_fn(offsets.dim(), |(i, k)| {
        T::narrow(centres[[i * i % centres.nrows(), k]] + offsets[[i, k]])
    })
}

/// Clusters with the spread of the points that belong to them.
fn clusterings(norm: f64, spread: f64) -> [Clustering; 2] {
    centres(norm).map(|centres| {
        let members = around::<f64>(&centres, 200, spread);
        Clustering::new(centres).unwrap().with_spread_of(&members).unwrap()
    })
}

fn map<T: Real>(norm: f64, formula: Formula, symmetry: Symmetry, target: AnyKernel, seed: u64) -> Map<T> {
    let [queries, keys] = clusterings(norm, 0.2);
    let omega = frequencies(D, 7, &Independent, seed);
    let centres = Centres::new(&queries, &keys).with_diagonal(formula).with_symmetry(symmetry);
    Clustered::by_centres(centres, omega, target).unwrap()
}

/// Values with those of absent blocks, which may be anything, set to 0; and scales.
fn present<T: Real>(features: &Features<T>) -> (Array2<T>, Array2<f64>) {
    let (mut values, scales) = (features.mantissas().to_owned(), features.log_scales().to_owned());
    mask(&mut values, &scales, features.blocks());
    (values, scales)
}

fn mask<T: Real>(values: &mut Array2<T>, scales: &Array2<f64>, blocks: &[usize]) {
    for (mut row, scales) in values.rows_mut().into_iter().zip(scales.rows()) {
        let mut start = 0;
        for (width, scale) in blocks.iter().zip(scales) {
            if *scale == f64::NEG_INFINITY {
                row.slice_mut(s![start..start + width]).fill(T::zero());
            }
            start += width;
        }
    }
}

/// Blocks and estimates are those of the base of the pair of clusters, made here on its own.
fn is_its_bases<T: Real>(formula: Formula, symmetry: Symmetry, target: AnyKernel, norm: f64) {
    let map = map::<T>(norm, formula, symmetry, target.clone(), 1);
    let [queries, keys] = clusterings(norm, 0.2);
    let (x, y) = (around::<T>(queries.centres(), 20, 0.2), around::<T>(keys.centres(), 30, 0.2));
    let (left, right) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &y).unwrap());
    let gram = map.gram(&x, &y).unwrap();
    let clusters = |clustering: &Clustering, points: &Array2<T>| -> Vec<usize> {
        points.rows().into_iter().map(|row| clustering.nearest(&row).unwrap()).collect()
    };
    let (x_clusters, y_clusters) = (clusters(&queries, &x), clusters(&keys, &y));
    assert_eq!(x_clusters.iter().max(), Some(&1)); // i² mod 3 is never 2: a cluster without points
    assert_eq!(y_clusters.iter().max(), Some(&1));
    let mut start = 0;
    for (block, (i, j)) in (0..3).flat_map(|i| [(i, 0), (i, 1)]).enumerate() {
        let a = Diagonal::from(formula).entries(&queries, i, &keys, j).unwrap();
        let omega = frequencies(D, 7, &Independent, 1);
        let a = Transform::diagonal(a).unwrap();
        let base = ComplexExponential::new(a, symmetry).build::<T>(omega, target.clone()).unwrap();
        let columns = start..start + base.feature_dim();
        start = columns.end;
        let check = |features: &Features<T>, side, points: &Array2<T>, here: &dyn Fn(usize) -> bool| {
            let own = base.features(side, points).unwrap();
            for r in 0..points.nrows() {
                let scale = features.log_scales()[[r, block]];
                if here(r) {
                    assert_eq!(scale, own.log_scales()[[r, 0]]);
                    assert_eq!(features.mantissas().slice(s![r, columns.clone()]), own.mantissas().row(r));
                } else {
                    assert_eq!(scale, f64::NEG_INFINITY);
                }
            }
            own
        };
        let own_left = check(&left, Side::X, &x, &|r| x_clusters[r] == i);
        let own_right = check(&right, Side::Y, &y, &|r| y_clusters[r] == j);
        for (p, q) in (0..20).flat_map(|p| (0..30).map(move |q| (p, q))) {
            if (x_clusters[p], y_clusters[q]) != (i, j) {
                continue;
            }
            let (x, y) = (x.row(p), y.row(q));
            let (log, own) = (map.log_estimate(&x, &y).unwrap(), base.log_estimate(&x, &y).unwrap());
            assert_eq!((log.sign, log.ln_abs), (own.sign, own.ln_abs));
            assert_eq!(map.log_variance(&x, &y).unwrap(), base.log_variance(&x, &y).unwrap());
            // Features of size at most 1 cancel: relative to the sum of their sizes.
            let scales = own_left.log_scales()[[p, 0]] + own_right.log_scales()[[q, 0]];
            let size = (base.feature_dim() as f64 * scales.exp()).max(own.value().abs());
            let tolerance = T::epsilon().widen() * (40.0 + 4.0 * norm * norm) * size;
            let (value, own) = (gram[[p, q]].widen(), own.value());
            let beyond = T::narrow(size).is_infinite();
            assert!(
                beyond || (value - own).abs() <= tolerance + T::min_positive_value().widen(),
                "{formula:?}: {value} instead of {own}"
            );
        }
    }
    assert_eq!(start, map.feature_dim());
    // A row alone is a whole tile, and not gathered.
    let (alone, gathered) = (map.features(Side::X, x.slice(s![3..4, ..])).unwrap(), present(&left));
    assert_eq!(present(&alone).0.row(0), gathered.0.row(3));
}

#[test]
fn features_are_those_of_the_pairs_bases() {
    for formula in FORMULAS {
        for symmetry in [Symmetry::Plain, Symmetry::Symmetric] {
            for norm in [1.0, 5.0, 20.0] {
                for target in [softmax(), gaussian(), Softmax::new(2.0).unwrap().into()] {
                    is_its_bases::<f64>(formula, symmetry, target.clone(), norm);
                    is_its_bases::<f32>(formula, symmetry, target, norm);
                }
            }
        }
    }
}

/// ζ = 0 at the centres: any draw gives e^{x·y}, with an error of rounding in exponents of up to |ω·Ax| + ½‖x‖².
#[test]
fn exact_at_the_centres() {
    for norm in [0.5, 1.0, 5.0, 20.0] {
        for seed in 0..10 {
            let coupling: [&dyn Coupling; 3] = [&Independent, &Orthogonal, &Hadamard::default()];
            let [queries, keys] = centres(norm).map(|centres| Clustering::new(centres).unwrap());
            for formula in [Formula::Complex, Formula::Robust] {
                let omega = || frequencies(D, 5, coupling[seed as usize % 3], seed);
                let centres = Centres::new(&queries, &keys).with_diagonal(formula);
                let map = Clustered::<Map<f64>>::by_centres(centres, omega(), Softmax::default()).unwrap();
                let single = Clustered::<Map<f32>>::by_centres(centres, omega(), Softmax::default()).unwrap();
                for (x, y) in queries
                    .centres()
                    .rows()
                    .into_iter()
                    .flat_map(|x| keys.centres().rows().into_iter().map(move |y| (x, y)))
                {
                    let log = map.log_estimate(&x, &y).unwrap();
                    let error = (log.ln_abs - x.dot(&y)).abs();
                    assert!(
                        log.sign == 1.0 && error < 1e-14 * (20.0 + 100.0 * norm + norm * norm),
                        "{error}"
                    );
                    let variance = map.log_variance(&x, &y).unwrap();
                    assert!(variance.is_none_or(|v| v < 2.0 * x.dot(&y) - 55.0), "{variance:?}");
                    let (x32, y32) = (x.mapv(|v| v as f32), y.mapv(|v| v as f32));
                    let error = (single.log_estimate(&x32, &y32).unwrap().ln_abs - x.dot(&y)).abs();
                    assert!(error < 1e-6 * (20.0 + 100.0 * norm + norm * norm), "{error}");
                }
            }
        }
    }
}

/// Mean and mean squared error of 10 000 draws, for a pair of points in each pair of clusters: 24 numbers of each kind,
/// each normal to good accuracy since ‖ζ‖² is small. Beyond 5 standard errors in one of 48: 1 run in 36 000. A bias of
/// 2 % would be seen, and a tenth of the variance.
#[test]
fn unbiased_with_the_stated_variance() {
    for formula in FORMULAS {
        let real = matches!(formula, Formula::Real | Formula::RobustReal);
        let (norm, spread) = if real { (0.35, 0.1) } else { (0.7, 0.2) };
        let [queries, keys] = clusterings(norm, spread);
        let (x, y) = (around::<f64>(queries.centres(), 3, spread), around::<f64>(keys.centres(), 2, spread));
        let x = concatenate![Axis(0), x.slice(s![..2, ..]), (queries.centres() + 0.05).slice(s![2.., ..])];
        let centres = Centres::new(&queries, &keys).with_diagonal(formula);
        let omega = Draw::new(D, 4, Independent);
        // Matrices are found once for all draws.
        let recipe = Clustered::<Recipe>::by_centres(centres, omega, Softmax::default()).unwrap();
        let (x, y) = (x.select(Axis(0), &[0, 0, 1, 1, 2, 2]), y.select(Axis(0), &[0, 1, 0, 1, 0, 1]));
        let mut estimates = vec![Vec::new(); 6];
        for seed in 0..10_000 {
            let map: Map<f64> = recipe.draw(seed).unwrap();
            let of_pairs = map.estimate_rows(&x, &y).unwrap();
            estimates.iter_mut().zip(&of_pairs).for_each(|(estimates, own)| estimates.push(*own));
        }
        for (k, estimates) in estimates.iter().enumerate() {
            let (x, y) = (x.row(k), y.row(k));
            let exact = x.dot(&y).exp();
            let variance = recipe.log_variance(&x, &y).unwrap().unwrap().exp();
            // At most ‖ζ‖², and equal for real A; m = 4.
            assert!((4.0 * variance / (exact * exact)).ln_1p() < 0.6);
            let n = estimates.len() as f64;
            let z = (Sample::of(estimates).mean - exact) / (variance / n).sqrt();
            assert!(z.abs() < 5.0, "{formula:?}: mean {z}");
            let squares: Vec<f64> = estimates.iter().map(|e| (e - exact).powi(2)).collect();
            let squares = Sample::of(&squares);
            let z = squares.z(variance);
            assert!(z.abs() < 5.0, "{formula:?}: mean squared error {z}");
            assert!(squares.error < 0.1 * variance / 3.0, "{formula:?}: too few draws");
        }
    }
}

/// A cluster hybrid that fills its absent blocks with NaN.
#[derive(Debug)]
struct Poisoned<T: Real>(Map<T>);

impl<T: Real> FeatureMap<T> for Poisoned<T> {
    fn facts(&self) -> Facts {
        self.0.facts().clone()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        self.0.fill(side, x, form, tile).unwrap();
        for i in 0..tile.rows() {
            let row = tile.row(i);
            let mut start = 0;
            for (width, scale) in self.0.blocks().iter().zip(row.log_scales) {
                if *scale == f64::NEG_INFINITY {
                    row.values[start..start + width].fill(T::nan());
                    row.signs.iter_mut().skip(start).take(*width).for_each(|sign| *sign = T::nan());
                }
                start += width;
            }
        }
    }
}

fn poison_is_not_read<T: Real>(formula: Formula, norm: f64) {
    let clean = map::<T>(norm, formula, Symmetry::Plain, softmax(), 3);
    let poisoned = Map::of_feature_map(Poisoned(clean.clone())).unwrap();
    assert!(poisoned.facts().logarithms);
    let [queries, keys] = centres(norm);
    let (x, y) = (around::<T>(&queries, 50, 0.3), around::<T>(&keys, 90, 0.3));
    assert!(poisoned.features(Side::X, &x).unwrap().mantissas().iter().any(|v| v.is_nan()));
    let gram = clean.gram(&x, &y).unwrap();
    assert!(gram.iter().all(|v| !v.is_nan()));
    assert_eq!(poisoned.gram(&x, &y).unwrap(), gram);
    let sums = |map: &Map<T>| map.features(Side::X, &x).unwrap().to_array();
    assert_eq!(sums(&poisoned), sums(&clean));
    let (first, second) = (x.row(0), y.row(1));
    assert_eq!(poisoned.estimate(&first, &second).unwrap(), clean.estimate(&first, &second).unwrap());
    let targets = Array2::from_shape_fn((90, 2), |(i, k)| T::narrow((i % 5 + k) as f64));
    let smooth = |map: &Map<T>| {
        let mut smoother = Smoother::new(map.clone(), 2).unwrap();
        smoother.update(&y, &targets).unwrap();
        smoother.predict(&x).unwrap()
    };
    assert_eq!(smooth(&poisoned), smooth(&clean));
}

#[test]
fn absent_blocks_are_not_read() {
    for (formula, norm) in FORMULAS.into_iter().zip([1.0, 3.0, 2.0, 4.0]) {
        poison_is_not_read::<f64>(formula, norm);
        poison_is_not_read::<f32>(formula, norm);
    }
}

/// Sums of products in blocks are what the smoother computes.
#[test]
fn smoother_is_the_weighted_mean() {
    // Complex ones have features of both signs.
    for formula in [Formula::Real, Formula::Complex] {
        let map = map::<f64>(1.0, formula, Symmetry::Plain, softmax(), 3);
        let [queries, keys] = centres(1.0);
        let (x, y) = (around::<f64>(&queries, 20, 0.3), around::<f64>(&keys, 40, 0.3));
        let targets = Array2::from_shape_fn((40, 1), |(i, _)| (i % 5) as f64);
        let mut smoother = Smoother::new(map.clone(), 1).unwrap();
        smoother.update(&y, &targets).unwrap();
        let gram = map.gram(&x, &y).unwrap();
        let expected = gram.dot(&targets) / gram.sum_axis(Axis(1)).insert_axis(Axis(1));
        let error = (smoother.predict(&x).unwrap() - expected).mapv(f64::abs);
        assert!(error.iter().all(|e| *e < 1e-12), "{formula:?}: {error}");
    }
}

fn batch_threads_layouts<T: Real>(formula: Formula) {
    let map = map::<T>(1.5, formula, Symmetry::Plain, gaussian(), 5);
    for centres in centres(1.5) {
        conform(&map, &around::<T>(&centres, 700, 0.8)).unwrap();
    }
}

#[test]
fn rows_threads_and_layouts_change_no_bit() {
    for formula in FORMULAS {
        batch_threads_layouts::<f32>(formula);
        batch_threads_layouts::<f64>(formula);
    }
}

#[test]
fn rows_that_are_not_finite() {
    let map = map::<f64>(1.0, Formula::Complex, Symmetry::Plain, softmax(), 2);
    let [queries, keys] = centres(1.0);
    let clean = around::<f64>(&queries, 30, 0.2);
    let y = around::<f64>(&keys, 10, 0.2);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        let mut x = clean.clone();
        x[[7, 2]] = bad;
        let features = map.features(Side::X, &x).unwrap();
        assert!(features.mantissas().row(7).iter().all(|v| v.is_nan()));
        assert!(features.log_scales().row(7).iter().all(|v| v.is_nan()));
        let (mut gram, mut expected) = (map.gram(&x, &y).unwrap(), map.gram(&clean, &y).unwrap());
        assert!(gram.row(7).iter().all(|v| v.is_nan()));
        assert!(map.estimate(&x.row(7), &y.row(0)).unwrap().is_nan());
        gram.row_mut(7).fill(0.0);
        expected.row_mut(7).fill(0.0);
        assert_eq!(gram, expected);
    }
}

#[test]
fn promises() {
    for formula in FORMULAS {
        let map = map::<f32>(1.0, formula, Symmetry::Plain, softmax(), 2);
        let real = matches!(formula, Formula::Real | Formula::RobustReal);
        assert_eq!((map.facts().symmetric, map.facts().non_negative), (false, real));
        let [x, _] = centres(1.0);
        let x = around::<f32>(&x, 30, 0.5);
        let features = map.features(Side::X, &x).unwrap();
        assert!(features.gram(&features).is_err());
        assert!(!real || present(&features).0.iter().all(|v| *v >= 0.0));
        assert!(present(&features).0.iter().all(|v| v.abs() <= 1.0));
        let log = map.kernel().unwrap().log_value(&x.row(0), &x.row(1)).unwrap().ln_abs;
        assert!((log - f64::from(x.row(0).dot(&x.row(1)))).abs() < 1e-5);
    }
    // One cluster on each side with A = I is the positive map.
    let one = || Clustering::new(arr2(&[[1.0, -1.0]])).unwrap();
    let omega = || frequencies(2, 8, &Independent, 1);
    let other = Clustering::new(arr2(&[[-1.0, 1.0]])).unwrap();
    let map =
        Clustered::<Map<f64>>::by_centres(Centres::new(&one(), &other), omega(), Softmax::default()).unwrap();
    assert!(map.facts().symmetric && map.facts().non_negative);
    let x = points::<f64>(5, 2, 1.0);
    let positive = Positive.softmax::<f64>(omega()).unwrap();
    assert!((map.gram(&x, &x).unwrap() - positive.gram(&x, &x).unwrap()).iter().all(|e| e.abs() < 1e-13));
    // Features of the same map made twice pair, those of others do not.
    let make = |seed, formula| map_of(seed, formula).features(Side::X, &x).unwrap();
    fn map_of(seed: u64, formula: Formula) -> Map<f64> {
        let side = |shift| Clustering::new(arr2(&[[1.0, shift], [-1.0, 0.5]])).unwrap();
        let omega = frequencies(2, 8, &Independent, seed);
        let (queries, keys) = (side(0.5), side(-0.25));
        let centres = Centres::new(&queries, &keys).with_diagonal(formula);
        Clustered::by_centres(centres, omega, Softmax::default()).unwrap()
    }
    let right = map_of(1, Formula::Real).features(Side::Y, &x).unwrap();
    assert!(make(1, Formula::Real).gram(&right).is_ok());
    assert!(matches!(make(2, Formula::Real).gram(&right), Err(Error::Pairing { .. })));
    assert!(matches!(make(1, Formula::Robust).gram(&right), Err(Error::Pairing { .. })));
}

#[test]
fn any_bases() {
    let [queries, keys] = clusterings(1.0, 0.2);
    let base = |(i, j): (usize, usize)| -> Map<f64> {
        let omega = frequencies(D, 3 + i + j, &Orthogonal, (i * 2 + j) as u64);
        match (i + j) % 2 {
            0 => Trigonometric.softmax(omega).unwrap(),
            _ => Positive.softmax(omega).unwrap(),
        }
    };
    // Those of the first cluster of queries first.
    let bases: Vec<Map<f64>> = (0..3).flat_map(|i| [(i, 0), (i, 1)]).map(base).collect();
    let map = Clustered::from_bases(queries.clone(), keys.clone(), bases.clone()).unwrap();
    let (x, y) = (around::<f64>(queries.centres(), 30, 0.2), around::<f64>(keys.centres(), 20, 0.2));
    let gram = map.gram(&x, &y).unwrap();
    for ((p, q), value) in gram.indexed_iter() {
        let (x, y) = (x.row(p), y.row(q));
        let base = &bases[2 * queries.nearest(&x).unwrap() + keys.nearest(&y).unwrap()];
        let expected = base.estimate(&x, &y).unwrap();
        assert!((value - expected).abs() < 1e-12 * (1.0 + expected.abs()));
        assert!((map.estimate(&x, &y).unwrap() - expected).abs() < 1e-12 * (1.0 + expected.abs()));
        assert_eq!(map.log_variance(&x, &y).unwrap(), base.log_variance(&x, &y).unwrap());
    }
    // Made again it is the same map.
    let other = Clustered::from_bases(queries.clone(), keys.clone(), bases.clone()).unwrap();
    assert_eq!(other.gram(&x, &y).unwrap(), gram);
    assert_eq!(other.identity(), map.identity());
    let shape = |map: Result<Map<f64>, Error>| assert!(matches!(map, Err(Error::Shape { .. })), "{map:?}");
    shape(Clustered::from_bases(queries.clone(), keys.clone(), bases[..5].to_vec()));
    shape(Clustered::from_bases(queries.clone(), keys.clone(), Vec::new()));
    shape(Clustered::from_bases(queries.clone(), keys.clone(), [&bases[..], &bases[..1]].concat()));
    let narrow = Positive.softmax::<f64>(frequencies(D - 1, 3, &Independent, 1)).unwrap();
    shape(Clustered::from_bases(queries.clone(), keys.clone(), vec![narrow; 6]));
    let one = Clustering::new(arr2(&[[1.0]])).unwrap();
    shape(Clustered::from_bases(queries, one, bases[..3].to_vec()));
    // A cluster hybrid is a base too: half of it and half of positive features.
    let positive = Positive.softmax::<f64>(frequencies(D, 9, &Independent, 77)).unwrap();
    let expected = (map.gram(&x, &y).unwrap() + positive.gram(&x, &y).unwrap()) / 2.0;
    let half = Coefficient::constant(0.5).unwrap();
    let hybrid = Hybrid::sum(vec![(half, map)], positive).unwrap();
    let error = hybrid.gram(&x, &y).unwrap() - expected;
    assert!(error.iter().all(|e| e.abs() < 1e-12));
}

#[test]
fn entries_of_the_diagonals() {
    let [queries, keys] = clusterings(1.0, 0.4);
    let entries = |formula: Formula, q: &Clustering, k: &Clustering| {
        Diagonal::from(formula).entries(q, 1, k, 0).unwrap()
    };
    let (r, q) = (queries.centres().row(1).to_vec(), keys.centres().row(0).to_vec());
    assert_eq!(entries(Formula::Complex, &queries, &keys), diagonal::complex(&r, &q, 1e-3));
    let real: Vec<Complex64> = diagonal::real(&r, &q, 1e-3).into_iter().map(Complex64::from).collect();
    assert_eq!(entries(Formula::Real, &queries, &keys), real);
    // Without spread the robust choices are those by centres.
    let bare = |clusters: &Clustering| Clustering::new(clusters.centres().clone()).unwrap();
    for (robust, plain) in [(Formula::Robust, Formula::Complex), (Formula::RobustReal, Formula::Real)] {
        let robust = entries(robust, &bare(&queries), &bare(&keys));
        let plain = entries(plain, &queries, &keys);
        assert!(robust.iter().zip(plain).all(|(a, b)| (a - b).norm() < 1e-14 * b.norm()));
    }
    // With spread they have the least mean ‖ζ‖² over all pairs of points.
    let side = |clusters: &Clustering, cluster: usize| -> Vec<Vec<f64>> {
        let all = around::<f64>(clusters.centres(), 200, 0.4);
        let members = all.rows().into_iter().filter(|row| clusters.nearest(row).unwrap() == cluster);
        members.map(|row| row.to_vec()).collect()
    };
    let (xs, ys) = (side(&queries, 1), side(&keys, 0));
    let mean = |a: &[Complex64]| -> f64 {
        xs.iter().flat_map(|x| ys.iter().map(|y| diagonal::loss(a, x, y))).sum::<f64>()
    };
    for formula in [Formula::Robust, Formula::RobustReal] {
        let best = entries(formula, &queries, &keys);
        for (k, factor) in (0..D).flat_map(|k| [(k, 0.9), (k, 1.1)]) {
            let mut other = best.clone();
            other[k] *= factor;
            assert!(mean(&other) > mean(&best));
        }
    }
    // Limits.
    let zeros = Clustering::new(arr2(&[[0.0, 1.0, 0.0, 1e-9]])).unwrap();
    let ones = Clustering::new(arr2(&[[1.0, 0.0, 0.0, 1.0]])).unwrap();
    for formula in FORMULAS {
        let limited = Diagonal::from(formula).with_limit(0.25);
        let sizes: Vec<f64> =
            limited.entries(&zeros, 0, &ones, 0).unwrap().iter().map(|a| a.norm()).collect();
        assert_eq!(sizes, [4.0, 0.25, 1.0, 4.0]);
    }
    for epsilon in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        let limited = Diagonal::real().with_limit(epsilon);
        let error = limited.entries(&zeros, 0, &ones, 0).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "ε", .. }), "{error}");
    }
    assert!(Diagonal::from(Formula::Real).entries(&zeros, 1, &ones, 0).is_err());
    assert!(Diagonal::from(Formula::Real).entries(&zeros, 0, &queries, 0).is_err());
}

#[test]
fn constructors_refuse_what_does_not_fit() {
    let [queries, keys] = clusterings(1.0, 0.2);
    let make = |d, target: AnyKernel| {
        let omega = frequencies(d, 4, &Independent, 1);
        Clustered::<Map<f64>>::by_centres(Centres::new(&queries, &keys), omega, target)
    };
    assert!(matches!(make(D + 1, softmax()), Err(Error::Shape { .. })));
    assert!(matches!(make(D, Gaussian::new(vec![1.0, 2.0]).unwrap().into()), Err(Error::Shape { .. })));
    let (x, y) = (around::<f64>(queries.centres(), 30, 0.2), around::<f64>(keys.centres(), 20, 0.2));
    let data = |clusters: (usize, usize), x: &Array2<f64>| {
        let mut rng = rng(1);
        let queries = Clustering::of(x, clusters.0, rng.next_u64())?;
        let keys = Clustering::of(&y, clusters.1, rng.next_u64())?;
        let centres = Centres::new(&queries, &keys).with_diagonal(Formula::Robust);
        Clustered::<Map<f64>>::by_centres(centres, frequencies(D, 4, &Independent, 1), Softmax::default())
    };
    let map = data((2, 2), &x).unwrap();
    let Some(Recipe::Composite(recipe)) = map.recipe() else { panic!("{map:?}") };
    let Composite::Clustered(Clustered { queries, keys, bases, .. }) = *recipe else { panic!("{recipe:?}") };
    assert_eq!((bases.len(), queries.len(), keys.len()), (4, 2, 2));
    assert!(data((0, 2), &x).is_err() && data((2, 21), &x).is_err());
    assert!(data((2, 2), &x.slice(s![.., ..3]).to_owned()).is_err());
}

#[test]
fn k_means_recovers_separated_clusters() {
    // Centres at distances of 14 and more, points within 1.7 of them.
    let centres =
        Array2::from_shape_fn((5, 3), |(i, k)| if k == i % 3 { 10.0 + 10.0 * (i / 3) as f64 } else { 0.0 });
    let all = Array2::from_shape_fn((500, 3), |(i, k)| {
        centres[[i * 7 % 5, k]] + points::<f64>(500, 3, 1.0)[[i, k]] * f64::from(u8::from(i != 0))
    });
    for seed in 0..20 {
        let clusters = Clustering::of(&all, 5, seed).unwrap();
        let names: Vec<usize> =
            centres.rows().into_iter().map(|centre| clusters.nearest(&centre).unwrap()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4], "seed {seed}");
        for (c, &name) in names.iter().enumerate() {
            let members: Vec<usize> = (0..500).filter(|i| i * 7 % 5 == c).collect();
            let own = all.select(Axis(0), &members);
            assert!(own.rows().into_iter().all(|row| clusters.nearest(&row).unwrap() == name));
            let close = |a: Array1<f64>, b: Array1<f64>| (a - b).iter().all(|e| e.abs() < 1e-11);
            assert!(close(own.mean_axis(Axis(0)).unwrap(), clusters.centres().row(name).to_owned()));
            let squares = own.mapv(|v| v * v).mean_axis(Axis(0)).unwrap();
            assert!(close(squares, clusters.mean_squares().row(name).to_owned()));
        }
    }
}

#[test]
fn k_means_depends_on_points_and_seed_alone() {
    let x = points::<f32>(200, 4, 1.0);
    let clusters = |x: ArrayView2<'_, f32>, seed| Clustering::of(&x, 6, seed).unwrap();
    let plain = clusters(x.view(), 1);
    assert_eq!(clusters(x.view(), 1), plain);
    assert_ne!(clusters(x.view(), 2), plain);
    let mut columns = Array2::zeros(x.dim().f());
    columns.assign(&x);
    assert_eq!(clusters(columns.view(), 1), plain);
    assert_eq!(Clustering::of(&x.mapv(f64::from), 6, 1).unwrap(), plain);
    // Lloyd's steps are over: each centre is the mean of its points.
    let near: Vec<usize> = x.rows().into_iter().map(|row| plain.nearest(&row).unwrap()).collect();
    for (c, centre) in plain.centres().rows().into_iter().enumerate() {
        let members: Vec<usize> = (0..200).filter(|i| near[*i] == c).collect();
        let mean = x.mapv(f64::from).select(Axis(0), &members).mean_axis(Axis(0)).unwrap();
        assert!((mean - centre).iter().all(|e| e.abs() < 1e-14));
    }
}

#[test]
fn k_means_of_little() {
    let equal = Array2::from_elem((50, 3), 0.1f64);
    let one = Clustering::of(&equal, 1, 1).unwrap();
    assert_eq!(one.centres(), &equal.slice(s![..1, ..]));
    assert!(matches!(Clustering::of(&equal, 2, 1), Err(Error::Parameter { .. })));
    // As many clusters as distinct points: each its own.
    let mut two = equal.clone();
    two.slice_mut(s![20.., ..]).fill(0.7);
    let mut found = Clustering::of(&two, 2, 1).unwrap().centres().column(0).to_vec();
    found.sort_by(f64::total_cmp);
    assert_eq!(found, [0.1, 0.7]);
    assert!(matches!(Clustering::of(&two, 3, 1), Err(Error::Parameter { .. })));
    assert!(matches!(Clustering::of(&two, 0, 1), Err(Error::Parameter { .. })));
    assert!(matches!(Clustering::of(&two, 51, 1), Err(Error::Parameter { .. })));
    assert!(matches!(Clustering::of(&two.slice(s![..0, ..]), 1, 1), Err(Error::NoData { .. })));
    assert!(matches!(Clustering::of(&two.slice(s![.., ..0]), 1, 1), Err(Error::Parameter { .. })));
    for bad in [f64::NAN, f64::INFINITY, 1e154] {
        let mut wrong = two.clone();
        wrong[[9, 1]] = bad;
        assert!(matches!(Clustering::of(&wrong, 2, 1), Err(Error::NotFinite { row: 9, .. })));
        assert!(matches!(Clustering::new(wrong), Err(Error::NotFinite { row: 9, .. })));
    }
    // Sizes near the limits, and a distance whose square underflows.
    let far = arr2(&[[4e153, 0.0], [-4e153, 0.0], [0.0, 4e153]]);
    assert_eq!(Clustering::of(&far, 3, 1).unwrap().len(), 3);
    assert!(Clustering::of(&arr2(&[[1e-170], [2e-170]]), 2, 1).is_err());
}

#[test]
fn nearest_centres() {
    let clusters = Clustering::new(arr2(&[[0.0, 0.0], [2.0, 0.0], [2.0, 0.0]])).unwrap();
    assert_eq!(clusters.nearest(&arr1(&[1.0f32, 5.0])).unwrap(), 0);
    assert_eq!(clusters.nearest(&arr1(&[1.1f32, 5.0])).unwrap(), 1);
    assert!(matches!(clusters.nearest(&arr1(&[1.0])), Err(Error::Shape { .. })));
    assert!(matches!(clusters.nearest(&arr1(&[1.0, f64::NAN])), Err(Error::NotFinite { .. })));
    // Far from the origin, near each other.
    let far = Clustering::new(arr2(&[[1e8], [1e8 + 1.0]])).unwrap();
    assert_eq!(far.nearest(&arr1(&[1e8 + 0.75])).unwrap(), 1);
    let squares = |v: f64| Clustering::from_parts(arr2(&[[1.0]]), arr2(&[[v]]));
    assert!(squares(0.0).is_ok() && squares(-1.0).is_err() && squares(f64::NAN).is_err());
    assert!(Clustering::from_parts(arr2(&[[1.0]]), arr2(&[[1.0, 2.0]])).is_err());
    assert!(
        Clustering::new(Array2::zeros((0, 2))).is_err() && Clustering::new(Array2::zeros((2, 0))).is_err()
    );
}

/// Absent values are those that the arrays had before, in large results and in any layout.
/// In hybrids too: those of clusters, and of signs that a point does not have.
#[test]
fn absent_values_of_hybrids_stay() {
    let clusters = map::<f32>(1.5, Formula::Complex, Symmetry::Plain, softmax(), 3);
    let d = clusters.dim();
    let rest = Positive.softmax(frequencies(d, 6, &Independent, 1)).unwrap();
    let angular = Coefficient::angular(frequencies(d, 3, &Independent, 2)).unwrap();
    let half = Coefficient::constant(0.5).unwrap();
    let over = Hybrid::sum(vec![(half, clusters)], rest.clone()).unwrap();
    for map in [Hybrid::sum(vec![(angular, rest)], over.clone()).unwrap(), over] {
        let n = 40_000;
        let x = around::<f32>(&centres(1.5)[0], n, 0.2);
        let mut values = Array2::from_elem((n, map.feature_dim()), 7.0);
        assert!(values.len() * size_of::<f32>() > 8 << 20);
        let mut scales = Array2::zeros((n, map.blocks().len()));
        map.features_into(Side::X, &x, &mut values, &mut scales).unwrap();
        let mut start = 0;
        for (width, scales) in map.blocks().iter().zip(scales.columns()) {
            let block = values.slice(s![.., start..start + width]);
            start += width;
            let absent = scales.iter().filter(|scale| **scale == f64::NEG_INFINITY).count();
            let untouched = block.rows().into_iter().filter(|row| row.iter().all(|v| *v == 7.0)).count();
            assert_eq!(absent, untouched);
        }
        let alone = map.features_of(Side::X, &x.row(n - 1)).unwrap();
        assert_eq!(alone.log_scales().row(0), scales.row(n - 1));
    }
}

#[test]
fn absent_values_stay() {
    let map = map::<f32>(1.5, Formula::Complex, Symmetry::Plain, softmax(), 3);
    let n = 30_000;
    let x = around::<f32>(&centres(1.5)[0], n, 0.2);
    let absent = |mut values: Array2<f32>| {
        let mut scales = Array2::zeros((n, map.blocks().len()));
        values.fill(7.0);
        map.features_into(Side::X, &x, &mut values, &mut scales).unwrap();
        let mut present = values.clone();
        mask(&mut present, &scales, map.blocks());
        values.iter().zip(&present).filter(|(_, present)| **present == 0.0).all(|(value, _)| *value == 7.0)
    };
    let shape = (n, map.feature_dim());
    assert!(n * map.feature_dim() * size_of::<f32>() > 8 << 20);
    assert!(absent(Array2::zeros(shape)) && absent(Array2::zeros(shape.f())));
}

#[test]
fn a_limit_of_one_is_allowed() {
    let clusters = |v: f64| Clustering::new(arr2(&[[v, 0.5]])).unwrap();
    let diagonal = Diagonal::from(Formula::Real).with_limit(1.0);
    assert!(diagonal.entries(&clusters(1.0), 0, &clusters(2.0), 0).is_ok());
}

#[test]
fn a_point_whose_distances_overflow_has_no_nearest_centre() {
    let clusters = Clustering::new(arr2(&[[0.0], [1e150]])).unwrap();
    assert_eq!(clusters.nearest(&arr1(&[9e149])).unwrap(), 1);
    assert!(matches!(clusters.nearest(&arr1(&[1e200])), Err(Error::NotFinite { row: 0, .. })));
}
