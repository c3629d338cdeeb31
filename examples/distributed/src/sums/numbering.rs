//! [`Numbered`]: rows on their way into sums, cut where chunks are.

use datafusion::common::Result;
use random_features::apply::RidgeStatistics;

use super::Sums;
use crate::columns::Columns;
use crate::fault::at_row;

/// Rows are summed in chunks of this many.
const CHUNK: u64 = RidgeStatistics::<f64>::CHUNK;

/// Sums, and the rows of a chunk that may not be complete yet.
///
/// Batches of an engine end where files and their parts do. The rows of a chunk are handed on together, whatever the batches are
/// and however many of them a condition or a group leaves, so that sums have the same bits.
#[derive(Debug)]
pub(super) struct Numbered {
    sums: Box<dyn Sums>,
    /// Rows of one chunk, in the order of their numbers.
    pending: Vec<Columns>,
    /// The numbers of these rows.
    numbers: Vec<u64>,
}

impl Numbered {
    pub fn new(sums: Box<dyn Sums>) -> Self {
        Numbered { sums, pending: Vec::new(), numbers: Vec::new() }
    }

    /// Adds rows of these numbers.
    pub fn push(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let mut start = 0;
        while start < numbers.len() {
            let descent = numbers[start..].windows(2).position(|pair| pair[0] >= pair[1]);
            let end = descent.map_or(numbers.len(), |before| start + before + 1);
            self.push_ascending(&numbers[start..end], &rows.slice(start, end - start))?;
            start = end;
        }
        Ok(())
    }

    /// Adds rows in the order of their numbers, of which there is at least one: whole chunks at once, without a copy.
    fn push_ascending(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let mut done = 0;
        if let Some(held) = self.numbers.last() {
            let chunk = held / CHUNK;
            if *held < first && first / CHUNK == chunk {
                done = numbers.partition_point(|number| number / CHUNK == chunk);
                self.keep(&numbers[..done], rows.slice(0, done));
            }
            if done < numbers.len() {
                self.flush()?;
            }
        }
        let is_complete = last % CHUNK == CHUNK - 1;
        let whole = numbers.partition_point(|number| number / CHUNK < last / CHUNK || is_complete).max(done);
        if whole > done {
            self.take(&numbers[done..whole], &rows.slice(done, whole - done))?;
        }
        if numbers.len() > whole {
            self.keep(&numbers[whole..], rows.slice(whole, numbers.len() - whole));
        }
        Ok(())
    }

    /// Adds the rows of the chunk that may not be complete.
    fn flush(&mut self) -> Result<()> {
        let (pending, numbers) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.numbers));
        match pending.as_slice() {
            [] => Ok(()),
            [rows] => self.take(&numbers, rows),
            parts => self.take(&numbers, &Columns::joined(parts)?),
        }
    }

    /// The sums, of all rows.
    pub fn finished(&mut self) -> Result<&mut dyn Sums> {
        self.flush()?;
        Ok(self.sums.as_mut())
    }

    /// What the sums hold, in bytes.
    pub fn bytes(&self) -> usize {
        self.sums.bytes()
    }

    fn keep(&mut self, numbers: &[u64], rows: Columns) {
        self.numbers.extend_from_slice(numbers);
        self.pending.push(rows);
    }

    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()> {
        let located = |error| match rows.wrong_number() {
            Some((row, what)) => at_row(numbers[row], what),
            None => error,
        };
        self.sums.take(numbers, rows).map_err(located)
    }
}

/// Ranges of places whose numbers follow each other.
pub(super) fn runs(numbers: &[u64]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = numbers.get(start..).filter(|rest| !rest.is_empty())?;
        let gap = rest.windows(2).position(|pair| pair[0].checked_add(1) != Some(pair[1]));
        let run = start..gap.map_or(numbers.len(), |before| start + before + 1);
        start = run.end;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_at_gaps() {
        let places = |numbers: &[u64]| runs(numbers).collect::<Vec<_>>();
        assert!(places(&[]).is_empty());
        assert_eq!(places(&[4, 5, 7, 8, 9, 20]), [0..2, 2..5, 5..6]);
        assert_eq!(places(&[u64::MAX, 0]), [0..1, 1..2]);
    }
}
