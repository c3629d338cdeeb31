//! Gradients of tokens in half precision.

use crate::attention::gradient::{backward, exact_backward};
use crate::attention::positive;
use crate::common::tokens;
use random_features::apply::attention::{Attention, ExactAttention, Heads, TokenElement};

#[test]
fn half_inputs_have_gradients_in_single() {
    fn check<E: TokenElement<f32>>(narrow: fn(f32) -> E, wide: fn(E) -> f32) {
        let plain = Attention::new(positive::<f32>(4, 12)).unwrap();
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f32>([1, 1, 100, 4], 0.8, seed));
        let half = [&q, &k, &v].map(|x| x.mapv(narrow));
        let single = half.each_ref().map(|x| x.mapv(wide));
        let near = plain.clone().with_window(9, 0).unwrap().with_keys_exact(&[0, 40]).unwrap();
        let ([q, k, v], [x, y, z]) = (&half, &single);
        let (half, single) = (Heads::new(q, k, v).unwrap(), Heads::new(x, y, z).unwrap());
        for causal in [false, true] {
            for attention in [plain.clone(), plain.clone().with_cosine(0.5).unwrap(), near.clone()] {
                let [half, single] =
                    [backward(&attention, &half, &g, causal), backward(&attention, &single, &g, causal)];
                assert!(half == single, "causal {causal}");
            }
            for attention in [ExactAttention::new(), ExactAttention::new().with_cosine(0.5).unwrap()] {
                let of_half = exact_backward(&attention, &half, &g, causal);
                assert!(of_half == exact_backward(&attention, &single, &g, causal), "exact, causal {causal}");
            }
        }
    }
    check(half::bf16::from_f32, f32::from);
    check(half::f16::from_f32, f32::from);
}
