//! The sums of a kernel PCA.

use datafusion::common::Result;
use random_features::apply::pca::PcaStatistics;

use super::kept::Kept;
use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::external;
use crate::map::MapSpec;

/// Sums of a kernel PCA.
#[derive(Debug)]
pub(super) struct PcaSums<T: Scalar> {
    statistics: Kept<PcaStatistics<T>>,
}

impl<T: Scalar> PcaSums<T> {
    pub fn new(map: &MapSpec) -> Result<Self> {
        Ok(PcaSums { statistics: Kept::new(empty(map)?) })
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
    fn begin_at(&mut self, row: u64) -> Result<()> {
        self.statistics.replace(|statistics| statistics.with_first_row(row))
    }

    fn take(&mut self, _: u64, rows: &Columns) -> Result<()> {
        self.statistics.get_mut()?.update(rows.points()?).map_err(external)
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.statistics.get_mut()?.merge_sums(&read(bytes)?).map_err(external)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.statistics.get()?.sums())
    }

    fn bytes(&self) -> usize {
        self.statistics.get().map_or(0, |statistics| statistics.sums().bytes())
    }
}
