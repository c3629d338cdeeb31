//! [`RowRanges`]: the rows of a data set that a state holds.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{Error, Result};

/// Why a row cannot be added again.
const COUNTED: &str = "is counted already: `with_first_row` numbers the rows of a part";

/// Rows of a data set by number: ascending ranges with gaps between them. An edit costs O(log k) for k ranges, wherever it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "stored::StoredRows", into = "stored::StoredRows"))]
pub(crate) struct RowRanges {
    /// The end of each range, by its start.
    ends: BTreeMap<u64, u64>,
    /// The number of rows.
    count: u64,
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

    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        self.iter().collect()
    }

    fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ends.iter().map(|(start, end)| *start..*end)
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// The row after the last.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ends.last_key_value().map(|(_, end)| *end)
    }

    /// Rejects other rows if one of them is held.
    ///
    /// # Errors
    /// [`Row`](Error::Row) with the first row that is in both.
    pub(crate) fn check_apart(&self, other: &RowRanges) -> Result<()> {
        let (few, many) = if self.ends.len() < other.ends.len() { (self, other) } else { (other, self) };
        few.iter().try_for_each(|rows| many.check_absent(&rows))
    }

    /// Adds other rows, none of which is held. The cost grows with the lesser number of ranges.
    pub(crate) fn join(&mut self, other: &RowRanges) {
        if other.ends.len() > self.ends.len() {
            let own = std::mem::replace(self, other.clone());
            own.iter().for_each(|rows| self.insert(rows));
        } else {
            other.iter().for_each(|rows| self.insert(rows));
        }
    }

    /// Adds a range of rows, none of which is held.
    pub(crate) fn insert(&mut self, rows: Range<u64>) {
        if rows.is_empty() {
            return;
        }
        self.count += rows.end - rows.start;
        let start = self.at_or_before(rows.start).filter(|own| own.end == rows.start).map(|own| own.start);
        let end = self.ends.remove(&rows.end).unwrap_or(rows.end);
        self.ends.insert(start.unwrap_or(rows.start), end);
    }

    /// Removes a range of rows, all of which are held.
    pub(crate) fn remove(&mut self, rows: &Range<u64>) {
        let Ok(own) = self.holder(rows) else { return };
        self.count -= rows.end - rows.start;
        self.ends.remove(&own.start);
        let rest = [own.start..rows.start, rows.end..own.end].into_iter().filter(|range| !range.is_empty());
        self.ends.extend(rest.map(|range| (range.start, range.end)));
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
    ///
    /// # Errors
    /// [`Row`](Error::Row) with the first row of the range that is held.
    pub(crate) fn check_absent(&self, rows: &Range<u64>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let at = self.at_or_before(rows.start).filter(|own| own.end > rows.start).map(|_| rows.start);
        match at.or_else(|| self.ends.range(rows.clone()).next().map(|(start, _)| *start)) {
            Some(row) => Err(Error::Row { row, reason: COUNTED }),
            None => Ok(()),
        }
    }

    /// The last range that does not begin after a row.
    fn at_or_before(&self, row: u64) -> Option<Range<u64>> {
        self.ends.range(..=row).next_back().map(|(start, end)| *start..*end)
    }

    /// The range that holds all of these rows, at least one; or the first row that is not held.
    fn holder(&self, rows: &Range<u64>) -> Result<Range<u64>, u64> {
        match self.at_or_before(rows.start) {
            Some(own) if own.end >= rows.end && !rows.is_empty() => Ok(own),
            Some(own) => Err(own.end.max(rows.start)),
            None => Err(rows.start),
        }
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Range, RowRanges};

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "RowRanges")]
    pub(super) struct StoredRows {
        ranges: Vec<Range<u64>>,
    }

    impl From<RowRanges> for StoredRows {
        fn from(rows: RowRanges) -> Self {
            StoredRows { ranges: rows.ranges() }
        }
    }

    impl TryFrom<StoredRows> for RowRanges {
        type Error = &'static str;

        fn try_from(StoredRows { ranges }: StoredRows) -> Result<Self, &'static str> {
            let apart = |pair: &[Range<u64>]| pair[0].end < pair[1].start;
            if !ranges.iter().all(|range| range.start < range.end) || !ranges.windows(2).all(apart) {
                return Err("ranges of rows that overlap, touch or are out of order");
            }
            let count = ranges.iter().map(|range| range.end - range.start).sum();
            Ok(RowRanges { ends: ranges.into_iter().map(|range| (range.start, range.end)).collect(), count })
        }
    }
}

impl From<Range<u64>> for RowRanges {
    fn from(range: Range<u64>) -> Self {
        let mut rows = RowRanges::default();
        rows.insert(range);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_part() {
        let with = |rows: &RowRanges, other: Range<u64>| {
            let (mut all, other) = (rows.clone(), RowRanges::from(other));
            all.check_apart(&other).map(|()| all.join(&other)).map(|()| all)
        };
        let rows = with(&RowRanges::from(5..8), 0..3).unwrap();
        assert_eq!(rows.ranges(), [0..3, 5..8]);
        assert_eq!(with(&rows, 3..5).unwrap().ranges(), [Range { start: 0, end: 8 }]);
        assert_eq!(with(&rows, 2..4).unwrap_err(), Error::Row { row: 2, reason: COUNTED });
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
                assert_eq!(rows.next(*row, 1), Err(Error::Row { row: *row, reason: COUNTED }));
            }
            assert_eq!(rows.ranges(), expected);
            assert_eq!(rows.next(297, 9), Err(Error::Row { row: 298, reason: COUNTED }));
            numbers.iter().for_each(|row| rows.remove(&(*row..row + 1)));
            assert!(rows.ranges().is_empty());
        }
    }

    /// Every second row of many, from both ends, removed and merged one by one: the record of each costs the same. To copy or to move a
    /// list of ranges a million times would take hours.
    #[test]
    fn rows_with_gaps_are_recorded_in_linear_time() {
        let mut rows = RowRanges::default();
        for row in (0..250_000).chain((250_000..500_000).rev()).map(|k| 2 * k) {
            rows.next(row, 1).map(|next| rows.insert(next)).unwrap();
        }
        assert_eq!((rows.ranges().len(), rows.len()), (500_000, 500_000));
        let mut all = RowRanges::default();
        for row in (0..500_000).rev().map(|k| 2 * k) {
            let one = RowRanges::from(row..row + 1);
            all.check_apart(&one).map(|()| all.join(&one)).unwrap();
            assert_eq!(all.len(), (1_000_000 - row) / 2);
        }
        assert_eq!(all, rows);
        for row in (0..1_000_000).step_by(2) {
            rows.check_held(&(row..row + 1)).map(|()| rows.remove(&(row..row + 1))).unwrap();
        }
        assert_eq!(rows, RowRanges::default());
    }
}
