//! Expected errors beside those of draws that the planner did not see.

use experiments::progress;
use random_features::planner::{Expected, Loss, Plan, Planner, RankedRecipe};
use random_features::theory::Basis;

/// Groups of draws, whose differences tell how uncertain their mean is.
const GROUPS: usize = 4;

/// A measured error contradicts the expected one beyond so many standard errors, if they differ by more than this share as well: a
/// tenth of a loss and a quarter of a median, which few draws make too small.
pub const LIMIT: f64 = 5.0;
pub const SHARES: [f64; 2] = [0.1, 0.25];

/// A choice with its measured errors.
pub struct Verified {
    pub choice: RankedRecipe,
    pub draws: usize,
    /// The difference of losses that is none.
    share: f64,
    pub loss: Measured,
    /// The median of errors relative to the kernel.
    pub median: Measured,
    pub ninety: Measured,
}

/// A mean over draws and its standard error.
#[derive(Clone, Copy)]
pub struct Measured {
    pub value: f64,
    pub standard_error: f64,
}

impl Verified {
    /// Whether the loss is ruled by draws too rare to be met, so that its measurement means nothing.
    pub fn is_vague(&self) -> bool {
        let expected = self.choice.forecast.loss;
        let differs = !self.loss.agrees(expected, self.share);
        self.is_rare(expected) && differs || self.loss.standard_error > 0.2 * self.loss.value
    }

    /// Whether the median over pairs is ruled by such draws too.
    pub fn is_median_vague(&self) -> bool {
        let expected = self.choice.forecast.relative_median();
        self.is_rare(expected) && !self.median.agrees(expected, SHARES[1])
    }

    /// Squares of a feature e^(sZ), Z normal, have the mean e^(2s²), of which some e^(2s²) features must be seen before their mean
    /// is. From an error ε of m features follows e^(s²) = 1 + mε². Waves are bounded.
    fn is_rare(&self, expected: Expected) -> bool {
        let of_one = 1.0 + self.choice.m as f64 * expected.value.powi(2);
        let seen = (self.choice.m * self.draws) as f64;
        !self.choice.map.starts_with("trigonometric") && of_one * of_one > seen
    }

    /// Whether the loss, or the median where the loss means nothing, is as expected.
    pub fn agrees(&self) -> bool {
        let forecast = self.choice.forecast;
        match (self.is_vague(), self.is_median_vague()) {
            (false, _) => self.loss.agrees(forecast.loss, self.share),
            (true, false) => self.median.agrees(forecast.relative_median(), SHARES[1]),
            (true, true) => true,
        }
    }
}

impl Measured {
    /// The root of the mean of squares, with what differences of groups say of it.
    fn of(groups: &[f64]) -> Self {
        let count = groups.len() as f64;
        let mean = groups.iter().map(|error| error * error).sum::<f64>() / count;
        let spread = groups.iter().map(|error| (error * error - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let value = mean.sqrt();
        let standard_error = if value > 0.0 { 0.5 * (spread / count).sqrt() / value } else { 0.0 };
        Measured { value, standard_error }
    }

    /// Pairs of points are the same, so that draws are all that differs: also of the expected error if it is from draws.
    fn agrees(self, expected: Expected, share: f64) -> bool {
        let own = if matches!(expected.basis, Basis::Simulation(_)) { expected.standard_error } else { 0.0 };
        let distance = (self.value - expected.value).abs();
        // Differences of rounding are none.
        distance <= LIMIT * own.hypot(self.standard_error) || distance <= share * expected.value + 1e-12
    }
}

/// The first choices of a plan, measured.
pub fn verify(
    planner: &Planner,
    plan: &Plan,
    most: usize,
    draws: usize,
    seed: u64,
) -> Result<Vec<Verified>, String> {
    let choices = &plan.choices[..plan.choices.len().min(most)];
    let mut verified = Vec::new();
    for (i, choice) in choices.iter().enumerate() {
        progress::show("recipes drawn", i, choices.len());
        verified.push(measured(planner, choice, plan.loss, draws, seed)?);
    }
    progress::show("recipes drawn", choices.len(), choices.len());
    Ok(verified)
}

/// A choice in so many draws from fresh seeds.
pub fn measured(
    planner: &Planner,
    choice: &RankedRecipe,
    loss: Loss,
    draws: usize,
    seed: u64,
) -> Result<Verified, String> {
    let size = draws / GROUPS;
    let group = |k: usize| planner.measure(&choice.recipe, size, fresh(seed) + (k * size) as u64);
    let groups = (0..GROUPS).map(group).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let of = |error: fn(&random_features::planner::Forecast) -> Expected| {
        Measured::of(&groups.iter().map(|group| error(group).value).collect::<Vec<_>>())
    };
    Ok(Verified {
        choice: choice.clone(),
        draws: size * GROUPS,
        // Quantiles and means of roots over pairs are biased in few draws.
        share: if matches!(loss, Loss::Gram | Loss::AttentionWeights) { SHARES[0] } else { SHARES[1] },
        loss: of(|group| group.loss),
        median: of(|group| group.relative_median()),
        ninety: of(|group| group.relative_ninety()),
    })
}

/// The first of half a million seeds that a planner with this seed does not use.
fn fresh(seed: u64) -> u64 {
    (seed << 20) + (1 << 19)
}
