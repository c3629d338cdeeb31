//! What the losses of recipes are at all pairs of points.

use super::problems::Problem;
use crate::attention::oracle::softmax;
use ndarray::{Array2, Axis};
use random_features::planner::Loss;
use random_features::{Map, Recipe, SignedLog};

/// Draws of a recipe without a closed form, of attention, and of a regression.
const DRAWS: usize = 300;
const DRAWS_OF_ATTENTION: usize = 200;
const DRAWS_OF_RIDGE: usize = 64;

/// The first seed of draws that no plan takes.
const FIRST: u64 = 1 << 50;

impl Problem {
    /// The loss of a recipe at all points, with the standard error of the draws behind it.
    pub fn truth(&self, recipe: &Recipe) -> (f64, f64) {
        match self.loss {
            Loss::AttentionOutput => self.of_attention(recipe, &self.values),
            // The output of values that are unit vectors is the weights.
            Loss::AttentionWeights => self.of_attention(recipe, &Array2::eye(self.y().nrows())),
            Loss::Ridge => {
                let measured = self.planner.measure(recipe, DRAWS_OF_RIDGE, FIRST).unwrap().loss;
                (measured.value, measured.standard_error)
            }
            _ => self.of_pairs(recipe),
        }
    }

    /// All pairs of points, each with its share and ln K.
    fn pairs(&self) -> Vec<(usize, usize, f64, f64)> {
        let n = self.x.nrows();
        let share = |i: usize, j: usize| match (&self.y, i == j) {
            (Some(y), _) => 1.0 / (n * y.nrows()) as f64,
            (None, true) => 1.0 / (n * n) as f64,
            (None, false) => (1.0 - 1.0 / n as f64) / (n * (n - 1)) as f64,
        };
        let all = (0..n).flat_map(|i| (0..self.y().nrows()).map(move |j| (i, j)));
        all.map(|(i, j)| {
            (i, j, share(i, j), self.kernel.log_value(&self.x.row(i), &self.y().row(j)).unwrap().ln_abs)
        })
        .collect()
    }

    /// By closed forms or else by draws.
    fn of_pairs(&self, recipe: &Recipe) -> (f64, f64) {
        let pairs = self.pairs();
        // What a map knows of its law is found once, what a recipe knows for each pair.
        let (of_kernel, of_law): (_, Map<f64>) = (recipe.kernel(), recipe.draw(FIRST).unwrap());
        let closed: Option<Vec<f64>> = pairs
            .iter()
            .map(|(i, j, _, ln_kernel)| {
                let (x, y) = (self.x.row(*i), self.y().row(*j));
                let own = of_kernel.as_ref()?.log_value(&x, &y).unwrap();
                let bias = SignedLog::sum([own, SignedLog { ln_abs: *ln_kernel, sign: -1.0 }].into_iter());
                let variance = of_law.log_variance(&x, &y).unwrap()?;
                Some((variance - 2.0 * ln_kernel).exp() + (2.0 * (bias.ln_abs - ln_kernel)).exp())
            })
            .collect();
        if let Some(closed) = closed {
            return (self.loss_of(&pairs, &closed), 0.0);
        }
        // In three parts, whose difference tells how uncertain the mean is.
        let mut parts = vec![vec![0.0; pairs.len()]; 3];
        let inverse: Vec<f64> = pairs.iter().map(|pair| (-pair.3).exp()).collect();
        for seed in 0..DRAWS {
            let map: Map<f64> = recipe.draw(FIRST + seed as u64).unwrap();
            let gram = map.gram(&self.x, self.y()).unwrap();
            for (((i, j, ..), inverse), sum) in pairs.iter().zip(&inverse).zip(&mut parts[seed % 3]) {
                *sum += 3.0 / DRAWS as f64 * (gram[[*i, *j]] * inverse - 1.0).powi(2);
            }
        }
        let losses: Vec<f64> = parts.iter().map(|part| self.loss_of(&pairs, part)).collect();
        let mean: Vec<f64> =
            (0..pairs.len()).map(|k| parts.iter().map(|part| part[k]).sum::<f64>() / 3.0).collect();
        let middle = losses.iter().sum::<f64>() / 3.0;
        let spread = losses.iter().map(|loss| (loss - middle).powi(2)).sum::<f64>() / 2.0;
        (self.loss_of(&pairs, &mean), (spread / 3.0).sqrt())
    }

