//! The sums of a ridge regression, on a number or on classes.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use random_features::apply::RidgeStatistics;

use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::{external, refuse};
use crate::map::MapSpec;

/// Those of a ridge regression.
#[derive(Debug)]
pub(super) struct RidgeSums<T: Scalar> {
    /// None after an error.
    statistics: Option<RidgeStatistics<T>>,
    /// The names of the classes, if targets are labels.
    classes: Option<Vec<String>>,
}

impl<T: Scalar> RidgeSums<T> {
    pub fn new(map: &MapSpec, classes: Option<Vec<String>>) -> Result<Self> {
        let targets = classes.as_ref().map_or(1, Vec::len);
        let statistics = empty(map, targets)?;
        Ok(RidgeSums { statistics: Some(statistics), classes })
    }

    fn statistics(&mut self) -> Result<&mut RidgeStatistics<T>> {
        self.statistics.as_mut().ok_or_else(lost)
    }
}

/// Statistics without rows.
pub(super) fn empty<T: Scalar>(map: &MapSpec, targets: usize) -> Result<RidgeStatistics<T>> {
    let statistics = RidgeStatistics::new(map.draw::<T>()?, targets).map_err(external)?;
    match &map.standardisation {
        None => Ok(statistics),
        Some(inputs) => statistics.standardised(inputs.clone()).map_err(external),
    }
}

impl<T: Scalar> Sums for RidgeSums<T> {
    fn begin_at(&mut self, row: u64) -> Result<()> {
        let statistics = self.statistics.take().ok_or_else(lost)?;
        self.statistics = Some(statistics.starting_at(row).map_err(external)?);
        Ok(())
    }

    fn take(&mut self, rows: &Columns) -> Result<()> {
        let Some(classes) = &self.classes else {
            let targets = rows.targets::<T>()?;
            return self.statistics()?.update(rows.points()?, &targets).map_err(external);
        };
        let labels = labels(rows, classes)?;
        self.statistics()?.update_labels(rows.points()?, &labels).map_err(external)
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.statistics()?.join(&read(bytes)?).map_err(external)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.statistics.as_ref().ok_or_else(lost)?.sums())
    }

    fn bytes(&self) -> usize {
        self.statistics.as_ref().map_or(0, |statistics| statistics.sums().bytes())
    }
}

/// What is said of sums after an error.
pub(super) fn lost() -> DataFusionError {
    DataFusionError::Execution("the sums were lost to an earlier error".into())
}

/// The place of each label among the classes.
fn labels(rows: &Columns, classes: &[String]) -> Result<Vec<usize>> {
    let Some(labels) = &rows.target else { return refuse("there are no labels") };
    let names = names(labels)?;
    let names = names.as_string::<i64>();
    let place = |row: usize| {
        let name = names.value(row);
        let place = classes.iter().position(|class| class == name);
        let sentence = || format!("a row has the label {name:?}, which is none of the classes {classes:?}");
        place.ok_or_else(|| DataFusionError::Execution(sentence()))
    };
    (0..names.len()).map(place).collect()
}

/// Labels as text.
fn names(labels: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(labels, &DataType::LargeUtf8)?)
}
