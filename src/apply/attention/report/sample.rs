//! [`AttentionSample`]: some queries, keys and values, and what is exact for them.

use ndarray::{Array1, Array2, Axis};

use super::errors::Sizes;
use crate::numeric::{Isa, exp_minus, slice_of_mut};

/// Queries, keys and values of some tokens.
#[derive(Clone)]
pub(super) struct AttentionSample {
    /// The points of the kernel.
    pub points: [Array2<f64>; 2],
    pub values: Array2<f64>,
    /// Whether the exact weights are those of the Gaussian kernel, and not of the softmax kernel.
    gaussian: bool,
    /// What the features' kernel is beside the exact one, as logarithms, if it is another one.
    log_ratio: Option<Array2<f64>>,
    /// Pairs whose weights are computed exactly, if there are any.
    exact: Option<Array2<bool>>,
    logits: Array2<f64>,
    /// ½‖y‖² of keys where the kernel is Gaussian, else 0.
    halves: Array1<f64>,
    /// The mean of the values.
    mean: Array1<f64>,
}

/// A query's exact weights, what the features' kernel makes of them relatively, and values less the exact output.
pub(super) struct ExactRow {
    pub weights: Array1<f64>,
    pub ratios: Array1<f64>,
    pub output: Array1<f64>,
    pub centred: Array2<f64>,
}

impl AttentionSample {
    pub fn new(points: [Array2<f64>; 2], values: Array2<f64>, gaussian: bool) -> Self {
        let [x, y] = &points;
        let logits = x.dot(&y.t());
        let halves = if gaussian { halves(y) } else { Array1::zeros(y.nrows()) };
        let mean = values.mean_axis(Axis(0)).unwrap_or_default();
        AttentionSample { points, values, gaussian, log_ratio: None, exact: None, logits, halves, mean }
    }

    /// The same with exact weights for some pairs.
    pub fn with_exact(self, exact: Option<Array2<bool>>) -> Self {
        AttentionSample { exact, ..self }
    }

    /// Numbers of the pairs of query `i`, 0 for exact pairs.
    pub fn without_exact(&self, i: usize, mut numbers: Array1<f64>) -> Array1<f64> {
        if let Some(exact) = &self.exact {
            numbers.zip_mut_with(&exact.row(i), |number, exact| *number = if *exact { 0.0 } else { *number });
        }
        numbers
    }

    /// The exact pairs.
    pub fn exact_pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let pairs = self.exact.iter().flat_map(|exact| exact.indexed_iter());
        pairs.filter(|(_, exact)| **exact).map(|(pair, _)| pair)
    }

    /// The same for features of a kernel with this logarithm beside the exact one.
    pub fn with_ratio(self, log_ratio: Option<Array2<f64>>) -> Self {
        AttentionSample { log_ratio, ..self }
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.logits.nrows()
    }

    /// ln of the exact kernel: the logits, less ½‖x‖² + ½‖y‖² for the Gaussian one.
    pub fn ln_kernel(&self) -> Array2<f64> {
        if !self.gaussian {
            return self.logits.clone();
        }
        &self.logits - &self.halves - halves(&self.points[0]).insert_axis(Axis(1))
    }

    /// The exact weights of query `i` for points times the root of `scale`, and what the features' kernel makes of them
    /// relatively.
    pub fn weights(&self, i: usize, scale: f64) -> (Array1<f64>, Array1<f64>) {
        let mut weights = (&self.logits.row(i) - &self.halves) * scale;
        let top = weights.fold(f64::NEG_INFINITY, |top, log| top.max(*log));
        exp_minus(Isa::best(), slice_of_mut(&mut weights), top);
        let total = weights.sum();
        weights /= total;
        let ratios = match &self.log_ratio {
            None => Array1::ones(weights.len()),
            // What is common to all keys cancels.
            Some(ratio) => {
                let ratio = self.without_exact(i, ratio.row(i).to_owned());
                let top = ratio.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
                let ratios = ratio.mapv(|ratio| (ratio - top).exp());
                let mean = weights.dot(&ratios);
                ratios / mean
            }
        };
        (weights, ratios)
    }

    /// What is exact for query `i`.
    pub fn exact(&self, i: usize) -> ExactRow {
        let (weights, ratios) = self.weights(i, 1.0);
        let output = weights.dot(&self.values);
        let centred = &self.values - &output;
        ExactRow { weights, ratios, output, centred }
    }

    /// The sizes of what is exact for a query.
    pub fn sizes(&self, exact: &ExactRow) -> Sizes {
        let from_mean = &exact.output - &self.mean;
        Sizes {
            weights: exact.weights.dot(&exact.weights),
            output: exact.output.dot(&exact.output),
            from_mean: from_mean.dot(&from_mean),
        }
    }
}

/// ½‖x‖² of each row.
fn halves(x: &Array2<f64>) -> Array1<f64> {
    x.map_axis(Axis(1), |x| 0.5 * x.dot(&x))
}
