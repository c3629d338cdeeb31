//! The rows that a search reads.

use super::super::Criterion;
use super::division::{FoldRows, draw_groups};
use super::steps::Search;
use crate::Real;
use crate::data::lengthscale::choose;
use crate::error::{Error, Result};

/// The least default number of rows of a search.
const ROWS: usize = 4096;
/// The least number of rows for each feature.
const ROWS_PER_FEATURE: usize = 4;

impl<T: Real> Search<'_, '_, T> {
    /// Chooses the rows of the search, for maps of up to `features` features.
    pub fn choose_rows(&mut self, features: usize) -> Result<()> {
        let n = self.all.x.nrows();
        let default = ROWS.max(features.saturating_mul(ROWS_PER_FEATURE));
        let count = self.options.rows.unwrap_or(default).min(n);
        if count < 2 {
            let (name, value) = ("the number of rows of a search", count as f64);
            return Err(Error::Parameter { name, value, domain: "at least 2" });
        }
        let rows = match &self.labels {
            Some(labels) => draw_groups(labels, count, (self.options.seed, 1))?,
            None => self.draw(n, count, 1),
        };
        let Criterion::HeldOutShare(share) = self.options.criterion else {
            self.folds = FoldRows::of(&self.options.criterion, rows.len(), self.options.seed)?;
            self.train_labels =
                self.labels.as_ref().map(|labels| rows.iter().map(|row| labels[*row]).collect());
            self.train = if rows.len() < n { Some(self.all.select(&rows)?) } else { None };
            return Ok(());
        };
        let out = (share * count as f64).round() as usize;
        if !(share > 0.0 && share < 1.0 && out > 0 && out < count) {
            let domain = "above 0 and below 1, with rows on both sides";
            return Err(Error::Parameter {
                name: "the share of rows that are held out",
                value: share,
                domain,
            });
        }
        let chosen = self.draw(count, out, 2);
        let mut held_out = vec![false; count];
        chosen.iter().for_each(|i| held_out[*i] = true);
        let part = |wanted: bool| {
            let part = rows.iter().zip(&held_out).filter(|(_, out)| **out == wanted);
            self.all.select(&part.map(|(row, _)| *row).collect::<Vec<_>>())
        };
        let (train, held_out) = (part(false)?, part(true)?);
        (self.train, self.held_out) = (Some(train), Some(held_out));
        Ok(())
    }

    /// Draws `count` numbers below n, ascending, from the stream `stream` of the seed.
    pub fn draw(&self, n: usize, count: usize, stream: u64) -> Vec<usize> {
        choose(n, count, &mut crate::rng_of_step(self.options.seed, stream))
    }
}
