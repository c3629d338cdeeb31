//! [`Attended`]: what attention gives.

use ndarray::{Array, Array3, Dimension, Ix4};

/// Where a normaliser was not positive: batch, head and row.
pub(in super::super) type NonPositive = Vec<[usize; 3]>;

/// The outputs of attention, with the places of the queries whose normaliser was not positive.
///
/// A [step](super::super::CausalState::step) has one query for each sequence and head, and gives an `Attended<T, Ix3>`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attended<T, D: Dimension = Ix4> {
    /// The outputs, \[batch, heads, queries, d_v\]; \[batch, heads, d_v\] of a step.
    pub output: Array<T, D>,
    /// Batch, head and row of the queries whose normaliser was not positive, in order; the row is 0 in a step. Their output is 0 or,
    /// with a [share](super::super::Attention::with_shrinkage) of the mean of the values above 0, that mean.
    pub non_positive: Vec<[usize; 3]>,
    /// The [effective number of features](super::super::Attention::bidirectional_diagnosed) behind each normaliser,
    /// \[batch, heads, queries\], if it was asked for.
    pub effective_features: Option<Array3<T>>,
}

impl<T, D: Dimension> Attended<T, D> {
    /// Without effective numbers of features.
    pub(in super::super) fn new(output: Array<T, D>, non_positive: Vec<[usize; 3]>) -> Self {
        Attended { output, non_positive, effective_features: None }
    }
}

/// NonPositive of all jobs, in order of batch, head and row.
pub(in super::super) fn in_order(non_positive: Vec<NonPositive>) -> NonPositive {
    let mut non_positive = non_positive.concat();
    non_positive.sort_unstable();
    non_positive
}
