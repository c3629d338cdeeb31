//! Softmax attention in linear time: [`Attention`], beside [`ExactAttention`].
//!
//! ```
//! use random_features::ndarray::Array4;
//! use random_features::apply::attention::{Attention, Heads};
//! // [batch, heads, length, dim].
//! let x = Array4::<f32>::ones((1, 8, 1000, 64));
//! let attention = Attention::<f32>::favor_plus(64, 256, 7)?;
//! let out = attention.causal(&Heads::new(&x, &x, &x)?)?.output;
//! assert_eq!(out.dim(), (1, 8, 1000, 64));
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! Attention gives each query the mean of the values, weighted by exp(q·k·scale). With features, φ(q)·ψ(k) estimates
//! the weights. The sums Σⱼ ψ(kⱼ) \[vⱼ, 1\] are then all that is kept of the keys: time O(L m (d + d_v)) and memory O(m
//! d_v) instead of O(L² (d + d_v)).
//!
//! The guides say more: [serving](crate::manual::serving) a model, [training](crate::manual::training) one, and features that are
//! [shaped](crate::manual::shaped) by data.

// Each folder imports from those above it alone.
mod input;
mod pairs;
// Features of tokens, and sums over them.
mod features;
mod linear;
// What uses sums: token by token, backward, and for inspection.
mod decode;
mod gradient;
mod inspect;
// What computes does not judge.
mod judge;
// Attention with the usual maps.
mod usual;

pub use self::decode::CausalState;
pub use self::gradient::{Gradients, Tape};
pub(crate) use self::input::TokenScale;
pub use self::input::{Attended, Attention, Heads, TokenElement};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::judge::AttentionShaping;
pub use self::judge::{
    AttentionCandidate, AttentionChoice, ErrorReport, HeadBudget, HeadCalibration, HeadCandidate,
    HeadComparison, HeadwiseAttention, HeadwiseState, TokenSample,
};
pub(crate) use self::judge::{AttentionCosts, ExactPairs, Redraws, closed_errors, simulated_errors};
pub use self::pairs::ExactAttention;
