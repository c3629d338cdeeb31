//! [`Pool`]: buffers that threads take in turns.

use std::sync::{Mutex, PoisonError};

/// Buffers that are used again by whichever thread needs one: page-faulting new ones may take longer than the work that
/// is done in them.
#[derive(Debug)]
pub(crate) struct Pool<A>(Mutex<Vec<A>>);

impl<A> Default for Pool<A> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<A> Pool<A> {
    /// A buffer that was given back, if there is any.
    pub fn take(&self) -> Option<A> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Gives a buffer back.
    pub fn give(&self, one: A) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }
}

impl<A: Default> Pool<A> {
    /// Lends a buffer to `work`.
    pub fn lend<R>(&self, work: impl FnOnce(&mut A) -> R) -> R {
        let mut one = self.take().unwrap_or_default();
        let result = work(&mut one);
        self.give(one);
        result
    }
}
