//! Maps that are made of maps: hybrids, a map for each pair of clusters, maps at transformed points, weighted sums.
//!
//! A hybrid estimate Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q gives most weight, for each pair of points, to the estimator that is
//! accurate there; its coefficients λ̂ are estimated as well. A product of estimates is a tensor product of features,
//! and a sum is a concatenation of blocks. A hybrid is therefore again a [`Map`](crate::Map) and can be used wherever a map can,
//! also in other hybrids. A [`WeightedSum`] estimates the sum of the kernels of its maps, which may differ.
//!
//! ```
//! use random_features::ndarray::arr1;
//! use random_features::extend::Coupling;
//! use random_features::frequency::Independent;
//! use random_features::compose::{Bases, Hybrid};
//! use random_features::Map;
//! let omega = Independent.draw(3, 64, 1)?;
//! let tau = Independent.draw(3, 16, 2)?;
//! // Hyperbolic features for opposite points, trigonometric ones for similar ones.
//! let map: Map<f64> = Hybrid::angular(Bases::shared(omega), tau)?;
//! let x = arr1(&[0.5, 1.0, -0.5]);
//! assert!((map.estimate(&x, &x)? / x.dot(&x).exp() - 1.0).abs() < 1e-12);
//! assert!((map.estimate(&x, &-&x)? / (-x.dot(&x)).exp() - 1.0).abs() < 1e-12);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! # Maps and recipes
//! Constructors such as [`Hybrid::angular`] make a [`Map`](crate::Map), which has features, or a [`Recipe`](crate::Recipe), which is
//! plain data. The type that is asked for decides: `let map: Map<f32> = …` or `let recipe: Recipe = …`.

pub use crate::map::compose::{
    Bases, Centres, Clustered, Coefficient, Conditioning, Diagonal, Hybrid, Mixture, WeightedSum,
};
