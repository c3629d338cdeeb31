//! [`ErrorTable`]: a criterion for each λ, for each target and summed over the targets.

use ndarray::{Array2, s};

/// A criterion for each λ. A target that is constant in training adds 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ErrorTable {
    /// The criterion for each λ, summed over the targets.
    pub sums: Vec<f64>,
    /// The criterion for each λ and each target, λ × t.
    pub each: Array2<f64>,
}

impl ErrorTable {
    /// The table of targets with this criterion for each λ and each target, λ × t.
    pub fn of_targets(each: Array2<f64>) -> Self {
        ErrorTable { sums: each.rows().into_iter().map(|row| row.sum()).collect(), each }
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

    /// Removes the last λ, and returns the sum over the targets and the criterion for each target.
    pub fn pop(&mut self) -> (f64, Vec<f64>) {
        let last = self.each.nrows().saturating_sub(1);
        let each = self.each.rows().into_iter().next_back().map_or_else(Vec::new, |row| row.to_vec());
        self.each = self.each.slice(s![..last, ..]).to_owned();
        (self.sums.pop().unwrap_or(f64::INFINITY), each)
    }
}
