//! Random Fourier features, FAVOR+ attention and kernel ridge regression in linear time, on CPUs, with the error of the
//! approximation known before you compute.
//!
//! A kernel method on n points needs n² kernel values. Random features turn each point into D numbers whose inner products
//! estimate these values: K(x, y) ≈ φ(x)·φ(y). Time and memory then grow with n instead of n².
//!
//! # What you can do
//! | task | take | guide |
//! |---|---|---|
//! | regression and classification, with intervals | [`RidgeSearch`](apply::RidgeSearch) | [regression](manual::regression) |
//! | attention: train, serve, decode token by token | [`Attention`](apply::attention::Attention) | [training](manual::training), [serving](manual::serving), [pretrained](manual::pretrained) |
//! | features as an array, for another model | [`Map`] | [first hour](manual::first_hour) |
//! | principal components of a kernel, in batches | [`PcaStatistics`](apply::pca::PcaStatistics) | [regression](manual::regression) |
//! | training with a softmax over very many classes | [`SampledSoftmax`](apply::softmax_sampling::SampledSoftmax) | [sampling](manual::sampling) |
//! | data beyond one machine's memory | [`RidgeStatistics`](apply::RidgeStatistics) | [scale](manual::scale) |
//! | the best features for your points | [`Planner`] | [which map](manual::which_map) |
//!
//! Users of other libraries find their names in [coming from](manual::coming_from), and words in the
//! [glossary](manual::glossary).
//!
//! # A whole program
//! ```
//! use random_features::ndarray::{Array1, Array2};
//! use random_features::prelude::*;
//!
//! fn main() -> Result<()> {
//!     // 2000 points in the plane, and a target for each.
//!     let mut rng = rng(1);
//!     let x = Array2::from_shape_simple_fn((2000, 2), || rng.normal());
//!     let y: Array1<f64> = x.rows().into_iter().map(|x| x[0] * x[1]).collect();
//!
//!     // Features as an array: Gaussian kernel, ℓ = 1, 128 frequencies, seed 7.
//!     let map: Map<f64> = Map::for_kernel(Gaussian::new(1.0)?, 2, 128, 7)?;
//!     let phi = map.transform(&x)?;
//!     assert_eq!(phi.dim(), (2000, 256));
//!
//!     // Ridge regression on such features; ℓ and λ are searched for.
//!     let fit = RidgeSearch::gaussian(2, 128, 7)?.fit(&x, &y)?;
//!     println!("{fit}");
//!     let error = fit.model().predict_single(&x)? - &y;
//!     assert!(error.iter().all(|e| e.abs() < 0.5));
//!
//!     // Which features would have been best for these points?
//!     let plan = Planner::of_one_set(&x)?.with_max_features(256).plan()?;
//!     println!("{plan}");
//!     Ok(())
//! }
//! ```
//!
//! # How the parts fit together
//!
#![doc = include_str!("doc/flow.svg")]
//!
//! A **recipe** is a map as plain data. A seed draws its frequencies, and makes it a **map**, from points to features. A map is
//! not random any more: it gives the same features for the same points, on any number of threads. Methods that draw rows, pairs
//! or classes take a seed of their own. Applications take a map and compute sums of features that they never store.
//!
//! # Where to find what
//! **To use**: [`map`] has all maps, and [`compose`] combines them. [`frequency`] draws frequencies. [`kernel`] has exact kernels.
//! [`apply`] has the applications. [`data`] has statistics of points, and lengthscales. The [`planner`] ranks maps. [`progress`]
//! watches and stops long work. The [`prelude`] has what programs need most. The [`manual`] has guides and measurements.
//!
//! **To extend**: [`extend`] has the traits for maps, kernels and couplings of your own. The Cargo feature `testing` verifies them.
//!
//! **To store and compare**: [`recipe`] has the parts of recipes. [`reduce`] has sums that machines exchange.
//!
//! **To look up**: [`theory`] has variances and bounds in closed form, with [errata](theory::errata) of the papers.
//!
//! # Which map?
//! [`Map::for_kernel`] takes the map and the coupling that suit a kernel. To choose yourself:
//!
#![doc = include_str!("doc/maps.md")]
//!
//! [Which map, how many features](manual::which_map) says more, and [what it costs](manual::cost) has the times.
//!
//! # Conventions
//! - Points are rows of arrays of `ndarray` in any layout. [`Points`] may also be sparse rows or columns of Apache Arrow.
//!   Features, estimates and predictions have the scalar type of the points. `_into` methods write to your buffers.
//! - Sizes: n points in d dimensions, m frequencies, D features ([`Map::feature_dim`]). A lengthscale ℓ divides points
//!   before anything else.
//! - A Gaussian feature is the softmax feature times exp(−½‖x‖²/ℓ²). All maps but [`Sign`], [`Nonlinear`]
//!   and [`EluPlusOne`] serve both kernels.
//! - Features carry a separate `f64` log scale, so that attention and logarithms of estimates do not overflow.
//!   Estimates, Gram matrices and the arrays of [`Map::transform`] may overflow to ±∞. Relative errors by rounding are
//!   a few eps of the scalar.
//! - Exponentials below the smallest normal number are 0.
//! - Weights of rows and of pairs are `f64` for points of either scalar.
//! - Wrong shapes and parameters are an [`Error`]. The few methods that can panic, for use inside your own maps, say so. A row
//!   with NaN or an infinity gets NaN features and does not affect other rows.
//! - Work is spread over the threads of the caller's rayon pool (feature `rayon`). Results are bit-identical for any number of
//!   threads, but for factorisations by a LAPACK, which has threads of its own. Results agree to rounding between instruction
//!   sets. With ndarray's feature `blas`, draws of orthogonal frequencies
//!   have the bits of that BLAS.
//! - A forked process has none of its parent's threads: there work stays on the calling thread, or uses a pool that was made
//!   after the fork. Do not fork while this crate is at work on another thread.
//! - Applications are Cargo features: `attention`, `regression` (with PCA), `sampling`, `metrics` and `planner` are in
//!   `default`, as are `faer` and `rayon`. `npy`, `half`, `sparse` and `arrow` read NumPy files, half precision, sparse rows and
//!   Arrow columns; `serde` stores; `ndarray-linalg` factorises by a LAPACK. To enable an application changes no result of another.
//! - With the feature `precompiled`, in `default`, functions are compiled for `f32` and `f64` with the library, so that programs are
//!   rebuilt in seconds. Without it the library is built sooner, and each program compiles what it calls. Such a program must be
//!   optimised itself, or its loops are not.
//! - What is stored (feature `serde`) is read back to the bit, from every format. In text formats, numbers that some readers
//!   would round are strings.
//! - Couplings, kernels, maps and functions are read from the text that they print: `"orthogonal".parse()`. A
//!   [`MapConfig`](map::MapConfig) is a recipe for configuration files.
//!
//! [`Orthogonal`]: frequency::Orthogonal
//! [`Sobol`]: frequency::Sobol
//! [`Simplex`]: frequency::Simplex
//! [`Hadamard`]: frequency::Hadamard
//! [`Shaping`]: data::shaping::Shaping
//! [`Hybrid`]: compose::Hybrid
//! [`Nystroem`]: map::Nystroem
//! [`Planner`]: planner::Planner

