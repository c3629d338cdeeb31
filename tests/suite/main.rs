//! The integration tests, in one program: what is generic is compiled once.

mod common;

mod clusters;
mod composed;
mod conformance;
mod counting;
mod draws;
mod engine;
mod exact_points;
mod faults;
mod guards;
mod hybrid;
mod maps;
mod nonlinear;
mod plan;
mod properties;
mod quasi;
mod ridge;
mod smoother;
mod statistics;
#[cfg(feature = "serde")]
mod stored;
mod structured;
mod theory;
