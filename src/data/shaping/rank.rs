//! The choice of the number of coordinates that truncated features keep.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, s};

use crate::error::Result;
use crate::progress;
use crate::theory::dense;

/// The ranks that are tried, with d too if it is at most the last.
const RANKS: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Pairs of some queries and keys in the coordinates of a shape: u, n × d, v, l × d, and weights, n × l.
pub(super) struct Transformed {
    pub u: Array2<f64>,
    pub v: Array2<f64>,
    pub weights: Array2<f64>,
}

impl Transformed {
    /// The best rank for `m` features: it minimises b_r + Σ pᵢⱼ σ(ln Mᵢⱼ − ln m), the bias plus the share of pairs for
    /// which m features are too few; ties go to the smallest rank.
    ///
    /// # Errors
    /// [`Cancelled`](crate::Error::Cancelled) if a watcher stops the choice.
    pub fn best_rank(&self, phi: &[f64], m: usize) -> Result<usize> {
        let d = phi.len();
        let mut ranks: Vec<usize> = RANKS.into_iter().filter(|r| *r < d).collect();
        if d <= RANKS[RANKS.len() - 1] {
            ranks.push(d);
        }
        let mut ln_moments = Array2::<f64>::zeros(self.weights.dim());
        let mut residual = self.u.dot(&self.v.t());
        let (mut best, mut from) = ((f64::INFINITY, ranks[0]), 0);
        for r in ranks {
            progress::check()?;
            for (l, phi) in phi.iter().enumerate().take(r).skip(from) {
                self.add_ln_moments(l, *phi, &mut ln_moments);
            }
            self.leave(from..r, &mut residual);
            from = r;
            let loss = mean_variance(&residual, &self.weights) + self.unreached(&ln_moments, m);
            if loss < best.0 {
                best = (loss, r);
            }
        }
        Ok(best.1)
    }

    /// b_r: min(1, mean over queries of the variance over keys of the logits' truncation error).
    pub fn bias(&self, r: usize) -> f64 {
        let (u, v) = (self.u.slice(s![.., r..]), self.v.slice(s![.., r..]));
        mean_variance(&u.dot(&v.t()), &self.weights)
    }

    /// Subtracts the products of these coordinates from the logits.
    fn leave(&self, coordinates: std::ops::Range<usize>, residual: &mut Array2<f64>) {
        let columns = |a: &'_ Array2<f64>| a.slice(s![.., coordinates.clone()]).to_owned();
        general_mat_mul(-1.0, &columns(&self.u), &columns(&self.v).t(), 1.0, residual);
    }

    /// Adds ln ς + ρw² of one coordinate.
    fn add_ln_moments(&self, l: usize, phi: f64, to: &mut Array2<f64>) {
        let rho = dense::optimal(phi).rho;
        let constant = dense::ln_second_moment(&[0.0], &[rho]);
        let (u, v) = (self.u.column(l), self.v.column(l));
        for (mut row, u) in to.rows_mut().into_iter().zip(u) {
            row.iter_mut().zip(v).for_each(|(to, v)| *to += constant + rho * (u + v) * (u + v));
        }
    }

    /// Σ pᵢⱼ σ(ln Mᵢⱼ − ln m).
    fn unreached(&self, ln_moments: &Array2<f64>, m: usize) -> f64 {
        let (ln_m, total) = ((m as f64).ln(), self.weights.sum());
        let share = |(weight, ln_moment): (&f64, &f64)| weight / total / (1.0 + (ln_m - ln_moment).exp());
        self.weights.iter().zip(ln_moments).map(share).sum()
    }
}

/// min(1, mean over rows of the weighted variance over columns); rows without weight are skipped.
fn mean_variance(errors: &Array2<f64>, weights: &Array2<f64>) -> f64 {
    let rows = errors.axis_iter(Axis(0)).zip(weights.axis_iter(Axis(0)));
    let (mut sum, mut count) = (0.0, 0.0);
    for (errors, weights) in rows {
        let total = weights.sum();
        if total > 0.0 {
            let mean = weights.iter().zip(errors).map(|(w, e)| w / total * e).sum::<f64>();
            let terms = weights.iter().zip(errors).map(|(w, e)| w / total * (e - mean) * (e - mean));
            sum += terms.sum::<f64>();
            count += 1.0;
        }
    }
    if count == 0.0 { 0.0 } else { f64::min(1.0, sum / count) }
}

/// L(x − c) for the rows of x.
pub(super) fn transformed(x: &Array2<f64>, shift: &Array1<f64>, matrix: &Array2<f64>) -> Array2<f64> {
    (x - shift).dot(&matrix.t())
}
