//! [`AttentionSample`]: some queries, keys and values, and the errors that closed forms expect for them.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rayon::prelude::*;

use super::covariances::Covariances;
use crate::error::Result;
use crate::map::{Covariance, DenseExponential, Gerf, Mechanism, PlainRecipe};
use crate::numeric;
use crate::theory::dense;
use crate::theory::gerf::GerfSign;

/// Queries, keys and values of some tokens.
#[derive(Clone)]
pub(super) struct AttentionSample {
    /// The points of the kernel.
    pub points: [Array2<f64>; 2],
    /// The points that meet the frequencies: those of the kernel, or their images by a conditioning.
    pub images: [Array2<f64>; 2],
    pub values: Array2<f64>,
    /// Whether the exact weights are those of the Gaussian kernel, and not of the softmax kernel.
    pub gaussian: bool,
    /// What the features' kernel is beside the exact one, as logarithms, if it is another one.
    pub log_ratio: Option<Array2<f64>>,
}

/// The squared relative errors of a sample: variances for m = 1, and biases, which stay as m → ∞.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Errors {
    /// The largest relative variance of a query's normaliser.
    pub normaliser: f64,
    pub weights: ErrorPart,
    pub output: ErrorPart,
    /// Of the mean of the values, for any number.
    pub mean: f64,
}

/// The part of an error that falls with the number of frequencies, for one of them, and that which stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorPart {
    pub variance: f64,
    pub bias: f64,
}

/// A query's exact weights, what the features' kernel makes of them relatively, and values less the exact output.
pub(super) struct ExactRow {
    pub weights: Array1<f64>,
    pub ratios: Array1<f64>,
    pub output: Array1<f64>,
    pub centred: Array2<f64>,
}

/// Errors summed up over queries.
#[derive(Default)]
pub(super) struct ErrorSums {
    normaliser: f64,
    weights: ErrorPart,
    output: ErrorPart,
    sizes: [f64; 3],
}

impl ErrorSums {
    /// Adds those of a query with the sizes of its weights, output and distance from the mean of the values.
    pub fn add(&mut self, normaliser: f64, weights: ErrorPart, output: ErrorPart, sizes: [f64; 3]) {
        self.normaliser = self.normaliser.max(known(normaliser));
        for (sum, part) in [(&mut self.weights, weights), (&mut self.output, output)] {
            *sum = ErrorPart { variance: sum.variance + part.variance, bias: sum.bias + part.bias };
        }
        self.sizes.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
    }

    pub fn errors(self) -> Errors {
        let [weights, outputs, means] = self.sizes;
        let relative =
            |part: ErrorPart, size| ErrorPart { variance: part.variance / size, bias: part.bias / size };
        Errors {
            normaliser: self.normaliser,
            weights: relative(self.weights, weights),
            output: relative(self.output, outputs),
            mean: means / outputs,
        }
    }
}

impl AttentionSample {
    /// What is exact for query `i`.
    pub fn exact(&self, i: usize, logits: &Array2<f64>) -> ExactRow {
        let [_, y] = &self.points;
        let own = |j: usize| if self.gaussian { 0.5 * y.row(j).dot(&y.row(j)) } else { 0.0 };
        let mut weights: Array1<f64> = (0..y.nrows()).map(|j| logits[[i, j]] - own(j)).collect();
        numeric::softmax(weights.view_mut());
        let ratios = match &self.log_ratio {
            None => Array1::ones(y.nrows()),
            // What is common to all keys cancels.
            Some(ratio) => {
                let top = ratio.row(i).fold(f64::NEG_INFINITY, |a, b| a.max(*b));
                let ratios = ratio.row(i).mapv(|ratio| (ratio - top).exp());
                let mean = weights.dot(&ratios);
                ratios / mean
            }
        };
        let output = weights.dot(&self.values);
        let centred = &self.values - &output;
        ExactRow { weights, ratios, output, centred }
    }

    pub fn logits(&self) -> Array2<f64> {
        self.points[0].dot(&self.points[1].t())
    }

    /// ln of the exact kernel: the logits, less ½‖x‖² + ½‖y‖² for the Gaussian one.
    pub fn ln_kernel(&self) -> Array2<f64> {
        let mut ln_kernel = self.logits();
        if self.gaussian {
            let [x, y] = self.points.each_ref().map(|x| x.map_axis(Axis(1), |x| 0.5 * x.dot(&x)));
            ln_kernel.indexed_iter_mut().for_each(|((i, j), ln)| *ln -= x[i] + y[j]);
        }
        ln_kernel
    }

    /// Everything times `factor`, but the values.
    fn shrunk(&self, factor: f64) -> Self {
        let times = |x: &[Array2<f64>; 2]| x.each_ref().map(|x| x * factor);
        AttentionSample { points: times(&self.points), images: times(&self.images), ..self.clone() }
    }

    /// The sizes of a query's weights, output and distance from the mean of the values.
    pub fn sizes(&self, exact: &ExactRow) -> [f64; 3] {
        let mean = self.values.mean_axis(Axis(0)).unwrap_or_default();
        let from_mean = &exact.output - &mean;
        [exact.weights.dot(&exact.weights), exact.output.dot(&exact.output), from_mean.dot(&from_mean)]
    }

