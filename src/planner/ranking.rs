//! How a plan is made: candidates, closed forms, pilots, trials, ranks.

use std::cmp::Ordering;

use super::advice::{self, Advice};
use super::calibration::Calibration;
use super::candidates::{Candidate, Field};
use super::forecast::{Basis, Expected, Forecast};
use super::options::{Goal, Loss, Planner};
use super::pairs::Pairs;
use super::plan::{Choice, LeftOut, Plan};
use super::trials::Trial;
use super::{Measure, display, target};
use crate::error::{Error, Result, checked_positive};
use crate::frequency::AnyCoupling;
use crate::kernel::Kernel;
use crate::map::{Prospect, proposals};
use crate::progress;

/// The relative standard error from which on a loss is called uncertain.
const UNCERTAIN: f64 = 0.15;
/// The relative standard error, over pairs and draws, from which on a loss from draws is called uncertain.
const MISSED: f64 = 0.5;

/// The difference of ln of losses that counts as none.
const STEP: f64 = 0.005;

/// A candidate with what is expected of it.
pub(super) struct Scored {
    pub candidate: Candidate,
    /// ln E(K̂ − K)² of each pair, where it is known.
    pub ln_squares: Option<Vec<f64>>,
    /// The standard error of the loss from draws; 0 without any.
    pub draws: f64,
    pub forecast: Forecast,
    /// What else this map is called, as "map, coupling".
    pub also: Vec<String>,
}

/// What a plan is made with.
pub(super) struct Scene<'a> {
    pub planner: &'a Planner,
    pub kernel: Box<dyn Kernel<f64>>,
    pub field: Field,
    pub pairs: Pairs,
    pub trial: Option<Trial>,
    pub calibration: Option<Calibration>,
}

pub(super) fn plan(planner: &Planner) -> Result<Plan> {
    let mut scene = Scene::new(planner, check(planner)?)?;
    let scored = match planner.goal {
        Goal::Budget { measure, most } => scene.within(measure, most)?,
        Goal::Target { error, probability, measure } => {
            target::reach(&mut scene, error, probability, measure)?
        }
    };
    scene.finish(scored)
}

/// Rejects what cannot be planned, and gives the exact kernel.
pub(super) fn check(planner: &Planner) -> Result<Box<dyn Kernel<f64>>> {
    planner.target.check(planner.data.dim())?;
    if let Some(calibration) = &planner.calibration {
        calibration.check()?;
    }
    if let Goal::Budget { most, .. } = planner.goal {
        checked_positive("the budget", most)?;
    }
    let attention = planner.loss.is_of_attention();
    if attention && planner.target.lengthscale().isotropic().is_none() {
        return Err(Error::Unsupported { what: "errors of attention with a lengthscale for each dimension" });
    }
    let has_values = planner.data.heads.iter().any(|head| head.values.is_some());
    if planner.loss == Loss::AttentionOutput && !has_values {
        return Err(Error::Unsupported { what: "errors of attention's output without values" });
    }
    if planner.loss == Loss::Ridge && cfg!(not(any(feature = "faer", feature = "ndarray-linalg"))) {
        return Err(Error::Unsupported { what: "regression without the feature faer or ndarray-linalg" });
    }
    if planner.loss == Loss::Ridge && planner.targets.is_none() {
        return Err(Error::Unsupported { what: "the excess risk of a regression without targets" });
    }
    if let Goal::Target { probability, .. } = planner.goal {
        if !planner.loss.is_of_pairs() {
            return Err(Error::Unsupported {
                what: "targets for errors that are not closed forms at pairs of points",
            });
        }
        if probability.is_some() && planner.loss != Loss::Gram {
            return Err(Error::Unsupported {
                what: "a probability for another error than that of the Gram matrix",
            });
        }
    }
    planner.target.kernel().ok_or(Error::Unsupported { what: "a plan without a named kernel" })
}

