//! [`Pulls`]: what gradients of queries and of keys are made of, and where they go.
//!
//! With the gradient gᵢ of a loss with respect to the output oᵢ = Σⱼ Kᵢⱼ vⱼ / Nᵢ, the gradient with respect to features φᵢ of a query
//! is Σⱼ ψⱼ (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ, that of ψⱼ of a key Σᵢ φᵢ/Nᵢ (gᵢ·vⱼ − gᵢ·oᵢ), and that of vⱼ is Σᵢ (φᵢ·ψⱼ)/Nᵢ gᵢ. So queries ask for sums
//! over keys, and then keys, in the same way, for sums over queries with the features φᵢ/Nᵢ and the values \[gᵢ, −gᵢ·oᵢ\]. Either
//! multiplies the sums Σ ψ \[v, 1\] with its features, which is its estimate, and with [coefficients](Term), which is the gradient with
//! respect to its features. Pairs with exact weights enter in the same way, with exp(logit) for φᵢ·ψⱼ.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::super::input::{Numbers, Reading, Undivided};
use super::records::Record;
use crate::Real;

/// Gradients with respect to tokens, row by row.
pub(in super::super) struct Pulls<'a, T> {
    /// The tokens.
    pub tokens: Numbers<'a, T>,
    pub gradients: ArrayViewMut2<'a, T>,
    pub role: Role<'a, T>,
    /// Where what parameters need goes, if their gradients are asked for.
    pub record: Option<Box<Record<'a, T>>>,
}

/// What the tokens are.
pub(in super::super) enum Role<'a, T> {
    Queries {
        /// Gradients with respect to the outputs.
        upstream: ArrayView2<'a, T>,
        /// Estimates of keys that the scan does not see, if there are any.
        others: Option<ArrayViewMut2<'a, f64>>,
        /// Rows of [`KEPT`] numbers: what keys need of a query.
        kept: ArrayViewMut2<'a, f64>,
    },
    /// Queries of which everything is kept already, and other keys give other parts of the gradient.
    Known { upstream: ArrayView2<'a, T>, kept: ArrayView2<'a, f64> },
    Keys {
        values: Numbers<'a, T>,
        /// Keys that do not count are false.
        mask: Option<ArrayView1<'a, bool>>,
        /// Gradients with respect to the values.
        of_values: ArrayViewMut2<'a, T>,
    },
}

/// What keys need of a query: −ln of its normaliser or, not normalised, 0; g·o; and 1 if it has an output, else 0.
pub(super) const KEPT: usize = 3;

/// The coefficients of a row's gradient beside those of the targets.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Term {
    /// That of the sum of features.
    pub weight: f64,
    /// ln of the factor of all.
    pub log: f64,
}

impl<'a, T: Real> Pulls<'a, T> {
    /// Sums of each feature.
    pub fn targets(&self) -> usize {
        match &self.role {
            Role::Queries { upstream, .. } | Role::Known { upstream, .. } => upstream.ncols(),
            Role::Keys { of_values, .. } => of_values.ncols() + 1,
        }
    }

