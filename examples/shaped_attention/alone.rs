//! Attention to exact pairs alone, as if there were no others.

use ndarray::{Array2, Array4, Axis, s};

use crate::maps::Exact;

/// The output for one head: weights of the pairs that are `exact`, with these keys among them, and no others.
pub fn output([q, k, v]: &[Array4<f32>; 3], exact: Exact, keys: &[usize]) -> Array4<f32> {
    let [before, after] = exact.window();
    let [q, k, v]: [Array2<f64>; 3] = [q, k, v].map(|x| x.slice(s![0, 0, .., ..]).mapv(f64::from));
    let mut logits = q.dot(&k.t()) / (q.ncols() as f64).sqrt();
    for (i, mut row) in logits.rows_mut().into_iter().enumerate() {
        let near = |j: usize| i < j + before && j <= i + after;
        let seen = |j: usize| near(j) || keys.contains(&j);
        let top = (0..row.len()).filter(|j| seen(*j)).map(|j| row[j]).fold(f64::NEG_INFINITY, f64::max);
        row.indexed_iter_mut().for_each(|(j, v)| *v = if seen(j) { (*v - top).exp() } else { 0.0 });
        let total = row.sum();
        row /= total;
    }
    let out = logits.dot(&v).mapv(|v| v as f32);
    out.insert_axis(Axis(0)).insert_axis(Axis(0))
}
