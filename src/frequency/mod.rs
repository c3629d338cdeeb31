//! Drawing frequencies ω: what is random about a feature map.
//!
//! A [`Coupling`] says how the rows ω₁ … ω_m depend on each other; [`draw`] turns it into [`Frequencies`],
//! plain immutable data that remembers its law. Randomness enters here, once, and nowhere else. Below stand
//! the closed forms, whose language ([`Law`]) a draw speaks; above stand projections and maps.
//!
//! Every coupling but those of [`quasi`] has a polar form ω = r·u: a block's [`Radii`] r are drawn before its
//! directions u. Radii choose the kernel, directions the variance. [`Counts`] are frequencies of another
//! kind, for the Poisson and the geometric map. Draws are made in `f64` whatever the map computes in, so
//! `f32` and `f64` share a stream. Streams are pinned by tests; a change is announced in the changelog.

mod antithetic;
mod counts;
mod coupling;
mod frequencies;
mod givens;
mod haar;
mod hadamard;
mod independent;
mod orthogonal;
pub mod quasi;
mod radii;
mod recipe;
pub mod simplex;
pub mod simplex_plus;
pub mod structured;

pub use antithetic::Antithetic;
pub(crate) use counts::check_probability;
pub use counts::{CountLaw, Counts, Rates, draw_geometric, draw_poisson};
pub use coupling::{Coupling, Drawn, Rows, draw, draw_with};
pub use frequencies::Frequencies;
pub use givens::Givens;
pub use hadamard::Hadamard;
pub use independent::Independent;
pub use orthogonal::Orthogonal;
pub use quasi::{Halton, Sobol};
pub use radii::{Chi, Radii, RootDim};
pub use recipe::{AnyCoupling, AnyRadii, Draw, DrawCounts};
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

/// The generator for redraw number `step` of a seed: a stream of its own for each step, that of [`rng`] for step 0.
///
/// To redraw frequencies while training, draw again with the next step. What is drawn depends on the seed and the
/// step alone, never on data, so a run can be repeated from any step on.
///
/// ```
/// use random_features::frequency::{Independent, draw, rng_of_step};
/// let draw_of_step = |step| draw(3, 2, &Independent, &mut rng_of_step(42, step));
/// assert_eq!(draw_of_step(0)?, draw(3, 2, &Independent, &mut random_features::rng(42))?);
/// assert_ne!(draw_of_step(7)?, draw_of_step(8)?);
/// # Ok::<(), random_features::Error>(())
/// ```
pub fn rng_of_step(seed: u64, step: u64) -> ChaCha8Rng {
    let mut rng = rng(seed);
    rng.set_stream(step);
    rng
}
