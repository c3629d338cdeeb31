//! How small features and how large values may be for sums and products in `T`.

use crate::Real;

/// The least feature, relative to the largest of a row, with which products in `T` do not underflow: the product of a feature of
/// a query and one of a key, and for rows with zeros (`gaps`) of the key's weight too, is a normal number with room to spare.
pub(crate) fn least<T: Real>(gaps: bool) -> f64 {
    T::min_positive_value().widen().powf(if gaps { 0.3 } else { 0.44 })
}

/// The largest value for which sums are taken in `T`.
pub(crate) fn limit<T: Real>() -> f64 {
    T::max_value().widen().sqrt()
}
