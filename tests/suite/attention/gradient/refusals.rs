//! Gradients that are refused.

use crate::attention::positive;
use crate::common::tokens;
use ndarray::ArrayView2;
use random_features::apply::attention::{Attention, Heads};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::{Error, Map, Side};

/// Without gradients.
#[derive(Debug)]
struct Ones;

impl FeatureMap<f64> for Ones {
    fn facts(&self) -> Facts {
        Facts::new(4, vec![1]).non_negative()
    }

    fn fill(&self, _: Side, _: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        for i in 0..tile.rows() {
            let row = tile.row(i);
            row.values.fill(1.0);
            row.log_scales[0] = 0.0;
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = tokens::<f64>([1, 1, 10, 4], 0.8, 1);
    let longer = tokens::<f64>([1, 1, 11, 4], 0.8, 1);
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap();
    let (heads, uneven) = (Heads::new(&x, &x, &x).unwrap(), Heads::new(&x, &longer, &longer).unwrap());
    assert!(matches!(attention.bidirectional_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&uneven, &x), Err(Error::Shape { .. })));
    assert!(attention.bidirectional_backward(&uneven, &x).is_ok());
    let other = Attention::new(positive::<f64>(5, 12)).unwrap();
    assert!(matches!(other.bidirectional_backward(&heads, &x), Err(Error::Shape { .. })));
    for refused in [
        Attention::new(Map::of_feature_map(Ones).unwrap()).unwrap(),
        attention.clone().with_heaviest_keys_exact(1).unwrap(),
        attention.clone().with_biased_epsilon(1e-3).unwrap(),
    ] {
        assert!(matches!(refused.causal_backward(&heads, &x), Err(Error::Unsupported { .. })));
    }
}
