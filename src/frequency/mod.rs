//! Drawing the random frequencies ω of a feature map.
//!
//! A [`Coupling`] is the joint law of the rows ω₁ … ω_m; its method `draw` draws [`Frequencies`] from it, plain
//! immutable data that stores its law. All randomness of a map enters here. The law of a draw is a
//! [`theory::Law`](crate::theory::Law), from which closed forms follow; projections and maps are built on draws.
//!
//! Except for quasi-Monte-Carlo frequencies ([`Halton`], [`Sobol`]) and [`Product`], couplings have the polar form ω = r·u:
//! the [radii](crate::extend::Radii) r of a block are drawn before its directions u. Radii determine the kernel, directions
//! the variance. [`Counts`] are the integer frequencies of the Poisson and the geometric map. Draws are made in `f64` for
//! every map, so `f32` and `f64` share a stream. Streams are pinned by tests; the changelog announces any change.
//!
//! A draw is data: a [`Draw`] knows its law and its padded dimension before anything is drawn, and with a seed it is the
//! origin of frequencies ([`Frequencies::drawn_from`]). Equal draws of one seed give equal frequencies; unequal draws share no numbers.

pub(crate) mod agreement;
mod antithetic;
pub(crate) mod any_coupling;
mod blocks;
pub(crate) mod counts;
pub(crate) mod coupling;
mod coupling_names;
mod direct;
pub(crate) mod draw;
pub(crate) mod draw_counts;
mod frequencies;
mod givens;
mod haar;
mod hadamard;
mod independent;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod leading;
pub(crate) mod of_kernel;
mod orthogonal;
mod product;
pub(crate) mod provenance;
mod quasi;
mod radii;
mod rotation;
mod shape;
pub(crate) mod simplex;
mod simplex_matrix;
mod simplex_plus;
pub(crate) mod structured;
pub(crate) mod with_radii;

pub use antithetic::Antithetic;
pub(crate) use any_coupling::{AnyCoupling, PlainCoupling};
pub use counts::Counts;
pub(crate) use counts::{CountLaw, Rates, check_probability};
pub(crate) use coupling::Coupling;
pub(crate) use draw::Draw;
pub(crate) use draw_counts::DrawCounts;
pub use frequencies::Frequencies;
pub use givens::Givens;
pub use hadamard::Hadamard;
pub use independent::Independent;
pub use orthogonal::Orthogonal;
pub use product::Product;
pub use quasi::{Halton, Sobol};
pub(crate) use shape::check_shape;
pub use simplex::Simplex;
pub(crate) use simplex::{Partial, RotationLaw};
pub(crate) use simplex_matrix::coefficients as simplex_coefficients;
pub use simplex_plus::SimplexPlus;
pub(crate) use with_radii::WithRadii;
