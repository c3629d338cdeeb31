//! [`Finish`]: from the estimate of a query by features to all that it reads.

use ndarray::ArrayViewMut2;

use super::super::features::Setup;
use super::super::input::Undivided;
use super::super::pairs::{ExactRun, Ring};
use super::request::Request;
use super::sink::kept;
use crate::Real;

/// Adds to estimates by features what else a query reads: its pairs with exact weights, and estimates from other keys.
#[derive(Debug, Default)]
pub(super) struct Finish<T> {
    exact: ExactRun<T>,
    ring: Ring<T>,
    points: Vec<T>,
    sums: [Vec<f64>; 2],
}

impl<T: Real> Finish<T> {
    /// Sums up the exact pairs of the queries of a request, which have these points for features.
    pub fn begin(&mut self, setup: Setup<'_, T>, points: &[T], request: &mut Request<'_, T>) {
        let (count, targets) = (request.queries.len(), request.sink.targets());
        let Finish { exact, ring, points: room, .. } = self;
        if setup.has_pairs() {
            let points = setup.points_of_pairs(points, room);
            exact.begin(count, targets);
            setup.visit_pairs(ring, request.position, count, &mut |block, sees| {
                exact.add(points, block, sees)
            });
        }
        request.sink.begin(count);
    }

    /// Forgets the keys of neighbours, since the next are others.
    pub fn forget(&mut self) {
        self.ring.forget();
    }

    /// Gives the sink of a request all that its `i`-th query reads. Reports the query if the normaliser is not positive although a key
    /// was seen.
    #[inline]
    pub fn write(
        &mut self,
        setup: Setup<'_, T>,
        estimate: Undivided<'_, T>,
        i: usize,
        request: &mut Request<'_, T>,
    ) {
        let of_features = estimate.scale;
        let positive = if setup.has_pairs() {
            let sum = self.with_pairs(estimate, i, &mut request.others);
            request.sink.take_wide(i, sum, of_features)
        } else {
            request.sink.take(i, estimate, of_features)
        };
        if !positive {
            (request.report)(i);
        }
    }

    /// As [`write`](Finish::write), from an estimate in `f64`.
    pub fn write_wide(
        &mut self,
        setup: Setup<'_, T>,
        estimate: Undivided<'_, f64>,
        i: usize,
        request: &mut Request<'_, T>,
    ) {
        let of_features = estimate.scale;
        let sum = match setup.has_pairs() {
            true => self.with_pairs(estimate, i, &mut request.others),
            false => estimate,
        };
        if !request.sink.take_wide(i, sum, of_features) {
            (request.report)(i);
        }
    }

    /// An estimate with the exact pairs of the `i`-th query and its estimate from other keys, if there is one.
    fn with_pairs<'a, U: Real>(
        &'a mut self,
        estimate: Undivided<'_, U>,
        i: usize,
        others: &mut Option<ArrayViewMut2<'_, f64>>,
    ) -> Undivided<'a, f64> {
        let Finish { exact, sums: [first, second], .. } = self;
        let sum = estimate.plus(exact.part(i), first);
        match others {
            Some(others) => sum.plus(kept(&mut others.row_mut(i)), second),
            None => sum,
        }
    }
}
