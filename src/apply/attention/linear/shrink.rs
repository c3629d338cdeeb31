//! [`Shrinking`]: outputs of a job that are drawn towards the mean of the values.

use std::collections::BTreeSet;

use super::super::input::{Job, KeyRun, SeenValues};
use super::sink::Outputs;
use crate::Real;

/// How outputs of a job are drawn towards the mean of its values.
pub(in super::super) struct Shrinking<'a, T> {
    /// The share α of the mean.
    pub share: f64,
    /// All keys of the job, those with exact weights too.
    pub keys: KeyRun<'a, T>,
    /// Whether a query sees the keys up to its own place only.
    pub causal: bool,
    /// Batch, head and first row of each head of queries.
    origins: Vec<[usize; 3]>,
}

impl<'a, T: Real> Shrinking<'a, T> {
    /// How the outputs of a job are drawn for a share of the mean; `None` if that is 0.
    pub fn of_job(share: f64, job: &Job<'a, T>, causal: bool) -> Option<Self> {
        let origins = job.queries.iter().map(|queries| queries.origin).collect();
        (share > 0.0).then_some(Shrinking { share, keys: job.keys, causal, origins })
    }

    /// Draws the outputs of each head of queries, after the values that were `seen` before; it has then seen the job's too. Rows that are
    /// `lost` become the mean.
    pub fn apply(&self, seen: &mut SeenValues, outputs: Vec<Outputs<'_, T>>, lost: &[[usize; 3]]) {
        let before = seen.clone();
        seen.see_all(&self.keys);
        for (Outputs { mut rows, .. }, [b, h, first]) in outputs.into_iter().zip(&self.origins) {
            let lost = lost.iter().filter(|place| place[..2] == [*b, *h]).map(|place| place[2] - first);
            let lost: BTreeSet<usize> = lost.collect();
            let (mut own, mut value) = (if self.causal { before.clone() } else { seen.clone() }, Vec::new());
            for (i, row) in rows.rows_mut().into_iter().enumerate() {
                if self.causal {
                    own.see(&self.keys, i, &mut value);
                }
                own.shrink(if lost.contains(&i) { 1.0 } else { self.share }, row);
            }
        }
    }
}
