//! [`Precision`]: whether the scalar type holds the features of a row, or sums of them, accurately; [`Span`]: whether it holds
//! several rows together accurately.

use crate::Real;

/// The scale of a row of features, or of sums of them, and whether the scalar type holds them accurately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Precision {
    /// ln of the scale: features are e^scale times the numbers that are stored; −∞ if all are 0.
    pub scale: f64,
    /// Whether a feature is 0.
    pub has_zeros: bool,
    /// Whether no feature has been lost to rounding, so that the row may be multiplied in the scalar type.
    pub is_representable: bool,
}

impl Default for Precision {
    fn default() -> Self {
        Self::NOTHING
    }
}

impl Precision {
    /// The precision of features that are all 0.
    pub const NOTHING: Precision =
        Precision { scale: f64::NEG_INFINITY, has_zeros: true, is_representable: true };
}

/// The range of the scales of some keys, and whether one of them has a feature that is 0.
///
/// If no feature is 0, every key has a weight of the order of its scale for every query, so a key that underflows beside the
/// largest one is negligible. If a feature of the largest key is 0, a much smaller key may be the only one with a weight for some
/// query, and must not underflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    low: f64,
    high: f64,
    has_zeros: bool,
}

impl Default for Span {
    fn default() -> Self {
        Span { low: f64::INFINITY, high: f64::NEG_INFINITY, has_zeros: false }
    }
}

impl Span {
    /// The span with another key; a key whose features are all 0 does not count.
    pub fn with(self, key: Precision) -> Self {
        if key.scale == f64::NEG_INFINITY {
            return self;
        }
        Span {
            low: self.low.min(key.scale),
            high: self.high.max(key.scale),
            has_zeros: self.has_zeros | key.has_zeros,
        }
    }

    /// Whether a feature of a key is 0.
    pub fn has_zeros(self) -> bool {
        self.has_zeros
    }

    /// Whether the keys may be summed up relative to one reference in `T`.
    pub fn is_narrow<T: Real>(self) -> bool {
        !self.has_zeros || self.high - self.low <= -least::<T>(true).ln() || self.low == f64::INFINITY
    }
}

/// The least feature, relative to the largest of a row, with which products in `T` do not underflow. The product of a feature of
/// a query and one of a key is then a normal number by a margin. For rows with zeros (`has_zeros`), so is the product with the
/// key's weight.
pub(crate) fn least<T: Real>(has_zeros: bool) -> f64 {
    T::min_positive_value().widen().powf(if has_zeros { 0.3 } else { 0.44 })
}

/// The largest value for which sums are taken in `T`.
pub(crate) fn limit<T: Real>() -> f64 {
    T::max_value().widen().sqrt()
}
