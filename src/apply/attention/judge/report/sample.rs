//! [`AttentionSample`]: some queries, keys and values, and what is exact for them.

use ndarray::{Array1, Array2, Axis, s};

use super::errors::{ErrorPart, Sizes};
use super::tokens::Mask;
use crate::numeric::special::largest;
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
    mask: Mask,
    logits: Array2<f64>,
    /// ½‖y‖² of keys where the kernel is Gaussian, else 0.
    halves: Array1<f64>,
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
        AttentionSample { points, values, gaussian, log_ratio: None, mask: Mask::default(), logits, halves }
    }

    /// This sample with exact weights for some pairs, and keys that are not seen.
    pub fn with_mask(self, mask: Mask) -> Self {
        AttentionSample { mask, ..self }
    }

    /// How many of the first keys query `i` sees.
    pub fn seen(&self, i: usize) -> usize {
        self.mask.seen(i, self.logits.ncols())
    }

    /// Numbers of the pairs of query `i`, 0 for exact pairs.
    pub fn without_exact(&self, i: usize, mut numbers: Array1<f64>) -> Array1<f64> {
        if let Some(exact) = &self.mask.exact {
            numbers.zip_mut_with(&exact.row(i), |number, exact| *number = if *exact { 0.0 } else { *number });
        }
        numbers
    }

    /// The exact pairs, of keys that are seen.
    pub fn exact_pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let pairs = self.mask.exact.iter().flat_map(|exact| exact.indexed_iter());
        pairs.filter(|((i, j), exact)| **exact && *j < self.seen(*i)).map(|(pair, _)| pair)
    }

    /// This sample for features of another kernel: ln of that kernel less ln of the exact one, n × l.
    pub fn with_ratio(self, log_ratio: Option<Array2<f64>>) -> Self {
        AttentionSample { log_ratio, ..self }
    }

    /// Whether outputs are known.
    pub fn has_values(&self) -> bool {
        self.values.ncols() > 0
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
        let seen = self.seen(i);
        let mut weights = (&self.logits.row(i) - &self.halves) * scale;
        let (own, unseen) = slice_of_mut(&mut weights).split_at_mut(seen);
        let top = largest(own.iter().copied());
        exp_minus(Isa::best(), own, top);
        unseen.fill(0.0);
        let total = weights.sum();
        weights /= total;
        let ratios = match &self.log_ratio {
            None => Array1::ones(weights.len()),
            // What is common to all keys cancels.
            Some(ratio) => {
                let mut ratio = self.without_exact(i, ratio.row(i).to_owned());
                ratio.slice_mut(s![seen..]).fill(f64::NEG_INFINITY);
                let top = largest(ratio.iter().copied());
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

    /// The mean of the values that query `i` sees.
    fn mean(&self, i: usize) -> Array1<f64> {
        let seen = self.seen(i);
        self.values.slice(s![..seen, ..]).sum_axis(Axis(0)) / seen as f64
    }

    /// The errors of query `i` where weights and outputs of these variances, which on average are off by these biases from the exact
    /// `weights` and `output`, are drawn towards equal weights and the mean of the values.
    pub fn shrunk(
        &self,
        i: usize,
        [of_weights, of_output]: [f64; 2],
        [biases, bias]: [Array1<f64>; 2],
        ExactRow { weights, output, .. }: &ExactRow,
    ) -> [ErrorPart; 2] {
        let (share, rest, seen) = (self.mask.share, 1.0 - self.mask.share, self.seen(i));
        let part = |variance: f64, bias: Array1<f64>| ErrorPart {
            variance: if rest == 0.0 { 0.0 } else { rest * rest * variance },
            bias: bias.dot(&bias),
        };
        if share == 0.0 {
            return [part(of_weights, biases), part(of_output, bias)];
        }
        let equal = |j: usize| if j < seen { (seen as f64).recip() } else { 0.0 };
        let from_equal: Array1<f64> = weights.iter().enumerate().map(|(j, w)| equal(j) - w).collect();
        let biases = rest * biases + share * from_equal;
        let bias = rest * bias + share * (self.mean(i) - output);
        [part(of_weights, biases), part(of_output, bias)]
    }

    /// The sizes of what is exact for a query.
    pub fn sizes(&self, i: usize, exact: &ExactRow) -> Sizes {
        let seen = self.seen(i);
        let from_mean = &exact.output - &self.mean(i);
        let weights = exact.weights.dot(&exact.weights);
        Sizes {
            weights,
            // Σ(pⱼ − 1/l)², where weights sum to 1.
            from_equal: (weights - (seen as f64).recip()).max(0.0),
            output: exact.output.dot(&exact.output),
            from_mean: from_mean.dot(&from_mean),
        }
    }
}

/// ½‖x‖² of each row.
fn halves(x: &Array2<f64>) -> Array1<f64> {
    x.map_axis(Axis(1), |x| 0.5 * x.dot(&x))
}
