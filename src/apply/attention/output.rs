//! [`Sums`]: an output before it is divided.

use crate::Real;

/// An output before it is divided: e^scale · (normaliser, sums).
pub(super) struct Sums<'a, T> {
    /// −∞ if query and keys have no feature in common.
    pub scale: f64,
    pub normaliser: f64,
    pub sums: &'a mut [T],
    /// Whether a key was seen.
    pub seen: bool,
}

impl<U: Real> Sums<'_, U> {
    /// Writes an output; whether its normaliser is positive, or is no number, or no key was seen.
    pub fn write<'a, T: Real>(self, normalised: bool, out: impl Iterator<Item = &'a mut T>) -> bool {
        let Sums { scale, normaliser, sums, seen } = self;
        let none = scale == f64::NEG_INFINITY || (normalised && normaliser <= 0.0);
        // + 0 makes −0 positive, whose sign may be that of a later value.
        let rows = out.zip(&mut *sums);
        if normaliser.is_nan() {
            rows.for_each(|(out, _)| *out = T::nan());
        } else if none {
            rows.for_each(|(out, _)| *out = T::zero());
        } else if normalised {
            let inverse = normaliser.recip();
            if T::narrow(inverse).is_normal() {
                let inverse = U::narrow(inverse);
                rows.for_each(|(out, sum)| *out = T::narrow((*sum * inverse).widen()) + T::zero());
            } else {
                rows.for_each(|(out, sum)| *out = T::narrow(sum.widen() / normaliser) + T::zero());
            }
        } else {
            // In two steps, of which neither leaves the range before the result does.
            let half = (0.5 * scale).exp();
            rows.for_each(|(out, sum)| *out = T::narrow(sum.widen() * half * half) + T::zero());
        }
        normaliser > 0.0 || normaliser.is_nan() || !seen
    }
}
