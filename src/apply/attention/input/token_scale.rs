//! [`TokenScale`]: the scaling of queries and keys to points whose products are the logits of attention.

use crate::error::{Result, checked_positive};

/// The map x ↦ factor · x, or factor · x/‖x‖ if `unit`, of queries and of keys: each side has the root of the logits' scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TokenScale {
    pub factor: f64,
    pub unit: bool,
}

impl TokenScale {
    /// The scaling for the logits q·k/√d.
    pub fn of_dim(d: usize) -> Self {
        TokenScale { factor: (d as f64).powf(-0.25), unit: false }
    }

    /// The scaling for the logits q·k·`scale`.
    pub fn of_scale(scale: f64) -> Result<Self> {
        Ok(TokenScale { factor: checked_positive("the scale of the logits", scale)?.sqrt(), unit: false })
    }

    /// The scaling for the logits q·k/(‖q‖ ‖k‖ `temperature`).
    pub fn of_cosine(temperature: f64) -> Result<Self> {
        let factor = checked_positive("the temperature of the cosines", temperature)?.sqrt().recip();
        Ok(TokenScale { factor, unit: true })
    }
}
