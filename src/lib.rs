//! Random feature maps: kernels as inner products, so that kernel methods cost O(n) instead of O(n²).
//!
//! A kernel method on n points needs n² kernel values. A random feature map φ draws m frequencies ω once and turns each
//! point into D features with K(x, y) ≈ φ(x)·φ(y), without bias and with a variance known in closed form. Sums over
//! points are then computed from features, in one pass.
//!
//! # The flow
//! ```
//! use random_features::frequency::Orthogonal;
//! use random_features::{Positive, Side};
//! # let queries = ndarray::Array2::<f32>::from_elem((5, 64), 0.1);
//! # let keys = ndarray::Array2::<f32>::from_elem((7, 64), -0.1);
//!
//! let omega = Orthogonal.draw(64, 256, 42)?;    //  frequencies: m = 256 rows in ℝ⁶⁴, from a seed
//! let map = Positive.softmax(omega)?;           //  a projection and a lift
//! let q = map.features(Side::X, &queries)?;     //  values and scales
//! let k = map.features(Side::Y, &keys)?;
//! let gram = q.gram(&k)?;                       //  estimates of exp(xᵢ·yⱼ)
//! # assert_eq!(gram.dim(), (5, 7));
//! # assert!((gram[[0, 0]] - (-0.64f32).exp()).abs() < 1e-4);
//! # Ok::<(), random_features::Error>(())
//! ```
//! Every map is a [`Map`] and is used through its methods. A map of your own implements [`FeatureMap`](extend::FeatureMap), or
//! [`Sketch`](extend::Sketch) if it shall be stored and drawn from seeds; a [`Recipe`] is a map as plain data. The
//! [first hour](manual::first_hour) continues from here.
//!
//! All randomness enters at [`draw`](frequency::Orthogonal::draw), when a map is constructed. A map then gives
//! bit-identical features for the same points on any number of threads.
//!
//! # Which map?
//! | map | features | exact where | choose it when |
//! |---|---|---|---|
//! | [`Trigonometric`] | 2m, signed | x = y | kernel values are large: the Gaussian kernel on points at distances of a lengthscale or so |
//! | [`Positive`] | m, positive | x = −y | kernel values are small and estimates must not be negative: softmax attention |
//! | [`Hyperbolic`] | 2m, positive | x = −y | as positive, with lower variance for each projection |
//! | [`Gerf`] with s = 1 and real A (OPRF) | m, positive | – | as positive, for points of larger norms: A comes from the data |
//! | [`DenseExponential`] | m, positive | – | as OPRF, for data whose sums x + y are large in few directions: all from the data ([`manual::shaped`]) |
//! | [`Importance`] | m, positive | – | frequencies have your own density: weights correct for it |
//! | [`ComplexExponential`] | m or 2m | Ax + A⁻ᵀy = 0 | queries and keys lie around known centres |
//! | [`Poisson`], [`Geometric`] | m, signed | – | coordinates are few and of one sign (with a [`Shift`](map::Shift): positive) |
//! | [`Hybrid`](compose::Hybrid) | products of its parts' features | x = y and x = −y | pairs of both kinds occur |
//! | [`Sign`] | m, ±1 | – | the angular kernel |
//! | [`Nonlinear`], [`EluPlusOne`] | m | – | a nonlinearity is asked for, not a kernel |
//!
//! All but the last two rows serve the [softmax](kernel::Softmax) and the [Gaussian](kernel::Gaussian) kernel with one
//! lengthscale or one for each dimension: the target only changes a factor. On frequencies with another spectral law,
//! trigonometric features serve any shift-invariant kernel ([Matérn](kernel::Matern), [rational
//! quadratic](kernel::RationalQuadratic), [Laplace](kernel::Laplace), [your own](kernel::ShiftInvariant)), positive and
//! hyperbolic ones the [regularised softmax](kernel::RegularisedSoftmax) kernel. [`Map::log_variance`] predicts the
//! variance of an estimate where it is known, and [`data`] chooses parameters from data. A [`Planner`](planner::Planner)
//! chooses the map itself: it ranks all maps, with all couplings and fitted parameters, by the errors to expect.
//!
//! Couplings choose ω: [`Independent`](frequency::Independent), [`Orthogonal`](frequency::Orthogonal) (never
//! worse for positive features), [`Simplex`](frequency::Simplex) (best for them), and
//! [`Antithetic`](frequency::Antithetic) pairs over any of these. In few dimensions there are [`Sobol`](frequency::Sobol)
//! points, without closed forms; in many dimensions [`Hadamard`](frequency::Hadamard) products, fast and approximate.
//!
//! # Architecture
//! Layers, from the bottom up; each uses only those above it in this list.
//!
//! - [`Error`], [`Real`], [`SignedLog`]; vectorised loops, special functions and threads (private); linear algebra
//!   ([`linalg`])
//! - exact kernels ([`kernel`]), which are the definitions, and closed forms ([`theory`])
//! - frequencies and couplings ([`frequency`]); parameters from data ([`data`])
//! - the engine (private): projections and lifts of tiles of points, folds over features without storing them; beside it
//!   [`Points`], which it reads, also from columns of Apache Arrow (`arrow`)
//! - feature maps ([`map`]) and their recipes
//! - within them sums of products of maps, a map for each pair of clusters, and maps at transformed points ([`compose`])
//! - sums of features that merge, without their map ([`reduce`]); sums of your own by [`Map::fold`]
//! - applications ([`apply`]): kernel and ridge regression, [attention](apply::attention), [softmax
//!   sampling](apply::softmax_sampling), [metrics](apply::metrics)
//! - from data and a budget to a recipe, with the error to expect ([`planner`])
//! - beside them [`progress`], which watches and stops long work, the [`manual`], and the tests for maps of your own (feature `testing`)
//!
//! # Conventions
//! - Points are rows of `ndarray` arrays of any layout; `f32` in, `f32` out. `_into` methods write to your buffers.
//! - A feature is exp(log scale) · value with `f64` scales: no norm overflows, and estimates are available as logarithms.
//!   Their errors are c · eps · (‖ω‖‖x‖ + ½‖x‖²) with the eps of the scalar; c is 0.15 in the mean square and rarely above
//!   1.5, in any dimension. ω·x itself is mostly smaller than ‖ω‖‖x‖ by √d. So errors relative to |ω·x| + ½‖x‖² are 1 eps at
//!   d = 64, 4 at d = 1024 and 7 at d = 4096, since ω·x is one sum over the coordinates; with structured projections they are
//!   1.5 eps at most.
//! - Exponentials below the smallest normal number are 0. Products of features, in hybrids and Gram matrices, may be denormal.
//! - Weights of rows and of pairs of rows are `f64`, for points of any scalar.
//! - m counts frequencies, D features. ℓ divides points before anything else.
//! - [`Points`] may be sparse (feature `sparse`): compressed rows cost as much as their non-zero entries. Columns of Apache
//!   Arrow (feature `arrow`) are read without copies of them. Results are bit-identical to those of dense points.
//! - Wrong shapes and parameters are [`Error`]s; the few methods that can panic, for use inside your own maps, say so.
//!   A row with NaN or an infinity gets NaN features and does not affect other rows.
//! - Work is spread over the threads of the caller's rayon pool (feature `rayon`, in `default`), or stays on the calling
//!   thread without that feature. Results are bit-identical for any number of threads; between instruction sets they agree
//!   to rounding. In a program that enables ndarray's feature `blas`, orthogonal draws and second moments of data have the
//!   bits of that BLAS.
//! - A forked process has none of its parent's threads. If the parent has used this crate before, work in the forked
//!   process stays on the calling thread, or uses the threads of a pool that was made after the fork. A process must not
//!   fork while this crate is at work on another of its threads.
//! - Applications are features of Cargo: `attention`, `regression` (with PCA), `sampling`, `metrics` and `planner` are in
//!   `default` beside `faer` and `rayon`. Maps alone are `default-features = false, features = ["rayon"]`; no feature changes
//!   a result of another.
//! - Stored data (feature `serde`) is read back bit-identically from every format. Text formats hold numbers that every reader
//!   reads alike as numbers. Others are strings: numbers of more than 15 digits, very large and very small ones, NaN and
//!   infinities.
//! - Couplings, kernels, maps and [functions](kernel::Activation) are read from text (`"orthogonal".parse()`), which their
//!   `Display` writes. A [`MapConfig`](map::MapConfig) is a recipe for configuration files.

// Every layer has items that only one application uses. Features only add code, so that an item that is dead with all
// applications is dead in every build. The compiler looks for such items in that build only, and no item needs a list of the
// applications that use it.
#![cfg_attr(not(all(feature = "planner", feature = "sampling")), allow(dead_code, unused_imports))]
// The documentation on docs.rs says which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "sparse")]
mod compressed;
mod error;
mod generator;
mod memory;
mod names;
mod once;
mod real;
mod signed_log;
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

#[cfg(any(feature = "attention", feature = "regression", feature = "sampling"))]
pub mod reduce;
#[cfg(feature = "regression")]
mod targets;

pub mod apply;

#[cfg(feature = "planner")]
pub mod planner;

pub mod extend;
pub mod manual;
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
pub use points::Points;
pub use real::Real;
pub use signed_log::SignedLog;
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
