//! Linear attention: sums over keys, chunk by chunk and segment by segment, and the outputs of the queries that see them.

mod drive;
mod entry;
mod finish;
mod scan;
mod sequence;
mod sight;
mod team;
mod worker;

pub(super) use self::drive::{behind, estimates_behind, proceed, scan, see};
pub(super) use self::scan::{Asker, Lag, Outlet, Scan};
pub(super) use self::sequence::Sequence;
#[cfg(feature = "serde")]
pub(super) use self::sequence::stored::StoredSequence;
pub(super) use self::sight::Asked;
pub(super) use self::worker::Worker;
