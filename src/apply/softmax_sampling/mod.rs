//! Classes of a huge softmax, drawn in O(log C): [`SoftmaxSampler`], with losses and partition functions from draws.
//!
//! ```
//! use random_features::ndarray::{Array2, arr2};
//! use random_features::rand::RngExt;
//! use random_features::Positive;
//! use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
//! use random_features::frequency::Orthogonal;
//! let mut rng = random_features::rng(1);
//! let shape = (20_000, 4);
//! let vectors = Array2::from_shape_simple_fn(shape, || rng.random::<f64>());
//! let map = Positive.softmax(Orthogonal.draw(4, 128, 1)?)?;
//! let mut layer = SampledSoftmax::new(Proposal::new(map), &vectors)?;
//! // A step of training: 40 draws for each of two points, and only the
//! // classes that it touches change.
//! let h = arr2(&[[0.4, -0.6, 0.2, 0.1], [0.3, 0.2, -0.1, 0.5]]);
//! let loss = layer.loss(&h, &[17, 11_000], 40, 7)?;
//! layer.step(&loss, 0.1)?;
//! // ln Z from 400 of 20,000 classes.
//! let z = layer.partition(&h.row(0), 400, 7)?;
//! let exact = layer.vectors().dot(&h.row(0)).mapv(f64::exp).sum();
//! assert!((z.log_value() - exact.ln()).abs() < 4.0 * z.relative_error());
//! assert!(z.relative_error() < 0.02);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! A softmax over C classes, exp(h·cᵢ)/Z, costs O(C d) for each h. With features the sum Σ φ(h)·ψ(cᵢ) over any set of
//! classes is one product, φ(h)·Σ ψ(cᵢ). A walk down a tree of such sums reaches a class in O(D log C), or a leaf of a
//! few classes, among which it chooses by their own features. Estimates only propose classes: with exact logits and the
//! probability q of each draw, [`SampledLoss`] gives the cross-entropy for training with its gradients, and
//! [`Partition`] gives Z without bias, with its error.
//!
//! Begin with positive features of 128 orthogonal frequencies and some 50 draws for each point. A step touches up to points × draws
//! classes: where that is near C, the exact softmax costs no more.
//!
//! [`SampledSoftmax`], the layer to train, owns class vectors and sampler and changes them together. A [`Proposal`] has the
//! options. For [few classes](Proposal::with_exact_below) draws are from the softmax itself. A [`ProposalReport`] says whether
//! draws are better than uniform ones, and what would help.

mod changes;
mod classes;
mod draws;
mod exact;
mod layer;
mod loss;
mod partition;
mod proposal;
mod quality;
mod report;
mod sampler;
#[cfg(feature = "serde")]
mod stored;
mod tree;

pub use draws::Draws;
pub use layer::SampledSoftmax;
pub use loss::SampledLoss;
pub use partition::Partition;
pub use proposal::Proposal;
pub use quality::Quality;
pub use report::ProposalReport;
pub use sampler::SoftmaxSampler;
