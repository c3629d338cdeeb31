//! What the processes of a Ballista cluster need to exchange plans with these functions and tables.

mod functions;
mod logical;
mod physical;

pub use logical::LogicalCodec;
pub use physical::PhysicalCodec;
