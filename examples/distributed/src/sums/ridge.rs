//! The sums of a ridge regression, on a number or on classes.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use ndarray::ArrayView1;
use random_features::Targets;
use random_features::apply::RidgeStatistics;

use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::{at_row, external, refuse};
use crate::labels::ClassNames;
use crate::map::MapSpec;

/// Sums of a ridge regression.
#[derive(Debug)]
pub(super) struct RidgeSums<T: Scalar> {
    statistics: RidgeStatistics<T>,
    /// The names of the classes, if targets are labels.
    classes: Option<Vec<String>>,
}

impl<T: Scalar> RidgeSums<T> {
    pub fn new(map: &MapSpec, classes: Option<Vec<String>>) -> Result<Self> {
        let targets = classes.as_ref().map_or(1, Vec::len);
        Ok(RidgeSums { statistics: empty(map, targets)?, classes })
    }

    /// Adds rows with their targets, and their weights if they have any.
    fn add<'a>(
        &mut self,
        numbers: &[u64],
        rows: &Columns,
        weights: Option<&'a ArrayView1<'_, f64>>,
        targets: Targets<'a, T>,
    ) -> Result<()> {
        let targets = match weights {
            None => targets,
            Some(weights) => targets.with_weights(weights).map_err(external)?,
        };
        self.statistics.update_rows(numbers, rows.points()?, targets).map_err(external)
    }
}

/// Statistics without rows.
pub(super) fn empty<T: Scalar>(map: &MapSpec, targets: usize) -> Result<RidgeStatistics<T>> {
    let statistics = RidgeStatistics::new(map.draw::<T>()?, targets).map_err(external)?;
    match &map.standardisation {
        None => Ok(statistics),
        Some(inputs) => statistics.with_standardisation(inputs.clone()).map_err(external),
    }
}

impl<T: Scalar> Sums for RidgeSums<T> {
    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let weights = rows.weights()?;
        match &self.classes {
            None => self.add(numbers, rows, weights.as_ref(), Targets::from(&rows.targets::<T>()?)),
            Some(classes) => {
                let labels = labels(numbers, rows, classes)?;
                let labels = Targets::of_labels(&labels, classes.len()).map_err(external)?;
                self.add(numbers, rows, weights.as_ref(), labels)
            }
        }
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

/// The place of each label among the classes.
fn labels(numbers: &[u64], rows: &Columns, classes: &[String]) -> Result<Vec<usize>> {
    let Some(labels) = &rows.target else { return refuse("there are no labels") };
    let names = cast(labels, &DataType::LargeUtf8)?;
    let names = names.as_string::<i64>();
    let classes = ClassNames::new(classes, labels.data_type());
    let place = |row: usize| {
        classes.place(names.value(row), &rows.target_name()).map_err(|what| at_row(numbers[row], what))
    };
    (0..names.len()).map(place).collect()
}
