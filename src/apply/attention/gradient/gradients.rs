//! [`Gradients`] of attention.

use ndarray::{Array4, ArrayRef, Ix4};

use super::super::input::{Heads, check_shape};
use super::roles::SUMMARY;
use crate::Real;
use crate::error::Result;
use crate::memory::check_memory;
use crate::numeric;

/// The gradients of a loss with respect to queries, keys and values, from [`causal_backward`](super::super::Attention::causal_backward)
/// and its like.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gradients<T> {
    /// The gradient with respect to the queries, \[batch, heads, queries, d\].
    pub queries: Array4<T>,
    /// The gradient with respect to the keys, \[batch, heads of keys, keys, d\], summed over the heads of queries that share them.
    pub keys: Array4<T>,
    /// The gradient with respect to the values, \[batch, heads of keys, keys, d_v\], summed over the heads of queries
    /// that share them.
    pub values: Array4<T>,
}

impl<T: Real> Gradients<T> {
    /// All 0.
    pub(in super::super) fn zeros<E>(heads: &Heads<'_, E>) -> Result<Self> {
        let (queries, keys, values) = (heads.queries.dim(), heads.keys.dim(), heads.values.dim());
        let numbers = |(b, h, n, d): (usize, usize, usize, usize)| {
            [b, h, n, d].into_iter().fold(1, usize::saturating_mul)
        };
        let all = [queries, keys, values].map(numbers).into_iter().fold(0, usize::saturating_add);
        check_memory("gradients of attention", all, size_of::<T>())?;
        // The gradient with respect to the output of each query of a head, and what else keys need of it.
        let each = values
            .3
            .saturating_add(1)
            .saturating_mul(size_of::<T>())
            .saturating_add(SUMMARY * size_of::<f64>());
        check_memory("gradients of outputs", queries.2, each)?;
        heads.check_count::<T>()?;
        Ok(Gradients {
            queries: numeric::zeros(queries),
            keys: numeric::zeros(keys),
            values: numeric::zeros(values),
        })
    }
}

/// Checks the shape of gradients with respect to outputs.
pub(super) fn check_upstream<E, T>(heads: &Heads<'_, E>, output_gradients: &ArrayRef<T, Ix4>) -> Result<()> {
    let what = [
        "the batch size of the output gradients",
        "the number of heads of the output gradients",
        "the length of the output gradients",
        "the dimension of the output gradients",
    ];
    check_shape(what, output_gradients.shape(), heads.output_dim())
}
