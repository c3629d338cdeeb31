//! Classes of a huge softmax, drawn in O(log C): [`SoftmaxSampler`], and what draws are for.
//!
//! A softmax over C classes, exp(h·cᵢ)/Z, costs O(C d) for each h. With features the sums Σ φ(h)·ψ(cᵢ) over any set of classes are
//! one product, so that a tree of such sums is walked down to a class in O(m log C). The estimates propose; with the
//! probability q that is stated with each draw, [`SampledLoss`] and [`Partition`] then are about the exact logits: the
//! cross-entropy for training with its gradients, and Z without bias, with its error.
//!
//! ```
//! use ndarray::Array2;
//! use random_features::apply::softmax_sampling::SoftmaxSampler;
//! use random_features::frequency::{Coupling, Orthogonal};
//! use random_features::Positive;
//! let classes = Array2::from_shape_fn((2000, 4), |(i, k)| ((i * (k + 3)) as f64).sin());
//! let h = ndarray::arr1(&[0.4, -0.6, 0.2, 0.1]);
//! let sampler = SoftmaxSampler::new(Positive.softmax(Orthogonal.draw(4, 128, 1)?)?, &classes)?;
//! let z = sampler.partition(&h, &classes, 400, &mut random_features::rng(2))?;
//! let exact = classes.dot(&h).mapv(f64::exp).sum();
//! assert!((z.log_value() - exact.ln()).abs() < 4.0 * z.relative_error());
//! assert!(z.relative_error() < 0.02);
//! # Ok::<(), random_features::Error>(())
//! ```

mod changes;
mod classes;
mod draws;
mod exact;
mod layer;
mod loss;
mod partition;
mod proposal;
mod sampler;
#[cfg(feature = "serde")]
mod stored;
mod tree;

pub use draws::Draws;
pub use layer::SampledSoftmax;
pub use loss::SampledLoss;
pub use partition::{Partition, corrected_logits};
pub use proposal::Proposal;
pub use sampler::SoftmaxSampler;
