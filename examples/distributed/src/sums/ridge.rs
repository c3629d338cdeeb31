//! The sums of a ridge regression, on a number or on classes.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use random_features::apply::RidgeStatistics;

use super::kept::Kept;
use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::{at_row, external, refuse};
use crate::map::MapSpec;

/// Sums of a ridge regression.
#[derive(Debug)]
pub(super) struct RidgeSums<T: Scalar> {
    statistics: Kept<RidgeStatistics<T>>,
    /// The names of the classes, if targets are labels.
    classes: Option<Vec<String>>,
}

impl<T: Scalar> RidgeSums<T> {
    pub fn new(map: &MapSpec, classes: Option<Vec<String>>) -> Result<Self> {
        let targets = classes.as_ref().map_or(1, Vec::len);
        let statistics = Kept::new(empty(map, targets)?);
        Ok(RidgeSums { statistics, classes })
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
    fn begin_at(&mut self, row: u64) -> Result<()> {
        self.statistics.replace(|statistics| statistics.with_first_row(row))
    }

    fn take(&mut self, first: u64, rows: &Columns) -> Result<()> {
        let Some(classes) = &self.classes else {
            let targets = rows.targets::<T>()?;
            return self.statistics.get_mut()?.update(rows.points()?, &targets).map_err(external);
        };
        let labels = labels(first, rows, classes)?;
        self.statistics.get_mut()?.update(rows.points()?, &labels).map_err(external)
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

/// The place of each label among the classes.
fn labels(first: u64, rows: &Columns, classes: &[String]) -> Result<Vec<usize>> {
    let Some(labels) = &rows.target else { return refuse("there are no labels") };
    let names = cast(labels, &DataType::LargeUtf8)?;
    let names = names.as_string::<i64>();
    let numbers = numbers(labels.data_type(), classes);
    let place = |row: usize| {
        let name = names.value(row);
        let unknown = || {
            let column = rows.name(0);
            let what = format!("{column} holds {name:?}, which is none of the classes {classes:?}");
            at_row(first + row as u64, what)
        };
        let found = match &numbers {
            Some(numbers) => {
                name.parse().ok().and_then(|label| numbers.iter().position(|own| *own == Some(label)))
            }
            None => classes.iter().position(|class| class == name),
        };
        found.ok_or_else(unknown)
    };
    (0..names.len()).map(place).collect()
}

/// The classes as numbers, of labels that are: a label 1.0 is of the class 1.
fn numbers(labels: &DataType, classes: &[String]) -> Option<Vec<Option<f64>>> {
    let are_numbers = labels.is_floating() || labels.is_decimal();
    are_numbers.then(|| classes.iter().map(|class| class.parse().ok()).collect())
}
