//! Gradients of linear attention that are 0, and what overflows beside them.

use crate::attention::gradient::{assert_near, backward, of_head};
use crate::attention::positive;
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Array4, array, s};
use random_features::apply::attention::{Attention, Gradients, Heads};
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::kernel::{Activation, Softmax};
use random_features::{Map, Nonlinear, Positive, Real, Trigonometric};

#[test]
fn what_has_no_part_has_no_gradient() {
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([1, 1, 70, 4], 0.8, seed));
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap();
    let none = Array2::from_elem((1, 70), false);
    // Even NaN where nothing is seen.
    let nan = Array4::from_elem(k.dim(), f64::NAN);
    for causal in [false, true] {
        let heads = Heads::new(&q, &nan, &nan).unwrap().with_mask(&none).unwrap();
        let Gradients { queries, keys, values, .. } = backward(&attention, &heads, &g, causal);
        assert!([queries, keys, values].iter().all(|x| x.iter().all(|v| *v == 0.0)), "causal {causal}");
    }
    // Without the first keys, which are NaN, the first queries see nothing.
    let rest = Array2::from_shape_fn((1, 70), |(_, j)| j >= 10);
    let mut odd = k.clone();
    odd.slice_mut(s![.., .., ..10, ..]).fill(f64::NAN);
    let got = backward(&attention, &Heads::new(&q, &odd, &v).unwrap().with_mask(&rest).unwrap(), &g, true);
    assert!(got.queries.slice(s![0, 0, ..10, ..]).iter().all(|v| *v == 0.0));
    assert!(got.keys.slice(s![0, 0, ..10, ..]).iter().all(|v| *v == 0.0));
    let parts = [&q, &k, &v, &g].map(|x| x.slice(s![.., .., 10.., ..]).to_owned());
    let of_rest =
        backward(&attention, &Heads::new(&parts[0], &parts[1], &parts[2]).unwrap(), &parts[3], true);
    let shifted = of_head(&got, 0, 0).map(|x| x.slice(s![10.., ..]).to_owned());
    assert_near("the rest", &shifted, &of_head(&of_rest, 0, 0), 1e-12);
}

/// ReLU(x): a query of the other sign has the normaliser 0, and no gradient, nor has a key from it.
#[test]
fn queries_without_a_positive_normaliser_have_none() {
    let omega = Frequencies::from_rows(array![[1.0], [2.0]]).unwrap();
    let attention =
        Attention::new(Nonlinear::new(Activation::Relu).build::<f64>(omega, 1.0).unwrap()).unwrap();
    let one = |x: [f64; 3]| Array4::from_shape_vec((1, 1, 3, 1), x.to_vec()).unwrap();
    let (q, k, v, g) =
        (one([1.0, -1.0, 2.0]), one([0.5, 3.0, -2.0]), one([1.0, 2.0, 5.0]), one([1.0, 1.0, 1.0]));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let all = attention.bidirectional_backward(&heads, &g).unwrap();
    assert_eq!(attention.bidirectional(&heads).unwrap().non_positive, [[0, 0, 1]]);
    // Weights kⱼ₊/Σ k₊ do not depend on q: for two queries ∂/∂v = 2 k₊/3.5 and ∂/∂k₁ = 2 (1 − o)/3.5 with o = 6.5/3.5.
    let expected = [
        [2.0 * 0.5 / 3.5, 2.0 * 3.0 / 3.5, 0.0],
        [2.0 * (1.0 - 6.5 / 3.5) / 3.5, 2.0 * (2.0 - 6.5 / 3.5) / 3.5, 0.0],
    ];
    for (j, (of_value, of_key)) in expected[0].iter().zip(&expected[1]).enumerate() {
        assert!(
            (all.values[[0, 0, j, 0]] - of_value).abs() < 1e-14
                && (all.keys[[0, 0, j, 0]] - of_key).abs() < 1e-14
        );
        assert!(all.queries[[0, 0, j, 0]].abs() < 1e-14);
    }
}

/// Numbers that leave the range on the way to a gradient that does not.
#[test]
fn what_is_zero_stays_so_beside_what_overflows() {
    let one = |x: &[f32]| Array4::from_shape_vec((1, 1, 1, x.len()), x.to_vec()).unwrap();
    // ReLU(x): the first feature of the query is 0, and its cotangent k₁ v beyond the range.
    let omega = Frequencies::from_rows(array![[1.0, 0.0], [0.0, 1.0]]).unwrap();
    let relu = Nonlinear::new(Activation::Relu).build::<f32>(omega, 1.0).unwrap();
    let attention = Attention::new(relu).unwrap().without_normalisers().with_scale(1.0).unwrap();
    for (first, v) in [(1e10, 1e30), (1e25, 1e15)] {
        let (q, k, v, g) = (one(&[-1.0, 1.0]), one(&[first, 1.0]), one(&[v]), one(&[1.0]));
        let heads = Heads::new(&q, &k, &v).unwrap();
        for causal in [false, true] {
            let of_queries = backward(&attention, &heads, &g, causal).queries;
            // Of two features, each with the factor 1/2 in the kernel.
            let expected = 0.5 * v[[0, 0, 0, 0]];
            assert!(
                of_queries[[0, 0, 0, 0]] == 0.0 && (of_queries[[0, 0, 0, 1]] / expected - 1.0).abs() < 1e-5
            );
        }
    }
    // Values of 0 beside a kernel beyond the range.
    let omega = Frequencies::from_rows(array![[200.0]]).unwrap();
    let map = Positive.build::<f32>(omega, Softmax::default()).unwrap();
    let attention = Attention::new(map).unwrap().without_normalisers();
    let (x, v) = (one(&[60.0]), one(&[0.0]));
    let heads = Heads::new(&x, &x, &v).unwrap();
    for (causal, g) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
        let all = backward(&attention, &heads, &one(&[g]), causal);
        // Also in its sign.
        let zeros = [&all.queries, &all.keys].map(|x| x[[0, 0, 0, 0]].to_bits());
        assert_eq!(zeros, [0, 0], "{all:?}");
        assert_eq!(all.values[[0, 0, 0, 0]], g * f32::INFINITY);
    }
}

/// Gradients that are 0 have no sign: it could come from a later token.
#[test]
fn zeros_have_no_sign() {
    fn check<T: Real>() {
        let [q, k, v] = [1, 2, 3].map(|seed| tokens::<T>([1, 1, 70, 4], 0.8, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let signed: Map<T> = Trigonometric.softmax(frequencies(4, 30, &Orthogonal, 7)).unwrap();
        for attention in [Attention::new(positive::<T>(4, 12)), Attention::signed(vec![signed])] {
            let near = attention.clone().unwrap().with_window(3, 2).unwrap();
            for attention in [attention.unwrap(), near] {
                for (causal, sign) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
                    let none = Array4::from_elem(v.dim(), T::narrow(sign * 0.0));
                    let Gradients { queries, keys, values, .. } = backward(&attention, &heads, &none, causal);
                    let all = queries.iter().chain(&keys).chain(&values);
                    assert!(
                        all.into_iter().all(|v| *v == T::zero() && v.is_sign_positive()),
                        "{causal}, {sign}"
                    );
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}
