//! [`RowCounts`]: numbers of rows, which stay exact when rows are removed, unlike sums.

use ndarray::{ArrayRef1, ArrayRef2};

use crate::Real;

/// Numbers of rows of positive weight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct RowCounts {
    /// The number of all such rows.
    pub all: u64,
    /// For each target, the number of rows whose value is not 0.
    pub not_zero: Vec<u64>,
}

impl RowCounts {
    /// Zeros for `targets` targets.
    pub fn new(targets: usize) -> Self {
        RowCounts { all: 0, not_zero: vec![0; targets] }
    }

    /// The numbers of these rows, n × t.
    pub fn of<T: Real>(targets: &ArrayRef2<T>, weights: Option<&ArrayRef1<f64>>) -> Self {
        let mut counts = Self::new(targets.ncols());
        let is_present = |i: usize| weights.is_none_or(|weights| weights[i] > 0.0);
        for (_, row) in targets.rows().into_iter().enumerate().filter(|(i, _)| is_present(*i)) {
            counts.all += 1;
            let values = counts.not_zero.iter_mut().zip(row);
            values.for_each(|(count, y)| *count += u64::from(*y != T::zero()));
        }
        counts
    }

    /// The numbers of these rows and others.
    pub fn with(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The numbers of these rows without others.
    pub fn without(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// Whether these can be the numbers of at most `rows` rows with `targets` targets.
    #[cfg(feature = "serde")]
    pub fn fit(&self, rows: u64, targets: usize) -> bool {
        self.all <= rows
            && self.not_zero.len() == targets
            && self.not_zero.iter().all(|count| *count <= self.all)
    }

    fn each(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let not_zero = self.not_zero.iter().zip(&other.not_zero).map(|(a, b)| join(*a, *b)).collect();
        RowCounts { all: join(self.all, other.all), not_zero }
    }
}
