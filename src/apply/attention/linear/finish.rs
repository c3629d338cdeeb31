//! [`Finish`]: from the estimate of a query to its output.

use super::super::features::Setup;
use super::super::gradient::Cotangents;
use super::super::input::Undivided;
use super::super::pairs::{ExactRun, Ring};
use super::scan::{Outlet, keep, kept};
use super::sight::Asked;
use crate::Real;

/// What a thread needs to make outputs of estimates: the terms of pairs with exact weights, and room for sums.
#[derive(Debug, Default)]
pub(super) struct Finish<T> {
    exact: ExactRun<T>,
    ring: Ring<T>,
    /// Gradients, if those are asked for.
    pub cotangents: Cotangents<T>,
    sums: [Vec<f64>; 2],
}

impl<T: Real> Finish<T> {
    /// Computes the exact terms of the queries asked, which have these points.
    pub fn begin(&mut self, setup: Setup<'_, T>, points: &[T], asked: &Asked<'_, T>) {
        let (count, targets) = (asked.queries.len(), asked.out.targets());
        let Finish { exact, ring, .. } = self;
        if setup.has_pairs() {
            exact.begin(count, targets);
            setup.visit_pairs(ring, asked.place, count, &mut |block, sees| exact.add(points, block, sees));
        }
        if let Outlet::Pulls(_) = &asked.out {
            self.cotangents.begin(count, targets);
        }
    }

    /// Forgets the keys of neighbours, since the next are others.
    pub fn forget(&mut self) {
        self.ring.forget();
    }

    /// Adds to the estimate of the `i`-th query asked what else it sees, if there is anything: its exact terms, and other estimates;
    /// and writes its output. Reports the query if the normaliser is not positive although a key was seen.
    #[inline]
    pub fn write<U: Real>(
        &mut self,
        setup: Setup<'_, T>,
        estimate: Undivided<'_, U>,
        i: usize,
        asked: &mut Asked<'_, T>,
    ) {
        let (of_features, Finish { exact, cotangents, sums: [first, second], .. }) = (estimate.scale, self);
        if let Outlet::Estimates(rows) = &mut asked.out {
            return keep(&estimate, rows.row_mut(i));
        }
        if !setup.has_pairs() {
            return conclude(setup, (estimate, of_features), i, asked, cotangents);
        }
        let sum = estimate.plus(exact.part(i), first);
        let mut others = asked.out.others(i);
        let sum = match &mut others {
            Some(others) => sum.plus(kept(others), second),
            None => sum,
        };
        conclude(setup, (sum, of_features), i, asked, cotangents);
    }
}

/// Writes the output of the `i`-th query asked, or the coefficients of its gradient, from all that it sees. The estimate by features has
/// the scale `of_features`.
#[inline]
fn conclude<T: Real, U: Real>(
    Setup { normalised, .. }: Setup<'_, T>,
    (sum, of_features): (Undivided<'_, U>, f64),
    i: usize,
    asked: &mut Asked<'_, T>,
    cotangents: &mut Cotangents<T>,
) {
    match &mut asked.out {
        Outlet::Outputs(out, _) => {
            if !sum.write(normalised, out.row_mut(i).iter_mut()) {
                (asked.report)(i);
            }
        }
        Outlet::Estimates(_) => {}
        Outlet::Pulls(pulls) => cotangents.take_in(normalised, (sum, of_features), i, pulls),
    }
}
