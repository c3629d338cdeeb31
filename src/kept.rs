//! [`Kept`]: what was computed last, for whoever asks for it again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by their keys, of which those that were asked for last are kept.
pub(crate) struct Kept<K, V> {
    /// The last one was asked for last.
    all: Mutex<Vec<(K, V)>>,
    most: usize,
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// Keeps up to `most` values.
    pub const fn new(most: usize) -> Self {
        Kept { all: Mutex::new(Vec::new()), most }
    }

    /// The value of a key: the one that is kept, or a new one. Nothing is locked while it is made.
    pub fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(value) = self.known(&key) {
            return value;
        }
        let value = make();
        let mut all = self.all();
        // Another thread may have been faster.
        all.retain(|(known, _)| *known != key);
        if all.len() >= self.most {
            all.remove(0);
        }
        all.push((key, value.clone()));
        value
    }

    /// The value that is kept for a key, which becomes the last one.
    fn known(&self, key: &K) -> Option<V> {
        let mut all = self.all();
        let place = all.iter().position(|(known, _)| known == key)?;
        let last = all.remove(place);
        let value = last.1.clone();
        all.push(last);
        Some(value)
    }

    fn all(&self) -> MutexGuard<'_, Vec<(K, V)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of values that are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all().len()
    }
}
