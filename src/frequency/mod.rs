//! Drawing frequencies ω: what is random about a feature map.
//!
//! A [`Coupling`] says how the rows ω₁ … ω_m depend on each other; [`draw`] turns it into [`Frequencies`],
//! plain immutable data that remembers its law. Randomness enters here, once, and nowhere else. Below stand
//! the closed forms, whose language ([`Law`]) a draw speaks; above stand projections and maps.
//!
//! Every coupling has a polar form ω = r·u: a block's radii r are drawn before its directions u. Draws are
//! made in `f64` whatever the map computes in, so `f32` and `f64` share a stream. Streams are pinned by
//! tests; a change is announced in the changelog.

mod antithetic;
mod coupling;
mod frequencies;
mod haar;
mod independent;
mod orthogonal;
mod radius;
pub mod simplex;
pub mod simplex_plus;

pub use antithetic::Antithetic;
pub use coupling::{Coupling, draw};
pub use frequencies::Frequencies;
pub use independent::Independent;
pub use orthogonal::Orthogonal;
pub use simplex::Simplex;
pub use simplex_plus::SimplexPlus;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::theory::Law;

/// The crate's generator: ChaCha8, portable and seedable, the same on every machine.
///
/// ```
/// use random_features::frequency::{Independent, draw};
/// let omega = draw(3, 2, &Independent, &mut random_features::rng(42))?;
/// assert_eq!(omega, draw(3, 2, &Independent, &mut random_features::rng(42))?);
/// # Ok::<(), random_features::Error>(())
/// ```
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}