    /// The errors that covariances for one frequency lead to.
    pub fn errors(&self, covariance: &Covariance) -> Errors {
        let (logits, all) = (self.logits(), Covariances::new(covariance, &self.images));
        let of_query = |i: usize| {
            let exact = self.exact(i, &logits);
            let p = &exact.weights * &exact.ratios;
            let c = covariance_matrix(&p, |j, k| all.get(i, j, k));
            let cp = c.dot(&p);
            let normaliser = p.dot(&cp);
            let weights =
                p.indexed_iter().map(|(j, p)| p * p * (c[[j, j]] - 2.0 * cp[j] + normaliser)).sum::<f64>();
            let biases = &p - &exact.weights;
            let weights = ErrorPart { variance: weights, bias: biases.dot(&biases) };
            let bias = biases.dot(&exact.centred);
            // About the output that is estimated.
            let centred = &exact.centred - &bias;
            let output = ErrorPart { variance: weighted(&p, &c, centred.view()), bias: bias.dot(&bias) };
            (normaliser, weights, output, self.sizes(&exact))
        };
        let queries: Vec<_> = (0..logits.nrows()).into_par_iter().map(of_query).collect();
        let mut sums = ErrorSums::default();
        queries.into_iter().for_each(|(normaliser, weights, output, sizes)| {
            sums.add(normaliser, weights, output, sizes);
        });
        sums.errors()
    }

    /// The query whose normaliser has the largest relative variance for one frequency, of these, and that variance.
    pub fn worst(&self, covariance: &Covariance, queries: &[usize]) -> (usize, f64) {
        let (logits, all) = (self.logits(), Covariances::new(covariance, &self.images));
        let of_query = |i: &usize| {
            let exact = self.exact(*i, &logits);
            let p = exact.weights * exact.ratios;
            let row = |j: usize| {
                let of = |k: usize| part(p[j] * p[k], || all.get(*i, j, k));
                2.0 * (0..j).map(of).sum::<f64>() + of(j)
            };
            (*i, known((0..p.len()).map(row).sum()))
        };
        let all: Vec<(usize, f64)> = queries.par_iter().map(of_query).collect();
        all.into_iter().fold((0, f64::NEG_INFINITY), |worst, new| if new.1 > worst.1 { new } else { worst })
    }

    /// The number of queries.
    pub fn queries(&self) -> Vec<usize> {
        (0..self.points[0].nrows()).collect()
    }

    /// The largest factor below 1 of queries and keys for which the normaliser's variance is below `most`, as it is not for
    /// these, with parameters that shrink with them.
    pub fn shrink(&self, plain: &PlainRecipe, covariance: &Covariance, most: f64) -> f64 {
        let worst = |factor: f64, queries: &[usize]| {
            let shrunk = self.shrunk(factor);
            let fitted = shrunk.refitted(&plain.mechanism).ok().flatten();
            let fitted = fitted.and_then(|mechanism| PlainRecipe { mechanism, ..plain.clone() }.covariance());
            shrunk.worst(fitted.as_ref().unwrap_or(covariance), queries)
        };
        let all = self.queries();
        // The few queries that decide are met by and by.
        let mut deciding = vec![worst(1.0, &all).0];
        loop {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..20 {
                let middle = 0.5 * (low + high);
                if worst(middle, &deciding).1 < most { low = middle } else { high = middle }
            }
            let (query, variance) = worst(low, &all);
            if variance < most || deciding.contains(&query) {
                return low;
            }
            deciding.push(query);
        }
    }

    /// A mechanism of the same kind with the best parameters, where they are to be fitted.
    fn refitted(&self, mechanism: &Mechanism) -> Result<Option<Mechanism>> {
        match mechanism {
            Mechanism::Gerf(gerf) if gerf.sign() == GerfSign::Plus && gerf.a().im == 0.0 => {
                self.fitted().map(Some)
            }
            Mechanism::DenseExponential(_) => {
                let a = self.mean_squares().iter().map(|phi| dense::optimal(*phi).a).collect();
                Ok(Some(DenseExponential::new(a)?.into()))
            }
            _ => Ok(None),
        }
    }

    /// OPRF with the best A.
    pub fn fitted(&self) -> Result<Mechanism> {
        let sum: f64 = self.mean_squares().iter().sum();
        Ok(Mechanism::Gerf(Gerf::optimal(self.images[0].ncols(), sum)?))
    }

    /// The mean of each coordinate of (x + y)² over pairs.
    fn mean_squares(&self) -> Vec<f64> {
        let mean = |x: &Array2<f64>| x.mean_axis(Axis(0)).unwrap_or_default();
        let square = |x: &Array2<f64>| x.mapv(|v| v * v).mean_axis(Axis(0)).unwrap_or_default();
        let [x, y] = &self.images;
        let squares = square(x) + square(y) + 2.0 * mean(x) * mean(y);
        squares.into_iter().map(|v| v.max(0.0)).collect()
    }
}

/// A share of a sum: what has no weight has none, be it infinite.
fn part(weight: f64, value: impl FnOnce() -> f64) -> f64 {
    if weight == 0.0 { 0.0 } else { weight * value() }
}

/// A variance: where it is beyond the range, so is that of a sum.
fn known(variance: f64) -> f64 {
    if variance.is_nan() { f64::INFINITY } else { variance }
}

/// A symmetric matrix, 0 where the weights are.
fn covariance_matrix(weights: &Array1<f64>, of: impl Fn(usize, usize) -> f64) -> Array2<f64> {
    let mut c = Array2::zeros((weights.len(), weights.len()));
    for j in 0..weights.len() {
        for k in (0..=j).filter(|k| weights[j] * weights[*k] != 0.0) {
            c[[j, k]] = of(j, k);
            c[[k, j]] = c[[j, k]];
        }
    }
    c
}

/// Σⱼₖ pⱼ pₖ Cⱼₖ vⱼ·vₖ.
fn weighted(p: &Array1<f64>, c: &Array2<f64>, v: ArrayView2<'_, f64>) -> f64 {
    let weighted = &v * &p.view().insert_axis(Axis(1));
    (&c.dot(&weighted) * &weighted).sum()
}
