//! Statistics of scaled or shifted points, computed from those of the original points.

use super::{Coordinate, Statistics};
use crate::error::{Error, Result, check_size};
use crate::kernel::Lengthscale;
use crate::numeric::Twofold;

impl Statistics {
    /// The statistics of the points divided by a lengthscale.
    ///
    /// ```
    /// use random_features::ndarray::arr2;
    /// use random_features::data::Statistics;
    /// let statistics = Statistics::of(&arr2(&[[1.0, 8.0], [3.0, -8.0]]))?
    ///     .divided_by(vec![1.0, 4.0])?;
    /// assert_eq!(statistics.mean_squares()?, [5.0, 4.0]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if an ℓ is outside its domain or so small that squares overflow,
    /// [`Shape`](Error::Shape) if the number of ℓ is not d.
    pub fn divided_by(&self, lengthscale: impl Into<Lengthscale>) -> Result<Statistics> {
        let lengthscale = lengthscale.into().checked()?;
        lengthscale.check_dim(self.dim())?;
        let divided = |(k, c): (usize, &Coordinate)| {
            let scale = lengthscale.at(k);
            let mean = c.mean / scale;
            // The remainder of a division is exact.
            let rest = ((-mean).mul_add(scale, c.mean) + c.rest) / scale;
            let mean = Twofold::default().add(mean).add(rest);
            let divided = Coordinate {
                mean: mean.high,
                rest: mean.low,
                variance: c.variance / (scale * scale),
                magnitude: c.magnitude / scale,
                min: c.min / scale,
                max: c.max / scale,
            };
            let domain = "large enough for the squares of what it divides to be finite";
            let error = Error::Parameter { name: "the lengthscale", value: scale, domain };
            if divided.is_finite() { Ok(divided) } else { Err(error) }
        };
        let coordinates = self.coordinates.iter().enumerate().map(divided).collect::<Result<_>>()?;
        Ok(Statistics { coordinates, ..*self })
    }

    /// The statistics of the points x − c, for a c that is at most as large as every point in every coordinate, such as
    /// [`PairStatistics::shift`](crate::data::PairStatistics::shift).
    ///
    /// For such a c, the mean of |x − c| is the mean minus c. These statistics choose parameters of maps with a
    /// [`Shift`](crate::map::Shift).
    ///
    /// ```
    /// use random_features::ndarray::arr2;
    /// use random_features::data::Statistics;
    /// let statistics = Statistics::of(&arr2(&[[1.0, 8.0], [3.0, -8.0]]))?
    ///     .shifted(&[1.0, -9.0])?;
    /// assert_eq!(
    ///     (statistics.mean_magnitudes()?, statistics.min()?),
    ///     (vec![1.0, 9.0], vec![0.0, 1.0])
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if the weight is 0, [`Shape`](Error::Shape) if `c` does not have d entries,
    /// [`Entry`](Error::Entry) with the first coordinate in which `c` is above a point, or so far below that
    /// squares overflow.
    pub fn shifted(&self, c: &[f64]) -> Result<Statistics> {
        self.check_data("a shift")?;
        check_size("the number of entries of the shift", self.dim(), c.len())?;
        let shifted = |(row, (own, c)): (usize, (&Coordinate, &f64))| {
            let (min, max) = (own.min - c, own.max - c);
            // The mean may be rounded below the minimum.
            let mean = own.mean_words().add(-c);
            let Twofold { high: mean, low: rest } =
                if mean.high < min { Twofold { high: min, low: 0.0 } } else { mean };
            let shifted = Coordinate { mean, rest, magnitude: mean, min, max, ..*own };
            let domain = "no more than the minimum, with differences whose squares are finite";
            let error = Error::Entry { what: "the shift", row, value: *c, domain };
            if min >= 0.0 && shifted.is_finite() { Ok(shifted) } else { Err(error) }
        };
        let coordinates = self.coordinates.iter().zip(c).enumerate().map(shifted).collect::<Result<_>>()?;
        Ok(Statistics { coordinates, ..*self })
    }
}
