//! Maps that users write: several blocks, absent blocks, two different sides.

mod common;

use std::sync::Arc;

use common::{frequencies, points, softmax};
use ndarray::{Array2, ArrayView2, Axis, s};
use random_features::apply::Smoother;
use random_features::frequency::Independent;
use random_features::hybrid::{Coefficient, Hybrid};
use random_features::map::{Exponential, Properties, Scratch, Tile};
use random_features::projection::Projection;
use random_features::{Map, Positive, Real, Side, SignedLog, Trigonometric};

/// sign · e^boost times a positive estimate plus a trigonometric one. The first block is absent where the
/// first coordinate is negative; its values are NaN then. The sign goes to side Y.
#[derive(Debug)]
struct Sum<T> {
    positive: Map<T>,
    trigonometric: Map<T>,
    blocks: [usize; 3],
    boost: f64,
    sign: f64,
}

impl<T: Real> Sum<T> {
    fn new(boost: f64, sign: f64) -> Self {
        let omega = |seed| frequencies(3, 20, &Independent, seed);
        let (positive, trigonometric) = (Positive.softmax(omega(1)).unwrap(), Trigonometric.softmax(omega(2)).unwrap());
        Sum { positive, trigonometric, blocks: [20, 0, 40], boost, sign }
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
    fn input_dim(&self) -> usize {
        3
    }

    fn blocks(&self) -> &[usize] {
        &self.blocks
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: false, non_negative: false }
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.positive.fill(side, x, &mut tile.part(0..20, 0..1), scratch);
        self.trigonometric.fill(side, x, &mut tile.part(20..60, 2..3), scratch);
        for (i, x) in x.rows().into_iter().enumerate() {
            let (values, scales) = tile.row(i);
            scales[0] += 0.5 * self.boost;
            scales[1] = 0.0;
            if side == Side::Y {
                values[..20].iter_mut().for_each(|v| *v *= T::narrow(self.sign));
            }
            if x[0] < T::zero() {
                scales[0] = f64::NEG_INFINITY;
                values[..20].fill(T::nan());
            }
        }
    }
}

fn agrees<T: Real>(tolerance: f64) {
    let map = Sum::<T>::new(0.0, 1.0);
    let (x, y) = (points::<T>(40, 3, 1.0), points::<T>(70, 3, 1.3));
    let gram = map.gram(&x, &y).unwrap();
    let (left, right) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &y).unwrap());
    assert!(left.gram(&left).is_err());
    assert_eq!(left.gram(&right).unwrap(), gram);
    let dense = left.to_array().dot(&right.to_array().t());
    for ((i, j), value) in gram.indexed_iter() {
        let naive = map.naive(&x.row(i), &y.row(j));
        let log = map.log_estimate(&x.row(i), &y.row(j)).unwrap().value();
        for v in [value.widen(), dense[[i, j]].widen(), log] {
            assert!((v - naive).abs() <= tolerance * (1.0 + naive.abs()), "{v} instead of {naive}");
        }
    }
    let targets = Array2::from_shape_fn((70, 1), |(i, _)| T::narrow((i % 7) as f64));
    let mut smoother = Smoother::new(&map, 1).unwrap();
    smoother.update(&y, &targets).unwrap();
    let predicted = smoother.predict(&x).unwrap();
    for (i, value) in predicted.column(0).iter().enumerate() {
        let weight = |j: usize| map.naive(&x.row(i), &y.row(j));
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
        let (plus, minus) = (Sum::<f32>::new(boost, 1.0), Sum::<f32>::new(boost, -1.0));
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

Map<f64> for Masked {
    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        self.0.blocks()
    }

    fn properties(&self) -> Properties {
        self.0.facts()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f64>, tile: &mut Tile<'_, f64>, scratch: &mut Scratch<f64>) {
        self.fill_exponents(side, x, tile, scratch);
        (0..tile.rows()).for_each(|i| tile.row(i).0.iter_mut().for_each(|v| *v = v.exp()));
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, f64>,
        tile: &mut Tile<'_, f64>,
        scratch: &mut Scratch<f64>,
    ) -> bool {
        let exponents = self.0.fill_exponents(side, x, tile, scratch);
        for (i, x) in x.rows().into_iter().enumerate() {
            if x[0] < 0.0 {
                tile.row(i).0[..5].fill(f64::NEG_INFINITY);
            }
        }
        exponents
    }

    fn log_estimate(
        &self,
        _: &ndarray::ArrayRef1<f64>,
        _: &ndarray::ArrayRef1<f64>,
    ) -> random_features::Result<SignedLog> {
        Ok(SignedLog::from(42.0))
    }
}

