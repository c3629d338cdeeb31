//! Attention to exact pairs alone, as if there were no others.

use ndarray::{Array2, Array4, Axis, s};

/// The output for one head: softmax weights of the pairs that are `seen`, and no others.
pub fn output([q, k, v]: &[Array4<f32>; 3], seen: impl Fn(usize, usize) -> bool) -> Array4<f32> {
    let [q, k, v]: [Array2<f64>; 3] = [q, k, v].map(|x| x.slice(s![0, 0, .., ..]).mapv(f64::from));
    let scale = (q.ncols() as f64).sqrt().recip();
    let mut out = Array2::zeros((q.nrows(), v.ncols()));
    for (i, q) in q.rows().into_iter().enumerate() {
        let keys: Vec<usize> = (0..k.nrows()).filter(|j| seen(i, *j)).collect();
        let mut weights = k.select(Axis(0), &keys).dot(&q) * scale;
        let top = weights.fold(f64::NEG_INFINITY, |top, logit| top.max(*logit));
        weights.mapv_inplace(|logit| (logit - top).exp());
        let mean = weights.dot(&v.select(Axis(0), &keys)) / weights.sum();
        out.row_mut(i).assign(&mean.mapv(|v| v as f32));
    }
    out.insert_axis(Axis(0)).insert_axis(Axis(0))
}
