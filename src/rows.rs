//! [`RowRanges`]: which rows of a data set a state holds.

use std::ops::Range;

use crate::error::{Error, Result};

/// Rows of a data set by number: ascending ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RowRanges {
    ranges: Vec<Range<u64>>,
}

impl RowRanges {
    /// The numbers of `count` rows of which this is the first. They are below 2⁶⁴ − 1, so that a number comes after each.
    ///
    /// # Errors
    /// [`Row`](Error::Row) otherwise.
    pub(crate) fn numbers(first: u64, count: usize) -> Result<Range<u64>> {
        let end = u64::try_from(count).ok().and_then(|count| first.checked_add(count));
        let beyond = Error::Row { row: u64::MAX, reason: "is beyond the last number that a row can have" };
        Ok(first..end.ok_or(beyond)?)
    }

    /// Rejects a row that is held as the first of the next ones.
    ///
    /// # Errors
    /// [`Row`](Error::Row).
    pub(crate) fn check_start(&self, row: u64) -> Result<()> {
        self.with(&RowRanges::from(row..row.saturating_add(1))).map(drop)
    }

    /// These rows with `count` more from `first` on, and the number after those.
    ///
    /// # Errors
    /// As [`numbers`](RowRanges::numbers) and [`with`](RowRanges::with).
    pub(crate) fn and_next(&self, first: u64, count: usize) -> Result<(RowRanges, u64)> {
        let next = Self::numbers(first, count)?;
        let end = next.end;
        Ok((self.with(&RowRanges::from(next))?, end))
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

    /// These rows and others.
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

    /// These rows without a range of them.
    ///
    /// # Errors
    /// [`Row`](Error::Row) with the first row of the range that is not held.
    pub(crate) fn without(&self, out: Range<u64>) -> Result<RowRanges> {
        if out.is_empty() {
            return Ok(self.clone());
        }
        let around = |range: &&Range<u64>| range.start <= out.start && out.start < range.end;
        let missing = match self.ranges.iter().find(around) {
            Some(range) if out.end <= range.end => None,
            Some(range) => Some(range.end),
            None => Some(out.start),
        };
        if let Some(row) = missing {
            return Err(Error::Row { row, reason: "was never counted" });
        }
        let cut = |range: &Range<u64>| {
            let parts = [range.start..range.end.min(out.start), range.start.max(out.end)..range.end];
            parts.into_iter().filter(|part| part.start < part.end)
        };
        Ok(RowRanges { ranges: self.ranges.iter().flat_map(cut).collect() })
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
        assert_eq!(rows.without(6..7).unwrap().ranges(), [0..3, 5..6, 7..8]);
        assert_eq!(rows.without(5..8).unwrap().ranges(), [Range { start: 0, end: 3 }]);
        assert_eq!(rows.without(2..6).unwrap_err(), Error::Row { row: 3, reason: "was never counted" });
        assert_eq!(rows.without(4..6).unwrap_err(), Error::Row { row: 4, reason: "was never counted" });
        assert_eq!((rows.len(), rows.end()), (6, Some(8)));
        assert_eq!(RowRanges::from(3..3).len(), 0);
        assert_eq!(RowRanges::numbers(u64::MAX - 2, 2).unwrap(), u64::MAX - 2..u64::MAX);
        assert!(RowRanges::numbers(u64::MAX - 2, 3).is_err());
    }
}
