//! What must hold of points in every layout: the features of dense ones, to the bit.

use crate::common::own_map::own_map;
use crate::common::{MAPS, MORE_MAPS, couplings, frequencies, gaussian, softmax};
use ndarray::{Array2, ArrayView1};
use random_features::compose::{Bases, Centres, Clustered, Hybrid};
use random_features::data::Clustering;
use random_features::extend::Facts;
use random_features::frequency::{Counts, Hadamard, Independent};
use random_features::kernel::Activation;
use random_features::{EluPlusOne, Map, Nonlinear, Points, Poisson, Real, Side, Sign, Trigonometric, rng};

const SIDES: [Side; 2] = [Side::X, Side::Y];

/// A map of your own, which reads dense points.
fn coordinates<T: Real>(d: usize) -> Map<T> {
    let write = |x: ArrayView1<'_, T>, values: &mut [T], _: &mut [f64]| {
        values.iter_mut().zip(x).for_each(|(value, x)| *value = *x);
    };
    own_map(Facts::new(d, vec![d]).symmetric(), write).unwrap()
}

/// Maps that project points, and maps that read them otherwise.
pub fn maps<T: Real>(d: usize) -> Vec<Map<T>> {
    let mut maps = Vec::new();
    for coupling in couplings() {
        for name in MAPS.into_iter().chain(MORE_MAPS) {
            for target in [softmax(), gaussian()] {
                maps.push(name.make::<T>(frequencies(d, 40, coupling.as_ref(), 2), target));
            }
        }
    }
    let omega = |m: usize, seed| frequencies(d, m, &Independent, seed);
    let scales: Vec<f64> = (0..d).map(|k| 0.7 + k as f64 / d as f64).collect();
    maps.push(Trigonometric.gaussian(omega(33, 1), scales).unwrap());
    maps.push(Trigonometric.gaussian(Hadamard::default().draw(d, 2000, 1).unwrap(), 1.0).unwrap());
    maps.push(Sign.build(omega(70, 1), 1.0).unwrap());
    maps.push(Nonlinear::new(Activation::Relu).build(omega(70, 1), 1.0).unwrap());
    maps.push(EluPlusOne.build(d, 1.0).unwrap());
    maps.push(
        Poisson::default().gaussian(Counts::poisson(d, 20, 1.0, rng(1).next_u64()).unwrap(), 2.0).unwrap(),
    );
    maps.push(Hybrid::angular(Bases::shared(omega(8, 1)), omega(2, 2)).unwrap());
    let weight = (0.5, 2.0);
    maps.push(Hybrid::gaussian(Bases::shared(omega(8, 1)), omega(4, 2), weight).unwrap());
    let clusters = Clustering::new(Array2::from_shape_fn((2, d), |(i, k)| (i + k) as f64 / 9.0)).unwrap();
    let centres = Centres::new(&clusters, &clusters);
    maps.push(Clustered::by_centres(centres, omega(7, 3), gaussian()).unwrap());
    maps.push(coordinates(d));
    maps
}

/// Features of all maps.
pub fn same_features<T: Real>(x: &Points<'_, T>, dense: &Array2<T>) {
    for map in maps::<T>(dense.ncols()) {
        for side in SIDES {
            let (found, expected) = (map.features(side, x).unwrap(), map.features(side, dense).unwrap());
            assert_eq!(found.mantissas(), expected.mantissas(), "{map:?}");
            assert_eq!(found.log_scales(), expected.log_scales(), "{map:?}");
            let (mut values, mut log_scales) = found.into_parts();
            values.fill(T::zero());
            log_scales.fill(f64::NAN);
            map.features_into(side, x, &mut values, &mut log_scales).unwrap();
            assert_eq!((values.view(), log_scales.view()), (expected.mantissas(), expected.log_scales()));
            if map.facts().logarithms {
                let [found, expected] =
                    [map.log_features(side, x), map.log_features(side, dense)].map(Result::unwrap);
                assert_eq!(found, expected);
            }
        }
    }
}
