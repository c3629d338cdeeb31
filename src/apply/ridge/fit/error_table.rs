//! [`ErrorTable`]: a criterion for each λ, of each target and in all.

use ndarray::Array2;

/// A criterion for each λ. A target that is constant in training adds 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ErrorTable {
    /// The criterion for each λ, summed over the targets.
    pub sums: Vec<f64>,
    /// The criterion for each λ and each target, λ × t.
    pub each: Array2<f64>,
}
