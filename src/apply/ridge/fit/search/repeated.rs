//! The warning for rows that occur more than once.

use std::collections::HashMap;
use std::hash::Hasher;

use ndarray::ArrayView2;

use super::super::training::digest_of;
use super::super::{RidgeRows, RidgeWarning};
use crate::Real;
use crate::engine::PointsView;
use crate::error::Result;
use crate::memory::check_memory;
use crate::progress;

/// The largest share of repeated rows without a warning.
const SHARE: f64 = 0.01;
/// The number of rows between two checks for cancellation.
const ROWS: usize = 4096;

/// Warns if many rows equal an earlier row of another group in point and targets, which is found by a hash of each row. Without
/// groups, each row is a group.
pub(super) fn repeated<T: Real>(
    sample: &RidgeRows<'_, T>,
    groups: Option<&[usize]>,
) -> Result<Option<RidgeWarning>> {
    repeated_rows(sample.x.view(), sample.targets.columns.view(), groups)
}

/// Warns if many rows of points `x` and targets `y` are repeated, as [`repeated`] does.
pub(in crate::apply) fn repeated_rows<T: Real, Y: Real>(
    x: PointsView<'_, T>,
    y: ArrayView2<'_, Y>,
    groups: Option<&[usize]>,
) -> Result<Option<RidgeWarning>> {
    let rows = x.nrows();
    check_memory("hashes of rows", rows, 4 * size_of::<u64>())?;
    let mut seen = HashMap::with_capacity(rows);
    let mut repeated = 0;
    for i in 0..rows {
        if i % ROWS == 0 {
            progress::check()?;
        }
        let group = groups.map_or(i, |groups| groups[i]);
        let first = *seen.entry(digest_of(x, y.row(i), i).finish()).or_insert(group);
        repeated += usize::from(first != group);
    }
    let warn = repeated as f64 > SHARE * rows as f64;
    Ok(warn.then_some(RidgeWarning::Repeated { repeated, rows }))
}