impl<'a> Scene<'a> {
    fn new(planner: &'a Planner, kernel: Box<dyn Kernel<f64>>) -> Result<Self> {
        let (data, lengthscale) = (&planner.data, planner.target.lengthscale());
        let statistics =
            [&data.sides[0], &data.sides[1]].map(|side| side.statistics.divided_by(lengthscale.clone()));
        let [x, y] = statistics;
        let (x, y) = (x?, y?);
        let points =
            [&data.sides[0], &data.sides[1]].map(|side| lengthscale.divide_rows(side.points.clone()));
        let attention = planner.loss.is_of_attention();
        let prospect = Prospect {
            target: &planner.target,
            statistics: [&x, &y],
            points: [&points[0], &points[1]],
            one_set: data.one_set,
            attention,
            features: match planner.goal {
                Goal::Budget { measure: Measure::Features, most } => most.min(65_536.0) as usize,
                Goal::Budget { measure: Measure::Bytes, most } => {
                    (most / data.scalar as f64).min(65_536.0) as usize
                }
                _ => 256,
            },
            seed: planner.seed,
        };
        let field = Field::new(planner, proposals(prospect))?;
        // A proposal that was stopped is not one that could not be made.
        progress::check()?;
        if field.proposals.is_empty() || field.couplings.is_empty() {
            let what = "map: none of this crate serves this kernel under these constraints";
            return Err(Error::Unsupported { what });
        }
        let timed = match planner.goal {
            Goal::Budget { measure, .. } | Goal::Target { measure, .. } => measure == Measure::Nanoseconds,
        };
        let calibration = if timed { Some(planner.calibration()?) } else { planner.calibration };
        let pairs = Pairs::draw(data, kernel.as_ref(), planner.seed)?;
        let trial = Trial::new(planner, kernel.as_ref())?;
        Ok(Scene { planner, kernel, field, pairs, trial, calibration })
    }

    /// The first of the seeds of a stream of draws, none of which is that of another stream.
    pub fn seed_of(&self, stream: u64) -> u64 {
        self.planner.seed.wrapping_mul(1 << 20).wrapping_add(stream << 16)
    }

    pub fn leave_out(&mut self, (proposal, coupling): (usize, AnyCoupling), why: String) {
        let (name, coupling) = (&self.field.proposals[proposal].name, display::coupling(&coupling));
        let known =
            self.field.left_out.iter_mut().find(|left| left.why == why && left.what.starts_with(name));
        match known {
            Some(left) => left.what.push_str(&format!(", {coupling}")),
            None => self.field.left_out.push(LeftOut { what: format!("{name}: {coupling}"), why }),
        }
    }

    fn finish(mut self, mut scored: Vec<Scored>) -> Result<Plan> {
        if scored.is_empty() {
            let why = match self.planner.goal {
                Goal::Budget { .. } => "none fits the budget",
                Goal::Target { .. } => {
                    "none with a closed form reaches the target with up to 4 million frequencies"
                }
            };
            self.field.left_out.push(LeftOut { what: "all recipes".into(), why: why.into() });
        }
        let measure = match self.planner.goal {
            Goal::Budget { measure, .. } => {
                rank(&mut scored);
                measure
            }
            // The cheapest come first.
            Goal::Target { measure, .. } => measure,
        };
        let scored = self.merged(scored, Scored::is_as);
        let advice = self.advice(&scored)?;
        let whys = display::sentences(&scored, self.planner, measure);
        let choices = scored.into_iter().zip(whys).map(|(one, why)| self.choice(one, why)).collect();
        Ok(Plan {
            title: display::title(self.planner, self.pairs.len()),
            loss: self.planner.loss,
            measure,
            choices,
            advice,
            left_out: self.field.left_out,
            pairs: self.pairs.len(),
            calibration: self.calibration,
        })
    }

    /// Recipes of which those that are one map are one: the first of them.
    pub fn merged(&self, scored: Vec<Scored>, are_one: impl Fn(&Scored, &Scored) -> bool) -> Vec<Scored> {
        let mut merged: Vec<Scored> = Vec::with_capacity(scored.len());
        for one in scored {
            match merged.iter_mut().find(|first| are_one(first, &one)) {
                Some(first) => {
                    let (map, coupling) = self.names(&one.candidate);
                    first.also.push(format!("{map}, {coupling}"));
                    first.also.extend(one.also);
                }
                None => merged.push(one),
            }
        }
        merged
    }

    /// The names of the map and of the coupling.
    fn names(&self, candidate: &Candidate) -> (String, String) {
        let proposal = &self.field.proposals[candidate.proposal];
        let coupling = if proposal.coupled { display::coupling(&candidate.coupling) } else { "–".into() };
        (proposal.name.clone(), coupling)
    }

    /// Whether a sample of pairs, or draws, leave the loss uncertain by a factor, or nothing is known of it. Where all pairs of all points
    /// were evaluated, other points may have other errors, but these have no others.
    fn is_uncertain(&self, one: &Scored) -> bool {
        let loss = one.forecast.loss;
        let is_all = self.trial.as_ref().map_or(self.pairs.is_all(), Trial::is_of_all);
        let sampled = !is_all || one.is_of_some_pairs();
        let error = if sampled { loss.standard_error } else { one.draws };
        // Few draws may have missed what rules a quantile.
        let missed = loss.basis != Basis::ClosedForm && loss.standard_error > MISSED * loss.value.abs();
        let is_known = loss.value.is_finite() && error <= UNCERTAIN * loss.value.abs();
        missed || !is_known
    }

