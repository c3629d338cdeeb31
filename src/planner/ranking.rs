//! How a plan is made: candidates, closed forms, pilots, ranks.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ndarray::Array2;

use super::advice::{self, Advice};
use super::attention::Tokens;
use super::candidates::{Candidate, Field};
use super::cost::Calibration;
use super::evaluation::{closed, forecast};
use super::forecast::{Basis, Expected, Forecast};
use super::options::{Goal, Loss, Planner};
use super::pairs::Pairs;
use super::plan::{Choice, LeftOut, Plan};
use super::simulation::{Simulated, scaled, simulate};
use super::{Measure, display, target};
use crate::error::{Error, Result, check_size, checked_positive};
use crate::frequency::AnyCoupling;
use crate::kernel::Kernel;
use crate::map::{Prospect, Recipe, proposals};
use crate::threads;

/// Pairs that tell what is far from the best, and the number of recipes for which that is asked of all pairs.
const FEW: usize = 250;
const NEAR: usize = 24;
/// Pairs on which couplings without a closed form are simulated, and how often.
const PILOT: (usize, usize) = (256, 32);
/// Draws of the best of them, anew.
const FINAL: usize = 128;
/// Proposals whose couplings without a closed form are simulated.
const FINALISTS: usize = 4;
/// Recipes whose regressions are tried, and how often.
const REGRESSIONS: (usize, usize) = (8, 4);

/// A candidate with what is expected of it.
pub(super) struct Scored {
    pub candidate: Candidate,
    /// ln E(K̂ − K)² of each pair, where it is known.
    pub ln_squares: Option<Vec<f64>>,
    /// The standard error of the loss from draws, relative to it.
    pub draws: f64,
    pub forecast: Forecast,
}

/// What a closed form says of a proposal.
struct Reference {
    /// Whether as many draws as a pilot has show it.
    reliable: bool,
    /// ln E(K̂ − K)² of the pairs of pilots, and of all pairs.
    of_some: Vec<f64>,
    of_all: Vec<f64>,
}

/// What a plan is made with.
pub(super) struct Scene<'a> {
    pub planner: &'a Planner,
    pub field: Field,
    pub pairs: Pairs,
    pub tokens: Option<Tokens>,
    pub calibration: Option<Calibration>,
}

pub(super) fn plan(planner: &Planner) -> Result<Plan> {
    let kernel = check(planner)?;
    let mut scene = Scene::new(planner, kernel.as_ref())?;
    let scored = match planner.goal {
        Goal::Budget { measure, most } => scene.within(measure, most)?,
        Goal::Target { error, probability, measure } => target::reach(&scene, error, probability, measure)?,
    };
    scene.finish(scored)
}

/// The errors to expect of a recipe, by closed forms.
pub(super) fn forecast_of(planner: &Planner, recipe: &Recipe) -> Result<Option<Forecast>> {
    let (pairs, tokens) = evaluated_on(planner, recipe)?;
    let Some(ln_squares) = closed(recipe, &planner.target, &pairs)? else { return Ok(None) };
    let of_pairs = forecast(&pairs, planner.loss, &ln_squares, Basis::ClosedForm);
    if planner.loss == Loss::Ridge {
        return Ok(None);
    }
    let Some(tokens) = tokens else { return Ok(Some(of_pairs)) };
    Ok(tokens.closed(recipe, planner.loss)?.map(|loss| of_pairs.with_loss(loss)))
}

