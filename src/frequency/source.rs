//! [`Source`]: where the seed of a draw comes from.

use rand::Rng;

/// A source of the seed of a draw: a `u64` is the seed itself, and `&mut generator` gives its next word, for any generator of
/// `rand`.
///
/// ```
/// use random_features::frequency::{Coupling, Independent};
/// let mut rng = random_features::rng(42);
/// let (first, second) = (Independent.draw(3, 2, &mut rng)?, Independent.draw(3, 2, &mut rng)?);
/// assert_ne!(first, second);
/// assert_eq!(first, Independent.draw(3, 2, &mut random_features::rng(42))?);
/// # Ok::<(), random_features::Error>(())
/// ```
pub trait Source {
    /// The seed.
    fn seed(self) -> u64;
}

impl Source for u64 {
    fn seed(self) -> u64 {
        self
    }
}

impl<R: Rng + ?Sized> Source for &mut R {
    fn seed(self) -> u64 {
        self.next_u64()
    }
}
