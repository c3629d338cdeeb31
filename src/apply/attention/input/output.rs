//! [`Undivided`]: an output before it is divided by its normaliser; [`LogScale`]: its scale.

use ndarray::{ArrayView2, ArrayViewMut1};

use crate::Real;
use crate::numeric::{self, Isa};

/// ln of a scale in two parts: that of a token's own features, and that of what it has read. Parts are subtracted from their like, so
/// that large numbers cancel before small ones are added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct LogScale {
    /// 0 where no features were read.
    pub own: f64,
    pub read: f64,
}

/// An output before it is divided by its normaliser: e^scale · (normaliser, sums).
pub(in super::super) struct Undivided<'a, T> {
    /// −∞ in sum if query and keys have no feature in common.
    pub scale: LogScale,
    pub normaliser: f64,
    pub sums: &'a mut [T],
    /// Whether a key was seen.
    pub seen: bool,
}

impl LogScale {
    /// The scale of what is 0.
    pub const NOTHING: LogScale = LogScale { own: 0.0, read: f64::NEG_INFINITY };

    /// The scales in the rows of a matrix with two columns.
    pub fn of_rows(numbers: &ArrayView2<'_, f64>) -> impl Iterator<Item = LogScale> {
        numbers.rows().into_iter().map(|row| LogScale { own: row[0], read: row[1] })
    }

    /// The whole logarithm.
    pub fn sum(self) -> f64 {
        self.own + self.read
    }

    /// The larger of two scales, this one if they are equal.
    pub fn larger(self, other: Self) -> Self {
        if other.sum() > self.sum() { other } else { self }
    }

    /// ln of the quotient of this scale and another.
    pub fn minus(self, other: Self) -> f64 {
        (self.own - other.own) + (self.read - other.read)
    }

    /// `log` less the whole logarithm, as two numbers of `T` that are to be added one after the other: the first cancels what is as
    /// large, and the second holds the digits that the first lacks.
    pub fn in_two<T: Real>(self, log: f64) -> [T; 2] {
        let whole = -self.sum();
        let first = T::saturated(whole);
        [first, T::saturated((whole - first.widen()) + log)]
    }
}

impl<U: Real> Undivided<'_, U> {
    /// Whether the normaliser is 0 although a key was seen.
    pub fn is_lost(&self) -> bool {
        self.seen && self.normaliser == 0.0
    }

    /// The scale; that of [nothing](LogScale::NOTHING) for zeros, whose scale means nothing.
    pub fn size(&self) -> LogScale {
        let none = self.normaliser == 0.0 && self.sums.iter().all(|sum| *sum == U::zero());
        if none { LogScale::NOTHING } else { self.scale }
    }

    /// The normaliser relative to e^top, and in `buffer` the sums: those of the [size](Undivided::size) −∞ are 0.
    pub fn relative_to(&self, top: LogScale, size: LogScale, buffer: &mut Vec<f64>) -> f64 {
        let none = size.sum() == f64::NEG_INFINITY;
        let weight = size.minus(top).exp();
        let times = |v: f64| if none { 0.0 } else { weight * v };
        buffer.clear();
        buffer.extend(self.sums.iter().map(|sum| times(sum.widen())));
        times(self.normaliser)
    }

    /// The sum of both, whose sums are in `buffer`. What has seen no key counts for nothing.
    pub fn plus<'b, V: Real>(self, other: Undivided<'_, V>, buffer: &'b mut Vec<f64>) -> Undivided<'b, f64> {
        let seen = self.seen || other.seen;
        let unknown = (self.seen && self.normaliser.is_nan()) || (other.seen && other.normaliser.is_nan());
        let size = |seen: bool, size: LogScale| if seen { size } else { LogScale::NOTHING };
        let (own, their) = (size(self.seen, self.size()), size(other.seen, other.size()));
        let top = own.larger(their);
        if unknown || top.sum() == f64::NEG_INFINITY {
            buffer.clear();
            let (scale, value) = if unknown { (LogScale::default(), f64::NAN) } else { (top, 0.0) };
            buffer.resize(self.sums.len(), value);
            return Undivided { scale, normaliser: value, sums: buffer, seen };
        }
        let mut normaliser = self.relative_to(top, own, buffer);
        if their.sum() > f64::NEG_INFINITY {
            // Also a weight that vanishes: what is not finite shows.
            let weight = their.minus(top).exp();
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
        let scale = scale.sum();
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
        let divides =
            normalised && self.seen && self.normaliser > 0.0 && self.scale.sum() > f64::NEG_INFINITY;
        match out.as_slice_mut() {
            Some(out) if divides && inverse.is_normal() => {
                numeric::scaled(Isa::best(), out, self.sums, inverse);
                true
            }
            _ => self.write(normalised, out),
        }
    }
}
