//! Windows of tokens in half precision.

use crate::attention::positive;
use crate::common::{read_tokens, tokens};
use ndarray::s;
use random_features::apply::attention::{Attention, Heads};

#[test]
fn half_precision_is_converted() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)]
        .map(|(seed, d)| tokens::<f32>([1, 2, 150, d], 0.8, seed).mapv(half::bf16::from_f32));
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_window(9, 8).unwrap();
    let wide = [&q, &k, &v].map(|x| x.mapv(f32::from));
    let (narrow, wide) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&wide[0], &wide[1], &wide[2]).unwrap());
    assert_eq!(attention.bidirectional(&narrow).unwrap(), attention.bidirectional(&wide).unwrap());
    assert_eq!(attention.causal(&narrow).unwrap(), attention.causal(&wide).unwrap());
    let mut state = attention.state(1, 2, 3).unwrap();
    read_tokens(&mut state, &k.slice(s![.., .., ..100, ..]), &v.slice(s![.., .., ..100, ..]));
    state.push(&k.slice(s![.., .., 100, ..]), &v.slice(s![.., .., 100, ..])).unwrap();
    let out = state.query(&q.slice(s![.., .., 100, ..])).unwrap().output;
    assert_eq!(out, attention.causal(&wide).unwrap().output.slice(s![.., .., 100, ..]));
}
