//! The manual: what does not belong to one item.
//!
//! - [`first_hour`]: classify a table, store and reload the map, write a map of your own
//! - [`experiments`]: what the examples print, each with its command
//! - [`shaped`]: features that are chosen by the data
//! - [`speed`]: times beside other libraries; [`structured`]: dense and structured projections; growth with n, d and m is
//!   on the page of [`projection`](crate::projection)
//! - where the papers are wrong: [`errata`](crate::theory::errata)

// Its programs need these features.
#[cfg_attr(all(feature = "faer", feature = "serde", feature = "testing"), doc = include_str!("doc/first_hour.md"))]
#[cfg_attr(
    not(all(feature = "faer", feature = "serde", feature = "testing")),
    doc = "Made with the features `faer`, `serde` and `testing`."
)]
pub mod first_hour {}

#[doc = include_str!("doc/experiments.md")]
pub mod experiments {}

#[doc = include_str!("doc/shaped.md")]
pub mod shaped {}

#[doc = include_str!("doc/speed.md")]
pub mod speed {}

#[doc = include_str!("doc/structured.md")]
pub mod structured {}
