//! [`Undivided`]: an output before it is divided by its normaliser.

use ndarray::ArrayViewMut1;

use crate::Real;
use crate::numeric::{self, Isa};

/// An output before it is divided by its normaliser: e^scale · (normaliser, sums).
pub(in super::super) struct Undivided<'a, T> {
    /// −∞ if query and keys have no feature in common.
    pub scale: f64,
    pub normaliser: f64,
    pub sums: &'a mut [T],
    /// Whether a key was seen.
    pub seen: bool,
}

impl<U: Real> Undivided<'_, U> {
    /// Whether the normaliser is 0 although a key was seen.
    pub fn is_lost(&self) -> bool {
        self.seen && self.normaliser == 0.0
    }

    /// ln of the scale; −∞ for zeros, whose scale means nothing.
    pub fn ln_size(&self) -> f64 {
        let none = self.normaliser == 0.0 && self.sums.iter().all(|sum| *sum == U::zero());
        if none { f64::NEG_INFINITY } else { self.scale }
    }

    /// The normaliser relative to e^top, and in `buffer` the sums: those of the [size](Undivided::ln_size) −∞ are 0.
    pub fn relative_to(&self, top: f64, size: f64, buffer: &mut Vec<f64>) -> f64 {
        let weight = if size == f64::NEG_INFINITY { 0.0 } else { (size - top).exp() };
        let times = |v: f64| if size == f64::NEG_INFINITY { 0.0 } else { weight * v };
        buffer.clear();
        buffer.extend(self.sums.iter().map(|sum| times(sum.widen())));
        times(self.normaliser)
    }

    /// The sum of both, whose sums are in `buffer`. What has seen no key counts for nothing.
    pub fn plus<'b, V: Real>(self, other: Undivided<'_, V>, buffer: &'b mut Vec<f64>) -> Undivided<'b, f64> {
        let seen = self.seen || other.seen;
        let unknown = (self.seen && self.normaliser.is_nan()) || (other.seen && other.normaliser.is_nan());
        let size = |seen: bool, size: f64| if seen { size } else { f64::NEG_INFINITY };
        let (own, their) = (size(self.seen, self.ln_size()), size(other.seen, other.ln_size()));
        let top = own.max(their);
        if unknown || top == f64::NEG_INFINITY {
            buffer.clear();
            let (scale, value) = if unknown { (0.0, f64::NAN) } else { (top, 0.0) };
            buffer.resize(self.sums.len(), value);
            return Undivided { scale, normaliser: value, sums: buffer, seen };
        }
        let mut normaliser = self.relative_to(top, own, buffer);
        if their > f64::NEG_INFINITY {
            // Also a weight that vanishes: what is not finite shows.
            let weight = (their - top).exp();
            normaliser += weight * other.normaliser;
            numeric::add_scaled(Isa::best(), buffer, weight, other.sums);
        }
        Undivided { scale: top, normaliser, sums: buffer, seen }
    }

    /// Writes the output. False if the normaliser is not positive although a key was seen; NaN counts as positive, since the
    /// output shows it.
    pub fn write<T: Real>(self, normalised: bool, mut out: ArrayViewMut1<'_, T>) -> bool {
        match out.as_slice_mut() {
            // Loops over slices are vectorised.
            Some(out) => self.write_to(normalised, out.iter_mut()),
            None => self.write_to(normalised, out.iter_mut()),
        }
    }

    fn write_to<'a, T: Real>(self, normalised: bool, out: impl Iterator<Item = &'a mut T>) -> bool {
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

impl<T: Real> Undivided<'_, T> {
    /// As [`write`](Undivided::write), of an output in the type of the sums.
    pub fn write_row(self, normalised: bool, mut out: ArrayViewMut1<'_, T>) -> bool {
        let inverse = T::narrow(self.normaliser.recip());
        let divides = normalised && self.seen && self.normaliser > 0.0 && self.scale > f64::NEG_INFINITY;
        match out.as_slice_mut() {
            Some(out) if divides && inverse.is_normal() => {
                numeric::scaled(Isa::best(), out, self.sums, inverse);
                true
            }
            _ => self.write(normalised, out),
        }
    }
}
