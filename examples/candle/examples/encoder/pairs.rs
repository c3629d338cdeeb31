//! Pairs of a query and a key whose weights are computed exactly, and attention to these pairs alone.

use random_features::apply::attention::{Attention, AttentionShaping};
use random_features::data::shaping::Shaping;
use random_features::ndarray::{Array2, Array4, ArrayView2, Axis};

use crate::outcome::Outcome;
use crate::tokens::HeadTokens;

/// Queries whose exact weights choose the heaviest keys, as many as [`Attention`] takes.
pub const ROWS: usize = 64;

/// The pairs of each query with its neighbours and with the heaviest keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pairs {
    /// Neighbours on either side; the query's own key is one more. `None` if no neighbour is exact.
    pub near: Option<usize>,
    /// The heaviest keys.
    pub keys: usize,
}

impl Pairs {
    /// How many keys [`Attention::with_window`] counts before a query, its own among them, and behind it.
    pub fn window(self) -> [usize; 2] {
        self.near.map_or([0, 0], |near| [near + 1, near])
    }

    /// Attention with exact weights for these pairs.
    pub fn beside(self, attention: Attention<f32>) -> Outcome<Attention<f32>> {
        let [before, after] = self.window();
        Ok(attention.with_window(before, after)?.with_heaviest_keys_exact(self.keys)?)
    }

    /// The keys, ascending, that each query of a text sees exactly.
    fn seen(self, queries: ArrayView2<'_, f32>, keys: ArrayView2<'_, f32>) -> Outcome<Vec<Vec<usize>>> {
        let heaviest = self.heaviest(queries, keys)?;
        let [before, after] = self.window();
        let of_query = |i: usize| {
            let near = (i + 1).saturating_sub(before)..(i + 1 + after).min(keys.nrows());
            let near = if before == 0 { 0..0 } else { near };
            let mut seen: Vec<usize> = near.chain(heaviest.iter().copied()).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        Ok((0..queries.nrows()).map(of_query).collect())
    }

    fn heaviest(self, queries: ArrayView2<'_, f32>, keys: ArrayView2<'_, f32>) -> Outcome<Vec<usize>> {
        let count = self.keys.min(keys.nrows().saturating_sub(1));
        if count == 0 {
            return Ok(Vec::new());
        }
        Ok(AttentionShaping::new(Shaping::new()).heaviest_keys(&queries, &keys, ROWS, count)?)
    }

    /// The mean number of pairs of a query.
    pub fn count(self, tokens: &HeadTokens<'_>) -> Outcome<f64> {
        let [queries, keys, _] = tokens.rows();
        let pairs: usize = self.seen(queries, keys)?.iter().map(Vec::len).sum();
        Ok(pairs as f64 / queries.nrows() as f64)
    }

    /// The outputs of attention to these pairs, as if there were no others.
    pub fn alone(self, tokens: &HeadTokens<'_>) -> Outcome<Array4<f32>> {
        let [queries, keys, values] = tokens.rows();
        let outputs = attended(queries, keys, values, &self.seen(queries, keys)?);
        Ok(outputs.insert_axis(Axis(0)).insert_axis(Axis(0)))
    }
}

/// Exact attention of each query to keys of its own.
fn attended(
    queries: ArrayView2<'_, f32>,
    keys: ArrayView2<'_, f32>,
    values: ArrayView2<'_, f32>,
    seen: &[Vec<usize>],
) -> Array2<f32> {
    let scale = (queries.ncols() as f32).sqrt().recip();
    let mut outputs = Array2::zeros((queries.nrows(), values.ncols()));
    for ((query, seen), mut output) in queries.rows().into_iter().zip(seen).zip(outputs.rows_mut()) {
        let mut weights: Vec<f32> = seen.iter().map(|j| scale * keys.row(*j).dot(&query)).collect();
        let most = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        weights.iter_mut().for_each(|logit| *logit = (*logit - most).exp());
        let sum: f32 = weights.iter().sum();
        seen.iter().zip(weights).for_each(|(j, weight)| output.scaled_add(weight / sum, &values.row(*j)));
    }
    outputs
}
