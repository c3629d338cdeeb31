//! [`TokenScale`]: how queries and keys become points whose products are the logits of attention.

use crate::error::{Result, checked_positive};

/// x ↦ factor · x, or factor · x/‖x‖, for queries and keys alike: each side bears the root of the logits' scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TokenScale {
    pub factor: f64,
    pub unit: bool,
}

impl TokenScale {
    /// For the logits q·k/√d.
    pub fn of_dim(d: usize) -> Self {
        TokenScale { factor: (d as f64).powf(-0.25), unit: false }
    }

    /// For the logits q·k·`scale`.
    pub fn of_scale(scale: f64) -> Result<Self> {
        Ok(TokenScale { factor: checked_positive("the scale of the logits", scale)?.sqrt(), unit: false })
    }

    /// For the logits q·k/(‖q‖ ‖k‖ `temperature`).
    pub fn of_cosine(temperature: f64) -> Result<Self> {
        let factor = checked_positive("the temperature of the cosines", temperature)?.sqrt().recip();
        Ok(TokenScale { factor, unit: true })
    }
}
