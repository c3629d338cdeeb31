//! Nyström features of the points, with their errors at held-out points.

use std::collections::HashMap;

use ndarray::{Array2, Axis, concatenate};
use rand::seq::SliceRandom;

use super::candidates::Candidate;
use super::problem::Problem;
use super::ranking::Scored;
use super::steps::steps;
use crate::error::{Error, Result};
use crate::frequency::Independent;
use crate::map::{Nystroem, Recipe};
use crate::numeric::special::ln_sum_exp;
use crate::planner::costs::{Cost, Measure};
use crate::planner::forecasts::{Forecast, TaskLoss, forecast};
use crate::planner::plan::LeftOut;
use crate::planner::proposals::MapFamily;
use crate::planner::question::{Goal, Planner};
use crate::progress;
use crate::theory::Basis;

/// What is found, or the reason why there is none.
type Found<T> = std::result::Result<T, String>;

fn text(error: Error) -> String {
    error.to_string()
}

/// The names of the map, biased and unbiased.
const NAMES: [&str; 2] = ["Nyström", "unbiased Nyström"];
/// Draws of features without a bias from which their errors follow.
const DRAWS: u64 = 8;
/// The most features that are fitted: an eigendecomposition takes O(D³).
const MOST: usize = 512;
/// Features with which the search for the fewest begins.
const FIRST: usize = 16;
/// Parts of the points: a pair of points is evaluated with features that were fitted to parts with neither of them.
const PARTS: usize = 4;

