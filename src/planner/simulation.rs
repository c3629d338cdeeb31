//! Errors at pairs of points, by draws.

use super::forecast::Basis;
use super::pairs::Pairs;
use crate::error::Result;
use crate::map::Recipe;

/// Groups of pairs, by their errors, in which a coupling is compared with another one.
const GROUPS: usize = 8;

/// Squared errors of a recipe at pairs of points over draws.
pub(super) struct Simulated {
    pub draws: usize,
    /// Σ (K̂ − K)²/K² over draws, for each pair.
    squares: Vec<f64>,
    /// The relative squared error of the Gram matrix in each draw.
    grams: Vec<f64>,
}

/// Draws of a recipe from consecutive seeds.
pub(super) fn simulate(recipe: &Recipe, pairs: &Pairs, draws: usize, first: u64) -> Result<Simulated> {
    let mut simulated =
        Simulated { draws, squares: vec![0.0; pairs.len()], grams: Vec::with_capacity(draws) };
    for seed in (0..draws as u64).map(|k| first.wrapping_add(k)) {
        let map = recipe.draw::<f64>(seed)?;
        let estimates = map.log_estimate_rows(&pairs.x, &pairs.y)?;
        let relative = estimates.iter().zip(&pairs.ln_kernel).map(|(estimate, ln)| {
            let ratio = estimate.scaled(-ln).value();
            (ratio - 1.0).powi(2)
        });
        let relative: Vec<f64> = relative.collect();
        simulated.grams.push(pairs.gram_of_relative_squares(&relative));
        simulated.squares.iter_mut().zip(relative).for_each(|(sum, square)| *sum += square);
    }
    Ok(simulated)
}

impl Simulated {
    /// All draws of several parts.
    pub fn joined(parts: Vec<Simulated>) -> Self {
        let mut all = Simulated { draws: 0, squares: Vec::new(), grams: Vec::new() };
        for part in parts {
            all.draws += part.draws;
            all.grams.extend(part.grams);
            match all.squares.is_empty() {
                true => all.squares = part.squares,
                false => all.squares.iter_mut().zip(part.squares).for_each(|(sum, square)| *sum += square),
            }
        }
        all
    }

    /// ln of the mean of (K̂ − K)² for each pair.
    pub fn ln_squares(&self, pairs: &Pairs) -> Vec<f64> {
        let count = self.draws as f64;
        let of = |(square, ln): (&f64, &f64)| (square / count).ln() + 2.0 * ln;
        self.squares.iter().zip(&pairs.ln_kernel).map(of).collect()
    }

    /// The mean squared error of the Gram matrix, and its standard error relative to it.
    pub fn gram(&self) -> (f64, f64) {
        let count = self.grams.len() as f64;
        let mean = self.grams.iter().sum::<f64>() / count;
        let spread =
            self.grams.iter().map(|gram| (gram - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        (mean, (spread / count).sqrt() / mean)
    }

    pub fn basis(&self) -> Basis {
        Basis::Simulation(self.draws)
    }

    /// Whether as many draws of another recipe show what its closed form says of the same pairs, so that these can be trusted not to
    /// miss what is rare.
    pub fn is_reliable(&self, pairs: &Pairs, closed: &[f64]) -> bool {
        let (seen, uncertainty) = self.gram();
        let expected = pairs.gram(closed, self.basis()).value.powi(2);
        let tolerance = 0.2f64.max(3.0 * uncertainty).min(0.5);
        let near = (seen / expected - 1.0).abs() <= tolerance;
        // Nothing to see where there is no error.
        near || expected == 0.0 && seen < 1e-24
    }

    /// The mean squared errors of pairs relative to those that a closed form gives for another coupling: in groups of pairs with
    /// similar errors, from the smallest on, as ln of the ratio beside ln of the relative error.
    pub fn ratios(&self, pairs: &Pairs, closed: &[f64]) -> Vec<(f64, f64)> {
        let relative: Vec<f64> =
            closed.iter().zip(&pairs.ln_kernel).map(|(ln, kernel)| ln - 2.0 * kernel).collect();
        // Nothing can be said where there is no error or one beyond the range of numbers.
        let known = |k: &usize| relative[*k].exp().is_normal() && self.squares[*k].is_finite();
        let mut order: Vec<usize> = (0..pairs.len()).filter(known).collect();
        order.sort_by(|a, b| relative[*a].total_cmp(&relative[*b]));
        let size = order.len().div_ceil(GROUPS).max(1);
        let group = |group: &[usize]| {
            let (mut seen, mut expected, mut place) = (0.0, 0.0, 0.0);
            for k in group {
                seen += self.squares[*k] / self.draws as f64 / relative[*k].exp();
                expected += 1.0;
                place += relative[*k];
            }
            (place / expected, (seen / expected).max(f64::MIN_POSITIVE).ln())
        };
        order.chunks(size).map(group).collect()
    }
}

/// Errors of all pairs from those of another coupling, by the ratios of groups.
pub(super) fn scaled(pairs: &Pairs, closed: &[f64], ratios: &[(f64, f64)]) -> Vec<f64> {
    let at = |relative: f64| {
        let next = ratios.partition_point(|(place, _)| *place < relative);
        match (next.checked_sub(1).and_then(|k| ratios.get(k)), ratios.get(next)) {
            (Some((low, a)), Some((high, b))) if high > low => a + (b - a) * (relative - low) / (high - low),
            (_, Some((_, ratio))) | (Some((_, ratio)), None) => *ratio,
            (None, None) => 0.0,
        }
    };
    let of =
        |(ln, kernel): (&f64, &f64)| if *ln == f64::NEG_INFINITY { *ln } else { ln + at(ln - 2.0 * kernel) };
    closed.iter().zip(&pairs.ln_kernel).map(of).collect()
}
