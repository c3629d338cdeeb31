//! [`Kept`]: sums that an error may take away.

use datafusion::common::{DataFusionError, Result};

use crate::fault::external;

/// Sums, until an error.
#[derive(Debug)]
pub(super) struct Kept<S>(Option<S>);

impl<S> Kept<S> {
    pub fn new(sums: S) -> Self {
        Kept(Some(sums))
    }

    pub fn get(&self) -> Result<&S> {
        self.0.as_ref().ok_or_else(lost)
    }

    pub fn get_mut(&mut self) -> Result<&mut S> {
        self.0.as_mut().ok_or_else(lost)
    }

    /// Makes other sums of these, which an error loses.
    pub fn replace(&mut self, with: impl FnOnce(S) -> random_features::Result<S>) -> Result<()> {
        let sums = self.0.take().ok_or_else(lost)?;
        self.0 = Some(with(sums).map_err(external)?);
        Ok(())
    }
}

fn lost() -> DataFusionError {
    DataFusionError::Execution("the sums were lost to an earlier error".into())
}
