//! Segments and chunks of linear attention, to the bit: on any number of threads, and whatever comes later.

use crate::attention::{positive, relu};
use crate::common::tokens;
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::{Map, Real};

fn same_on_any_threads<T: Real>(name: &str, map: Map<T>, [q, k, v]: [&Array4<T>; 3]) {
    let attention = Attention::new(map).unwrap();
    let mask = Array2::from_shape_fn((1, k.dim().2), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    let run = |threads| {
        let heads = Heads::new(q, k, v).unwrap();
        let both = [heads.clone(), heads.with_mask(&mask).unwrap()];
        let of = |heads| (attention.bidirectional(heads).unwrap(), attention.causal(heads).unwrap());
        on_threads(threads, || both.each_ref().map(of))
    };
    let one = run(1);
    [2, 3, 7].into_iter().for_each(|threads| assert!(run(threads) == one, "{name}, {threads} threads"));
}

fn same_on_any_threads_in<T: Real>() {
    for heads in [1, 3] {
        let [q, k, v] = [1, 2, 3].map(|seed| tokens::<T>([1, heads, 5000, 8], 1.0, seed));
        same_on_any_threads("plain", positive(8, 24), [&q, &k, &v]);
    }
    let [q, k, mut v] = [1, 2, 3].map(|seed| tokens::<T>([1, 1, 2600, 8], 1.0, seed));
    same_on_any_threads("gaps", relu(8, 24), [&q, &k, &v]);
    let mut far = k.clone();
    far.slice_mut(s![.., .., 700..1500, ..]).mapv_inplace(|v| v * T::narrow(40.0));
    same_on_any_threads("far keys", positive(8, 24), [&q, &far, &v]);
    v[[0, 0, 70, 3]] = T::max_value() / T::narrow(4.0);
    same_on_any_threads("a large value", positive(8, 24), [&q, &k, &v]);
}

/// Segments and chunks are cut by shapes, and threads over them. In `f64` sums in another order would show.
#[test]
fn threads_change_no_bit() {
    same_on_any_threads_in::<f32>();
    same_on_any_threads_in::<f64>();
}

/// Nothing of a later token reaches an earlier output, not in its last bit, whatever the token is.
#[test]
fn the_future_changes_no_bit() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, mut v] = [(1, 6), (2, 6), (3, 40)].map(|(seed, d)| tokens::<f32>([1, 1, 1300, d], 0.7, seed));
    // Products with 0 have the sign of the other factor.
    v.slice_mut(s![0, 0, ..1, ..]).fill(-0.0);
    let bits = |out: &Array4<f32>, from: usize| out.slice(s![.., .., ..from, ..]).mapv(f32::to_bits);
    let plain = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let exact: Array4<f32> = ExactAttention::new().causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    for from in [1, 31, 40, 64, 100, 1023, 1024, 1290] {
        for (key, value) in [
            (0.3, 0.1),
            (0.3, -0.1),
            (60.0, 1.0),
            (f32::NAN, 1.0),
            (0.5, f32::NAN),
            (1e30, 1e30),
            (0.0, f32::INFINITY),
        ] {
            let (mut q, mut k, mut v) = (q.clone(), k.clone(), v.clone());
            q.slice_mut(s![0, 0, from.., ..]).fill(key);
            k.slice_mut(s![0, 0, from.., ..]).fill(key);
            v.slice_mut(s![0, 0, from.., ..]).fill(value);
            let heads = Heads::new(&q, &k, &v).unwrap();
            for threads in [1, 4] {
                let out = on_threads(threads, || attention.causal(&heads)).unwrap().output;
                assert_eq!(bits(&out, from), bits(&plain, from), "{from} {key} {value}");
            }
            let out: Array4<f32> = ExactAttention::new().causal(&heads).unwrap().output;
            assert_eq!(bits(&out, from), bits(&exact, from), "{from} {key} {value}");
        }
    }
}
