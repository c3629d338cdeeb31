//! Tests for feature maps, couplings and kernels, for use with your own (feature `testing`).
//!
//! [`check_unbiased`] draws a map many times and compares the mean and the variance of its estimates with the exact
//! kernel and with the closed form that the map states. [`conform`] tests the properties that every map must have:
//! results are bit-identical for any split of a batch, any number of threads and any layout, facts hold, estimates
//! agree with each other, and wrong shapes are rejected. The tests of this crate run both on all of its maps.
//!
//! ```
//! use random_features::ndarray::{arr1, arr2};
//! use random_features::frequency::Orthogonal;
//! use random_features::testing::{check_unbiased, conform};
//! use random_features::Positive;
//! let draw = |seed| Positive.softmax::<f64>(Orthogonal.draw(2, 4, seed)?);
//! let (x, y) = (arr1(&[0.5, 0.2]), arr1(&[-0.1, 0.4]));
//! let found = check_unbiased(draw, &x, &y, x.dot(&y).exp(), 2000)?;
//! // Each of the two exceeds 4 standard errors by chance with probability 6e-5.
//! assert!(found.z.abs() < 4.0, "{found}");
//! assert!(found.variance_z.is_some_and(|z| z.abs() < 4.0), "{found}");
//! conform(&draw(1)?, &arr2(&[[0.5, 0.2], [-0.1, 0.4], [1.0, -1.0]]))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conformance;
pub(crate) mod unbiased;

pub use conformance::{
    Violation, batches_are_rows, conform, gram_is_estimates, layouts_change_nothing, promises_hold,
    shapes_are_checked, threads_change_nothing,
};
pub use unbiased::{Unbiased, check_unbiased};
