//! [`Span`]: how far the scales of some keys lie apart.

use crate::Real;

/// The scales of some keys, and whether one of them lacks a feature.
///
/// Keys whose features are all there share one with every query: what vanishes beside the largest of them has no weight.
/// Where a key lacks a feature, another one far below it may be all that a query shares a feature with.
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

    /// With another key; one without features does not count.
    pub fn with(self, scale: f64, gaps: bool) -> Self {
        if scale == f64::NEG_INFINITY {
            return self;
        }
        Span { low: self.low.min(scale), high: self.high.max(scale), gaps: self.gaps | gaps }
    }

    /// Whether a key lacks a feature.
    pub fn gaps(self) -> bool {
        self.gaps
    }

    /// Whether the keys may be summed up relative to one reference in `T`.
    pub fn is_narrow<T: Real>(self) -> bool {
        !self.gaps || self.high - self.low <= -least::<T>(true).ln() || self.low == f64::INFINITY
    }
}

/// The least feature, relative to the largest of a row, that products in `T` can do with, of rows that lack features or of
/// others: a feature of a query, one of a key, and for such rows the key's weight multiplied are a normal number with
/// room to spare.
pub(super) fn least<T: Real>(gaps: bool) -> f64 {
    T::min_positive_value().widen().powf(if gaps { 0.3 } else { 0.44 })
}
