//! Sums over features that merge: what is left of many points when their features are not kept.
//!
//! Sums know the identity of the map whose features they add up, and which rows they hold, but not the map: they travel
//! without frequencies, and join other sums only where both are of one map and no row counts twice.

mod rows;
mod weighted;

pub(crate) use rows::RowRanges;
pub(crate) use weighted::{
    Applied, LogRow, Precision, Prepared, RunBuffers, RunSums, Span, WeightedSums, block_scales,
    exponentiate, largest, least, limit,
};
