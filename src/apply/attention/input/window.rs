//! [`Window`]: the keys near a query, whose weights in attention may be exact.

use std::ops::Range;

/// The keys near a query by place: the neighbours of the query at place i are the keys at places i − before < j ≤ i + after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Window {
    pub before: usize,
    pub after: usize,
}

impl Window {
    /// Whether no query has neighbours.
    pub fn is_none(self) -> bool {
        self == Window::default()
    }

    /// The most keys of a query's window.
    pub fn count(self) -> usize {
        self.before.saturating_add(self.after)
    }

    /// The window without later keys if attention is causal.
    pub fn of(self, causal: bool) -> Self {
        Window { after: if causal { 0 } else { self.after }, ..self }
    }

    /// The places of the neighbours of the query at a place.
    pub fn places(self, place: usize) -> Range<usize> {
        let end = place.saturating_add(1);
        end.saturating_sub(self.before)..end.saturating_add(self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_key_is_the_first_of_those_before() {
        let of = |before, after, place| Window { before, after }.places(place);
        assert!(of(0, 0, 7).is_empty() && Window::default().is_none());
        assert_eq!((of(1, 0, 7), of(3, 0, 7), of(0, 2, 7)), (7..8, 5..8, 8..10));
        assert_eq!((of(3, 2, 0), of(usize::MAX, usize::MAX, 7)), (0..3, 0..usize::MAX));
    }
}
