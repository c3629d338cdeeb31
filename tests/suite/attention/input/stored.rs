//! Attention that was stored.

use crate::attention::positive;
use crate::common::tokens;
use random_features::apply::attention::{Attention, Heads};

/// Each option goes with what is stored.
#[test]
fn stored_attention_has_all_options() {
    let new = || Attention::new(positive::<f64>(6, 20)).unwrap();
    let x = tokens::<f64>([1, 1, 30, 6], 0.7, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    let plain = new().causal(&heads).unwrap();
    for attention in [
        new().with_scale(0.3).unwrap(),
        new().with_cosine(0.3).unwrap(),
        new().without_normalisers(),
        new().with_shrinkage(&[0.1]).unwrap(),
        new().with_keys_exact(&[0, 1]).unwrap(),
    ] {
        let read: Attention<f64> = serde_json::from_str(&serde_json::to_string(&attention).unwrap()).unwrap();
        let out = attention.causal(&heads).unwrap();
        assert!(out != plain);
        assert_eq!(read.causal(&heads).unwrap(), out);
    }
}
