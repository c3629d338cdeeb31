//! [`RowRanges`]: the rows of a data set that a state holds.

use std::ops::Range;

use crate::error::{Error, Result};

/// Rows of a data set by number: ascending ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RowRanges {
    ranges: Vec<Range<u64>>,
}

impl RowRanges {
    /// The numbers of `count` rows from `first` on. They are below 2⁶⁴ − 1, so that a number comes after each.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if a number would be 2⁶⁴ − 1 or more.
    pub(crate) fn numbers(first: u64, count: usize) -> Result<Range<u64>> {
        let end = u64::try_from(count).ok().and_then(|count| first.checked_add(count));
        let beyond = Error::Row { row: u64::MAX, reason: "is beyond the last number that a row can have" };
        Ok(first..end.ok_or(beyond)?)
    }

    /// Rejects a row that is held already as the first of the next rows.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if the row is held.
    pub(crate) fn check_start(&self, row: u64) -> Result<()> {
        self.check_absent(&(row..row.saturating_add(1)))
    }

    /// The numbers of `count` more rows from `first` on, none of which is held.
    ///
    /// # Errors
    /// The errors of [`numbers`](RowRanges::numbers); [`Row`](Error::Row) with the first row that is held.
    pub(crate) fn next(&self, first: u64, count: usize) -> Result<Range<u64>> {
        let next = Self::numbers(first, count)?;
        self.check_absent(&next)?;
        Ok(next)
    }

    pub(crate) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    pub(crate) fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The row after the last.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end)
    }

    /// Whether ranges ascend, are not empty and have gaps between them.
    #[cfg(feature = "serde")]
    pub(crate) fn is_sound(&self) -> bool {
        let apart = |pair: &[Range<u64>]| pair[0].end < pair[1].start;
        self.ranges.iter().all(|range| range.start < range.end) && self.ranges.windows(2).all(apart)
    }

    /// The union of these rows and others.
    ///
    /// # Errors
    /// [`Row`](Error::Row) with the first row that is in both.
    pub(crate) fn with(&self, other: &RowRanges) -> Result<RowRanges> {
        let mut all: Vec<Range<u64>> = self.ranges.iter().chain(&other.ranges).cloned().collect();
        all.sort_by_key(|range| range.start);
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(all.len());
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start < last.end => {
                    return Err(Error::Row { row: range.start, reason: "is counted already" });
                }
                Some(last) if range.start == last.end => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        Ok(RowRanges { ranges })
    }

    /// Adds a range of rows, none of which is held. At the end, where the next rows mostly are, the cost does not grow with the
    /// number of ranges.
    pub(crate) fn insert(&mut self, rows: Range<u64>) {
        if rows.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|range| range.end < rows.start);
        let touching = self.ranges[first..].iter().take_while(|range| range.start <= rows.end);
        let last = first + touching.count();
        let joined = self.ranges[first..last]
            .iter()
            .fold(rows, |all, range| all.start.min(range.start)..all.end.max(range.end));
        self.ranges.splice(first..last, [joined]);
    }

    /// Removes a range of rows, all of which are held.
    pub(crate) fn remove(&mut self, rows: &Range<u64>) {
        if let Ok(k) = self.holder(rows) {
            let Range { start, end } = self.ranges[k].clone();
            let rest = [start..rows.start, rows.end..end].into_iter().filter(|range| !range.is_empty());
            self.ranges.splice(k..=k, rest);
        }
    }

    /// Rejects a range of rows that are not all held.
    ///
    /// # Errors
    /// [`Row`](Error::Row) with the first row of the range that is not held.
    pub(crate) fn check_held(&self, rows: &Range<u64>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.holder(rows).map(drop).map_err(|row| Error::Row { row, reason: "was never counted" })
    }

    /// Rejects a range of rows if one of them is held.
    fn check_absent(&self, rows: &Range<u64>) -> Result<()> {
        let after = self.ranges.partition_point(|range| range.end <= rows.start);
        match self.ranges.get(after) {
            Some(range) if range.start < rows.end && !rows.is_empty() => {
                Err(Error::Row { row: range.start.max(rows.start), reason: "is counted already" })
            }
            _ => Ok(()),
        }
    }

    /// The place of the range that holds all of these rows, at least one; or the first row that is not held.
    fn holder(&self, rows: &Range<u64>) -> Result<usize, u64> {
        let k = self.ranges.partition_point(|range| range.end <= rows.start);
        match self.ranges.get(k) {
            Some(range) if range.start > rows.start => Err(rows.start),
            Some(range) if range.end < rows.end => Err(range.end),
            Some(_) => Ok(k),
            None => Err(rows.start),
        }
    }
}

