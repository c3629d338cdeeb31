//! The manual: guides and measurements.
//!
//! # To begin with
//! - [`first_hour`]: classify a table, plan its features, store the model, write a map of your own
//! - [`glossary`]: symbols and words
//!
//! # For an application
//! - [`regression`]: ridge regression from a table to a server, with intervals and principal components
//! - [`scale`]: fits in memory, out of core and on many machines
//! - [`training`]: linear attention in a model that learns; [`serving`]: in a server
//! - [`shaped`]: features fitted to data of large norms
//!
//! # Measurements
//! - [`cost`]: time and memory of everything, and where exact kernels are better
//! - [`speed`]: times beside other libraries; [`structured`]: dense and structured projections
//! - [`projection`](crate::projection): how times grow with n, d and m
//! - [`errata`](crate::theory::errata): errors in the papers
//!
//! The repository's folder `experiments` has the output of its programs, and the papers' figures and tables beside this
//! crate's results.

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

#[doc = include_str!("doc/glossary.md")]
pub mod glossary {}

#[doc = include_str!("doc/cost.md")]
pub mod cost {}

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
