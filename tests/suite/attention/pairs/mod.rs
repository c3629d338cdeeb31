//! Pairs of queries and keys with exact weights.

mod exact_attention;
mod exact_keys;
mod heaviest;
#[cfg(feature = "serde")]
mod stored;
mod window;

use crate::common::tokens;
use ndarray::{Array2, Array4, s};

fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    assert!((a - b).iter().all(|e| e.abs() <= tolerance), "{a} {b}");
}

/// Keys of which `heavy` are long and point the way of the queries.
fn inputs(heads: usize, n: usize, d: usize, heavy: &[usize]) -> [Array4<f64>; 3] {
    let mut q = tokens::<f64>([1, heads, n, d], 0.5, 1);
    q.mapv_inplace(|v| v + 0.6);
    let mut k = tokens::<f64>([1, 1, n, d], 0.4, 2);
    heavy.iter().for_each(|j| k.slice_mut(s![.., .., *j, ..]).mapv_inplace(|v| v + 1.5));
    [q, k, tokens::<f64>([1, 1, n, 3], 1.0, 3)]
}
