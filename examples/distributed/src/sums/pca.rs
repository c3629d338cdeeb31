//! The sums of a kernel PCA.

use datafusion::common::Result;
use random_features::apply::pca::PcaStatistics;

use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::external;
use crate::map::MapSpec;

/// Sums of a kernel PCA.
#[derive(Debug)]
pub(super) struct PcaSums<T: Scalar> {
    statistics: PcaStatistics<T>,
}

impl<T: Scalar> PcaSums<T> {
    pub fn new(map: &MapSpec) -> Result<Self> {
        Ok(PcaSums { statistics: empty(map)? })
    }
}

/// Statistics without rows.
pub(super) fn empty<T: Scalar>(map: &MapSpec) -> Result<PcaStatistics<T>> {
    let statistics = PcaStatistics::new(map.draw::<T>()?).map_err(external)?;
    match &map.standardisation {
        None => Ok(statistics),
        Some(inputs) => statistics.with_standardisation(inputs.clone()).map_err(external),
    }
}

impl<T: Scalar> Sums for PcaSums<T> {
    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let weights = rows.weights()?;
        self.statistics.update_rows(numbers, rows.points()?, weights.as_deref()).map_err(external)
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.statistics.merge_sums(&read(bytes)?).map_err(external)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.statistics.sums())
    }

    fn bytes(&self) -> usize {
        self.statistics.sums().bytes()
    }
}
