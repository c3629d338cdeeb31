//! Gradients of attention with respect to queries, keys, values and parameters of maps.
//!
//! With the gradient gᵢ of a loss with respect to the output oᵢ = Σⱼ Kᵢⱼ vⱼ / Nᵢ, the gradient with respect to features φᵢ of a query
//! is Σⱼ ψⱼ (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ, that of ψⱼ of a key Σᵢ φᵢ/Nᵢ (gᵢ·vⱼ − gᵢ·oᵢ), and that of vⱼ is Σᵢ (φᵢ·ψⱼ)/Nᵢ gᵢ. So queries read sums
//! over keys, and then keys, in the same way, sums over queries with the features φᵢ/Nᵢ and the values \[gᵢ, −gᵢ·oᵢ\]. Either
//! multiplies the sums Σ ψ \[v, 1\] with its features, which is its estimate, and with coefficients, which is the gradient with
//! respect to its features. Pairs with exact weights enter in the same way, with exp(logit) for φᵢ·ψⱼ.

mod backward;
mod cotangents;
mod exact_gradients;
mod gradients;
mod kept_job;
mod keys;
mod linear_gradients;
mod pairs;
mod residuals;
mod roles;
mod rows;
mod shrunk;
mod sink;
mod tape;

pub use self::gradients::Gradients;
pub use self::tape::Tape;
