//! [`Pulls`]: what gradients of queries and of keys are made of, and where they go.
//!
//! With the gradient gᵢ of a loss with respect to the output oᵢ = Σⱼ Kᵢⱼ vⱼ / Nᵢ, the gradient with respect to features φᵢ of a query
//! is Σⱼ ψⱼ (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ, that of ψⱼ of a key Σᵢ φᵢ/Nᵢ (gᵢ·vⱼ − gᵢ·oᵢ), and that of vⱼ is Σᵢ (φᵢ·ψⱼ)/Nᵢ gᵢ. So queries ask for sums
//! over keys, and then keys, in the same way, for sums over queries with the features φᵢ/Nᵢ and the values \[gᵢ, −gᵢ·oᵢ\]. Either
//! multiplies the sums Σ ψ \[v, 1\] with its features, which is its estimate, and with [coefficients](Term), which is the gradient with
//! respect to its features.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::element::Numbers;
use super::output::Undivided;
use super::reading::Reading;
use crate::Real;

/// Gradients with respect to tokens, row by row.
pub(super) struct Pulls<'a, T> {
    /// The tokens.
    pub tokens: Numbers<'a, T>,
    pub gradients: ArrayViewMut2<'a, T>,
    pub role: Role<'a, T>,
}

/// What the tokens are.
pub(super) enum Role<'a, T> {
    Queries {
        /// Gradients with respect to the outputs.
        upstream: ArrayView2<'a, T>,
        /// Rows of [`KEPT`] numbers: what keys need of a query.
        kept: ArrayViewMut2<'a, f64>,
    },
    Keys {
        values: Numbers<'a, T>,
        /// Keys that do not count are false.
        mask: Option<ArrayView1<'a, bool>>,
        /// Gradients with respect to the values.
        of_values: ArrayViewMut2<'a, T>,
    },
}

/// What keys need of a query: −ln of its normaliser, g·o, and 1 if it has an output, else 0.
pub(super) const KEPT: usize = 3;

/// The coefficients of a row's gradient beside those of the targets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// That of the sum of features.
    pub weight: f64,
    /// ln of the factor of all, for sums relative to the scale of the row's estimate.
    pub log: f64,
    /// ln of that scale.
    pub scale: f64,
}

impl<'a, T: Real> Pulls<'a, T> {
    /// Sums of each feature.
    pub fn targets(&self) -> usize {
        match &self.role {
            Role::Queries { upstream, .. } => upstream.ncols(),
            Role::Keys { of_values, .. } => of_values.ncols() + 1,
        }
    }

