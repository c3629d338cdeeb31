//! Errors at pairs of points, by closed forms.

use super::forecast::{Basis, Expected, Forecast, RelativeErrors};
use super::options::Loss;
use super::pairs::{Pairs, or_infinite};
use crate::error::Result;
use crate::map::{Recipe, Target};
use crate::numeric::special::ln_add_exp;
use crate::progress;

/// ln E(K̂ − K)² of each pair; `None` where there is no closed form.
pub(super) fn closed(recipe: &Recipe, target: &Target, pairs: &Pairs) -> Result<Option<Vec<f64>>> {
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
            false => {
                let estimated = own.log_value(&x, &y)?.ln_abs;
                ln_add_exp(variance, 2.0 * ln_difference(estimated, *ln_kernel))
            }
        });
    }
    Ok(Some(out))
}

/// ln |eᵃ − eᵇ|.
fn ln_difference(a: f64, b: f64) -> f64 {
    let (high, low) = (a.max(b), a.min(b));
    if high == low { f64::NEG_INFINITY } else { high + (-(low - high).exp_m1()).ln() }
}

/// The forecast from ln E(K̂ − K)² of each pair; the loss of a recipe whose loss is not one of pairs is that of the Gram matrix.
pub(super) fn forecast(pairs: &Pairs, loss: Loss, ln_squares: &[f64], basis: Basis) -> Forecast {
    let (gram, relative) = (pairs.gram(ln_squares, basis), pairs.relative(ln_squares, basis));
    Forecast { loss: gram, gram, relative }.with_loss_of_pairs(loss)
}

impl Forecast {
    /// The same with the loss that follows from it; that of the Gram matrix for losses that do not.
    pub(super) fn with_loss_of_pairs(self, loss: Loss) -> Self {
        let loss = match loss {
            Loss::RelativeMean => self.relative.mean,
            Loss::RelativeMedian => self.relative.median,
            Loss::RelativeNinety => self.relative.ninety,
            Loss::RelativeNinetyNine => self.relative.ninety_nine,
            _ => self.gram,
        };
        Forecast { loss, ..self }
    }

    /// The same with this relative uncertainty of errors as well, that of draws.
    pub(super) fn widened(self, relative: f64) -> Self {
        let wide = |one: Expected| {
            let own = if relative.is_nan() { f64::INFINITY } else { one.value * relative };
            Expected { standard_error: one.standard_error.hypot(own), ..one }
        };
        let share = self.relative.beyond_one;
        let relative = RelativeErrors {
            mean: wide(self.relative.mean),
            median: wide(self.relative.median),
            ninety: wide(self.relative.ninety),
            ninety_nine: wide(self.relative.ninety_nine),
            beyond_one: share,
        };
        Forecast { loss: wide(self.loss), gram: wide(self.gram), relative }
    }

    /// The same with another loss.
    pub(super) fn with_loss(self, loss: Expected) -> Self {
        Forecast { loss, ..self }
    }
}

impl Loss {
    /// Whether it follows from errors at pairs of points alone.
    pub(super) fn is_of_pairs(self) -> bool {
        !self.is_of_attention() && self != Loss::Ridge
    }

    pub(super) fn is_of_attention(self) -> bool {
        matches!(self, Loss::AttentionWeights | Loss::AttentionOutput)
    }
}
