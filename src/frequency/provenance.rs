//! [`Provenance`]: where the numbers of frequencies come from.

use super::draw::Draw;
use crate::digest::{Digest, Identify};

/// Where the numbers of frequencies come from: from a draw and a seed, which give them again, or from elsewhere.
///
/// Frequencies of equal provenance have equal numbers; frequencies of unequal draws or seeds share none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Provenance<D = Draw> {
    /// Drawn by name.
    Drawn {
        /// The draw: its sizes and its law.
        draw: D,
        /// The seed of the draw.
        seed: u64,
    },
    /// Given as numbers, or drawn from a coupling or from radii that have no name.
    Given {
        /// A hash of the numbers.
        digest: u64,
    },
}

impl<D> Provenance<D> {
    /// The draw; `None` for numbers that were given.
    pub fn draw(&self) -> Option<&D> {
        match self {
            Provenance::Drawn { draw, .. } => Some(draw),
            Provenance::Given { .. } => None,
        }
    }

    /// The seed of the draw; `None` for numbers that were given.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Provenance::Drawn { seed, .. } => Some(*seed),
            Provenance::Given { .. } => None,
        }
    }

    /// The provenance of numbers that were given: their hash.
    pub(super) fn given(numbers: &impl Identify) -> Self {
        Provenance::Given { digest: Digest::of(numbers) }
    }
}

/// Feeds draw and seed, or the hash of the numbers, to a digest.
impl<D: Identify> Identify for Provenance<D> {
    fn identify(&self, digest: &mut Digest) {
        match self {
            Provenance::Drawn { draw, seed } => {
                digest.text("drawn");
                draw.identify(digest);
                seed.identify(digest);
            }
            Provenance::Given { digest: numbers } => {
                digest.text("given");
                numbers.identify(digest);
            }
        }
    }
}

/// The draw and the seed of drawn numbers, as they are stored. Nothing is stored for given numbers: their hash is computed.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Origin<D> {
    draw: D,
    seed: u64,
}

#[cfg(feature = "serde")]
impl<D: Clone> Provenance<D> {
    pub(super) fn origin(&self) -> Option<Origin<D>> {
        match self {
            Provenance::Drawn { draw, seed } => Some(Origin { draw: draw.clone(), seed: *seed }),
            Provenance::Given { .. } => None,
        }
    }

    pub(super) fn of_origin(origin: Option<Origin<D>>, numbers: &impl Identify) -> Self {
        match origin {
            Some(Origin { draw, seed }) => Provenance::Drawn { draw, seed },
            None => Provenance::given(numbers),
        }
    }
}
