//! A layer's attention as a table.

use std::fmt;

use super::{HeadCandidate, HeadwiseAttention};
use crate::Real;

impl<T: Real> fmt::Display for HeadwiseAttention<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>4}  {:15} {:>5} {:>11} {:>5} {:>6} {:>8} {:>11} {:>8}",
            "head", "features", "m", "window", "keys", "share", "pairs", "operations", "error"
        )?;
        for (head, chosen) in self.chosen().enumerate() {
            writeln!(f, "{head:>4}  {chosen}")?;
        }
        write!(
            f,
            "On average {:.1} exact pairs and {:.2e} operations a query.",
            self.pairs(),
            self.operations()
        )
    }
}

/// A row of the table.
impl fmt::Display for HeadCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeadCandidate { features, m, window, exact_keys, share, pairs, .. } = self;
        let window = match window {
            [0, 0] => "–".into(),
            [before, after] => format!("{before} + {after}"),
        };
        write!(f, "{features:15} {m:>5} {window:>11} {exact_keys:>5} {share:>6.3} {pairs:>8.1}")?;
        write!(f, " {:>11.2e} {:>8.1e}", self.operations, self.error)
    }
}
