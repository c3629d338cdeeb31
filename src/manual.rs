//! The manual: guides and measurements.
//!
//! # To begin with
//! - [`first_hour`]: classify a table, plan its features, store the model, write a map of your own
//! - [`which_map`]: which map, and how many features
//! - [`coming_from`]: from scikit-learn, performer-pytorch, GPyTorch or linfa
//! - [`glossary`]: symbols and words
//!
//! # For an application
//! - [`regression`]: ridge regression from a table to a server, with intervals and principal components
//! - [`scale`]: fits in memory, out of core and on many machines
//! - [`training`]: linear attention in a model that learns; [`serving`]: in a server
//! - [`sampling`]: a softmax over very many classes
//! - [`shaped`]: features fitted to data of large norms
//! - [`pretrained`]: a model's attention made linear without training
//!
//! # Measurements
//! - [`cost`]: time and memory of everything, and where exact kernels are better
//! - [`speed`]: times beside other libraries; [`structured`]: dense and structured projections
//! - [`growth`]: how times grow with n, d and m
//! - [`errata`](crate::theory::errata): errors in the papers
//!
//! # Programs
//! `cargo run --release --example NAME` runs each in a checkout of the repository.
//!
//! | example | shows |
//! |---|---|
//! | `task_regression`, `task_attention`, … | one task each, in fewer than fifty lines (`examples/tasks`) |
//! | `quickstart` | a plan, its map, and estimates beside exact kernel values |
//! | `own_map`, `own_application` | a map, a kernel and a coupling of your own, verified; a fold over features of your own |
//! | `classification` | ridge and kernel regression, beside the exact kernel |
//! | `ridge_streaming` | ridge regression of ten million points in bounded memory |
//!
//! The repository's folder `experiments` has the output of its programs, and the papers' figures and tables beside this
//! crate's results.

// Its programs need these features.
#[cfg_attr(all(feature = "faer", feature = "serde", feature = "testing"), doc = include_str!("doc/first_hour.md"))]
#[cfg_attr(
    not(all(feature = "faer", feature = "serde", feature = "testing")),
    doc = "To read this page: `cargo doc --features serde,testing`, with the default features."
)]
pub mod first_hour {}

#[cfg_attr(all(feature = "faer", feature = "serde"), doc = include_str!("doc/regression.md"))]
#[cfg_attr(
    not(all(feature = "faer", feature = "serde")),
    doc = "To read this page: `cargo doc --features serde`, with the default features."
)]
pub mod regression {}

#[cfg_attr(all(feature = "faer", feature = "planner"), doc = include_str!("doc/which_map.md"))]
#[cfg_attr(
    not(all(feature = "faer", feature = "planner")),
    doc = "Made with the features `faer` and `planner`."
)]
pub mod which_map {}

#[cfg_attr(all(feature = "attention", feature = "faer", feature = "regression"), doc = include_str!("doc/coming_from.md"))]
#[cfg_attr(
    not(all(feature = "attention", feature = "faer", feature = "regression")),
    doc = "Made with the features `attention`, `faer` and `regression`."
)]
pub mod coming_from {}

#[doc = include_str!("doc/glossary.md")]
pub mod glossary {}

#[doc = include_str!("doc/cost.md")]
pub mod cost {}

#[doc = "# Features fitted to the data"]
#[doc = ""]
#[doc = include_str!("doc/shaped.md")]
pub mod shaped {}

#[doc = "# A pretrained model with linear attention"]
#[doc = ""]
#[doc = include_str!("doc/pretrained.md")]
pub mod pretrained {}

#[doc = "# Attention in a server"]
#[doc = ""]
#[doc = include_str!("doc/serving.md")]
pub mod serving {}

#[doc = "# Attention in a model that learns"]
#[doc = ""]
#[doc = include_str!("doc/training.md")]
pub mod training {}

#[cfg_attr(all(feature = "sampling", feature = "faer"), doc = include_str!("doc/sampling.md"))]
#[cfg_attr(
    not(all(feature = "sampling", feature = "faer")),
    doc = "Made with the features `faer` and `sampling`."
)]
pub mod sampling {}

#[doc = include_str!("doc/speed.md")]
pub mod speed {}

#[doc = include_str!("doc/structured.md")]
pub mod structured {}

#[doc = include_str!("doc/growth.md")]
pub mod growth {}

#[doc = include_str!("doc/scale.md")]
pub mod scale {}

#[cfg(test)]
mod tests {
    /// The README has the table of maps of the first page, without its links.
    #[test]
    fn one_table_says_which_map() {
        let table = include_str!("doc/maps.md").replace("[`", "`").replace("`]", "`");
        assert!(include_str!("../README.md").contains(&table));
    }
}
