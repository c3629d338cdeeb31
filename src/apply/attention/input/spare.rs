//! [`SpareRuns`]: memory of tapes that were dropped, for the next ones.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::kept::Lifted;
use crate::Real;

/// Room for the [tapes](super::super::Tape) of an attention and its clones.
#[derive(Clone, Debug)]
pub(in super::super) struct TapeRoom<T> {
    /// The most bytes of a tape.
    pub most: usize,
    /// Memory of tapes that were dropped, no more than of one tape.
    pub spare: Arc<SpareRuns<T>>,
}

impl<T> TapeRoom<T> {
    /// Room for tapes of so many bytes.
    pub fn new(most: usize) -> Self {
        TapeRoom { most, spare: Arc::new(SpareRuns::new(most)) }
    }
}

/// Runs of tapes that were dropped. The first use of new memory takes longer than a copy of what is there.
pub(in super::super) struct SpareRuns<T> {
    /// The most bytes of all runs.
    most: usize,
    runs: Mutex<Runs<T>>,
}

struct Runs<T> {
    all: Vec<Lifted<T>>,
    bytes: usize,
}

impl<T> SpareRuns<T> {
    /// No run, and room for so many bytes.
    pub fn new(most: usize) -> Self {
        SpareRuns { most, runs: Mutex::new(Runs { all: Vec::new(), bytes: 0 }) }
    }

    /// A run to be written anew.
    pub fn take(&self) -> Lifted<T>
    where
        T: Real,
    {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let run = runs.all.pop().unwrap_or_default();
        runs.bytes -= run.memory();
        run
    }

    /// Keeps a run, if there is room for it.
    pub fn give(&self, run: Lifted<T>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = runs.bytes.saturating_add(run.memory());
        if bytes <= self.most {
            runs.bytes = bytes;
            runs.all.push(run);
        }
    }
}

impl<T> fmt::Debug for SpareRuns<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareRuns").field("most", &self.most).finish_non_exhaustive()
    }
}
