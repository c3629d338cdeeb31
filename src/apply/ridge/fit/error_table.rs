//! [`ErrorTable`]: a criterion for each λ, of each target and in all.

use ndarray::{Array1, Array2, s};

use crate::error::Result;

/// A criterion for each λ. A target that is constant in training adds 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ErrorTable {
    /// The criterion for each λ, summed over the targets.
    pub sums: Vec<f64>,
    /// The criterion for each λ and each target, λ × t; 0 if it was not asked for.
    pub each: Array2<f64>,
}

impl ErrorTable {
    /// Sums for t targets, of which each has the criterion 0.
    pub fn of_sums(sums: Vec<f64>, targets: usize) -> Self {
        let each = Array2::zeros((sums.len(), targets));
        ErrorTable { sums, each }
    }

    /// The table of a criterion that is summed over some of t targets at a time; with those of each if asked.
    pub fn by_target(
        (varying, targets): (&[usize], usize),
        each: bool,
        errors: impl Fn(&[usize]) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let mut table = Self::of_sums(errors(varying)?, targets);
        for target in varying.iter().filter(|_| each) {
            table.each.column_mut(*target).assign(&Array1::from(errors(&[*target])?));
        }
        Ok(table)
    }

    /// Puts the λ of another table before those of this one.
    pub fn put_before(&mut self, other: Self) {
        self.sums.splice(0..0, other.sums);
        let (more, targets) = other.each.dim();
        let shape = (more + self.each.nrows(), targets);
        let of =
            |(i, j): (usize, usize)| if i < more { other.each[[i, j]] } else { self.each[[i - more, j]] };
        self.each = Array2::from_shape_fn(shape, of);
    }

    /// Splits off the last λ: the sum, and the criterion for each target.
    pub fn pop(&mut self) -> (f64, Vec<f64>) {
        let last = self.each.nrows().saturating_sub(1);
        let each = self.each.rows().into_iter().next_back().map_or_else(Vec::new, |row| row.to_vec());
        self.each = self.each.slice(s![..last, ..]).to_owned();
        (self.sums.pop().unwrap_or(f64::INFINITY), each)
    }
}
