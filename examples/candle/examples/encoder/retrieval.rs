//! The passages that are nearest to each passage, by embeddings of one way of attending and of another.

use random_features::ndarray::{Array2, Axis, concatenate};

use crate::batch::Batch;
use crate::bert::Bert;
use crate::choice::Choice;
use crate::outcome::Outcome;

/// Passages that are sought for each.
pub const NEAREST: usize = 10;

/// Passages that go through the model at once.
const AT_ONCE: usize = 8;

/// Passages with the nearest of each by exact attention.
pub struct Passages {
    batches: Vec<Batch>,
    nearest: Vec<Vec<usize>>,
}

impl Passages {
    pub fn new(bert: &Bert, exact: &Choice, texts: &[Vec<u32>]) -> Outcome<Self> {
        let batches = texts.chunks(AT_ONCE).map(Batch::new).collect::<Result<_, _>>()?;
        let mut passages = Passages { batches, nearest: Vec::new() };
        passages.nearest = passages.nearest(bert, exact)?;
        Ok(passages)
    }

    /// The share of the nearest passages that are also those of exact attention.
    pub fn overlap(&self, bert: &Bert, choice: &Choice) -> Outcome<f64> {
        let (mut same, mut all) = (0, 0);
        for (found, exact) in self.nearest(bert, choice)?.iter().zip(&self.nearest) {
            same += found.iter().filter(|passage| exact.contains(passage)).count();
            all += exact.len();
        }
        Ok(same as f64 / all as f64)
    }

    /// For each passage, the others with the largest cosines.
    fn nearest(&self, bert: &Bert, choice: &Choice) -> Outcome<Vec<Vec<usize>>> {
        let embeddings = self.batches.iter().map(|batch| choice.embed(bert, batch));
        let embeddings = embeddings.collect::<Outcome<Vec<_>>>()?;
        let views: Vec<_> = embeddings.iter().map(|x| x.view()).collect();
        let x: Array2<f32> = concatenate(Axis(0), &views)?;
        let cosines = x.dot(&x.t());
        let of_passage = |passage: usize| {
            let mut others: Vec<usize> = (0..x.nrows()).filter(|other| *other != passage).collect();
            others.sort_by(|a, b| cosines[[passage, *b]].total_cmp(&cosines[[passage, *a]]));
            others.truncate(NEAREST);
            others
        };
        Ok((0..x.nrows()).map(of_passage).collect())
    }
}
