//! Tokens in half precision.

use crate::attention::positive;
use crate::common::tokens;
use random_features::apply::attention::{Attention, Heads};

#[test]
fn half_precision_is_converted() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let x = tokens::<f32>([1, 2, 70, 6], 0.7, 1);
    let short = x.mapv(half::bf16::from_f32);
    let wide = short.mapv(half::bf16::to_f32);
    let out = attention.causal(&Heads::new(&short, &short, &short).unwrap()).unwrap();
    assert_eq!(out, attention.causal(&Heads::new(&wide, &wide, &wide).unwrap()).unwrap());
    let short = x.mapv(half::f16::from_f32);
    let wide = short.mapv(half::f16::to_f32);
    let out = attention.causal(&Heads::new(&short, &short, &short).unwrap()).unwrap();
    assert_eq!(out, attention.causal(&Heads::new(&wide, &wide, &wide).unwrap()).unwrap());
}
