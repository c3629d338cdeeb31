//! [`KeyRows`]: keys and values that are kept as they are, row by row.

use ndarray::ArrayView1;

use super::element::Numbers;
use super::job::KeyRun;
use crate::Real;
use crate::numeric::matrix_view;

/// Keys and values, and which of them are not masked.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct KeyRows<T> {
    keys: Vec<T>,
    values: Vec<T>,
    mask: Vec<bool>,
}

impl<T: Real> KeyRows<T> {
    pub fn len(&self) -> usize {
        self.mask.len()
    }

    /// Appends tokens.
    pub fn extend(&mut self, tokens: KeyRun<'_, T>) {
        tokens.keys.read(T::one(), &mut self.keys);
        tokens.values.read(T::one(), &mut self.values);
        match tokens.mask {
            Some(mask) => self.mask.extend(mask),
            None => self.mask.resize(self.len() + tokens.len(), true),
        }
    }

    /// The tokens.
    pub fn run(&self) -> KeyRun<'_, T> {
        let rows = self.len();
        let matrix = |numbers| Numbers::Own(matrix_view(rows, self.columns(numbers), numbers));
        KeyRun::new(matrix(&self.keys), matrix(&self.values)).masked(Some(ArrayView1::from(&self.mask)))
    }

    /// Drops the first ones.
    pub fn drop_first(&mut self, count: usize) {
        let [keys, values] = [&self.keys, &self.values].map(|numbers| count * self.columns(numbers));
        self.keys.drain(..keys);
        self.values.drain(..values);
        self.mask.drain(..count);
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.mask.clear();
    }

    fn columns(&self, numbers: &[T]) -> usize {
        numbers.len() / self.len().max(1)
    }
}

/// The stored form of the rows.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "KeyRows")]
    pub struct StoredKeyRows {
        /// One token after the other.
        #[serde(with = "crate::exact")]
        keys: Vec<f64>,
        #[serde(with = "crate::exact")]
        values: Vec<f64>,
        mask: Vec<bool>,
    }

    impl StoredKeyRows {
        pub fn of<T: Real>(tokens: KeyRun<'_, T>) -> Self {
            let mut rows = KeyRows::default();
            rows.extend(tokens);
            let wide = |numbers: Vec<T>| numbers.into_iter().map(T::widen).collect();
            StoredKeyRows { keys: wide(rows.keys), values: wide(rows.values), mask: rows.mask }
        }

        pub fn len(&self) -> usize {
            self.mask.len()
        }

        /// The rows; `None` unless they are of keys and values of these dimensions.
        pub fn restored<T: Real>(self, dims: [usize; 2]) -> Option<KeyRows<T>> {
            let StoredKeyRows { keys, values, mask } = self;
            let fits = [&keys, &values].map(Vec::len).into_iter().zip(dims);
            if !fits.into_iter().all(|(len, dim)| mask.len().checked_mul(dim) == Some(len)) {
                return None;
            }
            let narrow = |numbers: Vec<f64>| numbers.into_iter().map(T::narrow).collect();
            Some(KeyRows { keys: narrow(keys), values: narrow(values), mask })
        }
    }
}
