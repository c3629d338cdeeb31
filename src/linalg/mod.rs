//! Small dense linear algebra: what theory, frequencies and maps need of it.

mod householder;
mod lu;

pub(crate) use householder::orthonormal_rows;
pub(crate) use lu::solve;
