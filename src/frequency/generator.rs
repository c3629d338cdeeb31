//! The crate's random number generators.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The crate's generator, ChaCha8 with this seed: portable, the same stream on every machine.
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

/// The generator for step number `step` of a seed: an independent stream for each step; step 0 is [`rng`].
///
/// To redraw frequencies during training, draw again with the next step. The draw depends only on the seed and the
/// step, so a run can be resumed from any step.
///
/// ```
/// use random_features::frequency::{Independent, draw};
/// use random_features::rng_of_step;
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
