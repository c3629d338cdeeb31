//! Classes of a huge softmax drawn in O(log C): [`SoftmaxSampler`].

mod choice;
mod draws;
mod features;
mod nodes;
mod proposal;
mod sampler;
mod tree;
mod walk;

pub use draws::Draws;
pub use proposal::Proposal;
pub use sampler::SoftmaxSampler;
