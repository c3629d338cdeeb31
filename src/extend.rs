//! Traits for maps, couplings, kernels and laws of your own, and the types that their signatures need.
//!
//! # Which trait?
//! | you have | implement | and use it by |
//! |---|---|---|
//! | a feature map | [`FeatureMap`] | [`Map::of_feature_map`](crate::Map::of_feature_map) |
//! | an application of features | – | [`Map::fold`](crate::Map::fold), which shows a [`FeatureRun`] after the other |
//! | a device or a language of your own | – | [`Map::parts`](crate::Map::parts), which gives a map as arrays ([`Parts`]) |
//! | a feature map that is drawn from seeds and stored | [`Sketch`] | [`Sketched`](crate::map::Sketched) |
//! | a coupling of frequencies | [`Coupling`] | the `draw` of a kernel |
//! | a shift-invariant kernel | [`ShiftInvariant`], with [`Radii`] or [`Marginal`] for its law | [`AnyKernel::own`](crate::map::AnyKernel::own) |
//!
//! These items are for implementing the traits. Items for using maps are in [`map`](crate::map), [`frequency`](crate::frequency)
//! and [`kernel`](crate::kernel).
//!
//! # Lengthscales of your own kernel
//! A [`ShiftInvariant`] type holds a [`Lengthscale`](crate::kernel::Lengthscale), a number or a vector with one for
//! each coordinate, and gives its values and its law for ℓ = 1. The crate divides coordinate l of the points by ℓₗ. To
//! search lengthscales, for a type `Wide(Lengthscale)` and frequencies `omega` from its draw, take
//! `RidgeSearch::new(omega, |omega, ell| Trigonometric.build(omega, AnyKernel::own(Wide(ell))))`. For a
//! [`RadialKernel`](crate::kernel::RadialKernel) the function is `|omega, ell| Trigonometric.build(omega,
//! kernel.clone().with_lengthscale(ell)?)`.

pub use crate::engine::{Facts, FeatureMap, Form, Lift, Row, Tile};
pub use crate::frequency::coupling::{Coupling, Rows};
pub use crate::generator::Generator;
pub use crate::kernel::shift_invariant::ShiftInvariant;
pub use crate::kernel::spectrum::{Marginal, Radii, Radius, Spectrum};
pub use crate::map::fold::FeatureRun;
pub use crate::map::parts::Parts;
#[cfg(feature = "serde")]
pub use crate::map::sketch::SketchKinds;
pub use crate::map::sketch::{Sketch, SketchNumbers};