    /// Those of some rows.
    pub fn rows(&mut self, rows: Range<usize>) -> Pulls<'_, T> {
        let along = |rows: &Range<usize>| rows.clone().into();
        let role = match &mut self.role {
            Role::Queries { upstream, kept } => Role::Queries {
                upstream: upstream.slice_axis(Axis(0), along(&rows)),
                kept: kept.slice_axis_mut(Axis(0), along(&rows)),
            },
            Role::Keys { values, mask, of_values } => Role::Keys {
                values: values.rows(rows.clone()).reborrow(),
                mask: mask.as_ref().map(|mask| mask.slice_axis(Axis(0), along(&rows))),
                of_values: of_values.slice_axis_mut(Axis(0), along(&rows)),
            },
        };
        let gradients = self.gradients.slice_axis_mut(Axis(0), along(&rows));
        Pulls { tokens: self.tokens.rows(rows).reborrow(), gradients, role }
    }

    /// Those of the first rows and of the others.
    pub fn split(self, count: usize) -> (Self, Self) {
        let Pulls { tokens, gradients, role } = self;
        let (roles, rows) = (role.split(count), tokens.nrows());
        let (own, rest) = gradients.split_at(Axis(0), count);
        (
            Pulls { tokens: tokens.rows(0..count), gradients: own, role: roles.0 },
            Pulls { tokens: tokens.rows(count..rows), gradients: rest, role: roles.1 },
        )
    }

    /// Takes in the estimate of row `i`, and writes the coefficients of its gradient. `None`, with a gradient of zeros written, if
    /// the row has no part in any output.
    pub fn take_in<U: Real>(
        &mut self,
        normalised: bool,
        estimate: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<Term> {
        let term = match &mut self.role {
            Role::Queries { upstream, kept } => {
                let upstream = upstream.row(i);
                coefficients.iter_mut().zip(upstream).for_each(|(own, g)| *own = *g);
                let term = of_query(normalised, &estimate, upstream);
                let numbers = term.map_or([0.0; KEPT], |term| {
                    let shift = if normalised { term.log - term.scale } else { 0.0 };
                    [shift, -term.weight, 1.0]
                });
                kept.row_mut(i).iter_mut().zip(numbers).for_each(|(kept, number)| *kept = number);
                term
            }
            Role::Keys { values, mask, of_values } => {
                let (own, one) = coefficients.split_at_mut(of_values.ncols());
                let counts = mask.is_none_or(|mask| mask[i]);
                let Undivided { scale, normaliser, sums, seen } = estimate;
                let seen = seen && counts;
                let sums = &mut sums[..own.len()];
                Undivided { scale, normaliser, sums, seen }.write(false, of_values.row_mut(i).iter_mut());
                let mut buffer = Vec::with_capacity(own.len());
                values.rows(i..i + 1).read(T::one(), &mut buffer);
                own.copy_from_slice(&buffer);
                one.fill(T::one());
                (seen && scale != f64::NEG_INFINITY).then_some(Term { weight: 0.0, log: scale, scale })
            }
        };
        if term.is_none() {
            self.gradients.row_mut(i).fill(T::zero());
        }
        term
    }

    /// Writes the gradient of row `i` from that with respect to its point, which is overwritten.
    pub fn write(&mut self, reading: &Reading, i: usize, of_point: &mut [f64]) {
        reading.pull_back(self.tokens.rows(i..i + 1), of_point);
        // Adding 0 turns −0 into 0: the sign of a 0 may come from a later token.
        let rows = self.gradients.row_mut(i).into_iter().zip(of_point);
        rows.for_each(|(out, gradient)| *out = T::narrow(*gradient) + T::zero());
    }
}

impl<'a, T: Real> Role<'a, T> {
    fn split(self, count: usize) -> (Self, Self) {
        match self {
            Role::Queries { upstream, kept } => {
                let (first, second) = upstream.split_at(Axis(0), count);
                let (own, rest) = kept.split_at(Axis(0), count);
                (Role::Queries { upstream: first, kept: own }, Role::Queries { upstream: second, kept: rest })
            }
            Role::Keys { values, mask, of_values } => {
                let (first, second) = mask.map(|mask| mask.split_at(Axis(0), count)).unzip();
                let (own, rest) = of_values.split_at(Axis(0), count);
                let later = values.rows(count..values.nrows());
                (
                    Role::Keys { values: values.rows(0..count), mask: first, of_values: own },
                    Role::Keys { values: later, mask: second, of_values: rest },
                )
            }
        }
    }
}

/// The term of a query; `None` if its output is 0 whatever the values.
fn of_query<T: Real, U: Real>(
    normalised: bool,
    estimate: &Undivided<'_, U>,
    upstream: ArrayView1<'_, T>,
) -> Option<Term> {
    let Undivided { scale, normaliser, ref sums, seen } = *estimate;
    if !seen || scale == f64::NEG_INFINITY || (normalised && normaliser <= 0.0) {
        return None;
    }
    if !normalised {
        return Some(Term { weight: 0.0, log: scale, scale });
    }
    let products = upstream.iter().zip(&**sums).map(|(g, sum)| g.widen() * (sum.widen() / normaliser));
    Some(Term { weight: -products.sum::<f64>(), log: -normaliser.ln(), scale })
}