    fn choice(&self, one: Scored, why: String) -> Choice {
        let uncertain = self.is_uncertain(&one);
        let (map, coupling) = self.names(&one.candidate);
        let Scored { candidate, forecast, .. } = one;
        Choice {
            map,
            coupling,
            uncertain,
            frequencies: candidate.m,
            recipe: candidate.recipe,
            forecast,
            cost: candidate.cost,
            biased: candidate.biased,
            why,
        }
    }

    fn advice(&self, scored: &[Scored]) -> Result<Option<Advice>> {
        let Some(best) = scored.first() else { return Ok(None) };
        let (beyond, attention) =
            (best.forecast.relative.beyond_one.value, self.planner.loss.is_of_attention());
        if self.trial.as_ref().is_some_and(Trial::is_hopeless) {
            return Ok(Some(Advice::of_hopeless_kernel(beyond)));
        }
        let unknown = attention && best.forecast.loss.value.is_infinite();
        let (loss, ridge) = (best.forecast.loss.value, self.planner.loss == Loss::Ridge);
        let useless = !ridge && loss >= advice::USELESS;
        let reached = matches!(self.planner.goal, Goal::Target { .. });
        if reached || beyond <= advice::HOPELESS && !unknown && !useless {
            return Ok(None);
        }
        let works = loss < advice::SMALL && !unknown;
        // More frequencies help those without a bias.
        let unbiased = scored.iter().filter(|one| !one.candidate.biased && one.ln_squares.is_some());
        let error = unbiased
            .map(|one| one.forecast.relative.ninety.value.max(one.forecast.gram.value))
            .fold(f64::INFINITY, f64::min);
        let errors = (best.candidate.m, beyond, error);
        let sizes = (attention, best.candidate.cost.features, self.planner.data.dim());
        advice::advice(&self.planner.target, self.kernel.as_ref(), &self.pairs, works, errors, sizes)
            .map(Some)
    }
}

impl Scored {
    /// Whether its closed form was evaluated at some of the pairs only.
    pub fn is_of_some_pairs(&self) -> bool {
        self.ln_squares.is_none() && self.forecast.gram.basis == Basis::ClosedForm
    }

    /// Whether both are one map: their recipes are the same, or have as many features and the same errors of every kind by closed forms.
    pub fn is_as(&self, other: &Self) -> bool {
        let (own, others) = (&self.candidate, &other.candidate);
        if own.cost.features != others.cost.features || own.biased != others.biased {
            return false;
        }
        let errors = |one: &Scored| {
            let (gram, relative) = (one.forecast.gram, one.forecast.relative);
            [gram, relative.mean, relative.median, relative.ninety, relative.ninety_nine]
        };
        let known = self.ln_squares.is_some() == other.ln_squares.is_some() && self.forecast.gram.value > 0.0;
        let close = |(a, b): (Expected, Expected)| {
            let closed = [a, b].iter().all(|error| error.basis == Basis::ClosedForm);
            closed && (a.value - b.value).abs() < 1e-9 * a.value
        };
        known && errors(self).into_iter().zip(errors(other)).all(close) || own.recipe == others.recipe
    }
}

/// The smallest loss first, with a standard error of its draws, which is the price of not knowing; of losses that hardly differ the
/// cheaper, then the one without bias.
pub(super) fn rank(scored: &mut [Scored]) {
    let risk = scored.iter().any(|one| one.forecast.loss.value < 0.0);
    let key = |one: &Scored| {
        let loss = one.forecast.loss.value + one.draws;
        // The excess risk of a regression may be negative.
        let step = if risk { loss } else { (loss.ln() / STEP).round() };
        let cost = one.candidate.cost.multiplications;
        // What is unknown comes last: a NaN may have any sign.
        let [step, cost] = [step, cost].map(|value| if value.is_nan() { f64::INFINITY } else { value });
        (step, one.forecast.relative.ninety.value, cost, one.candidate.biased)
    };
    scored.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        // Where losses are beyond the range, tails tell.
        let tails = if a.0 == f64::INFINITY { a.1.total_cmp(&b.1) } else { Ordering::Equal };
        a.0.total_cmp(&b.0).then(tails).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
    });
}
