//! Errors at pairs of points, by draws.

use super::Forecast;
use super::forecast::{Basis, Expected, RelativeErrors};
use super::pairs::{Pairs, or_infinite};
use crate::error::Result;
use crate::map::Recipe;
use crate::progress;

/// The relative deviation from a closed form that counts as none even if draws are less noisy, and that which is too much even if they
/// are noisier.
const TOLERANCE: (f64, f64) = (0.15, 0.4);

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

    /// The mean squared error of the Gram matrix, and its standard error relative to it: at least the share of the largest draw, since where
    /// one draw counts for much others are yet to come.
    pub fn gram(&self) -> (f64, f64) {
        let count = self.grams.len() as f64;
        let mean = self.grams.iter().sum::<f64>() / count;
        let spread =
            self.grams.iter().map(|gram| (gram - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let largest = self.grams.iter().copied().fold(0.0, f64::max) / count;
        (mean, if mean > 0.0 { (spread / count).sqrt().max(largest) / mean } else { 0.0 })
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

impl Forecast {
    /// What is seen at some pairs as a forecast for all: each error times the ratio of what a closed form says of a similar recipe for
    /// all pairs to what it says for those.
    /// `uncertainties` are those of the ratios, of the Gram matrix and of relative errors.
    pub(super) fn rescaled(self, all: &Forecast, some: &Forecast, uncertainties: [f64; 2]) -> Self {
        let scaled = |own: Expected, all: Expected, some: Expected, uncertainty: f64| {
            let known = some.value > 0.0 && some.value.is_finite();
            let value = or_infinite(if known { own.value * (all.value / some.value) } else { own.value });
            let sampled = if all.value > 0.0 { all.standard_error / all.value } else { 0.0 };
            Expected { value, standard_error: or_infinite(value * sampled.hypot(uncertainty)), ..own }
        };
        let [of_gram, of_relative] = uncertainties;
        let of = |own, all, some| scaled(own, all, some, of_relative);
        let (own, of_all, of_some) = (self.relative, all.relative, some.relative);
        let share = own.beyond_one.value + of_all.beyond_one.value - of_some.beyond_one.value;
        let relative = RelativeErrors {
            mean: of(own.mean, of_all.mean, of_some.mean),
            median: of(own.median, of_all.median, of_some.median),
            ninety: of(own.ninety, of_all.ninety, of_some.ninety),
            ninety_nine: of(own.ninety_nine, of_all.ninety_nine, of_some.ninety_nine),
            beyond_one: Expected { value: share.clamp(0.0, 1.0), ..own.beyond_one },
        };
        Forecast { loss: self.loss, gram: scaled(self.gram, all.gram, some.gram, of_gram), relative }
    }
}