#[test]
fn features_that_are_zero() {
    let map = Masked(Positive.softmax(frequencies(2, 12, &Independent, 4)).unwrap());
    let mut train = points::<f64>(300, 2, 1.0);
    // A run in which the masked features are all 0, after one in which they are not.
    train.slice_mut(s![..128, 0]).mapv_inplace(f64::abs);
    train.slice_mut(s![128..256, 0]).mapv_inplace(|v| -v.abs() - 0.1);
    let targets = train.column(1).to_owned().insert_axis(Axis(1));
    let mut smoother = Smoother::new(&map, 1).unwrap();
    smoother.update(&train, &targets).unwrap();
    let predicted = smoother.predict(&train).unwrap();
    let gram = map.features(Side::X, &train).unwrap().gram(&map.features(Side::Y, &train).unwrap()).unwrap();
    let expected = gram.dot(&targets) / gram.sum_axis(Axis(1)).insert_axis(Axis(1));
    assert!(predicted.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
}

#[test]
fn pointers_keep_what_a_map_overrides() {
    let map = Masked(Positive.softmax(frequencies(2, 12, &Independent, 4)).unwrap());
    let x = points::<f64>(1, 2, 1.0);
    // Through the pointer's own implementation, not the map's.
    let boxed: &Map<f64> = &map;
    assert_eq!(boxed.log_estimate(&x.row(0), &x.row(0)).unwrap(), SignedLog::from(42.0));
    assert_eq!(
        common::Name::Positive.make::<f64>(frequencies(2, 3, &Independent, 1), softmax()).blocks(),
        [3]
    );
}

/// The features of another map, all halved.
#[derive(Debug)]
struct Halved<M>(M);

impl<T: Real, M: FeatureMap<T>> FeatureMap<T> for Halved<M> {
    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        self.0.blocks()
    }

    fn properties(&self) -> Properties {
        self.0.facts()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.0.fill(side, x, tile, scratch);
        for i in 0..tile.rows() {
            tile.row(i).0.iter_mut().for_each(|v| *v /= T::narrow(2.0));
        }
    }
}

/// Whatever the size of the result, a map may change what another one has written.
#[test]
fn rows_of_another_map_may_change() {
    let map = Positive.softmax::<f32>(frequencies(3, 256, &Independent, 1)).unwrap();
    let (x, halved) = (points::<f32>(9000, 3, 1.0), Halved(map.clone()));
    let (whole, half) = (map.features(Side::X, &x).unwrap(), halved.features(Side::X, &x).unwrap());
    assert!(whole.values().iter().zip(half.values()).all(|(whole, half)| *half == whole / 2.0));
}

/// The first half of another map's features.
#[derive(Debug)]
struct Few([usize; 1], Map<f64>);

Map<f64> for Few {
    fn input_dim(&self) -> usize {
        self.1.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.0
    }

    fn properties(&self) -> Properties {
        self.1.facts()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f64>, tile: &mut Tile<'_, f64>, _: &mut Scratch<f64>) {
        let features = self.1.features(side, &x).unwrap();
        for (i, row) in features.values().rows().into_iter().enumerate() {
            let (values, scales) = tile.row(i);
            values.iter_mut().zip(row).for_each(|(value, v)| *value = *v);
            scales[0] = features.log_scales()[[i, 0]];
        }
    }

    fn projection(&self) -> Option<&Arc<Projection<f64>>> {
        Some(self.1.projection())
    }
}

/// A part of a hybrid that shares its projection with no other fills itself.
#[test]
fn projections_of_one_part_are_its_own() {
    let omega = |seed| frequencies(3, 20, &Independent, seed);
    let few = Few([10], Positive.softmax(omega(1)).unwrap());
    let rest = || Trigonometric.softmax::<f64>(omega(2)).unwrap();
    let half = || Coefficient::constant(0.5).unwrap();
    let (x, y) = (points::<f64>(1, 3, 1.0), points::<f64>(1, 3, 0.7));
    let (x, y) = (x.row(0), y.row(0));
    let expected = 0.5 * (few.estimate(&x, &y).unwrap() + rest().estimate(&x, &y).unwrap());
    let map = Hybrid::sum(vec![(half(), few as Map<f64>)], rest()).unwrap();
    assert!((map.estimate(&x, &y).unwrap() - expected).abs() < 1e-12 * expected.abs());
    let gram = map.gram(&x.insert_axis(Axis(0)), &y.insert_axis(Axis(0))).unwrap();
    assert!((gram[[0, 0]] - expected).abs() < 1e-12 * expected.abs());
}
