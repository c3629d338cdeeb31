//! The manual: guides and measurements.
//!
//! - [`first_hour`]: classify a table, store and reload the map, write a map of your own
//! - [`regression`]: ridge regression from a table to a server: searches, streams, single rows, intervals, components
//! - [`shaped`]: features shaped by the data
//! - [`serving`]: linear attention in a server; [`training`]: in a model that learns
//! - [`speed`]: times compared with other libraries; [`structured`]: dense and structured projections; growth of times with n,
//!   d and m: [`projection`](crate::projection)
//! - [`scale`]: fits in memory, out of core and on many machines
//! - errors in the papers: [`errata`](crate::theory::errata)
//!
//! The repository's folder `experiments` has more: the output of its programs (`README.md`), and the papers' figures and tables
//! compared with this crate's results (`results`).

// Its programs need these features.
#[cfg_attr(all(feature = "faer", feature = "serde", feature = "testing"), doc = include_str!("doc/first_hour.md"))]
#[cfg_attr(
    not(all(feature = "faer", feature = "serde", feature = "testing")),
    doc = "Made with the features `faer`, `serde` and `testing`."
)]
pub mod first_hour {}

#[cfg_attr(all(feature = "faer", feature = "serde"), doc = include_str!("doc/regression.md"))]
#[cfg_attr(not(all(feature = "faer", feature = "serde")), doc = "Made with the features `faer` and `serde`.")]
pub mod regression {}

#[doc = include_str!("doc/shaped.md")]
pub mod shaped {}

#[doc = include_str!("doc/serving.md")]
pub mod serving {}

#[doc = include_str!("doc/training.md")]
pub mod training {}

#[doc = include_str!("doc/speed.md")]
pub mod speed {}

#[doc = include_str!("doc/structured.md")]
pub mod structured {}

#[doc = include_str!("doc/scale.md")]
pub mod scale {}
