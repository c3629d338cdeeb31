//! Fits over several machines, on Ballista: what the feature `cluster` adds.
//!
//! - [`session`] makes sessions whose queries a cluster answers.
//! - [`server`] runs the processes of a cluster.
//! - [`codec`] lets these exchange plans with the functions and tables of this package.
//! - [`watch`] asks a cluster's scheduler how far a job is.

pub mod codec;
pub mod server;
pub mod session;
pub mod watch;
