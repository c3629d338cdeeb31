//! Maps that users write: several blocks, absent blocks, two different sides.

use crate::common::{frequencies, points};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use random_features::apply::Smoother;
use random_features::compose::{Coefficient, Hybrid};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::Independent;
use random_features::{Error, Map, Positive, Real, Side, SignedLog, Trigonometric};

/// sign · e^boost times a positive estimate plus a trigonometric one. The first block is absent where the
/// first coordinate is negative; its values are NaN then. The sign goes to side Y.
#[derive(Debug)]
struct Sum<T: Real> {
    positive: Map<T>,
    trigonometric: Map<T>,
    boost: f64,
    sign: f64,
}

impl<T: Real> Sum<T> {
    fn new(boost: f64, sign: f64) -> Self {
        let omega = |seed| frequencies(3, 20, &Independent, seed);
        let (positive, trigonometric) =
            (Positive.softmax(omega(1)).unwrap(), Trigonometric.softmax(omega(2)).unwrap());
        Sum { positive, trigonometric, boost, sign }
    }

    /// The estimate from the parts.
    fn naive(&self, x: &ndarray::ArrayRef1<T>, y: &ndarray::ArrayRef1<T>) -> f64 {
        let present = x[0] >= T::zero() && y[0] >= T::zero();
        let boosted = |log: SignedLog| self.sign * log.scaled(self.boost).value();
        let first = if present { boosted(self.positive.log_estimate(x, y).unwrap()) } else { 0.0 };
        first + self.trigonometric.log_estimate(x, y).unwrap().value()
    }
}

impl<T: Real> FeatureMap<T> for Sum<T> {
    fn facts(&self) -> Facts {
        Facts::new(3, vec![20, 0, 40])
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        let positive = self.positive.features(side, x).unwrap();
        let trigonometric = self.trigonometric.features(side, x).unwrap();
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            let own =
                [positive.mantissas().row(i).to_vec(), trigonometric.mantissas().row(i).to_vec()].concat();
            row.values.copy_from_slice(&own);
            row.log_scales[0] = positive.log_scales()[[i, 0]] + 0.5 * self.boost;
            row.log_scales[1] = 0.0;
            row.log_scales[2] = trigonometric.log_scales()[[i, 0]];
            if side == Side::Y {
                row.values[..20].iter_mut().for_each(|v| *v *= T::narrow(self.sign));
            }
            if x[0] < T::zero() {
                row.log_scales[0] = f64::NEG_INFINITY;
                row.values[..20].fill(T::nan());
            }
        }
    }
}

fn agrees<T: Real>(tolerance: f64) {
    let parts = Sum::<T>::new(0.0, 1.0);
    let map = Map::of_feature_map(Sum::<T>::new(0.0, 1.0)).unwrap();
    let (x, y) = (points::<T>(40, 3, 1.0), points::<T>(70, 3, 1.3));
    let gram = map.gram(&x, &y).unwrap();
    let (left, right) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &y).unwrap());
    assert!(left.gram(&left).is_err());
    assert_eq!(left.gram(&right).unwrap(), gram);
    let dense = left.to_array().dot(&right.to_array().t());
    for ((i, j), value) in gram.indexed_iter() {
        let naive = parts.naive(&x.row(i), &y.row(j));
        let log = map.log_estimate(&x.row(i), &y.row(j)).unwrap().value();
        for v in [value.widen(), dense[[i, j]].widen(), log] {
            assert!((v - naive).abs() <= tolerance * (1.0 + naive.abs()), "{v} instead of {naive}");
        }
    }
    let targets = Array2::from_shape_fn((70, 1), |(i, _)| T::narrow((i % 7) as f64));
    let mut smoother = Smoother::new(map.clone(), 1).unwrap();
    smoother.update(&y, &targets).unwrap();
    let predicted = smoother.predict(&x).unwrap();
    for (i, value) in predicted.column(0).iter().enumerate() {
        let weight = |j: usize| parts.naive(&x.row(i), &y.row(j));
        let total: f64 = (0..70).map(weight).sum();
        let sum: f64 = (0..70).map(|j| weight(j) * targets[[j, 0]].widen()).sum();
        assert!(
            (value.widen() - sum / total).abs() <= 50.0 * tolerance,
            "{value} instead of {}",
            sum / total
        );
    }
}

