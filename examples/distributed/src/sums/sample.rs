//! Statistics of all rows and a random sample of them.

use std::marker::PhantomData;

use datafusion::common::Result;
use ndarray::s;
use random_features::data::Reservoir;

use super::kept::Kept;
use super::numbering::runs;
use super::{Sums, read, stored};
use crate::columns::{Columns, Scalar};
use crate::fault::external;

/// A reservoir.
#[derive(Debug)]
pub(super) struct SampleSums<T: Scalar> {
    reservoir: Kept<Reservoir>,
    capacity: usize,
    scalar: PhantomData<T>,
}

impl<T: Scalar> SampleSums<T> {
    pub fn new(dim: usize, capacity: usize, seed: u64) -> Result<Self> {
        let reservoir = Reservoir::new(dim).and_then(|empty| empty.with_capacity(capacity));
        let reservoir = reservoir.and_then(|empty| empty.with_seed(seed)).map_err(external)?;
        Ok(SampleSums { reservoir: Kept::new(reservoir), capacity, scalar: PhantomData })
    }
}

impl<T: Scalar> Sums for SampleSums<T> {
    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let points = rows.points::<T>()?;
        let (points, weights) = (points.to_dense().map_err(external)?, rows.weights()?);
        for run in runs(numbers) {
            self.reservoir.replace(|reservoir| reservoir.with_first_row(numbers[run.start]))?;
            let (reservoir, x) = (self.reservoir.get_mut()?, points.slice(s![run.clone(), ..]));
            match &weights {
                None => reservoir.update(&x),
                Some(weights) => reservoir.update_weighted(&x, &weights.slice(s![run])),
            }
            .map_err(external)?;
        }
        Ok(())
    }

    fn join(&mut self, bytes: &[u8]) -> Result<()> {
        self.reservoir.get_mut()?.merge(&read(bytes)?).map_err(external)
    }

    fn stored(&self) -> Result<Vec<u8>> {
        stored(self.reservoir.get()?)
    }

    fn bytes(&self) -> usize {
        let dim = self.reservoir.get().map_or(0, Reservoir::dim);
        self.capacity.saturating_mul(dim).saturating_mul(size_of::<f64>())
    }
}
