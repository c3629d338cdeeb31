//! Errors at pairs of points, by draws.

use super::pairs::Pairs;
use crate::error::Result;
use crate::map::Recipe;
use crate::progress;
use crate::theory::Basis;

/// The relative deviation from a closed form that counts as none even if draws are less noisy, and that which is too much even if they
/// are noisier.
const TOLERANCE: (f64, f64) = (0.15, 0.4);

/// Squared errors of a recipe at pairs of points over draws.
pub(crate) struct Simulated {
    pub draws: usize,
    /// Σ (K̂ − K)²/K² over draws, for each pair.
    squares: Vec<f64>,
    /// The relative squared error of the Gram matrix in each draw.
    grams: Vec<f64>,
}

/// Draws of a recipe from consecutive seeds.
pub(crate) fn simulate(recipe: &Recipe, pairs: &Pairs, draws: usize, first: u64) -> Result<Simulated> {
    let mut simulated =
        Simulated { draws, squares: vec![0.0; pairs.len()], grams: Vec::with_capacity(draws) };
    for seed in (0..draws as u64).map(|k| first.wrapping_add(k)) {
        progress::check()?;
        let relative = pairs.relative_squares(&recipe.draw(seed)?)?;
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
        mean_with_uncertainty(&self.grams)
    }

    pub fn basis(&self) -> Basis {
        Basis::Simulation(self.draws)
    }

    /// Whether these draws show what a closed form says of the same pairs, so that as many of a similar recipe can be trusted not
    /// to miss what is rare.
    pub fn is_reliable(&self, pairs: &Pairs, closed: &[f64]) -> bool {
        let (seen, uncertainty) = self.gram();
        let expected = pairs.gram(closed, self.basis()).value.powi(2);
        let tolerance = TOLERANCE.0.max(3.0 * uncertainty).min(TOLERANCE.1);
        // Nothing to see where there is no error.
        (seen / expected - 1.0).abs() <= tolerance || expected == 0.0 && seen < 1e-24
    }
}

/// The mean of squared errors over draws, and its standard error relative to it: at least the share of the largest draw, since where one
/// draw counts for much others are yet to come.
pub(super) fn mean_with_uncertainty(squares: &[f64]) -> (f64, f64) {
    let count = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / count;
    if !mean.is_finite() {
        return (mean, f64::INFINITY);
    }
    let spread = squares.iter().map(|square| (square - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let largest = squares.iter().copied().fold(0.0, f64::max) / count;
    (mean, if mean > 0.0 { (spread / count).sqrt().max(largest) / mean } else { 0.0 })
}