#[test]
fn absent_blocks_are_never_read() {
    agrees::<f64>(1e-13);
    agrees::<f32>(1e-5);
}

/// Blocks whose sizes leave the range of the scalar, and cancel.
#[test]
fn large_blocks_may_cancel() {
    for boost in [100.0, 800.0] {
        let [plus, minus] =
            [1.0, -1.0].map(|sign| Map::of_feature_map(Sum::<f32>::new(boost, sign)).unwrap());
        let x = points::<f32>(5, 3, 0.5).mapv(f32::abs);
        assert!(plus.gram(&x, &x).unwrap().iter().all(|v| *v == f32::INFINITY));
        assert!(minus.gram(&x, &x).unwrap().iter().all(|v| *v == f32::NEG_INFINITY));
        let log = minus.log_estimate(&x.row(0), &x.row(1)).unwrap();
        assert!(log.sign == -1.0 && (log.ln_abs - boost).abs() < 3.0);
    }
}

/// A map with exponents of −∞: features that are 0.
#[derive(Debug)]
struct Masked(Map<f64>);

impl FeatureMap<f64> for Masked {
    fn facts(&self) -> Facts {
        self.0.facts().clone()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f64>, form: Form, tile: &mut Tile<'_, f64>) {
        self.0.fill(side, x, form, tile).unwrap();
        for (i, x) in x.rows().into_iter().enumerate() {
            if x[0] < 0.0 {
                let zero = if form == Form::Values { 0.0 } else { f64::NEG_INFINITY };
                tile.row(i).values[..5].fill(zero);
            }
        }
    }

    fn log_variance(&self, _: &ndarray::ArrayRef1<f64>, _: &ndarray::ArrayRef1<f64>) -> Option<f64> {
        Some(42.0)
    }
}

fn masked() -> Map<f64> {
    Map::of_feature_map(Masked(Positive.softmax(frequencies(2, 12, &Independent, 4)).unwrap())).unwrap()
}

