//! Maps that are shaped by the pairs of a head that features estimate.

use ndarray::{Array2, Axis, s};

use super::super::super::input::TokenElement;
use super::super::super::pairs::{finite_softmax, heaviest};
use super::super::shaping::hide_exact;
use super::HeadCalibration;
use super::trials::{HeadTokens, NamedMap, PairOption, PairPoints, concatenated};
use crate::Real;
use crate::data::shaping::{Shape, Shaping};
use crate::data::spread::spread;
use crate::error::Result;
use crate::frequency::{Orthogonal, Sobol};
use crate::kernel::Softmax;
use crate::map::Map;

/// Queries of a sequence whose exact weights say how a shape is chosen.
const ROWS: usize = 64;
/// The most pairs of a head of queries and a sequence from which a shape is chosen.
const MOST: usize = 8;

impl<T: Real, E: TokenElement<T>> HeadTokens<'_, T, E> {
    /// Shaped maps for the pairs that are not exact: without a bias, and truncated to the best rank.
    pub fn shaped_maps(&self, calibration: &HeadCalibration, option: PairOption) -> Result<Vec<NamedMap<T>>> {
        let mut maps = Vec::new();
        for shaping in [Shaping::new(), Shaping::new().with_rank_for(calibration.m)?] {
            let shape = |half| shape(&shaping, &self.points(half), option, calibration.causal);
            // In few dimensions Sobol' points are better.
            let map = |shape: &Shape| -> Result<Map<T>> {
                let (rank, HeadCalibration { m, seed, .. }) = (shape.rank(), calibration);
                let omega = match shape.is_truncated() {
                    true => Sobol.draw(rank, *m, *seed),
                    false => Orthogonal.draw(rank, *m, *seed),
                };
                shape.build(omega?, Softmax::default())
            };
            let whole = shape(None)?;
            let name = match whole.is_truncated() {
                true => format!("truncated to {}", whole.rank()),
                // One of two shapes without truncation is enough.
                false if maps.is_empty() => "shaped".into(),
                false => continue,
            };
            let halves = self.halves(|half| map(&shape(half)?))?;
            maps.push(NamedMap { name, map: map(&whole)?, halves });
        }
        Ok(maps)
    }
}

/// The shape for pairs of points of queries and keys, without those that are exact.
fn shape(shaping: &Shaping, points: &[&PairPoints], option: PairOption, causal: bool) -> Result<Shape> {
    let points: Vec<_> = spread(points.len(), MOST).into_iter().map(|i| points[i]).collect();
    let queries = concatenated(&Vec::from_iter(points.iter().map(|pair| pair.queries.view())));
    let keys = concatenated(&Vec::from_iter(points.iter().map(|pair| pair.keys.view())));
    let chosen: Vec<Vec<usize>> = points.iter().map(|pair| spread(pair.queries.nrows(), ROWS)).collect();
    let (mut rows, mut weights) =
        (Vec::new(), Array2::zeros((chosen.iter().map(Vec::len).sum(), keys.nrows())));
    let (mut query, mut key) = (0, 0);
    for (pair, chosen) in points.iter().zip(&chosen) {
        let own = s![rows.len()..rows.len() + chosen.len(), key..key + pair.keys.nrows()];
        weights.slice_mut(own).assign(&estimated_weights(pair, chosen, option, causal));
        rows.extend(chosen.iter().map(|i| query + i));
        (query, key) = (query + pair.queries.nrows(), key + pair.keys.nrows());
    }
    // Where all pairs are exact, or all weights underflow, all count alike.
    if weights.sum() == 0.0 {
        weights.fill(1.0);
    }
    shaping.of_pairs(&queries, &rows, &keys, &weights)
}

/// The softmax weights of some queries, 0 for pairs that are not seen or exact.
fn estimated_weights(
    PairPoints { queries, keys, seen }: &PairPoints,
    rows: &[usize],
    option: PairOption,
    causal: bool,
) -> Array2<f64> {
    let mut weights = queries.select(Axis(0), rows).dot(&keys.t());
    for (mut row, place) in weights.rows_mut().into_iter().zip(rows) {
        let sees = |j: usize| seen[j] && (!causal || j <= *place);
        let logits = row.iter_mut().enumerate().filter(|(j, _)| !sees(*j));
        logits.for_each(|(_, logit)| *logit = f64::NEG_INFINITY);
        finite_softmax(row);
    }
    let exact = match causal {
        true => Vec::from_iter(0..option.exact_keys.min(keys.nrows())),
        false => heaviest(&weights.sum_axis(Axis(0)).to_vec(), option.exact_keys),
    };
    hide_exact(option.window, &mut weights, rows, &exact);
    weights
}
