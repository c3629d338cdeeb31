//! [`Reading`]: how queries and keys become the points of a map, whose products are logits; [`TokenScale`]: their scaling.

use super::element::Numbers;
use crate::Real;
use crate::error::{Result, checked_positive};
use crate::numeric::with_length;

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

/// The factors of two sides: these, or the root of their product for both, if the second is not between 1e-30 and 1e30. Points would
/// leave the range of `f32`.
pub(in super::super) fn either([first, second]: [f64; 2], root: f64) -> [f64; 2] {
    if (1e-30..=1e30).contains(&second) { [first, second] } else { [root; 2] }
}

/// How queries and keys become the points of a map: x ↦ factor · x, or factor · x/‖x‖.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct Reading {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub factor: f64,
    pub unit: bool,
}

impl Reading {
    /// A bound for all factors: scales of logits are at most 1.8e308, temperatures at least 4.9e-324.
    #[cfg(feature = "serde")]
    pub const MAX_FACTOR: f64 = 1e162;

    /// The reading of this scaling.
    pub fn new(scale: TokenScale) -> Self {
        Reading { factor: scale.factor, unit: scale.unit }
    }

    /// How queries and keys are read so that their products are logits, for a lengthscale 1/`inverse`. Queries are read as they are for
    /// features, unless keys then have a factor out of [range](either).
    pub fn of_pairs(&self, inverse: f64) -> [Self; 2] {
        let factors = either([self.factor, self.factor * inverse * inverse], self.factor * inverse);
        factors.map(|factor| Reading { factor, ..*self })
    }

    /// The points of some tokens, in row-major order.
    pub fn points<T: Real>(&self, x: Numbers<'_, T>, points: &mut Vec<T>) {
        points.clear();
        if !self.unit {
            return x.read(T::narrow(self.factor), points);
        }
        x.read(T::one(), points);
        let mut row = Vec::with_capacity(x.ncols());
        for point in points.chunks_exact_mut(x.ncols().max(1)) {
            row.clear();
            row.extend(point.iter().map(|v| v.widen()));
            let unit = with_length(row.iter().copied(), self.factor);
            point.iter_mut().zip(unit).for_each(|(v, unit)| *v = T::narrow(unit));
        }
    }

    /// From the gradient with respect to the point of a token to that with respect to the token, in place. The gradient of a
    /// zero vector that is read as a unit vector, which has none, is 0.
    pub fn pull_back<T: Real>(&self, x: Numbers<'_, T>, gradient: &mut [f64]) {
        if !self.unit {
            return gradient.iter_mut().for_each(|v| *v *= self.factor);
        }
        let mut row = Vec::with_capacity(x.ncols());
        x.read(T::one(), &mut row);
        let wide = row.iter().map(|v| v.widen());
        let unit: Vec<f64> = with_length(wide.clone(), 1.0).collect();
        let norm: f64 = wide.zip(&unit).map(|(v, unit)| v * unit).sum();
        if norm == 0.0 {
            return gradient.fill(0.0);
        }
        let along: f64 = gradient.iter().zip(&unit).map(|(v, unit)| v * unit).sum();
        let rows = gradient.iter_mut().zip(&unit);
        rows.for_each(|(v, unit)| *v = self.factor / norm * (*v - along * unit));
    }
}