#[test]
fn features_that_are_zero() {
    let map = masked();
    let mut train = points::<f64>(300, 2, 1.0);
    // A run in which the masked features are all 0, after one in which they are not.
    train.slice_mut(s![..128, 0]).mapv_inplace(f64::abs);
    train.slice_mut(s![128..256, 0]).mapv_inplace(|v| -v.abs() - 0.1);
    let targets = train.column(1).to_owned().insert_axis(Axis(1));
    let mut smoother = Smoother::new(map.clone(), 1).unwrap();
    smoother.update(&train, &targets).unwrap();
    let predicted = smoother.predict(&train).unwrap();
    let gram = map.features(Side::X, &train).unwrap().gram(&map.features(Side::Y, &train).unwrap()).unwrap();
    let expected = gram.dot(&targets) / gram.sum_axis(Axis(1)).insert_axis(Axis(1));
    assert!(predicted.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
}

/// What a map of your own answers is what the `Map` of it answers, and its clones, and a hybrid of it uses.
#[test]
fn answers_are_the_maps_own() {
    let (map, x) = (masked(), points::<f64>(2, 2, 1.0));
    let (x, y) = (x.row(0), x.row(1));
    for map in [&map, &map.clone()] {
        assert_eq!(map.log_variance(&x, &y).unwrap(), Some(42.0));
        assert!(map.kernel().is_none() && map.recipe().is_none());
        assert_eq!((map.dim(), map.blocks()), (2, &[12][..]));
        assert!(map.facts().logarithms && map.facts().symmetric && map.facts().non_negative);
    }
    let rest = Positive.softmax::<f64>(frequencies(2, 7, &Independent, 5)).unwrap();
    let half = Coefficient::constant(0.5).unwrap();
    let hybrid = Hybrid::sum(vec![(half, map)], rest.clone()).unwrap();
    let expected = 0.25 * (42f64.exp() + rest.log_variance(&x, &y).unwrap().unwrap().exp());
    assert!((hybrid.log_variance(&x, &y).unwrap().unwrap() - expected.ln()).abs() < 1e-12);
}

/// Clones of a `Map` are one map; two `Map`s of equal things are two.
#[test]
fn clones_pair_and_others_do_not() {
    let (map, other, x) = (masked(), masked(), points::<f64>(5, 2, 1.0));
    let (left, right) = (map.features(Side::X, &x).unwrap(), map.clone().features(Side::Y, &x).unwrap());
    assert_eq!(map.identity(), map.clone().identity());
    assert_eq!(left.gram(&right).unwrap(), map.gram(&x, &x).unwrap());
    let right = other.features(Side::Y, &x).unwrap();
    assert_ne!(map.identity(), other.identity());
    assert!(matches!(left.gram(&right), Err(Error::Pairing { .. })));
    assert_ne!(left, other.features(Side::X, &x).unwrap());
    // Hybrids of the same maps are the same; of others they are not.
    let half = || Coefficient::constant(0.5).unwrap();
    let make = |part: &Map<f64>| Hybrid::sum(vec![(half(), part.clone())], map.clone()).unwrap();
    let (hybrid, again, third) = (make(&other), make(&other.clone()), make(&map));
    let left = hybrid.features(Side::X, &x).unwrap();
    assert!(left.gram(&hybrid.clone().features(Side::Y, &x).unwrap()).is_ok());
    assert!(left.gram(&again.features(Side::Y, &x).unwrap()).is_ok());
    assert!(matches!(left.gram(&third.features(Side::Y, &x).unwrap()), Err(Error::Pairing { .. })));
}

/// The features of another map, all halved.
#[derive(Debug)]
struct Halved<T: Real>(Map<T>);

impl<T: Real> FeatureMap<T> for Halved<T> {
    fn facts(&self) -> Facts {
        self.0.facts().clone()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        self.0.fill(side, x, form, tile).unwrap();
        for i in 0..tile.rows() {
            let halved = |v: T| match form {
                Form::Values => v / T::narrow(2.0),
                Form::Logarithms => v - T::narrow(std::f64::consts::LN_2),
            };
            tile.row(i).values.iter_mut().for_each(|v| *v = halved(*v));
        }
    }

    fn pull_back(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        let inner = self.0.pull_back(side, &x, &cotangents);
        inner.map(|gradient| out.assign(&(gradient / T::narrow(2.0)))).is_ok()
    }
}

fn halves<T: Real>(map: &Map<T>, n: usize, present: impl Fn(f64) -> bool) {
    let halved = Map::of_feature_map(Halved(map.clone())).unwrap();
    let x = points::<T>(n, map.dim(), 1.0);
    for side in [Side::X, Side::Y] {
        let (whole, half) = (map.features(side, &x).unwrap(), halved.features(side, &x).unwrap());
        assert_eq!(whole.log_scales(), half.log_scales());
        for i in 0..n {
            let mut start = 0;
            for (b, width) in map.blocks().iter().enumerate() {
                if present(whole.log_scales()[[i, b]]) {
                    let columns = s![i, start..start + width];
                    let pairs = whole
                        .mantissas()
                        .slice_move(columns)
                        .into_iter()
                        .zip(half.mantissas().slice_move(columns));
                    for (whole, half) in pairs {
                        assert!(*half == *whole / T::narrow(2.0), "row {i}, block {b}: {half} of {whole}");
                    }
                }
                start += width;
            }
        }
    }
}

/// Whatever the size of the result, a map may change what another one has written: here 20,000 rows, far more than the
/// caches hold, of plain maps, of a hybrid, of clusters, and of another foreign map.
#[test]
fn rows_of_another_map_may_change() {
    use random_features::compose::{Bases, Clustered};
    use random_features::data::Clustering;
    let omega = |m, seed| frequencies(3, m, &Independent, seed);
    let present = |scale: f64| scale != f64::NEG_INFINITY;
    let positive = Positive.softmax::<f32>(omega(256, 1)).unwrap();
    halves(&positive, 20_000, present);
    halves(&Map::of_feature_map(Halved(positive.clone())).unwrap(), 20_000, present);
    halves(&Positive.softmax::<f64>(omega(96, 1)).unwrap(), 20_000, present);
    halves(&Trigonometric.softmax::<f32>(omega(128, 1)).unwrap(), 20_000, present);
    let hybrid = Hybrid::<Map<f32>>::angular(Bases::shared(omega(16, 1)), omega(3, 2)).unwrap();
    halves(&hybrid, 20_000, present);
    let side = |shift| Clustering::new(ndarray::arr2(&[[1.0, shift, 0.0], [-1.0, 0.0, shift]])).unwrap();
    let bases = (0..4).map(|seed| Positive.softmax::<f32>(omega(32, seed)).unwrap()).collect();
    halves(&Clustered::from_bases(side(0.5), side(-0.5), bases).unwrap(), 20_000, present);
    // And of your own gradients, from those of the inner map.
    let x = points::<f32>(7, 3, 1.0);
    let c = points::<f32>(7, 256, 1.0);
    let halved = Map::of_feature_map(Halved(positive.clone())).unwrap();
    let (whole, half) =
        (positive.pull_back(Side::X, &x, &c).unwrap(), halved.pull_back(Side::X, &x, &c).unwrap());
    assert_eq!(whole / 2.0, half);
}

/// The first half of another map's features.
#[derive(Debug)]
struct Few(usize, Map<f64>);

impl FeatureMap<f64> for Few {
    fn facts(&self) -> Facts {
        let mut facts = self.1.facts().clone();
        (facts.blocks, facts.logarithms) = (vec![self.0], false);
        facts
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        let features = self.1.features(side, x).unwrap();
        for (i, own) in features.mantissas().rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.values.iter_mut().zip(own).for_each(|(value, v)| *value = *v);
            row.log_scales[0] = features.log_scales()[[i, 0]];
        }
    }
}

