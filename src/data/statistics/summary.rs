//! Means, variances and ranges from statistics.

use super::{Coordinate, Statistics};
use crate::error::Result;

impl Statistics {
    /// The mean of each coordinate.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn mean(&self) -> Result<Vec<f64>> {
        self.each("the mean", |c| c.mean)
    }

    /// The variance of each coordinate about its own mean.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn variance(&self) -> Result<Vec<f64>> {
        self.each("the variance", |c| c.variance)
    }

    /// The mean of xₗ² for each coordinate l.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn mean_squares(&self) -> Result<Vec<f64>> {
        self.each("the mean of squares", Coordinate::mean_square)
    }

    /// The mean of |xₗ| for each coordinate l.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn mean_magnitudes(&self) -> Result<Vec<f64>> {
        self.each("the mean of magnitudes", |c| c.magnitude)
    }

    /// The smallest value of each coordinate.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn min(&self) -> Result<Vec<f64>> {
        self.each("a minimum", |c| c.min)
    }

    /// The largest value of each coordinate.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn max(&self) -> Result<Vec<f64>> {
        self.each("a maximum", |c| c.max)
    }

    /// The mean of ‖x‖².
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn mean_squared_norm(&self) -> Result<f64> {
        Ok(self.mean_squares()?.iter().sum())
    }

    /// The variance of all coordinates of all points about their common mean, like NumPy's `X.var()`.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if the weight is 0.
    pub fn overall_variance(&self) -> Result<f64> {
        self.check_data("the overall variance")?;
        let (d, first) = (self.dim() as f64, &self.coordinates[0]);
        // Offsets are taken from the first mean, so that the centre of equal means is exact.
        let offset = |c: &Coordinate| c.mean_plus(-1.0, first);
        let centre = self.coordinates.iter().map(|c| offset(c) / d).sum::<f64>();
        let about_centre = |c: &Coordinate| (c.variance + (offset(c) - centre).powi(2)) / d;
        Ok(self.coordinates.iter().map(about_centre).sum())
    }

    fn each(&self, what: &'static str, value: impl Fn(&Coordinate) -> f64) -> Result<Vec<f64>> {
        self.check_data(what)?;
        Ok(self.coordinates.iter().map(value).collect())
    }
}