/// The errors of a recipe in so many draws, of consecutive seeds.
pub(super) fn measure(planner: &Planner, recipe: &Recipe, draws: usize, first: u64) -> Result<Forecast> {
    if draws < 2 {
        let (name, domain) = ("the number of draws", "at least 2");
        return Err(Error::Parameter { name, value: draws as f64, domain });
    }
    let (pairs, tokens) = evaluated_on(planner, recipe)?;
    let parts = threads::map(split(draws), |part| {
        simulate(recipe, &pairs, part.len(), first.wrapping_add(part.start as u64))
    });
    let seen = Simulated::joined(parts.into_iter().collect::<Result<_>>()?);
    let seen_errors = forecast(&pairs, planner.loss, &seen.ln_squares(&pairs), seen.basis());
    let seen_errors = seen_errors.widened(0.5 * seen.gram().1);
    match (tokens, planner.loss) {
        (Some(tokens), loss) => Ok(seen_errors.with_loss(tokens.simulated(recipe, loss, draws)?)),
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        (None, Loss::Ridge) => match &planner.targets {
            Some(targets) => {
                let pilot = super::ridge::Pilot::new(&planner.data, &planner.target, targets)?;
                Ok(seen_errors.with_loss(pilot.excess(recipe, draws, first)?))
            }
            None => Ok(seen_errors),
        },
        (None, _) => Ok(seen_errors),
    }
}

/// Draws in parts of so many.
fn split(draws: usize) -> Vec<Range<usize>> {
    const PART: usize = 16;
    (0..draws.div_ceil(PART)).map(|k| k * PART..draws.min((k + 1) * PART)).collect()
}

/// The pairs on which a recipe is evaluated, and tokens for attention.
fn evaluated_on(planner: &Planner, recipe: &Recipe) -> Result<(Pairs, Option<Tokens>)> {
    let kernel = check(planner)?;
    check_size("the dimension of the recipe", planner.data.dim(), recipe.dim())?;
    let tokens =
        planner.loss.is_of_attention().then(|| Tokens::new(&planner.data.clone().with_one_head(None)));
    Ok((Pairs::draw(&planner.data, kernel.as_ref(), planner.seed)?, tokens))
}

