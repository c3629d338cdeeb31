//! [`Coordinate`]: the statistics of one coordinate.

#[cfg(feature = "serde")]
use crate::error::{Error, Result};
use crate::numeric::Twofold;

/// The statistics of one coordinate, stored as means, which do not overflow for any weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Coordinate {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub mean: f64,
    /// The remainder of rounding the mean, which variances of merged parts need beside a large offset.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub rest: f64,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub variance: f64,
    /// The mean of |x|.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub magnitude: f64,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub min: f64,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub max: f64,
}

impl Coordinate {
    /// Merges statistics that have the share `new` of the total weight; `old` is the share of these.
    pub fn merge(&mut self, old: f64, new: f64, other: &Coordinate) {
        let delta = other.mean_plus(-1.0, self);
        // The product of shares is at most ¼, so that the step does not overflow where δ² does.
        self.variance = old * self.variance + new * other.variance + (new * delta) * (old * delta);
        // The step begins at the mean of the larger part, so that its rounding is small beside the deviation.
        let (from, step) =
            if new > old { (other.mean_words(), -(old * delta)) } else { (self.mean_words(), new * delta) };
        self.set_mean(from.add(step));
        self.magnitude += new * (other.magnitude - self.magnitude);
        self.min = if other.min < self.min { other.min } else { self.min };
        self.max = if other.max > self.max { other.max } else { self.max };
    }

    /// The mean, with twice the digits.
    pub fn mean_words(&self) -> Twofold {
        Twofold { high: self.mean, low: self.rest }
    }

    /// Replaces the mean.
    pub fn set_mean(&mut self, mean: Twofold) {
        (self.mean, self.rest) = (mean.high, mean.low);
    }

    /// The mean plus `sign` times the mean of `other`, to rounding of the result.
    pub fn mean_plus(&self, sign: f64, other: &Coordinate) -> f64 {
        (self.mean + sign * other.mean) + (self.rest + sign * other.rest)
    }

    /// The mean of x².
    pub fn mean_square(&self) -> f64 {
        self.variance + self.mean * self.mean
    }

    /// Whether squares are in range.
    pub fn is_finite(&self) -> bool {
        [self.mean_square(), self.rest, self.magnitude, self.min, self.max].iter().all(|v| v.is_finite())
    }

    /// Rejects statistics that no points can have.
    #[cfg(feature = "serde")]
    pub fn check(&self, row: usize) -> Result<()> {
        if !self.is_finite() {
            return Err(Error::NotFinite { what: "the coordinates", row, column: None });
        }
        if self.mean + self.rest != self.mean {
            let domain = "below half a place of the mean";
            return Err(Error::Entry { what: "the rests of the means", row, value: self.rest, domain });
        }
        let least = [
            ("the variances", self.variance, 0.0, "not negative"),
            ("the mean magnitudes", self.magnitude, 0.0, "not negative"),
            ("the maxima", self.max, self.min, "at least the minimum"),
        ];
        match least.into_iter().find(|(_, value, least, _)| value < least) {
            None => Ok(()),
            Some((what, value, _, domain)) => Err(Error::Entry { what, row, value, domain }),
        }
    }
}
