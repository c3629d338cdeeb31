//! Drawing frequencies ω: what is random about a feature map.
//!
//! A [`Coupling`] says how the rows ω₁ … ω_m depend on each other; [`Coupling::draw`] turns it into [`Frequencies`],
//! plain immutable data that remembers its law. Randomness enters here, once, and nowhere else. Below stand
//! the closed forms, whose language ([`Law`](crate::theory::Law)) a draw speaks; above stand projections and maps.
//!
//! Every coupling but those of [`quasi`] has a polar form ω = r·u: a block's [`Radii`] r are drawn before its
//! directions u. Radii choose the kernel, directions the variance. [`Counts`] are frequencies of another
//! kind, for the Poisson and the geometric map. Draws are made in `f64` whatever the map computes in, so
//! `f32` and `f64` share a stream. Streams are pinned by tests; a change is announced in the changelog.
//!
//! Floors; each file uses only those above it in this list.
//!
//! - `generator`, `shape`: named generators, and sizes that can be drawn
//! - `radii`: norms and normal numbers; `haar`: uniform directions; `simplex_matrix`, `rotation`: directions as products
//! - `structured`: blocks of products; `counts`: frequencies of the other kind
//! - `frequencies`: what a draw leaves behind
//! - `source`: a seed or a generator; `coupling`: the trait and its blocks; `draw`; `with_radii`
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
pub use recipe::{AnyCoupling, AnyRadii, Draw, DrawCounts};
pub use simplex::Simplex;
pub use simplex_plus::SimplexPlus;
pub use source::Source;
pub use with_radii::WithRadii;
