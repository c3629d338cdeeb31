//! Choosing the parameters of maps and kernels from data.
//!
//! [`Statistics`] reads points once, in O(nd), and keeps a few numbers for each coordinate. [`PairStatistics`] combines the
//! statistics of queries and keys. It chooses parameters that are optimal on average over all pairs, without a loop over pairs.
//! [`shaping`] chooses shifts, a basis and coefficients from second moments, and [`lengthscale`] has the usual heuristics for ℓ.
//! Parameters are plain numbers that are passed to constructors of maps and kernels.
//! [`periodic`] makes hours, days and angles points on circles.
//!
//! ```
//! use random_features::ndarray::arr2;
//! use random_features::data::{PairStatistics, Statistics, lengthscale};
//! let queries =
//!     Statistics::of(&arr2(&[[0.5, 1.0], [0.25, -1.0], [1.0, 0.0]]))?;
//! let keys = Statistics::of(&arr2(&[[1.0, 0.5], [-0.5, 0.5]]))?;
//! let scale = lengthscale::of_statistics(&queries)?;
//! // Closed forms are for points divided by the lengthscale.
//! let (queries, keys) = (queries.divided_by(scale)?, keys.divided_by(scale)?);
//! let (a, sign) = PairStatistics::new(&queries, &keys)?.oprf();
//! assert!(a < 0.0 && random_features::Gerf::new(a, sign).is_ok());
//! # Ok::<(), random_features::Error>(())
//! ```

pub(crate) mod clustering;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod gram_spectrum;
pub mod lengthscale;
mod pair_statistics;
mod periodic;
mod reservoir;
pub mod shaping;
pub(crate) mod spread;
pub(crate) mod standardisation;
pub(crate) mod statistics;

pub use clustering::Clustering;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use gram_spectrum::GramSpectrum;
pub use pair_statistics::PairStatistics;
pub use periodic::periodic;
pub use reservoir::Reservoir;
pub use statistics::Statistics;
