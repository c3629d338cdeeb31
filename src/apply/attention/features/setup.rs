//! [`Setup`]: a map and how attention uses it, which accompanies tokens on their way.

use super::super::input::{Attention, Reading, Window};
use super::super::pairs::{ExactKeys, Neighbours, Ring, See};
use crate::Real;
use crate::engine::{Program, Side};

/// A map and how it is used.
#[derive(Clone, Copy)]
pub(in super::super) struct Setup<'a, T> {
    pub program: &'a Program<T>,
    pub reading: &'a Reading,
    /// How those who read pairs with exact weights, and those who are read, become points whose products are logits.
    pub of_pairs: [Reading; 2],
    /// Whether outputs are divided by their normaliser.
    pub normalised: bool,
    /// Keys of the sequence whose weights are computed exactly instead of from features.
    pub exact: Option<&'a ExactKeys<T>>,
    /// Keys near each query whose weights are computed exactly, too.
    pub near: Option<&'a Neighbours<'a, T>>,
    /// Whether a query sees the keys up to its own place only.
    pub causal: bool,
    /// Whether queries and keys have changed roles: queries are summed up, and keys read the sums.
    pub swapped: bool,
}

impl<T: Real> Attention<T> {
    /// How a head of keys is attended to, causally and without exact pairs.
    pub(in super::super) fn setup(&self, head: usize) -> Setup<'_, T> {
        let program = &self.programs[head % self.maps.len()];
        Setup {
            program,
            reading: &self.reading,
            of_pairs: self.of_pairs(head),
            normalised: self.normalised,
            exact: None,
            near: None,
            causal: true,
            swapped: false,
        }
    }
}

impl<'a, T> Setup<'a, T> {
    /// The side of the points that read sums.
    pub fn reading_side(&self) -> Side {
        if self.swapped { Side::Y } else { Side::X }
    }

    /// The side of the points that are summed up.
    pub fn summed_side(&self) -> Side {
        if self.swapped { Side::X } else { Side::Y }
    }

    /// The setup with these pairs exact, and no others.
    pub fn beside<'b>(
        self,
        exact: Option<&'b ExactKeys<T>>,
        near: Option<&'b Neighbours<'b, T>>,
    ) -> Setup<'b, T>
    where
        'a: 'b,
    {
        let Setup { program, reading, of_pairs, normalised, causal, swapped, .. } = self;
        Setup { program, reading, of_pairs, normalised, exact, near, causal, swapped }
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

    /// The points of queries for exact logits, from those for features; `room` is for points that differ.
    pub fn points_of_pairs<'b>(&self, points: &'b [T], room: &'b mut Vec<T>) -> &'b [T] {
        let factor = self.of_pairs[0].factor / self.reading.factor;
        if factor == 1.0 {
            return points;
        }
        room.clear();
        room.extend(points.iter().map(|v| *v * T::narrow(factor)));
        room
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