/// Rejects what cannot be planned, and gives the exact kernel.
fn check(planner: &Planner) -> Result<Box<dyn Kernel<f64>>> {
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
    fn new(planner: &'a Planner, kernel: &dyn Kernel<f64>) -> Result<Self> {
        let (data, lengthscale) = (&planner.data, planner.target.lengthscale());
        let statistics =
            [&data.sides[0], &data.sides[1]].map(|side| side.statistics.divided_by(lengthscale.clone()));
        let [x, y] = statistics;
        let (x, y) = (x?, y?);
        let divided = |points: &Array2<f64>| {
            let mut points = points.clone();
            points.indexed_iter_mut().for_each(|((_, k), v)| *v /= lengthscale.at(k));
            points
        };
        let points = [&data.sides[0], &data.sides[1]].map(|side| divided(&side.points));
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
        if field.proposals.is_empty() || field.couplings.is_empty() {
            let what = "map: none of this crate serves this kernel under these constraints";
            return Err(Error::Unsupported { what });
        }
        let timed = match planner.goal {
            Goal::Budget { measure, .. } | Goal::Target { measure, .. } => measure == Measure::Nanoseconds,
        };
        let calibration = match (planner.calibration, timed, data.scalar) {
            (Some(calibration), ..) => Some(calibration),
            (None, false, _) => None,
            (None, true, 4) => Some(Calibration::measure::<f32>()?),
            (None, true, _) => Some(Calibration::measure::<f64>()?),
        };
        let pairs = Pairs::draw(data, kernel, planner.seed)?;
        let tokens = attention.then(|| Tokens::new(&data.clone().with_one_head(None)));
        Ok(Scene { planner, field, pairs, tokens, calibration })
    }

    /// The best within a budget.
    fn within(&mut self, measure: Measure, most: f64) -> Result<Vec<Scored>> {
        let kinds = self.field.pairs();
        let calibration = self.calibration;
        let sized = threads::map(kinds, |kind| {
            self.field
                .largest(self.planner, calibration.as_ref(), kind, (measure, most))
                .map_err(|error| (kind, error))
        });
        let mut candidates = Vec::new();
        for sized in sized {
            match sized {
                Ok(candidate) => candidates.extend(candidate),
                Err((kind, error)) => self.leave_out(kind, error.to_string()),
            }
        }
        // Few pairs tell what is far from the best.
        let few = self.pairs.some(FEW);
        let evaluated = threads::map(&candidates, |candidate| self.closed_at(candidate, &few));
        let (mut first, mut open) = (Vec::new(), Vec::new());
        for (candidate, evaluated) in candidates.into_iter().zip(evaluated) {
            match evaluated? {
                Some((_, forecast)) => {
                    first.push(Scored { candidate, ln_squares: None, draws: 0.0, forecast });
                }
                None => open.push(candidate),
            }
        }
        rank(&mut first);
        let far = first.split_off(first.len().min(NEAR));
        let near = threads::map(first, |one| -> Result<Option<Scored>> {
            let evaluated = self.closed(&one.candidate)?;
            Ok(evaluated.map(|(ln_squares, forecast)| Scored {
                ln_squares: Some(ln_squares),
                forecast,
                ..one
            }))
        });
        let mut scored: Vec<Scored> =
            near.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
        scored.extend(far);
        rank(&mut scored);
        let simulated = self.pilots(&scored, open)?;
        scored.extend(simulated);
        if self.planner.loss == Loss::Ridge {
            scored = self.regressions(scored)?;
        }
        Ok(scored)
    }

    /// Errors by closed forms: those of pairs and, for attention, to first order.
    pub fn closed(&self, candidate: &Candidate) -> Result<Option<(Vec<f64>, Forecast)>> {
        self.closed_at(candidate, &self.pairs)
    }

    fn closed_at(&self, candidate: &Candidate, pairs: &Pairs) -> Result<Option<(Vec<f64>, Forecast)>> {
        let (planner, recipe) = (self.planner, &candidate.recipe);
        let Some(ln_squares) = closed(recipe, &planner.target, pairs)? else { return Ok(None) };
        let forecast = forecast(pairs, planner.loss, &ln_squares, Basis::ClosedForm);
        let Some(tokens) = &self.tokens else { return Ok(Some((ln_squares, forecast))) };
        let tokens = if pairs.len() < self.pairs.len() { &tokens.few() } else { tokens };
        let loss = tokens.closed(recipe, planner.loss)?;
        Ok(loss.map(|loss| (ln_squares, forecast.with_loss(loss))))
    }

    /// Simulates the couplings without a closed form of the best proposals, and proposals that have none.
    fn pilots(&mut self, scored: &[Scored], open: Vec<Candidate>) -> Result<Vec<Scored>> {
        let mut finalists: Vec<usize> = Vec::new();
        for one in scored {
            if finalists.len() < FINALISTS && !finalists.contains(&one.candidate.proposal) {
                finalists.push(one.candidate.proposal);
            }
        }
        let known = |proposal: usize| scored.iter().any(|one| one.candidate.proposal == proposal);
        let open: Vec<Candidate> = (open.into_iter())
            .filter(|one| finalists.contains(&one.proposal) || !known(one.proposal))
            .collect();
        if self.tokens.is_some() {
            return self.attention_pilots(open);
        }
        let some = self.pairs.some(PILOT.0);
        let proposals: BTreeSet<usize> = open.iter().map(|one| one.proposal).collect();
        let references = threads::map(proposals, |proposal| {
            let best = scored.iter().find(|one| one.candidate.proposal == proposal);
            Ok((proposal, best.map(|best| self.reference(best, &some)).transpose()?.flatten()))
        });
        let references: BTreeMap<usize, Option<Reference>> = references.into_iter().collect::<Result<_>>()?;
        let mut left_out = Vec::new();
        let open: Vec<&Candidate> = (open.iter())
            .filter(|one| match references.get(&one.proposal) {
                Some(Some(Reference { reliable: false, .. })) => {
                    let why = "draws too rare to be met rule its errors, and there is no closed form";
                    left_out.push(((one.proposal, one.coupling), why.to_string()));
                    false
                }
                _ => true,
            })
            .collect();
        let run = |candidate: &Candidate, draws: usize, stream: u64| -> Result<Scored> {
            let seen = simulate(&candidate.recipe, &some, draws, self.seed_of(stream))?;
            let forecast = match references.get(&candidate.proposal) {
                Some(Some(reference)) => {
                    let ratios = seen.ratios(&some, &reference.of_some);
                    let ln_squares = scaled(&self.pairs, &reference.of_all, &ratios);
                    // Few pairs of a group may rule the error of the Gram matrix: it has a ratio of its own.
                    let [all, known] = [(&self.pairs, &reference.of_all), (&some, &reference.of_some)]
                        .map(|(pairs, closed)| pairs.gram(closed, seen.basis()));
                    let ratio = seen.gram().0.sqrt() / known.value;
                    let by_groups = forecast(&self.pairs, self.planner.loss, &ln_squares, seen.basis());
                    by_groups.with_gram(all.times(ratio), self.planner.loss)
                }
                _ => forecast(&some, self.planner.loss, &seen.ln_squares(&some), seen.basis()),
            };
            let draws = 0.5 * seen.gram().1;
            let forecast = forecast.widened(draws);
            Ok(Scored { candidate: candidate.clone(), ln_squares: None, draws, forecast })
        };
        let first = threads::map(&open, |candidate| run(candidate, PILOT.1, 1));
        let mut simulated = Vec::new();
        for (candidate, result) in open.iter().zip(first) {
            match result {
                Ok(one) => simulated.push(one),
                Err(error) => left_out.push(((candidate.proposal, candidate.coupling), error.to_string())),
            }
        }
        // The least of noisy errors is too small: those that might win are drawn again.
        let least =
            scored.iter().chain(&simulated).map(|one| one.forecast.loss.value).fold(f64::INFINITY, f64::min);
        let again = |one: &Scored| one.forecast.loss.value <= 1.25 * least;
        let simulated = threads::map(simulated, |one| match again(&one) {
            true => run(&one.candidate, FINAL, 2),
            false => Ok(one),
        });
        left_out.into_iter().for_each(|(kind, why)| self.leave_out(kind, why));
        simulated.into_iter().collect()
    }

    /// What the closed form of one coupling says of a proposal, against which others are simulated.
    fn reference(&self, best: &Scored, some: &Pairs) -> Result<Option<Reference>> {
        let (recipe, target) = (&best.candidate.recipe, &self.planner.target);
        let of_all = match &best.ln_squares {
            Some(known) => Some(known.clone()),
            None => closed(recipe, target, &self.pairs)?,
        };
        let (Some(of_some), Some(of_all)) = (closed(recipe, target, some)?, of_all) else { return Ok(None) };
        let seen = simulate(recipe, some, PILOT.1, self.seed_of(0))?;
        Ok(Some(Reference { reliable: seen.is_reliable(some, &of_some), of_some, of_all }))
    }

    /// As [`pilots`](Scene::pilots), for attention.
    fn attention_pilots(&mut self, open: Vec<Candidate>) -> Result<Vec<Scored>> {
        let Some(tokens) = &self.tokens else { return Ok(Vec::new()) };
        let loss = self.planner.loss;
        let some = self.pairs.some(PILOT.0);
        let run = |candidate: &Candidate| -> Result<Scored> {
            let seen = simulate(&candidate.recipe, &some, PILOT.1, self.seed_of(1))?;
            let forecast = forecast(&some, loss, &seen.ln_squares(&some), seen.basis());
            let forecast = forecast.with_loss(tokens.simulated(&candidate.recipe, loss, PILOT.1)?);
            let draws = 0.5 * seen.gram().1;
            Ok(Scored { candidate: candidate.clone(), ln_squares: None, draws, forecast })
        };
        let results = threads::map(&open, run);
        let mut simulated = Vec::new();
        for (candidate, result) in open.iter().zip(results) {
            match result {
                Ok(one) => simulated.push(one),
                Err(error) => self.leave_out((candidate.proposal, candidate.coupling), error.to_string()),
            }
        }
        Ok(simulated)
    }

    /// The best few by the error of the Gram matrix, with their excess risks.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    fn regressions(&self, mut scored: Vec<Scored>) -> Result<Vec<Scored>> {
        let Some(targets) = &self.planner.targets else { return Ok(scored) };
        let pilot = super::ridge::Pilot::new(&self.planner.data, &self.planner.target, targets)?;
        rank(&mut scored);
        scored.truncate(REGRESSIONS.0);
        let results = threads::map(scored, |one| {
            let loss = pilot.excess(&one.candidate.recipe, REGRESSIONS.1, self.seed_of(3))?;
            Ok(Scored { forecast: one.forecast.with_loss(loss), draws: 0.0, ..one })
        });
        results.into_iter().collect()
    }

    #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
    fn regressions(&self, _: Vec<Scored>) -> Result<Vec<Scored>> {
        Err(Error::Unsupported { what: "regression without the feature faer or ndarray-linalg" })
    }

    /// The first of the seeds of a stream of draws, none of which is that of another stream.
    fn seed_of(&self, stream: u64) -> u64 {
        self.planner.seed.wrapping_mul(1 << 20).wrapping_add(stream << 16)
    }

    fn leave_out(&mut self, (proposal, coupling): (usize, AnyCoupling), why: String) {
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
        let advice = match scored.first() {
            Some(best) => self.advice(best)?,
            None => None,
        };
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

    fn choice(&self, Scored { candidate, forecast, .. }: Scored, why: String) -> Choice {
        let proposal = &self.field.proposals[candidate.proposal];
        Choice {
            map: proposal.name.clone(),
            coupling: if proposal.coupled { display::coupling(&candidate.coupling) } else { "–".into() },
            frequencies: candidate.m,
            recipe: candidate.recipe,
            forecast,
            cost: candidate.cost,
            biased: candidate.biased,
            why,
        }
    }

    fn advice(&self, best: &Scored) -> Result<Option<Advice>> {
        let relative = best.forecast.relative;
        let hopeless = relative.beyond_one.value > advice::HOPELESS;
        let attention = self.tokens.is_some();
        let unknown = attention && best.forecast.loss.value.is_infinite();
        if !(hopeless || unknown) {
            return Ok(None);
        }
        let errors = (best.candidate.m, relative.beyond_one.value, relative.ninety.value);
        let sizes = (attention, best.candidate.cost.features, self.planner.data.dim());
        advice::advice(&self.planner.target, &self.pairs, errors, sizes).map(Some)
    }
}

