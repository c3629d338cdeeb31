//! [`Span`]: the range of the scales of some keys.

use crate::Real;
pub(super) use crate::reduce::least;

/// The range of the scales of some keys, and whether one of them has a feature that is 0.
///
/// If no feature is 0, every key has a weight of the order of its scale for every query, so a key that underflows beside the
/// largest one is negligible. If a feature of the largest key is 0, a much smaller key may be the only one with a weight for some
/// query, and must not underflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    low: f64,
    high: f64,
    gaps: bool,
}

impl Span {
    pub fn new() -> Self {
        Span { low: f64::INFINITY, high: f64::NEG_INFINITY, gaps: false }
    }

    /// With another key; one whose features are all 0 does not count.
    pub fn with(self, scale: f64, gaps: bool) -> Self {
        if scale == f64::NEG_INFINITY {
            return self;
        }
        Span { low: self.low.min(scale), high: self.high.max(scale), gaps: self.gaps | gaps }
    }

    /// Whether a feature of a key is 0.
    pub fn gaps(self) -> bool {
        self.gaps
    }

    /// Whether the keys may be summed up relative to one reference in `T`.
    pub fn is_narrow<T: Real>(self) -> bool {
        !self.gaps || self.high - self.low <= -least::<T>(true).ln() || self.low == f64::INFINITY
    }
}