    /// The loss from E(K̂ − K)²/K² of each pair.
    fn loss_of(&self, pairs: &[(usize, usize, f64, f64)], relative: &[f64]) -> f64 {
        let mut errors: Vec<(f64, f64)> =
            pairs.iter().zip(relative).map(|(pair, r)| (r.sqrt(), pair.2)).collect();
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quantile = |share: f64| {
            let mut below = 0.0;
            let reached = |(_, weight): &&(f64, f64)| {
                below += weight;
                below >= share - 1e-12
            };
            errors.iter().find(reached).unwrap().0
        };
        match self.loss {
            Loss::RelativeMean => errors.iter().map(|(error, weight)| error * weight).sum(),
            Loss::RelativeMedian => quantile(0.5),
            Loss::RelativeNinety => quantile(0.9),
            Loss::RelativeNinetyNine => quantile(0.99),
            _ => {
                let top = pairs.iter().map(|pair| pair.3).fold(f64::NEG_INFINITY, f64::max);
                let kernel = |pair: &(usize, usize, f64, f64)| pair.2 * (2.0 * (pair.3 - top)).exp();
                let squares: f64 = pairs.iter().zip(relative).map(|(pair, r)| kernel(pair) * r).sum();
                (squares / pairs.iter().map(kernel).sum::<f64>()).sqrt()
            }
        }
    }

    /// The error of attention's output to first order, over draws, relative to the exact output: that of a draw with estimates eⱼ, which
    /// sum to s and to s̄ in the mean, is about Σ eⱼ (vⱼ − ō)/s̄ with the mean output ō, which has a bias.
    fn of_attention(&self, recipe: &Recipe, values: &Array2<f64>) -> (f64, f64) {
        let logits = self.x.dot(&self.y().t());
        let exact = softmax(&logits);
        let outputs = exact.dot(values);
        let weights = logits.mapv(|v| (-v).exp()) * &exact;
        // Of each draw the sums of estimates relative to the exact normaliser, and of values.
        let draws: Vec<(ndarray::Array1<f64>, Array2<f64>)> = (0..DRAWS_OF_ATTENTION as u64)
            .map(|seed| {
                let map: Map<f64> = recipe.draw(FIRST + seed).unwrap();
                let relative = map.gram(&self.x, self.y()).unwrap() * &weights;
                (relative.sum_axis(Axis(1)), relative.dot(values))
            })
            .collect();
        let count = draws.len() as f64;
        let sums = draws.iter().fold(draws[0].0.clone() * 0.0, |all, draw| all + &draw.0) / count;
        let sums = sums.insert_axis(Axis(1));
        let mean = draws.iter().fold(&outputs * 0.0, |all, draw| all + &draw.1) / count / &sums;
        let norm = |a: Array2<f64>| a.iter().map(|v| v * v).sum::<f64>();
        let size = norm(outputs.clone());
        let squares: Vec<f64> = draws
            .iter()
            .map(|(total, output)| norm((output - &mean * &total.view().insert_axis(Axis(1))) / &sums) / size)
            .collect();
        let variance = squares.iter().sum::<f64>() / (count - 1.0);
        let square = variance + (norm(&mean - &outputs) / size - variance / count).max(0.0);
        let spread = squares.iter().map(|v| (v - variance).powi(2)).sum::<f64>() / (count - 1.0);
        (square.sqrt(), 0.5 * (spread / count).sqrt() / square.sqrt())
    }
}
