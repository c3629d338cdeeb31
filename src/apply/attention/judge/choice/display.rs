//! A choice as a table.

use std::fmt;

use super::{AttentionCandidate, AttentionChoice};
use crate::Real;

/// Which weights are exact, in a word.
impl fmt::Display for AttentionCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.window {
            _ if self.exact => f.pad("exact"),
            [0, 0] => f.pad("linear"),
            [before, 0] => f.pad(&format!("window {before}")),
            [before, after] => f.pad(&format!("window {before} + {after}")),
        }
    }
}

impl<T: Real> fmt::Display for AttentionChoice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [queries, keys] = self.lengths;
        let sight = if self.causal { ", causal" } else { "" };
        writeln!(
            f,
            "Estimates for {queries} queries and {keys} keys{sight}, error to reach {:.2e}",
            self.error
        )?;
        writeln!(f, "  {:18} {:>8} {:>12} {:>10}", "", "m", "operations", "error")?;
        let all = f.alternate();
        for candidate in self.candidates.iter().filter(|own| all || self.is_shown(own)) {
            self.write_row(f, candidate)?;
        }
        match self.best() {
            Some(best) => write!(f, "The cheapest that reaches it (*): {best}"),
            None => f.write_str("None of them reaches it."),
        }
    }
}

impl<T: Real> AttentionChoice<T> {
    fn write_row(&self, f: &mut fmt::Formatter<'_>, candidate: &AttentionCandidate) -> fmt::Result {
        let AttentionCandidate { exact, m, operations, error, .. } = candidate;
        let mark = if self.best() == Some(*candidate) { '*' } else { ' ' };
        let m = if *exact { "–".into() } else { m.to_string() };
        let error = match error {
            Some(error) if *error == 0.0 => "0".into(),
            Some(error) => format!("{error:.2e}"),
            None => "unknown".into(),
        };
        writeln!(f, "{mark} {candidate:18} {m:>8} {operations:>12.2e} {error:>10}")
    }

    /// Whether it is the smallest of its way that reaches the error, or the largest of one that never does.
    fn is_shown(&self, own: &AttentionCandidate) -> bool {
        let of_way = || self.candidates.iter().filter(|other| other.is_alike(own));
        let shown = match of_way().find(|other| other.reaches(self.error)) {
            Some(first) => Some(first),
            None => of_way().next_back(),
        };
        shown == Some(own)
    }
}