impl From<Range<u64>> for RowRanges {
    fn from(range: Range<u64>) -> Self {
        RowRanges { ranges: if range.is_empty() { Vec::new() } else { vec![range] } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_part() {
        let rows = RowRanges::from(5..8).with(&RowRanges::from(0..3)).unwrap();
        assert_eq!(rows.ranges(), [0..3, 5..8]);
        assert_eq!(rows.with(&RowRanges::from(3..5)).unwrap().ranges(), [Range { start: 0, end: 8 }]);
        assert_eq!(
            rows.with(&RowRanges::from(2..4)).unwrap_err(),
            Error::Row { row: 2, reason: "is counted already" }
        );
        let without = |out: Range<u64>| {
            let mut rest = rows.clone();
            rest.check_held(&out).map(|()| rest.remove(&out)).map(|()| rest.ranges().to_vec())
        };
        assert_eq!(without(6..7).unwrap(), [0..3, 5..6, 7..8]);
        assert_eq!(without(5..8).unwrap(), [Range { start: 0, end: 3 }]);
        assert_eq!(without(4..4).unwrap(), rows.ranges());
        assert_eq!(without(2..6).unwrap_err(), Error::Row { row: 3, reason: "was never counted" });
        assert_eq!(without(4..6).unwrap_err(), Error::Row { row: 4, reason: "was never counted" });
        assert_eq!(without(8..9).unwrap_err(), Error::Row { row: 8, reason: "was never counted" });
        assert_eq!((rows.len(), rows.end()), (6, Some(8)));
        assert_eq!(RowRanges::from(3..3).len(), 0);
        assert_eq!(RowRanges::numbers(u64::MAX - 2, 2).unwrap(), u64::MAX - 2..u64::MAX);
        assert!(RowRanges::numbers(u64::MAX - 2, 3).is_err());
    }

    /// In any order, and one by one, ranges become what they are together.
    #[test]
    fn rows_are_inserted_in_any_order() {
        use rand::seq::SliceRandom;
        let mut numbers: Vec<u64> = (0..300).filter(|row| row % 7 != 3 && row % 5 != 1).collect();
        let mut expected: Vec<Range<u64>> = Vec::new();
        for row in &numbers {
            match expected.last_mut() {
                Some(last) if last.end == *row => last.end += 1,
                _ => expected.push(*row..row + 1),
            }
        }
        for seed in 0..5 {
            numbers.shuffle(&mut crate::rng(seed));
            let mut rows = RowRanges::default();
            for row in &numbers {
                assert_eq!(rows.next(*row, 1), Ok(*row..row + 1));
                rows.insert(*row..row + 1);
                assert_eq!(rows.next(*row, 1), Err(Error::Row { row: *row, reason: "is counted already" }));
            }
            assert_eq!(rows.ranges(), expected);
            assert_eq!(rows.next(297, 9), Err(Error::Row { row: 298, reason: "is counted already" }));
            numbers.iter().for_each(|row| rows.remove(&(*row..row + 1)));
            assert!(rows.ranges().is_empty());
        }
    }

    /// Every second row of many: the record of each costs the same. Half a million copies of the list would take hours.
    #[test]
    fn rows_with_gaps_are_recorded_in_linear_time() {
        let mut rows = RowRanges::default();
        for row in (0..1_000_000).step_by(2) {
            rows.next(row, 1).map(|next| rows.insert(next)).unwrap();
        }
        assert_eq!(rows.ranges().len(), 500_000);
    }
}
