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

/// Pairs of points for which a shape is chosen, with their estimated weights.
struct WeightedPairs {
    queries: Array2<f64>,
    /// The rows of the queries that have weights.
    rows: Vec<usize>,
    keys: Array2<f64>,
    /// One row for each of `rows`, one column for each key.
    weights: Array2<f64>,
}

impl<T: Real, E: TokenElement<T>> HeadTokens<'_, T, E> {
    /// Shaped maps for the pairs that are not exact: without a bias, and truncated to the best rank for each number of frequencies.
    pub fn shaped_maps(&self, calibration: &HeadCalibration, option: PairOption) -> Result<Vec<NamedMap<T>>> {
        let pairs = |half| WeightedPairs::of(&self.points(half), option, calibration.causal);
        let (all, halves) = (pairs(None), self.halves(pairs));
        let shapes = |shaping: Shaping| Shapes::of(&shaping, &all, halves.as_ref());
        let (unbiased, mut maps) = (shapes(Shaping::new())?, Vec::new());
        for m in &calibration.m {
            maps.push(unbiased.map("shaped".into(), *m, calibration.seed)?);
            let truncated = shapes(Shaping::new().with_rank_for(*m)?)?;
            // One of two shapes without truncation is enough.
            if truncated.whole.is_truncated() {
                let name = format!("truncated to {}", truncated.whole.rank());
                maps.push(truncated.map(name, *m, calibration.seed)?);
            }
        }
        Ok(maps)
    }
}

/// A shape for all sequences, and one for either half of them if there are several.
struct Shapes {
    whole: Shape,
    halves: Option<[Shape; 2]>,
}

impl Shapes {
    fn of(shaping: &Shaping, all: &WeightedPairs, halves: Option<&[WeightedPairs; 2]>) -> Result<Self> {
        let halves = match halves {
            Some([first, second]) => Some([first.shape(shaping)?, second.shape(shaping)?]),
            None => None,
        };
        Ok(Shapes { whole: all.shape(shaping)?, halves })
    }

    /// The maps of these shapes with m frequencies.
    fn map<T: Real>(&self, name: String, m: usize, seed: u64) -> Result<NamedMap<T>> {
        let halves = match &self.halves {
            Some([first, second]) => Some([map_of(first, m, seed)?, map_of(second, m, seed)?]),
            None => None,
        };
        Ok(NamedMap { name, m, map: map_of(&self.whole, m, seed)?, halves })
    }
}

/// The map of a shape. In few dimensions Sobol' points are better.
fn map_of<T: Real>(shape: &Shape, m: usize, seed: u64) -> Result<Map<T>> {
    let omega = match shape.is_truncated() {
        true => Sobol.draw(shape.rank(), m, seed),
        false => Orthogonal.draw(shape.rank(), m, seed),
    };
    shape.build(omega?, Softmax::default())
}

impl WeightedPairs {
    /// The pairs of points of queries and keys, in which exact ones have no weight.
    fn of(points: &[&PairPoints], option: PairOption, causal: bool) -> Self {
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
        WeightedPairs { queries, rows, keys, weights }
    }

    fn shape(&self, shaping: &Shaping) -> Result<Shape> {
        shaping.of_pairs(&self.queries, &self.rows, &self.keys, &self.weights)
    }
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
