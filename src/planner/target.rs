//! The smallest recipes that keep an error.

use super::Measure;
use super::candidates::{Candidate, Field};
use super::forecast::{Basis, Expected};
use super::ranking::{Scene, Scored};
use crate::error::Result;
use crate::frequency::{AnyCoupling, Coupling};
use crate::map::{Omega, Recipe};
use crate::threads;

/// The most frequencies that are tried.
const MOST: usize = 1 << 22;
/// Candidates whose smallest size is sought, those with the smallest costs by a first estimate.
const SOUGHT: usize = 24;
/// Frequencies of the first estimate.
const FIRST: usize = 256;

/// The candidates whose loss is at most `error`, the cheapest first.
pub(super) fn reach(
    scene: &Scene<'_>,
    error: f64,
    probability: Option<f64>,
    measure: Measure,
) -> Result<Vec<Scored>> {
    let search = Search { scene, error, probability };
    // Variances fall as 1/m: about how many it takes.
    let estimates = threads::map(scene.field.pairs(), |kind| search.estimate(kind, measure));
    let mut estimates: Vec<Estimate> =
        estimates.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
    estimates.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    estimates.truncate(SOUGHT);
    let found = threads::map(estimates, |estimate| search.smallest(estimate));
    let mut found: Vec<Scored> = found.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
    let cost = |one: &Scored| one.candidate.cost.in_measure(measure);
    let loss = |one: &Scored| one.forecast.loss.value;
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(loss(a).total_cmp(&loss(b))));
    Ok(found)
}

/// ln E(K̂ − K)² of each pair, and what follows.
type Evaluated = (Vec<f64>, super::Forecast);

struct Search<'a> {
    scene: &'a Scene<'a>,
    error: f64,
    probability: Option<f64>,
}

/// About how many blocks of frequencies a kind of candidate needs, and what it costs then.
struct Estimate {
    kind: (usize, AnyCoupling),
    block: usize,
    blocks: usize,
    cost: f64,
}

impl Search<'_> {
    fn candidate(&self, kind: (usize, AnyCoupling), m: usize) -> Result<Candidate> {
        let Scene { planner, field, calibration, .. } = self.scene;
        Field::candidate(field, planner, calibration.as_ref(), kind, m)
    }

    /// `None` without a closed form, or if no number of frequencies seems to be enough.
    fn estimate(&self, kind: (usize, AnyCoupling), measure: Measure) -> Result<Option<Estimate>> {
        // A kind that cannot be drawn is none.
        let Ok(candidate) = self.candidate(kind, FIRST) else { return Ok(None) };
        let block = block(&candidate, kind);
        let Some(loss) = self.loss(&candidate)? else { return Ok(None) };
        let excess = (loss.0.value / self.error).powi(2);
        let blocks = (FIRST as f64 * excess / block as f64).ceil().max(1.0);
        let too_many = blocks.is_nan() || blocks * block as f64 > MOST as f64;
        if too_many && !candidate.biased {
            return Ok(None);
        }
        let blocks = blocks.min((MOST / block).max(1) as f64) as usize;
        let cost = self.candidate(kind, blocks * block)?.cost.in_measure(measure);
        Ok(Some(Estimate { kind, block, blocks, cost }))
    }

    /// The fewest blocks of frequencies that keep the error.
    fn smallest(&self, Estimate { kind, block, blocks, .. }: Estimate) -> Result<Option<Scored>> {
        let keeps = |blocks: usize| -> Result<bool> {
            let loss = self.loss(&self.candidate(kind, blocks * block)?)?;
            Ok(loss.is_some_and(|(loss, _)| loss.value <= self.error))
        };
        let most = (MOST / block).max(1);
        let (mut low, mut high) = (0, blocks);
        while !keeps(high)? {
            if high >= most {
                return Ok(None);
            }
            (low, high) = (high, (2 * high).min(most));
        }
        // From the estimate down first: it is near.
        let mut step = 1;
        while high - low > 1 {
            let guess = high.saturating_sub(step).max(low + 1);
            step *= 2;
            let guess = if step > 8 { low + (high - low) / 2 } else { guess };
            if keeps(guess)? { high = guess } else { low = guess }
        }
        let candidate = self.candidate(kind, high * block)?;
        let scored = self.loss(&candidate)?.map(|(loss, (ln_squares, forecast))| Scored {
            candidate,
            ln_squares: Some(ln_squares),
            draws: 0.0,
            forecast: forecast.with_loss(loss),
        });
        Ok(scored)
    }

    /// What must be at most the error, with what it follows from.
    fn loss(&self, candidate: &Candidate) -> Result<Option<(Expected, Evaluated)>> {
        let Some((ln_squares, forecast)) = self.scene.closed(candidate)? else { return Ok(None) };
        let loss = match self.probability {
            None => forecast.loss,
            Some(probability) => {
                let mean = forecast.gram;
                // Markov's inequality for the squared error.
                let markov = mean.value / (1.0 - probability).sqrt();
                let bounded = self.range(&candidate.recipe)?.map_or(f64::INFINITY, |(range, independent)| {
                    // McDiarmid's inequality: one of n independent draws changes the error by range/n at most.
                    mean.value + range * (-(1.0 - probability).ln() / (2.0 * independent)).sqrt()
                });
                Expected { value: markov.min(bounded), basis: Basis::Bound, ..mean }
            }
        };
        Ok(Some((loss, (ln_squares, forecast))))
    }

    /// The most by which one term of an estimate can change, as a root mean square over pairs relative to the kernel's, and the number of
    /// independent draws of which the estimate is a mean; `None` where terms have no bound.
    fn range(&self, recipe: &Recipe) -> Result<Option<(f64, f64)>> {
        let (pairs, Recipe::Plain(plain)) = (&self.scene.pairs, recipe) else { return Ok(None) };
        let Some(law) = (match &plain.omega {
            Omega::Draw(draw) => Some(draw.law()),
            _ => None,
        }) else {
            return Ok(None);
        };
        let ln: Option<Vec<f64>> = (pairs.x.rows().into_iter().zip(pairs.y.rows()))
            .map(|(x, y)| plain.ln_range(&x, &y).map(|ln| 2.0 * ln))
            .collect();
        let Some(ln) = ln else { return Ok(None) };
        let range = pairs.gram(&ln, Basis::Bound).value;
        // Draws of a block depend on each other: a block counts as one, and changes as many terms as it has.
        let independent = law.runs().iter().map(|run| run.count as f64).sum::<f64>();
        let blocks = if law.is_independent() { law.len() as f64 } else { independent };
        let largest = law.runs().iter().map(|run| run.block.size).max().unwrap_or(1) as f64;
        let each = if law.is_independent() { 1.0 } else { largest * blocks / law.len() as f64 };
        Ok(Some((range * each, blocks)))
    }
}

/// The number of frequencies that a coupling draws together.
fn block(candidate: &Candidate, (_, coupling): (usize, AnyCoupling)) -> usize {
    let drawn = candidate.recipe.draws();
    let dim = drawn.first().map_or(1, |omega| omega.dim());
    let counts = matches!(drawn.first(), Some(Omega::DrawCounts(_)));
    let capacity = coupling.capacity(dim);
    if counts || capacity == usize::MAX { 1 } else { capacity.clamp(1, MOST) }
}
