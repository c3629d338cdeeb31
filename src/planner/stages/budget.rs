//! How recipes within a budget are evaluated: at few pairs, at all of them, and by draws.

use std::collections::BTreeSet;

use super::candidates::Candidate;
use super::problem::Problem;
use super::ranking::{Scored, rank};
use super::steps::steps;
use crate::error::Result;
use crate::planner::costs::Measure;
use crate::planner::forecasts::{Forecast, Pairs, closed, forecast};
use crate::theory::Basis;
use crate::{progress, threads};

/// Pairs of the first screening, which finds recipes far from the best.
const SCREENING_PAIRS: usize = 250;
/// Recipes that are evaluated at all pairs. Beyond MAX_DIM dimensions there are fewer, in inverse proportion to d.
const EVALUATED: usize = 24;
const MAX_DIM: usize = 100;

impl Problem<'_> {
    /// The best within a budget.
    pub fn within(&mut self, measure: Measure, most: f64) -> Result<Vec<Scored>> {
        let candidates = self.sized(measure, most)?;
        // Few pairs tell what is far from the best: the same ones for all seeds, where all pairs are.
        let few = (self.pairs.len() > SCREENING_PAIRS)
            .then(|| self.pairs.some(SCREENING_PAIRS, &mut crate::rng(0)));
        let first = few.as_ref().unwrap_or(&self.pairs);
        let evaluated =
            steps("recipes evaluated at some pairs", &candidates, |one| self.closed_at(one, first))?;
        let (mut scored, mut open) = (Vec::new(), Vec::new());
        for (candidate, evaluated) in candidates.into_iter().zip(evaluated) {
            match evaluated {
                Some((ln_squares, forecast)) => {
                    scored.push(Scored {
                        candidate,
                        ln_squares: few.is_none().then_some(ln_squares),
                        draws: 0.0,
                        forecast,
                        also: Vec::new(),
                    });
                }
                None => open.push(candidate),
            }
        }
        // Couplings may be one map, as in one dimension.
        let are_one = |a: &Scored, b: &Scored| a.candidate.map == b.candidate.map && a.is_as(b);
        let scored = self.settled(self.merged(best_of_each_kind(scored), are_one), &mut open)?;
        let simulated = self.pilots(&scored, open)?;
        let fitted = self.fitted_features()?;
        self.tried(scored.into_iter().chain(best_of_each_kind(simulated)).chain(fitted).collect())
    }

    /// Nyström features, where there is an eigendecomposition to fit them.
    pub(super) fn fitted_features(&mut self) -> Result<Option<Scored>> {
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        let fitted = self.nystroem();
        #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
        let fitted = Ok(None);
        fitted
    }

    /// Candidates of each kind that fit the budget.
    fn sized(&mut self, measure: Measure, most: f64) -> Result<Vec<Candidate>> {
        let sized = threads::map(self.space.kinds(), |kind| {
            let within = self.space.within(self.planner, self.calibration.as_ref(), kind, (measure, most));
            within.map_err(|error| (kind, error))
        });
        progress::check()?;
        let mut candidates = Vec::new();
        for sized in sized {
            match sized {
                Ok(sized) => candidates.extend(sized),
                Err((kind, error)) => self.leave_out(kind, error.to_string()),
            }
        }
        Ok(candidates)
    }

    /// Ranks recipes, the first of which are evaluated at all pairs, and the best of each map: whatever takes their place by its errors
    /// at few pairs is evaluated too, until nothing does. Recipes whose closed form does not hold at all pairs go to `open`.
    fn settled(&self, mut scored: Vec<Scored>, open: &mut Vec<Candidate>) -> Result<Vec<Scored>> {
        // Closed forms of coupled frequencies take longer in more dimensions.
        let first = (EVALUATED * MAX_DIM / self.planner.data.dim()).clamp(EVALUATED / 4, EVALUATED);
        loop {
            rank(&mut scored);
            let (mut wanted, mut rest, mut maps) = (Vec::new(), Vec::new(), BTreeSet::new());
            for one in scored {
                let is_best_of_map = first == EVALUATED && maps.insert(one.candidate.map);
                let is_wanted = wanted.len() < first || is_best_of_map;
                if is_wanted { wanted.push(one) } else { rest.push(one) }
            }
            let is_settled = !wanted.iter().any(Scored::is_of_some_pairs);
            let evaluated = steps("recipes evaluated at all pairs", wanted, |one| self.at_all_pairs(one))?;
            scored = Vec::with_capacity(evaluated.len() + rest.len());
            for one in evaluated {
                match one {
                    Ok(one) => scored.push(one),
                    Err(candidate) => open.push(candidate),
                }
            }
            scored.extend(rest);
            if is_settled {
                rank(&mut scored);
                return Ok(scored);
            }
        }
    }

    /// A recipe with its errors at all pairs, if it has a closed form; the candidate alone if that does not hold at all of them.
    pub fn at_all_pairs(&self, one: Scored) -> Result<std::result::Result<Scored, Candidate>> {
        if !one.is_of_some_pairs() {
            return Ok(Ok(one));
        }
        Ok(match self.closed(&one.candidate)? {
            Some((ln_squares, forecast)) => Ok(Scored { ln_squares: Some(ln_squares), forecast, ..one }),
            None => Err(one.candidate),
        })
    }

    /// Errors at all pairs by closed forms, as ln E(K̂ − K)² of each pair and a forecast.
    pub fn closed(&self, candidate: &Candidate) -> Result<Option<(Vec<f64>, Forecast)>> {
        self.closed_at(candidate, &self.pairs)
    }

    fn closed_at(&self, candidate: &Candidate, pairs: &Pairs) -> Result<Option<(Vec<f64>, Forecast)>> {
        let ln_squares = closed(&candidate.recipe, &self.planner.kernel, pairs)?;
        Ok(ln_squares.map(|ln_squares| {
            let forecast = forecast(pairs, self.planner.loss, &ln_squares, Basis::ClosedForm);
            (ln_squares, forecast)
        }))
    }
}

/// The best of the recipes that differ in their numbers of frequencies alone.
fn best_of_each_kind(mut scored: Vec<Scored>) -> Vec<Scored> {
    rank(&mut scored);
    let mut seen = Vec::new();
    scored.retain(|one| {
        let kind = one.candidate.kind();
        let is_new = !seen.contains(&kind);
        seen.push(kind);
        is_new
    });
    scored
}
