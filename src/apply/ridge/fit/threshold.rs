//! The threshold between two classes.

use crate::error::{Error, Result};
use crate::numeric::descending;

/// The score of a row for the larger of two classes, the weight of the row, and whether it is of that class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredRow {
    pub score: f64,
    pub weight: f64,
    pub is_larger: bool,
}

/// The threshold of best balanced accuracy, ½ (true positive share + true negative share), where a score above it gives the
/// larger class. It is in the middle between two scores, or infinite; of equally good ones, the nearest to ½ is taken.
pub(super) fn best_threshold(mut rows: Vec<ScoredRow>) -> Result<f64> {
    rows.retain(|row| row.weight > 0.0);
    let order = descending(&rows.iter().map(|row| -row.score).collect::<Vec<f64>>());
    let rows: Vec<ScoredRow> = order.into_iter().map(|row| rows[row]).collect();
    let total =
        |larger: bool| rows.iter().filter(|row| row.is_larger == larger).map(|row| row.weight).sum::<f64>();
    let (positive, negative) = (total(true), total(false));
    if positive <= 0.0 || negative <= 0.0 {
        let (name, domain) = ("the number of classes that rows of a threshold have", "2");
        let value = f64::from(u8::from(positive > 0.0) + u8::from(negative > 0.0));
        return Err(Error::Parameter { name, value, domain });
    }
    let accuracy = |missed: f64, right: f64| 0.5 * ((positive - missed) / positive + right / negative);
    let mut best = (accuracy(0.0, 0.0), f64::NEG_INFINITY);
    let (mut missed, mut right) = (0.0, 0.0);
    for (i, row) in rows.iter().enumerate() {
        if row.is_larger {
            missed += row.weight
        } else {
            right += row.weight
        }
        let at = match rows.get(i + 1) {
            Some(next) if next.score == row.score => continue,
            Some(next) => row.score + 0.5 * (next.score - row.score),
            None => f64::INFINITY,
        };
        let own = accuracy(missed, right);
        // Shares that are equal may differ by their rounding.
        let rounding = 1e-12;
        let nearer = (at - 0.5).abs() < (best.1 - 0.5).abs();
        if own > best.0 + rounding || (own >= best.0 - rounding && nearer) {
            best = (own.max(best.0), at);
        }
    }
    Ok(best.1)
}
