//! What to do where nothing within a budget works.

use super::problem::Problem;
use super::ranking::Scored;
use crate::apply::attention::{AttentionCosts, ExactPairs};
use crate::error::Result;
use crate::frequency::{Draw, Independent};
use crate::kernel::Kernel;
use crate::map::{AnyKernel, Gerf, PlainRecipe, Recipe};
use crate::planner::forecasts::{Pairs, TaskLoss, closed};
use crate::planner::plan::{Advice, HOPELESS, SMALL, USELESS};
use crate::planner::question::{Goal, Loss};
use crate::theory::Basis;
use crate::{Positive, Trigonometric};

/// Halvings of the interval in which a factor is sought.
const STEPS: usize = 20;
/// Points up to which the Gram matrix of the exact kernel is affordable: 800 MB.
const EXACT: usize = 10_000;

impl Problem<'_> {
    /// What to do where the best recipe does not work.
    pub fn advice(&self, scored: &[Scored]) -> Result<Option<Advice>> {
        let Some(best) = scored.first() else { return Ok(None) };
        let (beyond, attention) =
            (best.forecast.relative.beyond_one.value, self.planner.loss.is_of_attention());
        if self.task_loss.as_ref().is_some_and(TaskLoss::is_hopeless) {
            return Ok(Some(Advice::of_hopeless_kernel(beyond)));
        }
        let (loss, ridge) = (best.forecast.loss.value, self.planner.loss == Loss::Ridge);
        // Where normalisers vary much, there is a rough number at most; where outputs are 0 there is none.
        let unknown = attention && (!loss.is_finite() || loss > 0.0 && best.draws >= loss);
        let useless = !ridge && loss >= USELESS;
        let reached = matches!(self.planner.goal, Goal::MaxError { .. });
        if reached || beyond <= HOPELESS && !unknown && !useless {
            return Ok(None);
        }
        let works = loss < SMALL && !unknown;
        // More frequencies help those without a bias.
        let unbiased = scored.iter().filter(|one| !one.candidate.biased && one.ln_squares.is_some());
        let error = unbiased
            .map(|one| one.forecast.relative.ninety.value.max(one.forecast.gram.value))
            .fold(f64::INFINITY, f64::min);
        let errors = (best.candidate.m, beyond, error);
        let sizes = (attention, best.candidate.cost.features, self.planner.data.dim());
        let advice = advice(&self.planner.kernel, self.kernel.as_ref(), &self.pairs, works, errors, sizes)?;
        Ok(Some(Advice { unknown, ..advice }))
    }
}

impl Advice {
    /// The advice where the exact kernel predicts targets no better than their mean.
    pub(crate) fn of_hopeless_kernel(beyond_one: f64) -> Self {
        let instead = "The exact kernel predicts the targets no better than their mean on held-out points, and losses are relative to the \
                       mean. Use another kernel or lengthscale (Planner::with_gaussian_for_targets), or more points: there may also be \
                       nothing to predict.";
        Advice {
            works: false,
            exact_fails: true,
            unknown: false,
            beyond_one,
            more_frequencies: f64::INFINITY,
            shrink: f64::NAN,
            instead: instead.into(),
        }
    }
}

/// The advice for a plan whose best recipe, with m frequencies and these errors, leaves too many pairs beyond 1.
pub(crate) fn advice(
    target: &AnyKernel,
    kernel: &dyn Kernel<f64>,
    pairs: &Pairs,
    works: bool,
    (m, beyond, error): (usize, f64, f64),
    (attention, features, dim): (bool, usize, usize),
) -> Result<Advice> {
    let instead = match attention {
        true => {
            let crossover = AttentionCosts::new(dim, features, dim).crossover(false, ExactPairs::default());
            format!(
                "Use features shaped by attention (AttentionShaping), truncated ones with exact heavy keys, or exact attention: it is also \
                 faster up to some {crossover} tokens."
            )
        }
        false => format!(
            "Use a longer lengthscale, or the exact kernel: its Gram matrix is affordable up to some {EXACT} points, and \
             beyond them use Nyström features (map::Nystroem)."
        ),
    };
    Ok(Advice {
        works,
        exact_fails: false,
        unknown: false,
        beyond_one: beyond,
        more_frequencies: (error * error).max(1.0),
        shrink: if works { 1.0 } else { shrink(target, kernel, pairs, m)? },
        instead,
    })
}

/// The largest factor of points for which a tenth of the pairs have errors above 1.
fn shrink(target: &AnyKernel, kernel: &dyn Kernel<f64>, pairs: &Pairs, m: usize) -> Result<f64> {
    if !matches!(target, AnyKernel::Softmax(_) | AnyKernel::Gaussian(_)) {
        return Ok(f64::NAN);
    }
    let works = |factor: f64| -> Result<bool> {
        let scaled = pairs.times(factor, kernel)?;
        let d = scaled.dim();
        let lengthscale = target.lengthscale();
        let sums = scaled.iter().map(|(x, y)| {
            lengthscale.divide(&x).zip(lengthscale.divide(&y)).map(|(x, y)| (x + y).powi(2)).sum::<f64>()
        });
        let mean = sums.sum::<f64>() / scaled.len() as f64;
        let draw = || Draw::new(d, m, Independent);
        let mut recipes = vec![
            Recipe::Plain(PlainRecipe::new(Positive, draw(), target.clone())),
            Recipe::Plain(PlainRecipe::new(Trigonometric, draw(), target.clone())),
        ];
        if let Ok(oprf) = Gerf::optimal(d, mean) {
            recipes.push(Recipe::Plain(PlainRecipe::new(oprf, draw(), target.clone())));
        }
        for recipe in &recipes {
            if let Some(ln_squares) = closed(recipe, target, &scaled)? {
                let relative = scaled.relative(&ln_squares, Basis::ClosedForm);
                let gram = scaled.gram(&ln_squares, Basis::ClosedForm);
                if relative.beyond_one.value <= HOPELESS && gram.value < USELESS {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    };
    // In powers of e, since points may be of any size.
    let (mut low, mut high) = (-80.0f64, 0.0f64);
    if !works(low.exp())? {
        return Ok(0.0);
    }
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if works(middle.exp())? { low = middle } else { high = middle }
    }
    Ok(low.exp())
}
