//! Drawing the random frequencies ω of a feature map.
//!
//! ```
//! use random_features::frequency::Orthogonal;
//! use random_features::{Map, Trigonometric};
//! // 256 frequencies for points in ℝ⁸, from seed 7.
//! let omega = Orthogonal.draw(8, 256, 7)?;
//! assert_eq!(omega.rows().dim(), (256, 8));
//! let map: Map<f32> = Trigonometric.gaussian(omega, 2.0)?;
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! A **coupling** says how the rows ω₁ … ω_m depend on each other. Each row alone has the law of the kernel, so that estimates
//! stay unbiased. Dependence lowers their variance.
//!
//! | coupling | use |
//! |---|---|
//! | [`Orthogonal`] | the usual choice |
//! | [`Simplex`], [`SimplexPlus`] | positive features, for attention |
//! | [`Sobol`], [`Halton`], [`Product`] | up to some ten dimensions; [`Product`] for [`Laplace`](crate::kernel::Laplace) kernels |
//! | [`Hadamard`], [`Givens`] | from 64 dimensions on: fast products, approximate |
//! | [`Antithetic`] | pairs ±ω, over another coupling |
//! | [`CoupledRadii`] | radii that depend on each other, over another coupling: up to nearly half the variance less, for Gaussian, Matérn and rational quadratic kernels |
//! | [`Independent`] | the reference |
//! | [`Counts`] | integer frequencies of the Poisson and the geometric map |
//!
//! Except for quasi-Monte-Carlo frequencies and [`Product`], a frequency is ω = r·u. The radii r of a block are drawn before its
//! directions u. Radii determine the kernel ([`Radii`](crate::extend::Radii)), and directions the variance.
//!
//! [`Frequencies`] are plain data that know the law from which they were drawn. Closed forms of the error follow from this
//! [`Law`](crate::theory::Law). Draws are made in `f64`, so that `f32` and `f64` maps share them.
//!
//! A [`Draw`] states a coupling with d and m before anything is drawn. Equal draws of one seed give equal
//! frequencies, and unequal ones share no numbers. Tests pin the numbers of each seed; the changelog announces any change.

pub(crate) mod agreement;
mod antithetic;
pub(crate) mod any_coupling;
mod blocks;
pub(crate) mod counts;
pub(crate) mod coupled_radii;
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

pub use crate::theory::law::RadiusCoupling;
pub use antithetic::Antithetic;
pub(crate) use any_coupling::{AnyCoupling, PlainCoupling};
pub use counts::Counts;
pub(crate) use counts::{CountLaw, Rates, check_probability};
pub use coupled_radii::CoupledRadii;
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