// Every layer has items that only one application uses, or that only a linear algebra uses. Features only add code, so that an item that is
// dead with all of them is dead in every build. The compiler looks for such items in that build only, and no item needs a list of
// what uses it.
#![cfg_attr(
    not(all(feature = "planner", feature = "sampling", any(feature = "faer", feature = "ndarray-linalg"))),
    allow(dead_code, unused_imports)
)]
// The documentation on docs.rs says which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "sparse")]
mod compressed;
mod error;
mod generator;
mod kept;
mod memory;
mod names;
mod once;
mod real;
mod stored;
#[cfg(feature = "attention")]
mod whole;

use stored::{digest, rows, tagged};
#[cfg(feature = "serde")]
use stored::{exact, sealed};

pub mod linalg;
mod numeric;
mod threads;

pub mod kernel;
pub mod theory;

pub mod frequency;

pub mod data;

#[cfg(feature = "arrow")]
pub mod arrow;
mod engine;
mod points;
pub mod progress;

pub mod compose;
pub mod map;

#[cfg(feature = "regression")]
mod labels;
#[cfg(any(feature = "attention", feature = "regression", feature = "sampling"))]
pub mod reduce;
#[cfg(feature = "regression")]
mod targets;

pub mod apply;

#[cfg(feature = "planner")]
pub mod planner;

pub mod extend;
pub mod manual;
pub mod prelude;
pub mod recipe;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod workbench;

#[cfg(feature = "npy")]
pub mod npy;

#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Error, Result};
pub use generator::{rng, rng_of_step};
pub use map::{
    ComplexExponential, DenseExponential, EluPlusOne, Features, Geometric, Gerf, Hyperbolic, Importance, Map,
    Nonlinear, Poisson, Positive, Recipe, Side, Sign, Trigonometric,
};
pub use numeric::special::SignedLog;
pub use points::Points;
pub use real::Real;
#[cfg(feature = "regression")]
pub use targets::Targets;

// The crates whose types occur in public signatures.
#[cfg(feature = "arrow")]
pub use arrow_array;
#[cfg(feature = "sparse")]
pub use sprs;
pub use {ndarray, num_complex, rand};

/// Tests the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
