//! Linear attention: sums over keys, chunk by chunk and segment by segment, and what queries read from them. Who reads is a [`Sink`](sink::Sink).

mod chunks;
mod drive;
mod entry;
mod finish;
mod request;
mod scan;
mod segment;
mod sequence;
mod shrink;
mod sink;
mod worker;

pub(super) use self::drive::{continue_sequence, estimates_after, read, read_prefixes, read_suffixes};
pub(super) use self::entry::JobWithOutputs;
pub(super) use self::request::Request;
pub(super) use self::scan::{Reader, Scan, Visible};
pub(super) use self::sequence::Sequence;
#[cfg(feature = "serde")]
pub(super) use self::sequence::stored::StoredSequence;
pub(super) use self::shrink::Shrinking;
pub(super) use self::sink::{BoxedSink, ChunkRead, Outputs, Sink};
pub(super) use self::worker::Worker;
