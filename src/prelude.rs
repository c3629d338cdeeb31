//! What most programs need: `use random_features::prelude::*;`.
//!
//! The prelude has maps, couplings and kernels, [`Attention`], [`RidgeSearch`] with its [`Targets`] and [`Criterion`], [`Glm`] and
//! the [`Planner`]. Items that fewer programs need are imported by their own paths.
//!
//! ```
//! use random_features::prelude::*;
//!
//! let map: Map<f32> = Map::for_kernel(Gaussian::new(2.0)?, 3, 256, 7)?;
//! assert_eq!(map.feature_dim(), 512);
//! # Ok::<(), Error>(())
//! ```

#[cfg(feature = "regression")]
pub use crate::Targets;
#[cfg(feature = "attention")]
pub use crate::apply::attention::{Attention, Heads};
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub use crate::apply::{Criterion, Glm, RidgeSearch};
pub use crate::frequency::{Hadamard, Independent, Orthogonal, Simplex, Sobol};
pub use crate::kernel::{
    Gaussian, Kernel, Laplace, Matern, PoweredExponential, RationalQuadratic, RegularisedSoftmax, Smoothness,
    Softmax, SpectralMixture,
};
pub use crate::map::{
    AnyKernel, Features, Gerf, Hyperbolic, Map, Nonlinear, Positive, Recipe, Side, Sign, Trigonometric,
};
#[cfg(feature = "planner")]
pub use crate::planner::Planner;
pub use crate::{Error, Result, rng};
