//! [`Numbered`]: rows on their way into sums, cut where chunks are.

use datafusion::common::Result;
use random_features::apply::RidgeStatistics;

use super::Sums;
use crate::columns::Columns;
use crate::fault::at_row;

/// Rows are summed in chunks of this many.
const CHUNK: u64 = RidgeStatistics::<f64>::CHUNK;

/// Sums, and the rows of a chunk that is not complete yet.
///
/// Batches of an engine end where files and their parts do. Rows that follow each other are handed on in whole chunks, whatever
/// the batches are, so that sums have the same bits.
#[derive(Debug)]
pub(super) struct Numbered {
    sums: Box<dyn Sums>,
    /// Rows of one chunk, that follow each other.
    pending: Vec<Columns>,
    /// The row after them.
    next: u64,
    /// The row that the sums expect.
    expected: Option<u64>,
}

impl Numbered {
    pub fn new(sums: Box<dyn Sums>) -> Self {
        Numbered { sums, pending: Vec::new(), next: 0, expected: None }
    }

    /// Adds rows of which this is the first.
    pub fn push(&mut self, first: u64, rows: &Columns) -> Result<()> {
        if first != self.next {
            self.flush()?;
            self.next = first;
        }
        let mut done = 0;
        if !self.pending.is_empty() || !self.next.is_multiple_of(CHUNK) {
            done = rows.rows().min((CHUNK - self.next % CHUNK) as usize);
            self.keep(rows.slice(0, done));
            if self.next.is_multiple_of(CHUNK) {
                self.flush()?;
            }
        }
        let left = rows.rows() - done;
        let whole = left - left % CHUNK as usize;
        if whole > 0 {
            self.take(&rows.slice(done, whole))?;
            self.next += whole as u64;
        }
        if left > whole {
            self.keep(rows.slice(done + whole, left - whole));
        }
        Ok(())
    }

    /// Adds the rows of the chunk that is not complete.
    pub fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => Ok(()),
            [rows] => self.take_before(rows),
            parts => self.take_before(&Columns::joined(parts)?),
        }
    }

    /// The sums, of all rows. What follows begins anew.
    pub fn finished(&mut self) -> Result<&mut dyn Sums> {
        self.flush()?;
        self.expected = None;
        Ok(self.sums.as_mut())
    }

    /// What the sums hold, in bytes.
    pub fn bytes(&self) -> usize {
        self.sums.bytes()
    }

    fn keep(&mut self, rows: Columns) {
        self.next = self.next.saturating_add(rows.rows() as u64);
        if rows.rows() > 0 {
            self.pending.push(rows);
        }
    }

    /// Adds rows that end before the next one.
    fn take_before(&mut self, rows: &Columns) -> Result<()> {
        let first = self.next.saturating_sub(rows.rows() as u64);
        self.take_from(first, rows)
    }

    /// Adds rows that begin at the next one.
    fn take(&mut self, rows: &Columns) -> Result<()> {
        self.take_from(self.next, rows)
    }

    fn take_from(&mut self, first: u64, rows: &Columns) -> Result<()> {
        if self.expected != Some(first) {
            self.sums.begin_at(first)?;
        }
        self.expected = None;
        let taken = self.sums.take(first, rows);
        taken.map_err(|error| match rows.not_finite() {
            Some((row, what)) => at_row(first + row as u64, what),
            None => error,
        })?;
        self.expected = Some(first.saturating_add(rows.rows() as u64));
        Ok(())
    }
}
