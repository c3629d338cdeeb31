//! Drawing the random frequencies ω of a feature map.
//!
//! A [`Coupling`] is the joint law of the rows ω₁ … ω_m; [`Coupling::draw`] draws [`Frequencies`] from it, plain
//! immutable data that stores its law. All randomness of a map enters here. The law of a draw is a
//! [`theory::Law`](crate::theory::Law), from which closed forms follow; projections and maps are built on draws.
//!
//! Except for [`quasi`] and [`Product`], couplings have the polar form ω = r·u: the [`Radii`] r of a block are drawn
//! before its directions u. Radii determine the kernel, directions the variance. [`Counts`] are the integer frequencies
//! of the Poisson and the geometric map. Draws are made in `f64` for every map, so `f32` and `f64` share a stream.
//! Streams are pinned by tests; the changelog announces any change.
//!
//! Files, each of which uses only those above it in this list:
//!
//! - `generator`, `shape`: generators, and checks of sizes
//! - `radii`: norms and normal numbers; `haar`: uniform directions; `simplex_matrix`, `rotation`: directions as
//!   products of factors
//! - `structured`: blocks of such products; `counts`: integer frequencies
//! - `frequencies`: the result of a draw
//! - `source`: a seed or a generator; `coupling`: the trait and its blocks; `draw`; `with_radii`; `recipe`: draws as
//!   plain data
//! - couplings: `independent`, `product`, `orthogonal`, `hadamard`, `givens`, `simplex_plus`, `quasi`; over others of them
//!   `simplex` and `antithetic`

mod antithetic;
mod counts;
mod coupling;
mod draw;
mod frequencies;
mod generator;
mod givens;
mod haar;
mod hadamard;
mod independent;
mod orthogonal;
mod product;
pub mod quasi;
mod radii;
mod recipe;
mod rotation;
mod shape;
pub mod simplex;
mod simplex_matrix;
pub mod simplex_plus;
mod source;
pub mod structured;
mod with_radii;

pub use antithetic::Antithetic;
pub(crate) use counts::check_probability;
pub use counts::{CountLaw, Counts, Rates, draw_geometric, draw_poisson};
pub use coupling::{Coupling, Drawn, Rows};
pub use draw::{draw, draw_with};
pub use frequencies::Frequencies;
pub use generator::{rng, rng_of_step};
pub use givens::Givens;
pub use hadamard::Hadamard;
pub use independent::Independent;
pub use orthogonal::Orthogonal;
pub use product::Product;
pub use quasi::{Halton, Sobol};
pub use radii::{Chi, Radii, RootDim};
pub use recipe::{AnyCoupling, AnyProduct, Draw, DrawCounts, Points};
pub use simplex::Simplex;
pub use simplex_plus::SimplexPlus;
pub use source::Source;
pub use with_radii::WithRadii;
