//! Nyström features of the points, with their errors at held-out points.

use ndarray::{Array2, Axis};
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
use crate::planner::forecasts::{TaskLoss, forecast};
use crate::planner::plan::LeftOut;
use crate::planner::proposals::MapFamily;
use crate::planner::question::{Goal, Planner};
use crate::progress;
use crate::theory::Basis;

/// The names of the map, biased and unbiased.
const NAMES: [&str; 2] = ["Nyström", "unbiased Nyström"];
/// Draws of features without a bias from which their errors follow.
const DRAWS: u64 = 8;
/// The most features that are fitted: an eigendecomposition takes O(D³).
const MOST: usize = 512;
/// Parts of the points: a pair of points is evaluated with features that were fitted to parts with neither of them.
const PARTS: usize = 4;

impl Problem<'_> {
    /// The Nyström features within a budget, if they are asked for; none, with the reason, where they cannot be had.
    pub fn nystroem(&mut self) -> Result<Option<Scored>> {
        if !self.planner.constraints.nystroem {
            return Ok(None);
        }
        let fitted = match self.nystroem_budget() {
            Ok((measure, most)) => self.fitted(measure, most).map_err(|error| error.to_string()),
            Err(why) => Err(why.to_string()),
        };
        // Features whose fit was stopped are not some that cannot be had.
        progress::check()?;
        let what = self.name().into();
        Ok(fitted.map_err(|why| self.space.left_out.push(LeftOut { what, why })).ok().flatten())
    }

    /// Whether a bias is not allowed, so that random features are added.
    fn is_unbiased(&self) -> bool {
        self.planner.constraints.unbiased
    }

    fn name(&self) -> &'static str {
        NAMES[usize::from(self.is_unbiased())]
    }

    /// The budget of Nyström features, or the reason why the question has none.
    fn nystroem_budget(&self) -> std::result::Result<(Measure, f64), &'static str> {
        let (data, constraints) = (&self.planner.data, &self.planner.constraints);
        match self.planner.goal {
            Goal::MaxError { .. } => Err("they are fitted in one size"),
            _ if self.planner.loss.is_of_attention() => Err("normalisers of attention must not be negative"),
            _ if !data.one_set => Err("they are fitted to one set of points"),
            _ if constraints.non_negative => Err("their features have any sign"),
            Goal::Budget { measure: Measure::Nanoseconds, .. } => Err("no calibration has their time"),
            Goal::Budget { measure, most } => Ok((measure, most)),
        }
    }

    /// The most features within a budget, fitted to all points, with their errors; `None` if one costs more.
    fn fitted(&mut self, measure: Measure, most: f64) -> Result<Option<Scored>> {
        let data = &self.planner.data;
        let points = &data.sides[0].points;
        let (n, d) = points.dim();
        // Random features beside them have a scale of their own, and cost no more than as many of these.
        let (scales, fits) = if self.is_unbiased() { (2, MOST) } else { (1, n.min(MOST)) };
        let cost =
            |features: usize| Cost::of_nystroem(d, n.min(2 * features), (features, scales), data.scalar);
        let features = (1..=fits).rev().find(|features| cost(*features).in_measure(measure) <= most);
        let Some(features) = features else { return Ok(None) };
        let recipe = self.fit(points, features)?;
        if self.is_unbiased() && matches!(recipe, Recipe::Plain(_)) {
            let what = "Nyström features beside random ones, which have a smaller error here without them";
            return Err(Error::Unsupported { what });
        }
        let training = self.task_loss.as_ref().and_then(TaskLoss::training_points);
        let trial = training.map(|points| Ok::<_, Error>(Box::new(self.fit(points, features)?)));
        let candidate = Candidate {
            map: self.space.maps.len(),
            coupling: Independent.into(),
            m: recipe.feature_dim(),
            // No calibration has its time.
            cost: Cost::of(&recipe, data.scalar, None),
            recipe,
            biased: !self.is_unbiased(),
            trial: trial.transpose()?,
        };
        let ln_squares = self.held_out(features)?;
        let forecast = forecast(&self.pairs, self.planner.loss, &ln_squares, Basis::HeldOut);
        self.space.maps.push(MapFamily::fitted(self.name(), candidate.recipe.clone()));
        Ok(Some(Scored { candidate, ln_squares: Some(ln_squares), draws: 0.0, forecast, also: Vec::new() }))
    }

    /// Features of these points, of which there may be fewer.
    fn fit(&self, points: &Array2<f64>, features: usize) -> Result<Recipe> {
        let Planner { kernel, seed, .. } = self.planner;
        match self.is_unbiased() {
            true => Nystroem::fit_unbiased(kernel.clone(), points, features, *seed),
            false => Ok(Nystroem::fit(kernel.clone(), points, features.min(points.nrows()), *seed)?.recipe()),
        }
    }

    /// ln (K̂ − K)² of each pair, with at most so many features that were fitted to neither of its points.
    fn held_out(&self, features: usize) -> Result<Vec<f64>> {
        let points = &self.planner.data.sides[0].points;
        let part_of = parts(points.nrows(), self.seed_of(5));
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

/// The part of each point, at random, since an order of points may have a period.
fn parts(points: usize, seed: u64) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..points).map(|row| row % PARTS).collect();
    parts.shuffle(&mut crate::rng(seed));
    parts
}

/// The two parts that are held out for a pair of points of these parts.
fn parts_without([a, b]: [usize; 2]) -> [usize; 2] {
    let b = if a == b { (a + 1) % PARTS } else { b };
    [a.min(b), a.max(b)]
}
