//! Gradients of linear attention, to the bit: on any number of threads, and whatever comes later.

use crate::attention::gradient::{backward, sees_nothing_else, uneven};
use crate::attention::positive;
use crate::common::frequencies;
use crate::threads::on_threads;
use ndarray::Array2;
use random_features::apply::attention::{Attention, Heads};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::Activation;
use random_features::{EluPlusOne, Hyperbolic, Map, Nonlinear, Real, Trigonometric};

fn same_on_any_threads<T: Real>(map: Map<T>) {
    let (l, attention) = (2300, Attention::new(map).unwrap());
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    for queries in [1, 2] {
        let [q, g] = [1, 4].map(|seed| uneven::<T>(l, queries, seed));
        let run = |threads| {
            let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
            on_threads(threads, || [false, true].map(|causal| backward(&attention, &heads, &g, causal)))
        };
        let one = run(1);
        assert!(one.iter().all(|one| one.keys.iter().all(|v| v.is_finite())));
        [2, 3, 5].into_iter().for_each(|threads| assert!(run(threads) == one, "{threads} threads"));
    }
}

#[test]
fn threads_change_no_bit() {
    same_on_any_threads(positive::<f32>(6, 16));
    same_on_any_threads(positive::<f64>(6, 16));
    same_on_any_threads::<f32>(
        Nonlinear::new(Activation::Relu).build(frequencies(6, 16, &Independent, 1), 1.0).unwrap(),
    );
}

#[test]
fn nothing_comes_from_the_future() {
    fn check<T: Real>() {
        let omega = || frequencies(6, 16, &Orthogonal, 3);
        let of = |map: Map<T>| Attention::signed(vec![map]).unwrap();
        let positive = of(positive(6, 16));
        // Over a segment.
        sees_nothing_else(&[1, 63, 64, 100, 1000, 1024, 1130], |heads, g| {
            backward(&positive, heads, g, true)
        });
        for attention in [
            positive.clone().with_cosine(0.7).unwrap(),
            positive.without_normalisers(),
            of(Hyperbolic.softmax(omega()).unwrap()),
            of(Trigonometric.softmax(omega()).unwrap()),
            of(Nonlinear::new(Activation::Relu).build(omega(), 1.0).unwrap()),
            of(EluPlusOne.build(6, 1.0).unwrap()),
            of(Hybrid::angular(Bases::shared(omega()), frequencies(6, 4, &Independent, 6)).unwrap()),
        ] {
            sees_nothing_else(&[64, 100], |heads, g| backward(&attention, heads, g, true));
        }
    }
    check::<f32>();
    check::<f64>();
}
