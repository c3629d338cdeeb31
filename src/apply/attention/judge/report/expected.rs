//! [`SamplePairs`]: the errors that closed forms expect for a sample.

use ndarray::{Array1, Array2};

use super::covariances::{Covariances, PointProducts, QueryCovariances};
use super::errors::{Errors, QueryErrors, known};
use super::sample::AttentionSample;
use crate::error::Result;
use crate::map::Covariance;
use crate::numeric::{Isa, Packed, add_scaled, dot, plain_sum, product, slice_of};
use crate::{progress, threads};

/// Rows of a covariance matrix that are multiplied at a time.
const BAND: usize = 64;

/// A sample with the points that meet the frequencies, which are those of its kernel or their images by a conditioning.
#[derive(Clone, Copy)]
pub(super) struct SamplePairs<'a> {
    pub sample: &'a AttentionSample,
    pub images: &'a [Array2<f64>; 2],
    /// Products of the images.
    pub products: &'a PointProducts,
}

/// The query whose normaliser varies most, of some, and the relative variance of its normaliser for one frequency.
#[derive(Clone, Copy)]
pub(super) struct Worst {
    pub query: usize,
    pub variance: f64,
}

impl SamplePairs<'_> {
    /// The errors that covariances for one frequency lead to.
    pub fn errors(&self, covariance: &Covariance) -> Result<Errors> {
        let all = Covariances::new(covariance, 1.0, self.images, self.products);
        let of_query = |i: usize| self.query_errors(i, all.of_query(i));
        threads::map(0..self.sample.queries(), of_query).into_iter().collect()
    }

    fn query_errors(&self, i: usize, covariances: QueryCovariances<'_>) -> Result<QueryErrors> {
        let mut exact = self.sample.exact(i);
        let sizes = self.sample.sizes(i, &exact);
        let p = &exact.weights * &exact.ratios;
        let biases = &p - &exact.weights;
        let bias = biases.dot(&exact.centred);
        // About the output that is estimated.
        exact.centred -= &bias;
        let about = &exact.centred;
        // What is exact varies with nothing.
        let estimated = self.sample.without_exact(i, p.clone());
        let sums = CovarianceSums::new(&estimated, about, covariances)?;
        let normaliser = estimated.dot(&sums.rows);
        let of_key = |(j, p): (usize, &f64)| p * p * (sums.variances[j] - 2.0 * sums.rows[j] + normaliser);
        let weights: f64 = p.iter().enumerate().map(of_key).sum();
        let [weights, output] = self.sample.shrunk(i, [weights, sums.of_values], [biases, bias], &exact);
        Ok(QueryErrors { normaliser, weights, output, sizes })
    }

    /// The worst of these queries, for points times the root of `scale`.
    pub fn worst(&self, covariance: &Covariance, scale: f64, queries: &[usize]) -> Result<Worst> {
        let all = Covariances::new(covariance, scale, self.images, self.products);
        let of_query = |i: &usize| {
            let (weights, ratios) = self.sample.weights(*i, scale);
            let p = self.sample.without_exact(*i, weights * ratios);
            let (mut rows, mut variance) = (CovarianceRows::new(&p, all.of_query(*i)), 0.0);
            let mut row = vec![0.0; p.len()];
            for (j, weight) in p.iter().enumerate() {
                if j % BAND == 0 {
                    progress::check()?;
                }
                rows.write_half(j, &mut row[..=j]);
                variance += 2.0 * weight * dot(Isa::best(), &row[..=j], slice_of(&p));
            }
            Ok(Worst { query: *i, variance: known(variance) })
        };
        let all = threads::map(queries, of_query).into_iter().collect::<Result<Vec<Worst>>>()?;
        let none = Worst { query: 0, variance: f64::NEG_INFINITY };
        Ok(all.into_iter().fold(none, |worst, new| if new.variance > worst.variance { new } else { worst }))
    }
}

/// The lower half of a query's covariance matrix, row by row: 0 where a product of weights is, so that what has no weight
/// counts for nothing, be it infinite.
struct CovarianceRows<'a> {
    p: &'a [f64],
    covariances: QueryCovariances<'a>,
}

impl<'a> CovarianceRows<'a> {
    fn new(p: &'a Array1<f64>, covariances: QueryCovariances<'a>) -> Self {
        CovarianceRows { p: slice_of(p), covariances }
    }

    /// Writes the row of key `j` up to the diagonal, of which it writes half.
    fn write_half(&mut self, j: usize, row: &mut [f64]) {
        let own = self.p[j];
        if own == 0.0 {
            return row.fill(0.0);
        }
        self.covariances.write_row(j, row);
        for (c, p) in row.iter_mut().zip(self.p) {
            *c = if own * p == 0.0 { 0.0 } else { *c };
        }
        row[j] *= 0.5;
    }
}

/// Sums over a query's covariance matrix C with weights p.
struct CovarianceSums {
    /// Cⱼⱼ.
    variances: Vec<f64>,
    /// Σₖ Cⱼₖ pₖ.
    rows: Array1<f64>,
    /// Σⱼₖ pⱼ pₖ Cⱼₖ vⱼ·vₖ.
    of_values: f64,
}

impl CovarianceSums {
    fn new(p: &Array1<f64>, values: &Array2<f64>, covariances: QueryCovariances<'_>) -> Result<Self> {
        let (isa, keys, targets) = (Isa::best(), values.nrows(), values.ncols());
        let (mut lower, weights) = (CovarianceRows::new(p, covariances), slice_of(p));
        let weighted = values * &p.view().insert_axis(ndarray::Axis(1));
        // Values may have any layout.
        let weighted = weighted.as_standard_layout();
        let packed = Packed::new(targets, keys, |t, k| weighted[[k, t]]);
        let (mut variances, mut rows, mut of_values) = (vec![0.0; keys], vec![0.0; keys], 0.0);
        let (mut band, mut products) = (vec![0.0; BAND * keys], vec![0.0; BAND * targets]);
        for first in (0..keys).step_by(BAND) {
            progress::check()?;
            let count = BAND.min(keys - first);
            let end = first + count;
            for (row, j) in band.chunks_exact_mut(keys).zip(first..end) {
                let (half, beyond) = row.split_at_mut(j + 1);
                lower.write_half(j, half);
                beyond.fill(0.0);
                variances[j] = 2.0 * half[j];
                rows[j] += dot(isa, half, weights);
                add_scaled(isa, &mut rows[..=j], weights[j], half);
            }
            if targets > 0 {
                // Each pair of keys is met once: twice for both orders, with half of the diagonal.
                let products = &mut products[..count * targets];
                product(isa, &band[..count * keys], keys, packed.all().shallow(end), products, targets);
                let own = &slice_of(&weighted)[first * targets..end * targets];
                products.iter_mut().zip(own).for_each(|(product, own)| *product *= own);
                of_values += 2.0 * plain_sum(isa, products);
            }
        }
        Ok(CovarianceSums { variances, rows: rows.into(), of_values })
    }
}
