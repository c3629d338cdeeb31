//! [`Generator`]: the crate's random numbers.

use std::convert::Infallible;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng, TryRng};
use rand_distr::{Distribution, StandardNormal};

/// The generator of all random numbers of the crate, which your own couplings, radii and sketches are given.
///
/// ```
/// use random_features::rng;
/// let mut generator = rng(42);
/// let (angle, normal) =
///     (generator.uniform() * std::f64::consts::TAU, generator.normal());
/// assert!((0.0..6.3).contains(&angle) && normal.is_finite());
/// ```
///
/// It is ChaCha with 8 rounds: portable, with one stream on every machine. The type is this crate's own, so that a new
/// version of `rand` need not be a new major version of this crate. It implements the trait of `rand` 0.10 for the
/// distributions of `rand_distr`; code that shall outlive that version takes the methods below.
#[derive(Debug, PartialEq, Eq)]
pub struct Generator(WordSource);

/// Where random words come from.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "testing", expect(clippy::large_enum_variant, reason = "a generator stands alone"))]
enum WordSource {
    Stream(ChaCha8Rng),
    /// With words of 0 sequences are not shifted and rotations are the identity.
    #[cfg(feature = "testing")]
    Zeros,
}

impl Generator {
    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        Rng::next_u64(self)
    }

    /// A number with the uniform distribution on [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        self.random()
    }

    /// A number with the standard normal distribution.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(self)
    }
}

impl TryRng for Generator {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        match &mut self.0 {
            WordSource::Stream(words) => words.try_next_u32(),
            #[cfg(feature = "testing")]
            WordSource::Zeros => Ok(0),
        }
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        match &mut self.0 {
            WordSource::Stream(words) => words.try_next_u64(),
            #[cfg(feature = "testing")]
            WordSource::Zeros => Ok(0),
        }
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        match &mut self.0 {
            WordSource::Stream(words) => words.try_fill_bytes(bytes),
            #[cfg(feature = "testing")]
            WordSource::Zeros => {
                bytes.fill(0);
                Ok(())
            }
        }
    }
}

/// The generator of a seed.
///
/// ```
/// use random_features::rng;
/// let (mut first, mut again) = (rng(42), rng(42));
/// assert_eq!(first.next_u64(), again.next_u64());
/// assert_ne!(first.next_u64(), rng(43).next_u64());
/// ```
pub fn rng(seed: u64) -> Generator {
    rng_of_step(seed, 0)
}

/// A generator that gives only zeros.
#[cfg(feature = "testing")]
pub fn zeros() -> Generator {
    Generator(WordSource::Zeros)
}

/// The generator for step number `step` of a seed: an independent stream for each step; step 0 is [`rng`].
///
/// Random numbers of a step depend only on the seed and the step, so a run can be resumed from any step.
///
/// ```
/// use random_features::{rng, rng_of_step};
/// assert_eq!(rng_of_step(42, 0), rng(42));
/// assert_ne!(rng_of_step(42, 7).next_u64(), rng_of_step(42, 8).next_u64());
/// ```
pub fn rng_of_step(seed: u64, step: u64) -> Generator {
    let mut words = ChaCha8Rng::seed_from_u64(seed);
    words.set_stream(step);
    Generator(WordSource::Stream(words))
}
