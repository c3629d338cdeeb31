//! [`Values`]: the values of a run of tokens.

use ndarray::ArrayView2;

use super::tokens::Element;
use crate::Real;
use crate::reduce::limit;

/// The values of a run of tokens, tokens × d_v.
#[derive(Debug, Default)]
pub(super) struct Values<T> {
    rows: Vec<T>,
    width: usize,
    /// Whether a row's values are small enough for sums of them to stay within `T`.
    pub calm: Vec<bool>,
}

impl<T: Real> Values<T> {
    pub fn fill<E: Element<T>>(&mut self, v: ArrayView2<'_, E>) {
        self.rows.clear();
        self.calm.clear();
        self.width = v.ncols();
        let limit = T::narrow(limit::<T>());
        for row in v.rows() {
            let start = self.rows.len();
            match row.to_slice() {
                Some(row) => self.rows.extend(row.iter().map(|v| v.convert())),
                None => self.rows.extend(row.iter().map(|v| v.convert())),
            }
            self.calm.push(self.rows[start..].iter().fold(true, |calm, v| calm & (v.abs() <= limit)));
        }
    }

    /// The first `count` rows.
    pub fn first(&self, count: usize) -> &[T] {
        &self.rows[..count * self.width]
    }

    pub fn row(&self, i: usize) -> &[T] {
        &self.rows[i * self.width..(i + 1) * self.width]
    }

    /// Makes row `i` 0.
    pub fn clear_row(&mut self, i: usize) {
        self.rows[i * self.width..(i + 1) * self.width].fill(T::zero());
        self.calm[i] = true;
    }
}
