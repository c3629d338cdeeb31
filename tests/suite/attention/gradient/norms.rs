//! Gradients of linear attention where norms are large, from logarithms alone.

use crate::attention::gradient::{Three, assert_near, backward, of_head};
use crate::attention::{positive, widened};
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Axis, array, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::{Positive, Real};

/// The gradients with positive features from logarithms alone, at any norm. They are the shares pᵢⱼ φ_f ψ_f / K̂ that a feature
/// has in a weight, times ω_f − x, the slope of its logarithm. Logarithms are relative to the largest of each token, so that squared
/// norms of queries do not enter, and those of keys as differences alone.
fn naive_by_logarithms(omega: &Array2<f64>, [q, k, v, g]: [&Array2<f64>; 4], causal: bool) -> Three {
    let factor = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (q * factor, k * factor);
    let logs = |x: &Array2<f64>| {
        let mut logs = x.dot(&omega.t());
        let tops = logs.map_axis(Axis(1), |logs| logs.fold(f64::NEG_INFINITY, |a: f64, b| a.max(*b)));
        logs -= &tops.clone().insert_axis(Axis(1));
        (logs, tops)
    };
    let ((of_x, _), (of_y, tops)) = (logs(&x), logs(&y));
    let sizes = tops - y.pow2().sum_axis(Axis(1)) * 0.5;
    let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| Array2::<f64>::zeros(x.dim()));
    for i in 0..q.nrows() {
        let seen = if causal { i + 1 } else { k.nrows() };
        let size = sizes.iter().take(seen).copied().fold(f64::NEG_INFINITY, f64::max);
        let log = |(j, f): (usize, usize)| of_x[[i, f]] + of_y[[j, f]] + (sizes[j] - size);
        let mut shares = Array2::from_shape_fn((seen, omega.nrows()), log);
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

/// Coordinates of 10⁸, beside whose squares ln of a normaliser has no digits: of queries, and of no key, all keys or the first. A
/// query that is so large sees all features of the first frequencies, and one of the others. With second coordinates of ∓50 the
/// normaliser is e^−100 of the scale.
#[test]
fn squared_norms_may_leave_no_digits() {
    let steep = array![[1.0, -1.3], [1.0, -0.4], [1.0, 0.4], [1.0, 1.3]];
    let [mut q, k, v, g] =
        [(1, 2), (2, 2), (3, 3), (4, 3)].map(|(seed, d)| tokens::<f64>([1, 1, 70, d], 1.0, seed));
    q.slice_mut(s![.., .., ..;3, 0]).mapv_inplace(|v| v + 1e8);
    for omega in [steep, frequencies(2, 16, &Orthogonal, 7).rows().into_owned()] {
        let map = Positive.softmax::<f64>(Frequencies::from_rows(omega.clone()).unwrap()).unwrap();
        let attention = Attention::new(map).unwrap();
        for (large, second) in [(0, 0.5), (70, 0.5), (10, 0.5), (70, 50.0)] {
            let (mut q, mut k) = (q.clone(), k.clone());
            k.slice_mut(s![.., .., ..large, 0]).fill(1e8);
            k.slice_mut(s![.., .., ..large, 1]).fill(second);
            if second > 1.0 {
                q.slice_mut(s![.., .., .., 1]).fill(-second);
            }
            let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
            for causal in [false, true] {
                let got = of_head(&backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, causal), 0, 0);
                let expected = naive_by_logarithms(&omega, wide.each_ref(), causal);
                for (got, expected) in got.iter().zip(&expected) {
                    // Gradients of large keys are large.
                    for (got, expected) in got.rows().into_iter().zip(expected.rows()) {
                        let size = expected.iter().fold(1.0, |a: f64, v| a.max(v.abs()));
                        let near = got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * size);
                        assert!(near, "{large} large keys, causal {causal}: {got} for {expected}");
                    }
                }
            }
        }
    }
}
