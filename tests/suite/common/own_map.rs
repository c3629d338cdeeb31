//! Maps as users write them, of which a test says no more than their features.

use std::fmt;

use ndarray::{ArrayView1, ArrayView2};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::{Map, Real, Result, Side};

/// A map by a function of each point, alike on both sides.
struct OwnMap<F> {
    facts: Facts,
    write: F,
}

impl<F> fmt::Debug for OwnMap<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnMap").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl<T: Real, F: Fn(ArrayView1<'_, T>, &mut [T], &mut [f64]) + Send + Sync> FeatureMap<T> for OwnMap<F> {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.log_scales.fill(0.0);
            (self.write)(x, row.values, row.log_scales);
        }
    }
}

/// A map by a function that writes the values of a point, and logarithmic scales where these are not 0.
pub fn own_map<T: Real>(
    facts: Facts,
    write: impl Fn(ArrayView1<'_, T>, &mut [T], &mut [f64]) + Send + Sync + 'static,
) -> Result<Map<T>> {
    Map::of_feature_map(OwnMap { facts, write })
}

/// A map of which all features are 1.
pub fn ones(facts: Facts) -> Result<Map<f64>> {
    own_map(facts, |_, values, _| values.fill(1.0))
}