    /// Those of some rows.
    pub fn rows(&mut self, rows: Range<usize>) -> Pulls<'_, T> {
        let along = |rows: &Range<usize>| rows.clone().into();
        let role = match &mut self.role {
            Role::Queries { upstream, others, kept } => Role::Queries {
                upstream: upstream.slice_axis(Axis(0), along(&rows)),
                others: others.as_mut().map(|others| others.slice_axis_mut(Axis(0), along(&rows))),
                kept: kept.slice_axis_mut(Axis(0), along(&rows)),
            },
            Role::Known { upstream, kept } => Role::Known {
                upstream: upstream.slice_axis(Axis(0), along(&rows)),
                kept: kept.slice_axis(Axis(0), along(&rows)),
            },
            Role::Keys { values, mask, of_values } => Role::Keys {
                values: values.rows(rows.clone()).reborrow(),
                mask: mask.as_ref().map(|mask| mask.slice_axis(Axis(0), along(&rows))),
                of_values: of_values.slice_axis_mut(Axis(0), along(&rows)),
            },
        };
        let gradients = self.gradients.slice_axis_mut(Axis(0), along(&rows));
        let record = self.record.as_mut().map(|record| Box::new(record.rows(rows.clone())));
        Pulls { tokens: self.tokens.rows(rows).reborrow(), gradients, role, record }
    }

    /// Those of the first rows and of the others.
    pub fn split(self, count: usize) -> (Self, Self) {
        let Pulls { tokens, gradients, role, record } = self;
        let (roles, rows) = (role.split(count), tokens.nrows());
        let (before, after) = record.map(|record| record.split(count)).unzip();
        let (own, rest) = gradients.split_at(Axis(0), count);
        (
            Pulls { tokens: tokens.rows(0..count), gradients: own, role: roles.0, record: before },
            Pulls { tokens: tokens.rows(count..rows), gradients: rest, role: roles.1, record: after },
        )
    }

    /// In runs, each of as many rows as `step` but for the last.
    pub fn runs(mut self, step: usize) -> Vec<Pulls<'a, T>> {
        let mut runs = Vec::new();
        while self.tokens.nrows() > 0 {
            let count = step.min(self.tokens.nrows());
            let (first, rest) = self.split(count);
            runs.push(first);
            self = rest;
        }
        runs
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
            Role::Queries { upstream, kept, .. } => {
                let upstream = upstream.row(i);
                coefficients.iter_mut().zip(upstream).for_each(|(own, g)| *own = *g);
                let term = of_query(normalised, &estimate, upstream);
                let numbers = term.map_or([0.0; KEPT], |term| [term.log, -term.weight, 1.0]);
                kept.row_mut(i).iter_mut().zip(numbers).for_each(|(kept, number)| *kept = number);
                term
            }
            Role::Known { upstream, kept } => {
                coefficients.iter_mut().zip(upstream.row(i)).for_each(|(own, g)| *own = *g);
                let kept = kept.row(i);
                (kept[2] != 0.0).then_some(Term { weight: -kept[1], log: kept[0] })
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
                seen.then_some(Term { weight: 0.0, log: 0.0 })
            }
        };
        if term.is_none() {
            self.gradients.row_mut(i).fill(T::zero());
        }
        term
    }

    /// Writes the gradient of row `i` from that with respect to its point, which is overwritten.
    pub fn write(&mut self, reading: &Reading, i: usize, of_point: &mut [f64]) {
        let token = self.tokens.rows(i..i + 1);
        if let Some(record) = &mut self.record {
            record.put_along(reading, token, i, of_point);
        }
        reading.pull_back(token, of_point);
        // Adding 0 turns −0 into 0: the sign of a 0 may come from a later token.
        let rows = self.gradients.row_mut(i).into_iter().zip(of_point);
        rows.for_each(|(out, gradient)| *out = T::narrow(*gradient) + T::zero());
    }
}

impl<'a, T: Real> Role<'a, T> {
    fn split(self, count: usize) -> (Self, Self) {
        match self {
            Role::Queries { upstream, others, kept } => {
                let (first, second) = upstream.split_at(Axis(0), count);
                let (before, after) = others.map(|others| others.split_at(Axis(0), count)).unzip();
                let (own, rest) = kept.split_at(Axis(0), count);
                (
                    Role::Queries { upstream: first, others: before, kept: own },
                    Role::Queries { upstream: second, others: after, kept: rest },
                )
            }
            Role::Known { upstream, kept } => {
                let (first, second) = upstream.split_at(Axis(0), count);
                let (own, rest) = kept.split_at(Axis(0), count);
                (Role::Known { upstream: first, kept: own }, Role::Known { upstream: second, kept: rest })
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
    // As outputs do, gradients show a normaliser that is NaN, whatever its scale.
    let none = scale == f64::NEG_INFINITY || (normalised && normaliser <= 0.0);
    if !seen || (none && !normaliser.is_nan()) {
        return None;
    }
    if !normalised {
        return Some(Term { weight: 0.0, log: 0.0 });
    }
    let products = upstream.iter().zip(&**sums).map(|(g, sum)| g.widen() * (sum.widen() / normaliser));
    Some(Term { weight: -products.sum::<f64>(), log: -normaliser.ln() - scale })
}
