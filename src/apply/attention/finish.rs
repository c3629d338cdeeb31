//! [`Finish`]: from the estimate of a query to its output.

use super::cotangents::Cotangents;
use super::output::Undivided;
use super::scan::{Outlet, keep, kept};
use super::setup::Setup;
use super::sight::Asked;
use super::window::NearRun;
use crate::Real;

/// What a thread needs to make outputs of estimates: the exact terms of neighbours, and room for sums.
#[derive(Debug, Default)]
pub(super) struct Finish<T> {
    near: NearRun<T>,
    /// Gradients, if those are asked for.
    pub cotangents: Cotangents<T>,
    sums: [Vec<f64>; 3],
}

impl<T: Real> Finish<T> {
    /// Computes the exact terms of the neighbours of the queries asked, which have these points.
    pub fn begin(&mut self, setup: Setup<'_, T>, points: &[T], asked: &Asked<'_, T>) {
        if let Some(neighbours) = setup.near {
            let (count, targets) = (asked.queries.len(), asked.out.targets());
            self.near.attend(neighbours, (points, count), asked.place, targets);
        }
        if let Outlet::Pulls(pulls) = &asked.out {
            self.cotangents.begin(asked.queries.len(), pulls.targets());
        }
    }

    /// Forgets the keys of neighbours, since the next are others.
    pub fn forget(&mut self) {
        self.near.forget();
    }

    /// Adds to the estimate of the `i`-th query asked what else it sees, if there is anything: other estimates, neighbours and
    /// exact keys; and writes its output. Reports the query if the normaliser is not positive although a key was seen.
    #[inline]
    pub fn write<U: Real>(
        &mut self,
        setup: Setup<'_, T>,
        point: &[T],
        estimate: Undivided<'_, U>,
        i: usize,
        asked: &mut Asked<'_, T>,
    ) {
        let Asked { out, report, place, .. } = asked;
        let place = *place + i;
        let positive = match out {
            Outlet::Estimates(rows) => {
                keep(&estimate, rows.row_mut(i));
                true
            }
            Outlet::Pulls(pulls) => {
                self.cotangents.take_in(setup.normalised, estimate, i, pulls);
                true
            }
            Outlet::Outputs(out, others) if setup.near.is_some() => {
                let [first, second, third] = &mut self.sums;
                let sum = estimate.plus(self.near.run.part(i), first);
                let mut out = out.row_mut(i);
                match others {
                    None => write(setup, point, place, sum, third, out.iter_mut()),
                    Some(others) => {
                        let sum = sum.plus(kept(&mut others.row_mut(i)), second);
                        write(setup, point, place, sum, third, out.iter_mut())
                    }
                }
            }
            Outlet::Outputs(out, _) => {
                write(setup, point, place, estimate, &mut self.sums[0], out.row_mut(i).iter_mut())
            }
        };
        if !positive {
            report(i);
        }
    }
}

/// Writes an output, with the exact keys that the query at `place` sees. False if the normaliser is not positive although a key was
/// seen.
fn write<'a, T: Real, U: Real>(
    setup: Setup<'_, T>,
    point: &[T],
    place: usize,
    estimate: Undivided<'_, U>,
    buffer: &mut Vec<f64>,
    out: impl Iterator<Item = &'a mut T>,
) -> bool {
    match setup.exact {
        None => estimate.write(setup.normalised, out),
        Some(exact) => {
            let end = if setup.causal { place.saturating_add(1) } else { usize::MAX };
            exact.combine(point, end, estimate, buffer).write(setup.normalised, out)
        }
    }
}
