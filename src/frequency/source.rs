//! [`Source`]: where randomness comes from.

use rand::Rng;
use rand::rngs::ChaCha8Rng;

use super::generator::rng;

/// A source of random numbers: a seed or a generator.
///
/// A `u64` is the seed of [`rng(seed)`](crate::rng), the portable generator of this crate. `&mut generator` is any
/// generator of `rand`, which continues from its current state.
///
/// ```
/// use random_features::frequency::{Coupling, Independent};
/// let mut rng = random_features::rng(42);
/// assert_eq!(Independent.draw(3, 2, 42)?, Independent.draw(3, 2, &mut rng)?);
/// assert_ne!(Independent.draw(3, 2, 42)?, Independent.draw(3, 2, &mut rng)?);
/// # Ok::<(), random_features::Error>(())
/// ```
pub trait Source {
    /// The generator.
    type Generator: Rng;

    /// The generator of this source.
    fn generator(self) -> Self::Generator;
}

impl Source for u64 {
    type Generator = ChaCha8Rng;

    fn generator(self) -> ChaCha8Rng {
        rng(self)
    }
}

impl<R: Rng + ?Sized> Source for &mut R {
    type Generator = Self;

    fn generator(self) -> Self {
        self
    }
}
