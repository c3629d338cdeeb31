//! The library of the experiments: what their programs share, and the tests with them.
//!
//! - the command line of a program ([`command`]), its line of progress ([`progress`]) and its pictures ([`plot`])
//! - tables of points with classes ([`dataset`]), and queries, keys and values of a trained transformer ([`tokens`])
//! - maps for attention, and tokens to compare them on ([`attention`])
//! - proposals of classes, and a classifier that is trained by them ([`sampling`])
//! - a transformer of characters, and its training ([`transformer`])
//! - kinds of data to plan for, and the regret of plans ([`planning`])
//! - values of closed forms, computed independently ([`golden`])
//!
//! Each program stands in a folder of its own beside `src`. What only one program needs stands in that folder.

pub mod attention;
pub mod command;
pub mod dataset;
pub mod golden;
pub mod planning;
pub mod plot;
pub mod progress;
pub mod sampling;
pub mod tokens;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub mod transformer;
