//! [`check_unbiased`]: means and variances of estimates over many draws.

use ndarray::ArrayRef1;

use crate::error::{Result, check_positive};
use crate::{Map, Real};

/// The mean of a sample and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean.
    pub error: f64,
}

impl Sample {
    /// The mean and its standard error, of at least two values.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Sample { mean, error: (variance / n).sqrt() }
    }

    /// The difference of the mean from `expected` in standard errors; 0 if they are equal.
    pub fn z(&self, expected: f64) -> f64 {
        let off = self.mean - expected;
        if off == 0.0 { 0.0 } else { off / self.error }
    }
}

/// The result of [`check_unbiased`]: estimates of one kernel value from many draws.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unbiased {
    /// The mean of the estimates.
    pub mean: f64,
    /// The standard error of the mean, from the sample.
    pub error: f64,
    /// The kernel value.
    pub exact: f64,
    /// (mean − exact) / error. For an unbiased map and many draws, |z| > 4 has probability 6e-5.
    pub z: f64,
    /// The mean squared error of the estimates: their variance if they are unbiased.
    pub variance: f64,
    /// The standard error of `variance`.
    pub variance_error: f64,
    /// The variance by the map's closed form; `None` if it has none.
    pub predicted: Option<f64>,
    /// (variance − predicted) / `variance_error`.
    pub variance_z: Option<f64>,
}

impl std::fmt::Display for Unbiased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mean {:.6e} ± {:.1e}, exact {:.6e}, z {:.2}", self.mean, self.error, self.exact, self.z)?;
        write!(f, "; variance {:.4e} ± {:.1e}", self.variance, self.variance_error)?;
        match self.predicted.zip(self.variance_z) {
            Some((predicted, z)) => write!(f, ", predicted {predicted:.4e}, z {z:.2}"),
            None => write!(f, ", without a closed form"),
        }
    }
}

/// Estimates K(x, y) with the maps that `draw` returns for the seeds 0 … `runs` − 1, and compares the mean with `exact`
/// and the variance with the closed form ([`Map::log_variance`]). The standard error of the mean is at least the rounding
/// error of an estimate, and that of the variance at least its square.
///
/// Use a bound of 4 or 5 on |z| if many points are tested. Choose points where the kurtosis of the estimates is
/// moderate, ‖x+y‖ ≲ 1 for exponential features: if a few draws dominate the mean, samples are not informative and `z`
/// is not normal. Cost: `runs` draws and estimates.
///
/// # Errors
/// The errors of `draw` and of the maps; [`Parameter`](crate::Error::Parameter) if `runs` is 0.
pub fn check_unbiased<T: Real>(
    draw: impl Fn(u64) -> Result<Map<T>>,
    x: &ArrayRef1<T>,
    y: &ArrayRef1<T>,
    exact: f64,
    runs: u64,
) -> Result<Unbiased> {
    check_positive("the number of runs", runs as usize)?;
    let estimate = |seed| Ok(draw(seed)?.log_estimate(x, y)?.value());
    let estimates = (0..runs).map(estimate).collect::<Result<Vec<f64>>>()?;
    let squares: Vec<f64> = estimates.iter().map(|v| (v - exact).powi(2)).collect();
    let (mut mean, mut variance) = (Sample::of(&estimates), Sample::of(&squares));
    let first = draw(0)?;
    // Where estimates are exact, only the rounding of a sum of D terms is left.
    let size = estimates.iter().fold(exact.abs(), |top, v| top.max(v.abs()));
    let rounding = T::epsilon().widen() * (first.feature_dim() as f64).sqrt().max(4.0) * size;
    mean.error = mean.error.max(rounding);
    variance.error = variance.error.max(rounding * rounding);
    let predicted = first.log_variance(x, y)?.map(f64::exp);
    Ok(Unbiased {
        mean: mean.mean,
        error: mean.error,
        exact,
        z: mean.z(exact),
        variance: variance.mean,
        variance_error: variance.error,
        predicted,
        variance_z: predicted.map(|predicted| variance.z(predicted)),
    })
}
