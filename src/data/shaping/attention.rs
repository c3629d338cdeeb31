//! Shapes for attention, chosen from queries and keys.

use ndarray::{Array2, ArrayRef2, Axis};

use super::choice::{check_rows, spread};
use super::{Shape, Shaping};
use crate::Real;
use crate::data::statistics::check_row;
use crate::error::{Error, Result, check_positive, check_size};
use crate::numeric;

/// The result of [`Shaping::for_attention`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttentionShape {
    /// The shape for the other keys.
    pub shape: Shape,
    /// The rows of the keys with the largest weights, ascending, for
    /// [`Attention::with_keys_exact`](crate::apply::attention::Attention::with_keys_exact).
    pub exact_keys: Vec<usize>,
}

impl Shaping {
    /// The shape for softmax attention of these queries, n × d, and keys, l × d, and the rows of the `exact_keys` keys
    /// with the largest weights, ascending, which should get exact weights.
    ///
    /// Queries and keys must be scaled so that x·y are the logits, for example by d^{−¼} each: weights are exp(x·y)
    /// over their sum. The weights of up to `rows` evenly spaced queries are computed exactly; 64 are enough. The shape
    /// is chosen from the pairs without the exact keys, with these weights, or with equal weights if they all
    /// underflow.
    ///
    /// The choice depends on all queries and keys. It may be used for bidirectional attention of the same tokens, since
    /// frequencies do not depend on it, but not for causal attention of the same tokens.
    ///
    /// # Cost
    /// That of [`of_pairs`](Shaping::of_pairs), and `rows` · l · d multiplications and memory for `rows` · l numbers.
    ///
    /// # Example
    /// ```
    /// use ndarray::Array2;
    /// use random_features::data::shaping::Shaping;
    /// let wave = |i: usize, k: usize| (1.7 * i as f64 + 2.3 * k as f64).sin();
    /// let queries = Array2::from_shape_fn((30, 4), |(i, k)| wave(i, k));
    /// let mut keys = Array2::from_shape_fn((20, 4), |(j, k)| wave(3 * j, k + 1));
    /// keys.row_mut(7).assign(&(&queries.row(3) * 4.0));
    /// let chosen = Shaping::new().for_attention(&queries, &keys, 30, 1)?;
    /// assert_eq!((chosen.shape.dim(), chosen.exact_keys), (4, vec![7]));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`NotFinite`](Error::NotFinite) with the first row whose squared norm
    /// is not finite, [`Parameter`](Error::Parameter) if `rows` is 0 or there are no more than `exact_keys` keys,
    /// [`NoData`](Error::NoData) without queries or keys, and as [`of_pairs`](Shaping::of_pairs).
    pub fn for_attention<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        rows: usize,
        exact_keys: usize,
    ) -> Result<AttentionShape> {
        check_positive("the number of rows", rows)?;
        self.for_attention_rows(queries, &spread(queries.nrows(), rows), keys, exact_keys)
    }

    /// As [`for_attention`](Shaping::for_attention), with the weights of these rows of the queries. The moments of x
    /// are those of all queries.
    ///
    /// # Errors
    /// As [`for_attention`](Shaping::for_attention); [`Parameter`](Error::Parameter) if a row is not below n.
    pub fn for_attention_rows<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        rows: &[usize],
        keys: &ArrayRef2<T>,
        exact_keys: usize,
    ) -> Result<AttentionShape> {
        let mut weights = attention_rows(queries, rows, keys)?;
        let exact_keys = heaviest(&weights, exact_keys)?;
        let hide =
            |weights: &mut Array2<f64>| exact_keys.iter().for_each(|j| weights.column_mut(*j).fill(0.0));
        hide(&mut weights);
        if weights.sum() == 0.0 {
            weights.fill(1.0);
            hide(&mut weights);
        }
        Ok(AttentionShape { shape: self.of_pairs(queries, rows, keys, &weights)?, exact_keys })
    }
}

/// The rows of the `count` keys with the largest sums of softmax weights over up to `rows` evenly spaced queries,
/// ascending; ties go to the first. Queries, n × d, and keys, l × d, must be scaled so that x·y are the logits.
///
/// # Errors
/// As [`Shaping::for_attention`].
pub fn heaviest_keys<T: Real>(
    queries: &ArrayRef2<T>,
    keys: &ArrayRef2<T>,
    rows: usize,
    count: usize,
) -> Result<Vec<usize>> {
    check_positive("the number of rows", rows)?;
    heaviest(&attention_rows(queries, &spread(queries.nrows(), rows), keys)?, count)
}

/// Rows of the attention matrix.
fn attention_rows<T: Real>(
    queries: &ArrayRef2<T>,
    rows: &[usize],
    keys: &ArrayRef2<T>,
) -> Result<Array2<f64>> {
    check_size("the dimension of the keys", queries.ncols(), keys.ncols())?;
    check_rows(rows, queries.nrows())?;
    for points in [queries, keys] {
        check_points(points)?;
    }
    let wide = |points: &ArrayRef2<T>| points.mapv(Real::widen);
    let mut weights = wide(&queries.select(Axis(0), rows)).dot(&wide(keys).t());
    weights.rows_mut().into_iter().for_each(numeric::softmax);
    Ok(weights)
}

/// Rejects empty sets and points whose squared norm is not finite.
fn check_points<T: Real>(points: &ArrayRef2<T>) -> Result<()> {
    if points.is_empty() {
        return Err(Error::NoData { what: "the choice of a shape" });
    }
    let rows = points.as_standard_layout();
    let mut rows = rows.rows().into_iter().enumerate();
    rows.try_for_each(|(i, row)| check_row(numeric::slice_of(&row), i))
}

fn heaviest(weights: &Array2<f64>, count: usize) -> Result<Vec<usize>> {
    if count >= weights.ncols() {
        let domain = "less than the number of keys";
        return Err(Error::Parameter { name: "the number of exact keys", value: count as f64, domain });
    }
    let totals = weights.sum_axis(Axis(0));
    let mut keys: Vec<usize> = (0..totals.len()).collect();
    // A stable sort, so that ties keep their order.
    keys.sort_by(|a, b| totals[*b].total_cmp(&totals[*a]));
    keys.truncate(count);
    keys.sort_unstable();
    Ok(keys)
}

/// The stored form.
#[cfg(feature = "serde")]
mod stored {
    use super::{AttentionShape, Shape};
    use crate::sealed::{AnyScalar, sealed_fields};

    sealed_fields! {
        AttentionShape, AnyScalar,
        #[serde(rename = "AttentionShape")]
        struct StoredAttentionShape {
            shape: Shape,
            exact_keys: Vec<usize>,
        }
    }

    impl From<StoredAttentionShape> for AttentionShape {
        fn from(StoredAttentionShape { shape, exact_keys }: StoredAttentionShape) -> Self {
            AttentionShape { shape, exact_keys }
        }
    }
}
