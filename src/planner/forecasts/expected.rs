//! [`Forecast`]: the errors to expect of a recipe, and where they come from.

use crate::planner::question::Loss;
use crate::theory::Basis;

/// An expected error with its uncertainty, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Expected {
    /// The error; infinite where it is beyond the range of numbers or of the approximation.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub value: f64,
    /// The standard error of the value, from the sample of points and, in a simulation, from the sample of draws. For a
    /// rough number of attention it is at least the value, and it is infinite where nothing is known. It does not count
    /// what no pair of the sample shows: if few pairs make most of an error, samples differ by more.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub standard_error: f64,
    /// How the value was found: by a closed form, a bound, an approximation, held-out points or draws.
    pub basis: Basis,
}

/// Quantiles over pairs of points of √E(K̂ − K)²/|K|, the errors of estimates relative to the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RelativeErrors {
    /// The mean over pairs.
    pub mean: Expected,
    /// The error that half of the pairs exceed.
    pub median: Expected,
    /// The error that a tenth of the pairs exceed.
    pub ninety: Expected,
    /// The error that a hundredth of the pairs exceed.
    pub ninety_nine: Expected,
    /// The share of pairs whose error is above 1, from 0 to 1.
    pub beyond_one: Expected,
}

/// The errors to expect of a recipe, over pairs of points.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::planner::Planner;
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let plan = Planner::of_one_set(&x)?.plan()?;
/// let forecast = plan.best()?.forecast;
/// let gram = forecast.gram;
/// println!("error of the Gram matrix: {} ± {}", gram.value, gram.standard_error);
/// println!("a tenth of the pairs exceed: {}", forecast.relative_ninety().value);
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Forecast {
    /// The loss that the plan minimises.
    pub loss: Expected,
    /// √(Σ E(K̂ − K)²/Σ K²) over pairs: the error of the Gram matrix.
    pub gram: Expected,
    pub(crate) relative: RelativeErrors,
}

impl Forecast {
    /// The mean over pairs of √E(K̂ − K)²/|K|, the errors relative to the kernel.
    pub fn relative_mean(&self) -> Expected {
        self.relative.mean
    }

    /// The median over pairs of √E(K̂ − K)²/|K|.
    pub fn relative_median(&self) -> Expected {
        self.relative.median
    }

    /// The value of √E(K̂ − K)²/|K| that a tenth of the pairs exceed.
    pub fn relative_ninety(&self) -> Expected {
        self.relative.ninety
    }

    /// The value of √E(K̂ − K)²/|K| that a hundredth of the pairs exceed.
    pub fn relative_ninety_nine(&self) -> Expected {
        self.relative.ninety_nine
    }

    /// The share of pairs, from 0 to 1, for which √E(K̂ − K)² exceeds |K|.
    pub fn beyond_one(&self) -> Expected {
        self.relative.beyond_one
    }
}

impl Forecast {
    /// This forecast with the loss that follows from errors at pairs; for other losses the error of the Gram matrix stands in.
    pub(crate) fn with_loss_of_pairs(self, loss: Loss) -> Self {
        let loss = match loss {
            Loss::RelativeMean => self.relative.mean,
            Loss::RelativeMedian => self.relative.median,
            Loss::RelativeNinety => self.relative.ninety,
            Loss::RelativeNinetyNine => self.relative.ninety_nine,
            _ => self.gram,
        };
        Forecast { loss, ..self }
    }

    /// This forecast with the relative uncertainty of draws added to its standard errors.
    pub(crate) fn widened(self, relative: f64) -> Self {
        let wide = |one: Expected| {
            let own = or_infinite(one.value * relative);
            Expected { standard_error: one.standard_error.hypot(own), ..one }
        };
        let share = self.relative.beyond_one;
        let relative = RelativeErrors {
            mean: wide(self.relative.mean),
            median: wide(self.relative.median),
            ninety: wide(self.relative.ninety),
            ninety_nine: wide(self.relative.ninety_nine),
            beyond_one: share,
        };
        Forecast { loss: wide(self.loss), gram: wide(self.gram), relative }
    }

    /// This forecast with another loss.
    pub(crate) fn with_loss(self, loss: Expected) -> Self {
        Forecast { loss, ..self }
    }
}

impl Forecast {
    /// What is seen at some pairs as a forecast for all: each error times the ratio of what a closed form says of a similar recipe for
    /// all pairs to what it says for those.
    /// `uncertainties` are those of the ratios, of the Gram matrix and of relative errors.
    pub(crate) fn rescaled(self, all: &Forecast, some: &Forecast, uncertainties: [f64; 2]) -> Self {
        let scaled = |own: Expected, all: Expected, some: Expected, uncertainty: f64| {
            let known = some.value > 0.0 && some.value.is_finite();
            let value = or_infinite(if known { own.value * (all.value / some.value) } else { own.value });
            let sampled = if all.value > 0.0 { all.standard_error / all.value } else { 0.0 };
            Expected { value, standard_error: or_infinite(value * sampled.hypot(uncertainty)), ..own }
        };
        let [of_gram, of_relative] = uncertainties;
        let of = |own, all, some| scaled(own, all, some, of_relative);
        let (own, of_all, of_some) = (self.relative, all.relative, some.relative);
        let share = own.beyond_one.value + of_all.beyond_one.value - of_some.beyond_one.value;
        let relative = RelativeErrors {
            mean: of(own.mean, of_all.mean, of_some.mean),
            median: of(own.median, of_all.median, of_some.median),
            ninety: of(own.ninety, of_all.ninety, of_some.ninety),
            ninety_nine: of(own.ninety_nine, of_all.ninety_nine, of_some.ninety_nine),
            beyond_one: Expected { value: share.clamp(0.0, 1.0), ..own.beyond_one },
        };
        Forecast { loss: self.loss, gram: scaled(self.gram, all.gram, some.gram, of_gram), relative }
    }
}

/// An error or its uncertainty: where it is beyond the range, nothing is known.
pub(crate) fn or_infinite(value: f64) -> f64 {
    if value.is_nan() { f64::INFINITY } else { value }
}
