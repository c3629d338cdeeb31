//! The smallest recipes that keep an error.

use super::candidates::{Candidate, SearchSpace};
use super::problem::Problem;
use super::ranking::Scored;
use super::steps::steps;
use crate::error::Result;
use crate::frequency::AnyCoupling;
use crate::map::{Omega, Recipe};
use crate::planner::costs::Measure;
use crate::planner::forecasts::{Expected, Forecast};
use crate::theory::Basis;

/// The most frequencies that are tried.
const MOST: usize = 1 << 22;
/// Candidates whose smallest size is sought: the cheapest by a first estimate.
const SOUGHT: usize = 24;
/// Frequencies of the first estimate.
const FIRST: usize = 256;

/// The candidates whose loss is at most `error`. If there are none, the plan says about how many frequencies it would take.
pub(crate) fn reach(
    problem: &mut Problem<'_>,
    error: f64,
    probability: Option<f64>,
    measure: Measure,
) -> Result<Vec<Scored>> {
    let search = SizeSearch { problem, error, probability };
    // Variances fall as 1/m: about how many it takes.
    let estimates = steps("recipes estimated", problem.space.kinds(), |kind| search.estimate(kind, measure))?;
    let (mut near, far): (Vec<Estimate>, Vec<Estimate>) =
        estimates.into_iter().flatten().partition(|estimate| estimate.biased || !estimate.is_too_large());
    near.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    near.truncate(SOUGHT);
    let found = steps("numbers of frequencies sought", near, |estimate| search.smallest(estimate))?;
    let found: Vec<Scored> = found.into_iter().flatten().collect();
    let fewest = far.into_iter().min_by(|a, b| a.frequencies.total_cmp(&b.frequencies));
    if let (true, Some(fewest)) = (found.is_empty(), fewest) {
        let why = format!(
            "would take some {:.0e} frequencies, more than 4 million, the most that are tried",
            fewest.frequencies
        );
        problem.leave_out(fewest.kind, why);
    }
    Ok(found)
}

/// Sorts candidates by cost in this measure and, at equal cost, by loss.
pub(crate) fn cheapest_first(found: impl Iterator<Item = Scored>, measure: Measure) -> Vec<Scored> {
    let cost = |one: &Scored| one.candidate.cost.in_measure(measure);
    let loss = |one: &Scored| one.forecast.loss.value;
    let mut found: Vec<Scored> = found.collect();
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(loss(a).total_cmp(&loss(b))));
    found
}

/// ln E(K̂ − K)² of each pair, and what follows.
type Evaluated = (Vec<f64>, Forecast);

/// A search for the least numbers of frequencies that keep an error.
struct SizeSearch<'a> {
    problem: &'a Problem<'a>,
    error: f64,
    probability: Option<f64>,
}

/// An estimate of the frequencies that a kind of candidate needs, and of its cost.
struct Estimate {
    kind: (usize, AnyCoupling),
    biased: bool,
    block: usize,
    frequencies: f64,
    /// In whole blocks, and not more than are tried.
    blocks: usize,
    cost: f64,
}

impl Estimate {
    fn is_too_large(&self) -> bool {
        self.frequencies > MOST as f64
    }
}

impl SizeSearch<'_> {
    fn candidate(&self, kind: (usize, AnyCoupling), m: usize) -> Result<Candidate> {
        let Problem { planner, space, calibration, .. } = self.problem;
        SearchSpace::candidate(space, planner, calibration.as_ref(), kind, m)
    }

    /// `None` without a closed form, or where its errors are beyond the range of numbers.
    fn estimate(&self, kind: (usize, AnyCoupling), measure: Measure) -> Result<Option<Estimate>> {
        // A kind that cannot be drawn is none.
        let Ok(first) = self.candidate(kind, FIRST) else { return Ok(None) };
        // Variances of whole blocks fall exactly as their number grows.
        let candidate = self.candidate(kind, first.whole(FIRST))?;
        let (block, biased) = (candidate.block(), candidate.biased);
        let Some(loss) = self.loss(&candidate)? else { return Ok(None) };
        let excess = (loss.0.value / self.error).powi(2);
        // Less a rounding error, where the number is whole.
        let wanted = (candidate.m as f64 * excess / block as f64 * (1.0 - 1e-12)).ceil().max(1.0);
        if !(wanted.is_finite() || biased) {
            return Ok(None);
        }
        let blocks = wanted.min((MOST / block).max(1) as f64) as usize;
        let cost = self.candidate(kind, blocks * block)?.cost.in_measure(measure);
        Ok(Some(Estimate { kind, biased, block, frequencies: wanted * block as f64, blocks, cost }))
    }

    /// The fewest blocks of frequencies that keep the error.
    fn smallest(&self, Estimate { kind, biased, block, blocks, .. }: Estimate) -> Result<Option<Scored>> {
        // The last that keeps the error is the smallest.
        let mut last = None;
        let mut keeps = |blocks: usize| -> Result<bool> {
            let candidate = self.candidate(kind, blocks * block)?;
            let Some((loss, evaluated)) = self.loss(&candidate)? else { return Ok(false) };
            let is_kept = loss.value <= self.error;
            if is_kept {
                last = Some((candidate, loss, evaluated));
            }
            Ok(is_kept)
        };
        let most = (MOST / block).max(1);
        // No number of frequencies makes up for a bias.
        if biased && !keeps(most)? {
            return Ok(None);
        }
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
        Ok(last.map(|(candidate, loss, (ln_squares, forecast))| Scored {
            candidate,
            ln_squares: Some(ln_squares),
            draws: 0.0,
            forecast: forecast.with_loss(loss),
            also: Vec::new(),
        }))
    }

    /// The loss that must be at most the error, and the evaluation that it follows from.
    fn loss(&self, candidate: &Candidate) -> Result<Option<(Expected, Evaluated)>> {
        let Some((ln_squares, forecast)) = self.problem.closed(candidate)? else { return Ok(None) };
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
        let (pairs, Recipe::Plain(plain)) = (&self.problem.pairs, recipe) else { return Ok(None) };
        let Some(law) = (match &plain.omega {
            Omega::Draw(draw) => Some(draw.law()),
            _ => None,
        }) else {
            return Ok(None);
        };
        let ln: Option<Vec<f64>> =
            (pairs.iter()).map(|(x, y)| plain.ln_range(&x, &y).map(|ln| 2.0 * ln)).collect();
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
