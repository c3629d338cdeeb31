//! Errors at pairs of points, by closed forms.

use super::expected::{Forecast, or_infinite};
use super::pairs::Pairs;
use crate::SignedLog;
use crate::error::Result;
use crate::map::{AnyKernel, Recipe};
use crate::numeric::special::ln_add_exp;
use crate::planner::question::Loss;
use crate::progress;
use crate::theory::Basis;

/// ln E(K̂ − K)² of each pair; `None` where there is no closed form.
pub(crate) fn closed(recipe: &Recipe, target: &AnyKernel, pairs: &Pairs) -> Result<Option<Vec<f64>>> {
    let laws = recipe.laws()?;
    let same = match (laws.kernel().and_then(|kernel| kernel.identity()), target.kernel::<f64>()) {
        (Some(own), Some(exact)) => exact.identity() == Some(own),
        _ => false,
    };
    let Some(own) = laws.kernel() else { return Ok(None) };
    let mut out = Vec::with_capacity(pairs.len());
    for ((x, y), ln_kernel) in pairs.iter().zip(&pairs.ln_kernel) {
        progress::check()?;
        let Some(variance) = laws.ln_variance(&x, &y) else { return Ok(None) };
        let variance = or_infinite(variance);
        out.push(match same {
            true => variance,
            false => ln_add_exp(variance, ln_square(own.log_value(&x, &y)?, *ln_kernel)),
        });
    }
    Ok(Some(out))
}

/// ln (K̂ − K)² of an estimate and a positive kernel value; ∞ if the estimate is NaN.
pub(super) fn ln_square(estimate: SignedLog, ln_kernel: f64) -> f64 {
    let (high, low) = (estimate.ln_abs.max(ln_kernel), estimate.ln_abs.min(ln_kernel));
    let ln_difference = match estimate.sign {
        sign if sign.is_nan() => f64::NAN,
        sign if sign < 0.0 => ln_add_exp(high, low),
        _ if high == low => f64::NEG_INFINITY,
        _ => high + (-(low - high).exp_m1()).ln(),
    };
    or_infinite(2.0 * ln_difference)
}

/// The forecast from ln E(K̂ − K)² of each pair; the loss of a recipe whose loss is not one of pairs is that of the Gram matrix.
pub(crate) fn forecast(pairs: &Pairs, loss: Loss, ln_squares: &[f64], basis: Basis) -> Forecast {
    let (gram, relative) = (pairs.gram(ln_squares, basis), pairs.relative(ln_squares, basis));
    Forecast { loss: gram, gram, relative }.with_loss_of_pairs(loss)
}
