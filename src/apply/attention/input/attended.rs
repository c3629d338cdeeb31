//! [`Attended`]: what attention gives.

use ndarray::{Array3, Array4};

/// Where a normaliser was not positive: batch, head and row.
pub(in super::super) type NonPositive = Vec<[usize; 3]>;

/// What attention gives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attended<T> {
    /// \[batch, heads, queries, d_v\].
    pub output: Array4<T>,
    /// Batch, head and row of queries whose normaliser was not positive, in order; their output is 0.
    pub non_positive: Vec<[usize; 3]>,
    /// \[batch, heads, queries\]: the [effective number of features](super::super::Attention::bidirectional_diagnosed) behind each normaliser, if it was
    /// asked for.
    pub effective_features: Option<Array3<T>>,
}

impl<T> Attended<T> {
    /// Without effective numbers of features.
    pub(in super::super) fn new(output: Array4<T>, non_positive: Vec<[usize; 3]>) -> Self {
        Attended { output, non_positive, effective_features: None }
    }
}

/// NonPositive of all jobs, in order of batch, head and row.
pub(in super::super) fn in_order(non_positive: Vec<NonPositive>) -> NonPositive {
    let mut non_positive = non_positive.concat();
    non_positive.sort_unstable();
    non_positive
}