/// The smallest loss first, with a standard error of its draws, which is the price of not knowing; of equal ones the smaller tail,
/// then the cheaper.
fn rank(scored: &mut [Scored]) {
    let key = |one: &Scored| {
        let Forecast { loss, relative, .. } = one.forecast;
        let key = [loss.value * (1.0 + one.draws), relative.ninety.value, one.candidate.cost.multiplications];
        // What is unknown comes last: a NaN may have any sign.
        key.map(|value| if value.is_nan() { f64::INFINITY } else { value })
    };
    scored.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        let orders = a.iter().zip(&b).map(|(a, b)| a.total_cmp(b));
        orders.fold(Ordering::Equal, Ordering::then)
    });
}

impl Forecast {
    /// The same with this relative uncertainty of errors as well, that of draws.
    fn widened(self, relative: f64) -> Self {
        let wide = |one: Expected| {
            let own = if relative.is_nan() { f64::INFINITY } else { one.value * relative };
            Expected { standard_error: one.standard_error.hypot(own), ..one }
        };
        let share = self.relative.beyond_one;
        let relative = super::RelativeErrors {
            mean: wide(self.relative.mean),
            median: wide(self.relative.median),
            ninety: wide(self.relative.ninety),
            ninety_nine: wide(self.relative.ninety_nine),
            beyond_one: share,
        };
        Forecast { loss: wide(self.loss), gram: wide(self.gram), relative }
    }
}
