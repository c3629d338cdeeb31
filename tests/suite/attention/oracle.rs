//! Attention by its definition, pair by pair.

use std::ops::Range;

use ndarray::{Array2, Axis, s};
use random_features::{Map, Side};

/// How a pair of a query and a key counts: not at all, by features or exactly.
#[derive(Clone, Copy, PartialEq)]
pub enum Pair {
    Unseen,
    Features,
    Exact,
}

/// Features for all pairs that are seen.
pub fn by_features(sees: impl Fn(usize, usize) -> bool) -> impl Fn(usize, usize) -> Pair {
    with_exact(&[], sees)
}

/// Exact weights for the keys `exact` and features for the others, of all pairs that are seen.
pub fn with_exact(exact: &[usize], sees: impl Fn(usize, usize) -> bool) -> impl Fn(usize, usize) -> Pair {
    move |i, j| match () {
        () if !sees(i, j) => Pair::Unseen,
        () if exact.contains(&j) => Pair::Exact,
        () => Pair::Features,
    }
}

/// Whether the key at place `j` is a neighbour of the query at place `i`.
pub fn is_near([before, after]: [usize; 2], i: usize, j: usize) -> bool {
    i < j.saturating_add(before) && j <= i.saturating_add(after)
}

/// The features that have one logarithm: each its own, or those of a block.
fn runs(map: &Map<f64>) -> Vec<Range<usize>> {
    let widths = if map.facts().logarithms { vec![1; map.feature_dim()] } else { map.blocks().to_vec() };
    let run = |end: &mut usize, width: usize| {
        *end += width;
        Some(*end - width..*end)
    };
    widths.into_iter().scan(0, run).collect()
}

/// The logarithms of all runs, and the factors of all features, of some tokens.
fn log_features(map: &Map<f64>, side: Side, x: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
    if map.facts().logarithms {
        let (mut logs, signs, scales) = map.log_features(side, x).unwrap();
        let mut first = 0;
        for (width, scales) in map.blocks().iter().zip(scales.columns()) {
            let mut block = logs.slice_mut(s![.., first..first + width]);
            block += &scales.insert_axis(Axis(1));
            first += width;
        }
        return (logs, signs);
    }
    let features = map.features(side, x).unwrap();
    (features.log_scales().to_owned(), features.mantissas().to_owned())
}

/// The weights of all keys in one row, and their sum; relative to the largest term where the sum will divide them.
///
/// The weight of a pair is a sum of terms, each a factor and the logarithm of what stands beside it.
fn weights(keys: usize, terms: impl Fn(usize) -> Vec<(f64, f64)>, normalised: bool) -> (Vec<f64>, f64) {
    let all: Vec<Vec<(f64, f64)>> = (0..keys).map(terms).collect();
    let largest = all.iter().flatten().fold(f64::NEG_INFINITY, |top, (log, _)| top.max(*log));
    let top = if normalised { largest } else { 0.0 };
    let weight =
        |terms: &Vec<(f64, f64)>| terms.iter().map(|(log, factor)| factor * (log - top).exp()).sum::<f64>();
    let weights: Vec<f64> = all.iter().map(weight).collect();
    let total = weights.iter().sum();
    (weights, total)
}

/// The outputs of one head, of the terms of all pairs; not divided by the normaliser unless so asked.
fn outputs(
    queries: usize,
    v: &Array2<f64>,
    terms: impl Fn(usize, usize) -> Vec<(f64, f64)>,
    normalised: bool,
) -> Array2<f64> {
    let mut out = Array2::zeros((queries, v.ncols()));
    for (i, mut out) in out.rows_mut().into_iter().enumerate() {
        let (weights, total) = weights(v.nrows(), |j| terms(i, j), normalised);
        weights.iter().zip(v.rows()).for_each(|(weight, v)| out.scaled_add(*weight, &v));
        if normalised {
            out.mapv_inplace(|v| if total > 0.0 || total.is_nan() { v / total } else { 0.0 });
        }
    }
    out
}

/// Attention by features, exactly or not at all, as each pair says, of one head.
pub fn naive(
    map: &Map<f64>,
    [q, k, v]: [&Array2<f64>; 3],
    pair: impl Fn(usize, usize) -> Pair,
    normalised: bool,
) -> Array2<f64> {
    let scale = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (q * scale, k * scale);
    let ((ql, qf), (kl, kf)) = (log_features(map, Side::X, &x), log_features(map, Side::Y, &y));
    let runs = runs(map);
    // The logarithms and factors of one pair's runs of features.
    let features = |i: usize, j: usize| {
        let (qf, kf) = (qf.row(i), kf.row(j));
        let logs = ql.row(i).into_iter().zip(kl.row(j)).map(|(ql, kl)| ql + kl);
        let terms = logs.zip(&runs).filter(|(log, _)| *log != f64::NEG_INFINITY);
        let factor = |run: &Range<usize>| run.clone().map(|f| qf[f] * kf[f]).sum::<f64>();
        terms.map(|(log, run)| (log, factor(run))).filter(|(_, factor)| *factor != 0.0).collect()
    };
    let terms = |i: usize, j: usize| match pair(i, j) {
        Pair::Unseen => Vec::new(),
        Pair::Exact => vec![(x.row(i).dot(&y.row(j)), 1.0)],
        Pair::Features => features(i, j),
    };
    outputs(q.nrows(), v, terms, normalised)
}

/// Exact attention of one head.
pub fn exact([q, k, v]: [&Array2<f64>; 3], sees: impl Fn(usize, usize) -> bool) -> Array2<f64> {
    let root = (q.ncols() as f64).sqrt();
    let term = |i: usize, j: usize| (q.row(i).dot(&k.row(j)) / root, 1.0);
    outputs(q.nrows(), v, |i, j| if sees(i, j) { vec![term(i, j)] } else { Vec::new() }, true)
}

/// The weights of exact attention from the logits of all pairs, which are −∞ for pairs that are not seen.
pub fn softmax(logits: &Array2<f64>) -> Array2<f64> {
    let mut all = logits.clone();
    for (mut all, logits) in all.rows_mut().into_iter().zip(logits.rows()) {
        let (weights, total) = weights(logits.len(), |j| vec![(logits[j], 1.0)], true);
        all.iter_mut().zip(weights).for_each(|(all, weight)| *all = weight / total);
    }
    all
}