/// A hybrid of foreign maps, of which one has fewer features than the frequencies that the other parts share with the map
/// inside it: each fills itself.
#[test]
fn foreign_parts_fill_themselves() {
    let omega = |seed| frequencies(3, 20, &Independent, seed);
    let few = Map::of_feature_map(Few(10, Positive.softmax(omega(1)).unwrap())).unwrap();
    let halved = Map::of_feature_map(Halved(Positive.softmax(omega(1)).unwrap())).unwrap();
    let rest = || Trigonometric.softmax::<f64>(omega(1)).unwrap();
    let half = || Coefficient::constant(0.5).unwrap();
    let (x, y) = (points::<f64>(9, 3, 1.0), points::<f64>(5, 3, 0.7));
    let map = Hybrid::sum(vec![(half(), few.clone()), (half(), halved.clone())], rest()).unwrap();
    let affine = Coefficient::affine(0.25, 0.5, halved.clone()).unwrap();
    let weighed = Hybrid::sum(vec![(affine, few.clone())], halved.clone()).unwrap();
    let (gram, weighed_gram) = (map.gram(&x, &y).unwrap(), weighed.gram(&x, &y).unwrap());
    for ((i, j), value) in gram.indexed_iter() {
        let (x, y) = (x.row(i), y.row(j));
        let (p, q) = (few.estimate(&x, &y).unwrap(), halved.estimate(&x, &y).unwrap());
        // Weights ½ and ½, and 0 for the rest.
        let expected = 0.5 * p + 0.5 * q;
        assert!((map.estimate(&x, &y).unwrap() - expected).abs() < 1e-12 * expected.abs());
        assert!((value - expected).abs() < 1e-12 * expected.abs());
        let lambda = 0.25 + 0.5 * q;
        let expected = lambda * p + (1.0 - lambda) * q;
        let size = 1e-12 * (1.0 + q) * (p + q);
        assert!((weighed.estimate(&x, &y).unwrap() - expected).abs() < size);
        assert!((weighed_gram[[i, j]] - expected).abs() < size);
    }
    // Without a closed form of their own they have none together.
    assert_eq!(map.log_variance(&x.row(0), &y.row(0)).unwrap(), None);
    let single = map.gram(&x.slice(s![..1, ..]), &y.row(0).insert_axis(Axis(0))).unwrap();
    assert_eq!(single[[0, 0]], gram[[0, 0]]);
}
