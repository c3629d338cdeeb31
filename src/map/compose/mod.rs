//! Hybrid random features: maps that are sums of products of maps.
//!
//! A hybrid estimate Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q gives most weight, for each pair of points, to the estimator that is
//! accurate there; its coefficients λ̂ are estimated as well. A product of estimates is a tensor product of features,
//! and a sum is a concatenation of blocks. A hybrid is therefore again a [`Map`] and can be used wherever a map can,
//! also in other hybrids.
//!
//! ```
//! use ndarray::arr1;
//! use random_features::frequency::{Independent, draw};
//! use random_features::compose::{Bases, Hybrid};
//! use random_features::{Map, rng};
//! let mut rng = rng(1);
//! let omega = draw(3, 64, &Independent, &mut rng)?;
//! let tau = draw(3, 16, &Independent, &mut rng)?;
//! // Hyperbolic features for opposite x and y, trigonometric features for similar ones.
//! let map: Map<f64> = Hybrid::angular(Bases::shared(omega), tau)?;
//! let x = arr1(&[0.5, 1.0, -0.5]);
//! assert!((map.estimate(&x, &x)? / x.dot(&x).exp() - 1.0).abs() < 1e-12);
//! assert!((map.estimate(&x, &-&x)? / (-x.dot(&x)).exp() - 1.0).abs() < 1e-12);
//! # Ok::<(), random_features::Error>(())
//! ```

mod bipolar;
mod centres;
mod cluster;
mod coefficient;
mod conditioned;
mod conditioning;
mod diagonal;
mod mixture;
mod recipe;
mod shaped;
mod sum;

pub use bipolar::Bases;
pub use centres::Centres;
pub use cluster::Clustered;
pub use coefficient::{Coefficient, GaussianWeight};
pub use conditioning::Conditioning;
pub use diagonal::{Diagonal, Formula};
pub use mixture::Mixture;
pub use sum::Hybrid;

use crate::Real;
use crate::data::Clustering;
use crate::map::Map;

/// Whether all maps are known to estimate the same kernel with the same parameters.
fn agree<T: Real>(maps: &[Map<T>]) -> bool {
    // `Debug` abbreviates large arrays with dots; kernels cannot be compared then.
    let name =
        |map: &Map<T>| map.kernel().map(|kernel| format!("{kernel:?}")).filter(|name| !name.contains("..."));
    let mut kernels = maps.iter().map(name);
    let first = kernels.next().flatten();
    first.is_some() && kernels.all(|kernel| kernel == first)
}
