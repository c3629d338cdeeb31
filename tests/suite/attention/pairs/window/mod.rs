//! Attention with exact neighbours.

mod ends;
#[cfg(feature = "half")]
mod precision;
mod quadratic;

use ndarray::Array2;

#[track_caller]
fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64, what: &str) {
    let size = b.iter().fold(1.0f64, |a, v| a.max(v.abs()));
    let error = (a - b).iter().fold(0.0f64, |a, e| if e.is_nan() { f64::NAN } else { a.max(e.abs()) });
    assert!(error <= tolerance * size, "{what}: {error:e} of {size}");
}
