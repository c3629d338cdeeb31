//! Small dense linear algebra: what theory and maps need of it.

mod lu;

pub(crate) use lu::solve;
