//! [`Classes`]: the numbers of classes, some of which were removed.

use std::ops::Range;

use crate::error::{Error, Result};

/// The numbers 0 … C − 1 of classes, of which some may be removed, but not all. Numbers never change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Classes {
    /// C, the number of classes, with removed ones.
    count: usize,
    /// The numbers that were removed, increasing.
    removed: Vec<usize>,
}

impl Classes {
    /// The numbers 0 … `count` − 1, all of them present.
    pub fn new(count: usize) -> Self {
        Classes { count, removed: Vec::new() }
    }

    /// The numbers below `count` less the removed ones; `None` unless these are increasing, below C, and not all.
    #[cfg(feature = "serde")]
    pub fn from_parts(count: usize, removed: Vec<usize>) -> Option<Self> {
        let increasing =
            removed.is_sorted_by(|a, b| a < b) && removed.last().is_none_or(|last| *last < count);
        (increasing && removed.len() < count).then_some(Classes { count, removed })
    }

    /// C, the number of classes, with removed ones.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The numbers that were removed, increasing.
    pub fn removed(&self) -> &[usize] {
        &self.removed
    }

    /// The number of present classes.
    pub fn present(&self) -> usize {
        self.count - self.removed.len()
    }

    pub fn is_present(&self, class: usize) -> bool {
        class < self.count && (self.removed.is_empty() || self.removed.binary_search(&class).is_err())
    }

    /// The number of present classes in a run of numbers.
    pub fn present_in(&self, run: Range<usize>) -> usize {
        run.len() - self.removed_in(run).len()
    }

    /// The removed numbers in a run of numbers.
    pub fn removed_in(&self, run: Range<usize>) -> &[usize] {
        let place = |class: usize| self.removed.partition_point(|removed| *removed < class);
        &self.removed[place(run.start)..place(run.end)]
    }

    /// The number of the class that has `rank` present ones before it; `rank` is below the number of present classes.
    pub fn nth_present(&self, rank: usize) -> usize {
        // The i-th removed class has removed[i] − i present ones before it.
        let (mut low, mut high) = (0, self.removed.len());
        while low < high {
            let middle = low.midpoint(high);
            (low, high) =
                if self.removed[middle] - middle <= rank { (middle + 1, high) } else { (low, middle) };
        }
        rank + low
    }

    /// Adds `count` numbers after the others and returns them.
    pub fn add(&mut self, count: usize) -> Range<usize> {
        let first = self.count;
        self.count += count;
        first..self.count
    }

    /// Removes classes that are present; their numbers are increasing.
    pub fn remove(&mut self, classes: &[usize]) {
        self.removed.extend_from_slice(classes);
        // A stable sort merges the two increasing runs.
        self.removed.sort();
    }
}

/// Refuses classes that are not below a number.
pub(super) fn check_below(what: &'static str, classes: &[usize], count: usize) -> Result<()> {
    match classes.iter().position(|class| *class >= count) {
        None => Ok(()),
        Some(row) => {
            let (value, domain) = (classes[row] as f64, "below the number of classes");
            Err(Error::Entry { what, row, value, domain })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_what_they_are() {
        let mut classes = Classes::new(10);
        classes.remove(&[2, 3, 9]);
        classes.remove(&[0, 6]);
        assert_eq!(classes.removed(), [0, 2, 3, 6, 9]);
        assert_eq!(classes.add(2), 10..12);
        let present: Vec<usize> = (0..12).filter(|class| classes.is_present(*class)).collect();
        assert_eq!(present, [1, 4, 5, 7, 8, 10, 11]);
        let ranked: Vec<usize> = (0..classes.present()).map(|rank| classes.nth_present(rank)).collect();
        assert_eq!(ranked, present);
        assert_eq!(
            (classes.present_in(0..4), classes.present_in(4..12), classes.present_in(5..5)),
            (1, 6, 0)
        );
        assert!(!classes.is_present(12));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |count, removed: &[usize]| Classes::from_parts(count, removed.to_vec()).is_none();
        assert!(
            refused(3, &[1, 1])
                && refused(3, &[2, 1])
                && refused(3, &[3])
                && refused(1, &[0])
                && refused(0, &[])
        );
        assert!(!refused(3, &[0, 2]));
    }
}
