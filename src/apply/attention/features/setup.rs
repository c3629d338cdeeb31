//! [`Setup`]: a map and how attention uses it, as every step on the way of a row reads it.

use super::super::input::Reading;
use super::super::input::Window;
use super::super::pairs::{ExactKeys, Neighbours, Ring, See};
use crate::Real;
use crate::engine::{Program, Side};

/// Tokens of a chunk. For each token, products with keys of its chunk cost in proportion to this, and updates of sums in inverse
/// proportion.
pub(in super::super) const CHUNK: usize = 64;
/// Tokens of a segment, whose sums are one term of those of the whole.
pub(in super::super) const SEGMENT: usize = 16 * CHUNK;

/// A map and how it is used.
#[derive(Clone, Copy)]
pub(in super::super) struct Setup<'a, T> {
    pub program: &'a Program<T>,
    pub reading: &'a Reading,
    /// Whether outputs are divided by their normaliser.
    pub normalised: bool,
    /// Keys of the sequence whose weights are computed exactly instead of from features.
    pub exact: Option<&'a ExactKeys<T>>,
    /// Keys near each query of which the same holds.
    pub near: Option<&'a Neighbours<'a, T>>,
    /// Whether a query sees the keys up to its own place only.
    pub causal: bool,
    /// Whether queries and keys have changed places: queries are summed up, and keys ask for the sums.
    pub swapped: bool,
}

impl<'a, T> Setup<'a, T> {
    /// The side of the points that ask for sums.
    pub fn asking(&self) -> Side {
        if self.swapped { Side::Y } else { Side::X }
    }

    /// The side of the points that are summed up.
    pub fn summed(&self) -> Side {
        if self.swapped { Side::X } else { Side::Y }
    }

    /// The same with exact keys, and neighbours among others.
    pub fn beside<'b>(
        self,
        exact: Option<&'b ExactKeys<T>>,
        near: Option<&'b Neighbours<'b, T>>,
    ) -> Setup<'b, T>
    where
        'a: 'b,
    {
        let Setup { program, reading, normalised, causal, swapped, .. } = self;
        Setup { program, reading, normalised, exact, near, causal, swapped }
    }
}

impl<T: Real> Setup<'_, T> {
    /// Whether some pairs have exact weights.
    pub fn has_pairs(&self) -> bool {
        self.near.is_some() || self.exact.is_some()
    }

    /// The neighbours of queries.
    pub fn window(&self) -> Window {
        self.near.map(|near| near.window).unwrap_or_default()
    }

    /// Shows the keys whose weights are exact for so many queries, of which the first is at a place.
    pub fn visit_pairs(&self, ring: &mut Ring<T>, place: usize, count: usize, see: &mut See<'_, T>) {
        if let Some(near) = self.near {
            near.visit(ring, count, &|i| near.window.places(place + i), see);
        }
        if let Some(exact) = self.exact {
            let end = |i: usize| if self.causal { (place + i).saturating_add(1) } else { usize::MAX };
            exact.visit(end, see);
        }
    }
}
