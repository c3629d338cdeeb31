//! Tokens in any layout, and outputs of the caller.

use crate::attention::positive;
use crate::common::tokens;
use ndarray::Array4;
use random_features::apply::attention::{Attention, ExactAttention, Heads};

/// Any strides; outputs of the caller.
#[test]
fn any_layout_gives_the_same_bits() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f32>([2, 3, 70, 6], 0.7, seed));
    let swapped = |x: &Array4<f32>| {
        // [batch, length, heads, dim] in memory.
        let mut stored = x.view().permuted_axes([0, 2, 1, 3]).as_standard_layout().into_owned();
        stored.swap_axes(1, 2);
        stored
    };
    let (sq, sk, sv) = (swapped(&q), swapped(&k), swapped(&v));
    assert!(!sq.is_standard_layout() && sq == q);
    let (plain, other) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&sq, &sk, &sv).unwrap());
    let expected = attention.causal(&plain).unwrap();
    assert_eq!(attention.causal(&other).unwrap(), expected);
    let mut out = swapped(&Array4::from_elem((2, 3, 70, 6), f32::NAN));
    attention.causal_into(&other, &mut out).unwrap();
    assert_eq!(out, expected.output);
    let exact: Array4<f32> = ExactAttention::new().causal(&plain).unwrap().output;
    ExactAttention::new().causal_into(&other, &mut out).unwrap();
    assert_eq!(out, exact);
    assert!(attention.causal_into(&plain, &mut Array4::zeros((2, 3, 70, 5))).is_err());
}