impl Problem<'_> {
    /// The Nyström features of the goal, if they are asked for; none, with the reason, where they cannot be had.
    pub fn nystroem(&mut self) -> Result<Option<Scored>> {
        if !self.planner.constraints.nystroem {
            return Ok(None);
        }
        let fitted = match self.reason_without_nystroem() {
            None => self.fitted(),
            Some(why) => Err(why.into()),
        };
        // Features whose fit was stopped are not some that cannot be had.
        progress::check()?;
        let what = self.name().into();
        Ok(fitted.map_err(|why| self.space.left_out.push(LeftOut { what, why })).ok())
    }

    /// Whether a bias is not allowed, so that random features are added.
    fn is_unbiased(&self) -> bool {
        self.planner.constraints.unbiased
    }

    fn name(&self) -> &'static str {
        NAMES[usize::from(self.is_unbiased())]
    }

    /// The reason why a question has no Nyström features; `None` if it may have them.
    fn reason_without_nystroem(&self) -> Option<&'static str> {
        let (goal, constraints) = (&self.planner.goal, &self.planner.constraints);
        match goal {
            _ if self.planner.loss.is_of_attention() => Some("normalisers of attention must not be negative"),
            _ if self.planner.data.heads.len() > 1 => Some("they are fitted to one head"),
            _ if constraints.non_negative => Some("their features have any sign"),
            _ if goal.measure() == Measure::Nanoseconds => Some("no calibration has their time"),
            Goal::MaxError { probability: Some(_), .. } => Some("no bound of their errors is known"),
            _ => None,
        }
    }

    /// The most features within a budget, or about the fewest that keep an error, fitted to all points, with their errors.
    fn fitted(&mut self) -> Found<Scored> {
        let points = self.all_points();
        let (features, ln_squares) = match self.planner.goal {
            Goal::Budget { measure, most } => {
                let features = self.within_budget(&points, measure, most)?;
                (features, self.held_out(&points, features).map_err(text)?)
            }
            Goal::MaxError { error, .. } => self.smallest_fit(&points, error)?,
        };
        self.scored(&points, features, ln_squares)
    }

    /// The candidate with this number of features, fitted to all points, from ln (K̂ − K)² of each pair.
    fn scored(&mut self, points: &Array2<f64>, features: usize, ln_squares: Vec<f64>) -> Found<Scored> {
        let recipe = self.fit(points, features).map_err(text)?;
        if self.is_unbiased() && matches!(recipe, Recipe::Plain(_)) {
            return Err("random features alone have a smaller error here".into());
        }
        let training = self.task_loss.as_ref().and_then(TaskLoss::training_points);
        let trial =
            training.map(|points| Ok::<_, String>(Box::new(self.fit(points, features).map_err(text)?)));
        let candidate = Candidate {
            map: self.space.maps.len(),
            coupling: Independent.into(),
            m: recipe.feature_dim(),
            // No calibration has its time.
            cost: Cost::of(&recipe, self.planner.data.scalar, None),
            recipe,
            biased: !self.is_unbiased(),
            trial: trial.transpose()?,
        };
        let forecast = self.forecast_of(&ln_squares);
        self.space.maps.push(MapFamily::fitted(self.name(), candidate.recipe.clone()));
        Ok(Scored { candidate, ln_squares: Some(ln_squares), draws: 0.0, forecast, also: Vec::new() })
    }

    /// The points of both sides, in the order of their numbers in pairs.
    fn all_points(&self) -> Array2<f64> {
        let [x, y] = &self.planner.data.sides;
        match self.planner.data.one_set {
            true => x.points.clone(),
            false => concatenate![Axis(0), x.points, y.points],
        }
    }

    fn forecast_of(&self, ln_squares: &[f64]) -> Forecast {
        forecast(&self.pairs, self.planner.loss, ln_squares, Basis::HeldOut)
    }

    /// The fewest features that can be fitted: beside random ones, those of one frequency.
    fn least(&self) -> Found<usize> {
        let Planner { kernel, data, .. } = self.planner;
        match self.is_unbiased() {
            true => Ok(Recipe::for_kernel(kernel.clone(), data.dim(), 1).map_err(text)?.feature_dim()),
            false => Ok(1),
        }
    }

    /// The most features within a budget.
    fn within_budget(&self, points: &Array2<f64>, measure: Measure, most: f64) -> Found<usize> {
        let (n, d) = points.dim();
        // Random features beside them have a scale of their own, and cost no more than as many of these.
        let (scales, fits) = if self.is_unbiased() { (2, MOST) } else { (1, n.min(MOST)) };
        let cost = |features: usize| {
            let landmarks = n.min(2 * features);
            Cost::of_nystroem(d, landmarks, (features, scales), self.planner.data.scalar)
        };
        let mut sizes = (self.least()?..=fits).rev();
        let found = sizes.find(|features| cost(*features).in_measure(measure) <= most);
        found.ok_or_else(|| "the fewest are too dear".into())
    }

    /// About the fewest features that keep an error, with ln (K̂ − K)² of each pair: there may be a thirty-second too many.
    fn smallest_fit(&self, points: &Array2<f64>, error: f64) -> Found<(usize, Vec<f64>)> {
        // Fits to half of the points have no more features.
        let most = if self.is_unbiased() { MOST } else { points.nrows().div_ceil(2).min(MOST) };
        let mut kept = None;
        let mut keeps = |features: usize| -> Found<bool> {
            let ln_squares = self.held_out(points, features).map_err(text)?;
            let is_kept = self.forecast_of(&ln_squares).loss.value <= error;
            if is_kept {
                kept = Some((features, ln_squares));
            }
            Ok(is_kept)
        };
        let least = self.least()?;
        let (mut low, mut high) = (least - 1, FIRST.clamp(least, most.max(least)));
        while !keeps(high)? {
            if high >= most {
                return Err(format!(
                    "up to {most} features, fitted to half of the points, do not reach the error"
                ));
            }
            (low, high) = (high, (2 * high).min(most));
        }
        while high - low > (high / 32).max(1) {
            let middle = low + (high - low) / 2;
            if keeps(middle)? { high = middle } else { low = middle }
        }
        kept.ok_or_else(|| "no size keeps the error".into())
    }

    /// Features of these points, of which there may be fewer.
    fn fit(&self, points: &Array2<f64>, features: usize) -> Result<Recipe> {
        let Planner { kernel, seed, .. } = self.planner;
        match self.is_unbiased() {
            true => Nystroem::fit_unbiased(kernel.clone(), points, features, *seed),
            false => Ok(Nystroem::fit(kernel.clone(), points, features.min(points.nrows()), *seed)?.recipe()),
        }
    }

    /// The part of each point, at random, since an order of points may have a period. A point of both sets has one part.
    fn parts(&self, points: &Array2<f64>) -> Vec<usize> {
        let mut parts: Vec<usize> = (0..points.nrows()).map(|row| row % PARTS).collect();
        parts.shuffle(&mut crate::rng(self.seed_of(5)));
        if self.planner.data.one_set {
            return parts;
        }
        let first = self.planner.data.sides[0].points.nrows();
        let bits = |row: usize| points.row(row).iter().map(|v| (v + 0.0).to_bits()).collect::<Vec<u64>>();
        let known: HashMap<Vec<u64>, usize> = (0..first).map(|row| (bits(row), parts[row])).collect();
        for (row, part) in parts.iter_mut().enumerate().skip(first) {
            *part = known.get(&bits(row)).copied().unwrap_or(*part);
        }
        parts
    }

    /// ln (K̂ − K)² of each pair, with at most so many features that were fitted to neither of its points.
    fn held_out(&self, points: &Array2<f64>, features: usize) -> Result<Vec<f64>> {
        let part_of = self.parts(points);
        let held: Vec<[usize; 2]> = (0..PARTS).flat_map(|a| (a + 1..PARTS).map(move |b| [a, b])).collect();
        let evaluated = steps("Nyström features fitted", &held, |held| {
            let rest = (0..points.nrows()).filter(|row| !held.contains(&part_of[*row]));
            let rest = points.select(Axis(0), &rest.collect::<Vec<_>>());
            let fitted = self.fit(&rest, features)?;
            let of_held = |rows: &[usize; 2]| parts_without(rows.map(|row| part_of[row])) == *held;
            let of_draw = |seed| self.pairs.ln_squares(&fitted.draw(seed)?, of_held);
            let draws = if fitted.is_drawn() { 1 } else { DRAWS };
            Ok(means((0..draws).map(of_draw).collect::<Result<_>>()?))
        })?;
        let mut ln_squares = vec![f64::INFINITY; self.pairs.len()];
        evaluated.into_iter().flatten().for_each(|(pair, ln_square)| ln_squares[pair] = ln_square);
        Ok(ln_squares)
    }
}

/// ln of the mean over draws of the squares of each pair, of which there are as many in each draw.
fn means(draws: Vec<Vec<(usize, f64)>>) -> Vec<(usize, f64)> {
    let ln_count = (draws.len() as f64).ln();
    let mean = |(i, (pair, _)): (usize, &(usize, f64))| {
        (*pair, ln_sum_exp(&draws.iter().map(|draw| draw[i].1).collect::<Vec<_>>()) - ln_count)
    };
    draws[0].iter().enumerate().map(mean).collect()
}

/// The two parts that are held out for a pair of points of these parts.
fn parts_without([a, b]: [usize; 2]) -> [usize; 2] {
    let b = if a == b { (a + 1) % PARTS } else { b };
    [a.min(b), a.max(b)]
}
