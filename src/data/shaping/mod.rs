//! Features shaped by the data: shifts, a transformation, a basis and coefficients for exponential features, chosen in
//! closed form from moments of the points.
//!
//! [`Moments`] reads the points of one side once. [`PairMoments`] has the moments of both sides, optionally with
//! weights for pairs, such as rows of an attention matrix. [`Shaping`] has the options and chooses a [`Shape`], which
//! is plain data and states the predicted error after each step. The choice needs
//! eigendecompositions, from the feature `faer` or `ndarray-linalg`.
//!
//! ```
//! # #[cfg(any(feature = "faer", feature = "ndarray-linalg"))] {
//! use random_features::ndarray::Array2;
//! use random_features::data::shaping::{Moments, PairMoments, Shaping};
//! let points = |first: usize| {
//!     Array2::from_shape_fn((100, 3), |(i, k)| {
//!         ((first + i) as f32 * (k as f32 + 1.3)).sin()
//!     })
//! };
//! let mut x = Moments::new(3)?;
//! x.update(&points(0))?; //  in batches
//! x.merge(&Moments::of(&points(100))?)?; //  from another machine
//! let shape = Shaping::new().of_moments(&PairMoments::new(x.clone(), x)?)?;
//! assert_eq!(shape.rank(), 3);
//! assert!(shape.dense < shape.before);
//! # }
//! # Ok::<(), random_features::Error>(())
//! ```

mod moments;
mod pair_moments;
mod shape;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod balance;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod choice;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod coordinates;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod rank;

pub use moments::Moments;
pub use pair_moments::PairMoments;
pub use shape::Shape;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::choice::Shaping;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use self::choice::check_rows;
