//! [`TokenGradients`]: where the gradients with respect to tokens go, and what they are made of.

use ndarray::{ArrayViewMut2, Axis};

use super::super::input::{LogScale, Numbers, Reading, SplitRows, Undivided};
use super::residuals::ResidualRows;
use super::roles::Role;
use crate::Real;

/// Gradients with respect to tokens in the role of queries or of keys.
pub(super) struct TokenGradients<'a, T, R> {
    pub rows: GradientRows<'a, T>,
    pub role: R,
}

/// Tokens and the gradients with respect to them, row by row.
pub(super) struct GradientRows<'a, T> {
    pub tokens: Numbers<'a, T>,
    pub gradients: ArrayViewMut2<'a, T>,
    /// What parameters need of the tokens, if their gradients are asked for.
    pub residuals: Option<ResidualRows<'a, T>>,
}

/// The gradient of a row with respect to its features: e^(log − scale) (Σ over targets of coefficient · sum + weight · sum of
/// features).
///
/// ln of the normaliser that divides the row is a part of `scale`. Where a large scale has lost digits of it, `log` makes up for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GradientTerm {
    pub weight: f64,
    pub log: f64,
    pub scale: LogScale,
}

impl GradientTerm {
    /// ln of the factor of what was read with a scale.
    pub fn ln_factor(&self, scale: LogScale) -> f64 {
        scale.minus(self.scale) + self.log
    }
}

impl<T: Real, R: Role<T>> TokenGradients<'_, T, R> {
    /// Takes all that row `i` has read, and writes the coefficients of its gradient. `None`, with a gradient of zeros written, if the row
    /// has no part in any output.
    pub fn take<U: Real>(
        &mut self,
        normalised: bool,
        sum: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<GradientTerm> {
        let term = self.role.take(normalised, sum, i, coefficients);
        if term.is_none() {
            self.rows.gradients.row_mut(i).fill(T::zero());
        }
        term
    }
}

impl<T: Real> GradientRows<'_, T> {
    pub fn len(&self) -> usize {
        self.tokens.nrows()
    }

    /// Writes the gradient of row `i` from that with respect to its point, which is overwritten.
    pub fn write(&mut self, reading: &Reading, i: usize, of_point: &mut [f64]) {
        let token = self.tokens.rows(i..i + 1);
        if let Some(residuals) = &mut self.residuals {
            residuals.put_slopes(reading, token, i, of_point);
        }
        reading.pull_back(token, of_point);
        // Adding 0 turns −0 into 0: the sign of a 0 may come from a later token.
        let narrow = |gradient: &f64| T::narrow(*gradient) + T::zero();
        let mut out = self.gradients.row_mut(i);
        match out.as_slice_mut() {
            Some(out) => out.iter_mut().zip(of_point).for_each(|(out, gradient)| *out = narrow(gradient)),
            None => out.iter_mut().zip(of_point).for_each(|(out, gradient)| *out = narrow(gradient)),
        }
    }
}

impl<T: Real> SplitRows for GradientRows<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((tokens, others), (own, rest)) =
            (self.tokens.split_rows(at), self.gradients.split_at(Axis(0), at));
        let (residuals, later) = self.residuals.split_rows(at);
        (
            GradientRows { tokens, gradients: own, residuals },
            GradientRows { tokens: others, gradients: rest, residuals: later },
        )
    }
}

impl<T: Real, R: SplitRows> SplitRows for TokenGradients<'_, T, R> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((rows, others), (role, later)) = (self.rows.split_rows(at), self.role.split_rows(at));
        (TokenGradients { rows, role }, TokenGradients { rows: others, role: later })
    }
}
