//! [`Source`]: the sums of a chosen model, or the rows from which they can be computed.

use super::super::{RidgeRows, RidgeSpectrum, RidgeStatistics};
use crate::Real;
use crate::error::Result;

/// The sums of a chosen model, or the rows from which they can be computed.
#[derive(Clone, Debug)]
pub(super) enum Source<T: Real> {
    /// The sums.
    Statistics(Box<RidgeStatistics<T>>),
    /// All rows, if they were fewer than features, so that the search has computed no sums.
    Rows(Box<RidgeRows<'static, T>>),
}

impl<T: Real> Source<T> {
    /// The sums for the map of a spectrum.
    pub fn statistics(self, spectrum: &RidgeSpectrum<T>) -> Result<RidgeStatistics<T>> {
        let (map, intercept) = (spectrum.map(), spectrum.shrinkage.intercept);
        match self {
            Source::Statistics(statistics) => Ok(*statistics),
            Source::Rows(rows) => rows.statistics(map.clone(), spectrum.inputs.as_ref(), intercept),
        }
    }
}
