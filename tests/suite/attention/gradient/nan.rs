//! Gradients of linear attention of tokens that are no numbers: where they show.

use crate::attention::gradient::backward;
use crate::attention::positive;
use crate::common::tokens;
use ndarray::{Array4, Axis, s};
use random_features::Real;
use random_features::apply::attention::{Attention, Heads};

/// NaN shows in the gradients in which it has a part. NaN in a query shows in its own gradient and in those of the keys that it
/// sees. NaN in a key shows in those of the queries that see it, and of all keys that these see.
#[test]
fn nan_stays_where_it_has_a_part() {
    fn rows<T: Real>(x: &Array4<T>) -> Vec<usize> {
        let rows = x.index_axis(Axis(0), 0);
        (0..x.dim().2).filter(|i| rows.slice(s![0, *i, ..]).iter().any(|v| v.is_nan())).collect()
    }
    fn check<T: Real>() {
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<T>([1, 1, 100, 4], 0.8, seed));
        let attention = Attention::new(positive::<T>(4, 12)).unwrap();
        let with = |x: &Array4<T>| {
            let mut x = x.clone();
            x[[0, 0, 70, 1]] = T::nan();
            x
        };
        let of = |q: &Array4<T>, k: &Array4<T>, v: &Array4<T>| {
            let all = backward(&attention, &Heads::new(q, k, v).unwrap(), &g, true);
            [&all.queries, &all.keys, &all.values].map(rows)
        };
        let (upto, after): (Vec<usize>, Vec<usize>) = ((0..71).collect(), (70..100).collect());
        let all: Vec<usize> = (0..100).collect();
        assert_eq!(of(&with(&q), &k, &v), [vec![70], upto.clone(), upto]);
        assert_eq!(of(&q, &with(&k), &v), [after.clone(), all.clone(), all.clone()]);
        // Gradients with respect to values are the weights, whatever the values.
        assert_eq!(of(&q, &k, &with(&v)), [after, all, vec![]]);
    }
    check::<f32>();
    check::<f64>();
}

/// NaN in a query or a key has a part in its own sequence of its own head alone. Gradients of other queries know nothing of it
/// if it is in a query.
#[test]
fn nan_stays_in_its_sequence_and_head() {
    fn places<T: Real>(x: &Array4<T>) -> Vec<[usize; 3]> {
        let rows = ndarray::indices((x.dim().0, x.dim().1, x.dim().2)).into_iter();
        rows.filter(|(b, h, i)| x.slice(s![*b, *h, *i, ..]).iter().any(|v| v.is_nan()))
            .map(|(b, h, i)| [b, h, i])
            .collect()
    }
    fn check<T: Real>() {
        let [q, g] = [1, 4].map(|seed| tokens::<T>([2, 4, 150, 4], 0.8, seed));
        let [k, v] = [2, 3].map(|seed| tokens::<T>([2, 2, 150, 4], 0.8, seed));
        let (attention, offsets) = (Attention::new(positive::<T>(4, 12)).unwrap(), [0, 20, 120, 150]);
        let with = |x: &Array4<T>, [b, h, i]: [usize; 3]| {
            let mut x = x.clone();
            x[[b, h, i, 1]] = T::nan();
            x
        };
        let of = |q: &Array4<T>, k: &Array4<T>, causal: bool| {
            let heads = Heads::new(q, k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
            let all = backward(&attention, &heads, &g, causal);
            [&all.queries, &all.keys, &all.values].map(places)
        };
        let rows = |h: usize, rows: std::ops::Range<usize>| rows.map(|i| [1, h, i]).collect::<Vec<_>>();
        for causal in [false, true] {
            let seen = rows(1, 20..if causal { 91 } else { 120 });
            let found = of(&with(&q, [1, 2, 90]), &k, causal);
            assert_eq!(found, [vec![[1, 2, 90]], seen.clone(), seen], "causal {causal}");
            let asking = if causal { 90 } else { 20 };
            let asking = [rows(2, asking..120), rows(3, asking..120)].concat();
            let found = of(&q, &with(&k, [1, 1, 90]), causal);
            assert_eq!(found, [asking, rows(1, 20..120), rows(1, 20..120)], "causal {causal}");
        }
    }
    check::<f32>();
    check::<f64>();
}
