//! Gradients of linear attention where norms are large, from logarithms alone.

use crate::attention::gradient::{Three, assert_near, backward, of_head};
use crate::attention::{positive, widened};
use crate::common::{frequencies, tokens};
use ndarray::{Array1, Array2, Axis, s};
use random_features::Real;
use random_features::apply::attention::{Attention, Heads};
use random_features::frequency::Orthogonal;

/// The gradients with positive features from logarithms alone, at any norm. They are the shares pᵢⱼ φ_f ψ_f / K̂ that a feature
/// has in a weight, times ω_f − x, the slope of its logarithm.
fn naive_by_logarithms(omega: &Array2<f64>, [q, k, v, g]: [&Array2<f64>; 4], causal: bool) -> Three {
    let factor = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (q * factor, k * factor);
    let logs = |x: &Array2<f64>| {
        let norms: Array1<f64> = x.rows().into_iter().map(|x| 0.5 * x.dot(&x)).collect();
        x.dot(&omega.t()) - norms.insert_axis(Axis(1))
    };
    let (of_x, of_y) = (logs(&x), logs(&y));
    let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| Array2::<f64>::zeros(x.dim()));
    for i in 0..q.nrows() {
        let seen = if causal { i + 1 } else { k.nrows() };
        let mut shares = Array2::from_shape_fn((seen, omega.nrows()), |(j, f)| of_x[[i, f]] + of_y[[j, f]]);
        let top = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.mapv_inplace(|log| (log - top).exp());
        shares /= shares.sum();
        let (weights, centres) = (shares.sum_axis(Axis(1)), shares.dot(omega));
        let out = weights.dot(&v.slice(s![..seen, ..]));
        for j in 0..seen {
            dv.row_mut(j).scaled_add(weights[j], &g.row(i));
            let slope = factor * g.row(i).dot(&(&v.row(j) - &out));
            dq.row_mut(i).scaled_add(slope, &(&centres.row(j) - &(&x.row(i) * weights[j])));
            dk.row_mut(j).scaled_add(slope, &(&centres.row(j) - &(&y.row(j) * weights[j])));
        }
    }
    [dq, dk, dv]
}

fn large_norms<T: Real>([l, m]: [usize; 2], size: f64, tolerance: f64) {
    let d = 8;
    let omega = frequencies(d, m, &Orthogonal, 7).rows().into_owned();
    let attention = Attention::new(positive::<T>(d, m)).unwrap();
    let [q, k] = [1, 2].map(|seed| tokens::<T>([1, 1, l, d], size, seed));
    let [v, g] = [3, 4].map(|seed| tokens::<T>([1, 1, l, 3], 1.0, seed));
    let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
    for causal in [false, true] {
        let got = of_head(&backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, causal), 0, 0);
        let expected = naive_by_logarithms(&omega, wide.each_ref(), causal);
        assert_near(
            &format!("{l} tokens, {m} features, size {size}, causal {causal}"),
            &got,
            &expected,
            tolerance,
        );
    }
}

/// Norms of 5, 50 and 1,400: products in `T`, logarithms, and far beyond what exponentials hold.
#[test]
fn norms_may_be_large() {
    large_norms::<f64>([150, 32], 1.8, 1e-11);
    large_norms::<f64>([150, 32], 18.0, 1e-9);
    large_norms::<f64>([150, 32], 500.0, 1e-7);
    large_norms::<f32>([150, 32], 1.8, 1e-4);
    large_norms::<f32>([150, 32], 18.0, 3e-3);
    // Rows by logarithms go 64 features at a time.
    large_norms::<f64>([80, 130], 18.0, 1e-9);
    large_norms::<f32>([80, 130], 18.0, 3e-3);
}
