//! Second moments of all rows.

use std::marker::PhantomData;

use datafusion::common::Result;
use ndarray::s;
use random_features::data::Reservoir;
use random_features::data::shaping::Moments;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::numbering::runs;
use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::external;

/// Moments, and statistics that know the rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Held {
    /// With a single row of a sample.
    rows: Reservoir,
    /// The moments of the rows that are held.
    pub moments: Moments,
}

impl Held {
    fn new(dim: usize) -> Result<Self> {
        let rows = Reservoir::new(dim).and_then(|empty| empty.with_capacity(1)).map_err(external)?;
        Ok(Held { rows, moments: Moments::new(dim).map_err(external)? })
    }

    /// Adds those of other rows.
    pub fn merge(&mut self, other: &Held) -> Result<()> {
        self.rows.merge(&other.rows).map_err(external)?;
        self.moments.merge(&other.moments).map_err(external)
    }
}

/// The moments of a partition.
#[derive(Debug)]
pub(super) struct MomentsSums<T: Scalar> {
    held: Kept<Held>,
    dim: usize,
    scalar: PhantomData<T>,
}

impl<T: Scalar> MomentsSums<T> {
    pub fn new(dim: usize) -> Result<Self> {
        Ok(MomentsSums { held: Kept::new(Held::new(dim)?), dim, scalar: PhantomData })
    }
}

impl<T: Scalar> Sums for MomentsSums<T> {
    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let points = rows.points::<T>()?;
        let points = points.to_dense().map_err(external)?;
        for run in runs(numbers) {
            let first = numbers[run.start];
            self.held.replace(|held| Ok(Held { rows: held.rows.with_first_row(first)?, ..held }))?;
            self.held.get_mut()?.rows.update(&points.slice(s![run, ..])).map_err(external)?;
        }
        self.held.get_mut()?.moments.update(&points).map_err(external)
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.held.get_mut()?.merge(&read(bytes)?)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.held.get()?)
    }

    fn bytes(&self) -> usize {
        self.dim.saturating_mul(self.dim).saturating_mul(size_of::<f64>())
    }
}
