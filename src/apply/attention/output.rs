//! [`Undivided`]: an output before it is divided by its normaliser.

use crate::Real;

/// An output before it is divided by its normaliser: e^scale · (normaliser, sums).
pub(super) struct Undivided<'a, T> {
    /// −∞ if query and keys have no feature in common.
    pub scale: f64,
    pub normaliser: f64,
    pub sums: &'a mut [T],
    /// Whether a key was seen.
    pub seen: bool,
}

impl<U: Real> Undivided<'_, U> {
    /// Writes the output. False if the normaliser is not positive although a key was seen; NaN counts as positive, since the
    /// output shows it.
    pub fn write<'a, T: Real>(self, normalised: bool, out: impl Iterator<Item = &'a mut T>) -> bool {
        let Undivided { scale, normaliser, sums, seen } = self;
        let none = scale == f64::NEG_INFINITY || (normalised && normaliser <= 0.0);
        // Adding 0 turns −0 into 0: the sign of a 0 may come from a later value.
        let rows = out.zip(&mut *sums);
        if seen && normaliser.is_nan() {
            rows.for_each(|(out, _)| *out = T::nan());
        } else if none || !seen {
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
            // By e^(scale/2) twice, so that the factor does not leave the range before the result does.
            let half = (0.5 * scale).exp();
            // A sum of 0 stays 0, however large the factor.
            let times = |sum: f64| if sum == 0.0 { 0.0 } else { sum * half * half };
            rows.for_each(|(out, sum)| *out = T::narrow(times(sum.widen())) + T::zero());
        }
        normaliser > 0.0 || normaliser.is_nan() || !seen
    }
}
