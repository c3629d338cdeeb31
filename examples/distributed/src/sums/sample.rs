//! Statistics of all rows and a random sample of them.

use std::marker::PhantomData;

use datafusion::common::Result;
use random_features::data::Reservoir;

use super::ridge::lost;
use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::external;

/// A reservoir.
#[derive(Debug)]
pub(super) struct SampleSums<T: Scalar> {
    /// None after an error.
    reservoir: Option<Reservoir>,
    capacity: usize,
    scalar: PhantomData<T>,
}

impl<T: Scalar> SampleSums<T> {
    pub fn new(dim: usize, capacity: usize, seed: u64) -> Result<Self> {
        let reservoir = Reservoir::new(dim).and_then(|empty| empty.with_capacity(capacity));
        let reservoir = reservoir.and_then(|empty| empty.with_seed(seed)).map_err(external)?;
        Ok(SampleSums { reservoir: Some(reservoir), capacity, scalar: PhantomData })
    }

    fn reservoir(&mut self) -> Result<&mut Reservoir> {
        self.reservoir.as_mut().ok_or_else(lost)
    }
}

impl<T: Scalar> Sums for SampleSums<T> {
    fn begin_at(&mut self, row: u64) -> Result<()> {
        let reservoir = self.reservoir.take().ok_or_else(lost)?;
        self.reservoir = Some(reservoir.starting_at(row).map_err(external)?);
        Ok(())
    }

    fn take(&mut self, rows: &Columns) -> Result<()> {
        self.reservoir()?.update(&rows.points::<T>()?.to_dense()).map_err(external)
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.reservoir()?.merge(&read(bytes)?).map_err(external)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.reservoir.as_ref().ok_or_else(lost)?)
    }

    fn bytes(&self) -> usize {
        let dim = self.reservoir.as_ref().map_or(0, Reservoir::dim);
        self.capacity.saturating_mul(dim).saturating_mul(size_of::<f64>())
    }
}
