//! Feature maps: a kernel becomes the product φ(x)·ψ(y).
//!
//! [`FeatureMap`] is the core trait: a map fills tiles of features, and everything else (batches, Gram
//! matrices, estimates) follows. [`Exponential`] is the normal form that does the work; the maps with names
//! are one page each: [`Trigonometric`], [`Positive`], [`Hyperbolic`]. [`Counting`] is its counterpart for
//! frequencies that are counts: [`Poisson`], [`Geometric`], and [`Shifted`] with positive features. Below
//! stand projections and lifts; above stand the applications.
//!
//! # Scales
//! A feature is exp(log scale) · value, with one `f64` scale for each row and block and values of at most 1
//! in magnitude. So features of any norm are finite, and the target (softmax or Gaussian) is only a scale.

pub(crate) mod batch;
mod complex_exponential;
mod counting;
mod elu_plus_one;
mod exponential;
mod feature_map;
mod features;
mod geometric;
mod gerf;
mod hyperbolic;
mod nonlinear;
mod poisson;
mod positive;
mod shifted;
mod sign;
mod target;
pub(crate) mod tiles;
mod trigonometric;

pub use crate::projection::{Scratch, Tile};
pub use complex_exponential::{ComplexExponential, Transform};
pub use counting::{CountMechanism, Counting};
pub use elu_plus_one::EluPlusOne;
pub use exponential::{Exponential, Mechanism};
pub use feature_map::{FeatureMap, Properties, Side};
pub use features::Features;
pub use geometric::Geometric;
pub use gerf::Gerf;
pub use hyperbolic::Hyperbolic;
pub use nonlinear::Nonlinear;
pub use poisson::Poisson;
pub use positive::Positive;
pub use shifted::Shifted;
pub use sign::Sign;
pub use target::Target;
pub use trigonometric::Trigonometric;
