//! Which questions have no answer.

use super::goal::{Goal, Loss};
use super::planner::Planner;
use crate::error::{Error, Result, checked_positive};
use crate::kernel::{Kernel, Radius};
use crate::map::Recipe;
use crate::planner::costs::Measure;

/// Refuses recipes of the caller's that a plan cannot rank.
pub(crate) fn check_stated(planner: &Planner) -> Result<()> {
    for (i, stated) in planner.stated.iter().enumerate() {
        stated.check(planner.data.dim())?;
        check_attention(planner, &stated.recipe)?;
        if planner.stated[..i].iter().any(|other| other.name == stated.name) {
            return Err(Error::Unsupported { what: "a plan with two recipes of one name" });
        }
        if planner.goal.measure() == Measure::Nanoseconds && stated.is_sketch() {
            return Err(Error::Unsupported { what: "the time of a sketch: no calibration has it" });
        }
    }
    Ok(())
}

/// Refuses errors of attention by a recipe for another kernel: they would be those of other weights.
pub(crate) fn check_attention(planner: &Planner, recipe: &Recipe) -> Result<()> {
    if !planner.loss.is_of_attention() {
        return Ok(());
    }
    let own = recipe.kernel().and_then(|kernel| kernel.exponential());
    let exact = planner.kernel.kernel::<f64>().and_then(|kernel| kernel.exponential());
    let is_same = match (own, exact) {
        (Some(own), Some(exact)) => own == exact,
        _ => recipe.leaves().iter().all(|plain| plain.kernel.lengthscale() == planner.kernel.lengthscale()),
    };
    if is_same {
        Ok(())
    } else {
        Err(Error::Unsupported { what: "errors of attention by a recipe for another kernel" })
    }
}

/// Refuses questions that have no answer, and gives the exact kernel.
pub(crate) fn check(planner: &Planner) -> Result<Box<dyn Kernel<f64>>> {
    planner.kernel.check(planner.data.dim())?;
    if let Some(calibration) = &planner.calibration {
        calibration.check()?;
    }
    if let Goal::Budget { most, .. } = planner.goal {
        checked_positive("the budget", most)?;
    }
    let attention = planner.loss.is_of_attention();
    if attention && planner.kernel.lengthscale().isotropic().is_none() {
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
    if let Goal::MaxError { probability, .. } = planner.goal {
        if !planner.loss.is_of_pairs() {
            return Err(Error::Unsupported {
                what: "a maximal error for a loss that is not a closed form at pairs of points",
            });
        }
        if probability.is_some() && planner.loss != Loss::Gram {
            return Err(Error::Unsupported {
                what: "a probability for another error than that of the Gram matrix",
            });
        }
    }
    let kernel =
        planner.kernel.kernel().ok_or(Error::Unsupported { what: "a plan for a kernel without a name" })?;
    if let Some(Radius::Mixture(_)) = planner.kernel.radius() {
        let what = "a plan for a spectral mixture, whose frequencies are independent with any map";
        return Err(Error::Unsupported { what });
    }
    if planner.kernel.radius().is_none() {
        return Err(Error::Unsupported { what: "a plan for a kernel of functions of projections" });
    }
    Ok(kernel)
}
