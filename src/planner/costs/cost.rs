//! [`Cost`]: what the features of a point cost.

use std::fmt;

use super::calibration::Calibration;
use super::work::Work;
use crate::Recipe;

/// The cost of the features of a point, on average over both sides.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cost {
    /// D, the number of features.
    pub features: usize,
    /// Multiplications: of projections and transformations of the point, and one for each value that is lifted or multiplied.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub multiplications: f64,
    /// Bytes of its features with their scales.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub bytes: f64,
    /// Nanoseconds for one of many points on all threads, by the calibration; NaN without one.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub nanoseconds: f64,
}

/// The unit of a budget or a cost: what is counted for the features of a point.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::planner::{Measure, Planner};
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let plan = Planner::of_one_set(&x)?.with_budget(Measure::Bytes, 1024.0).plan()?;
/// assert!(plan.best()?.cost(Measure::Bytes) <= 1024.0);
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Measure {
    /// The number of features, D.
    #[default]
    Features,
    /// Multiplications: of projections and transformations of the point, and one for each value that is lifted or multiplied.
    Multiplications,
    /// Bytes of the features with their scales.
    Bytes,
    /// Nanoseconds for one point of a large batch on all threads, by a [`Calibration`](crate::planner::Calibration).
    Nanoseconds,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Measure::Features => "features",
            Measure::Multiplications => "multiplications a point",
            Measure::Bytes => "bytes a point",
            Measure::Nanoseconds => "ns a point",
        })
    }
}

/// Two costs are equal if all numbers are; times that are both NaN count as equal.
impl PartialEq for Cost {
    fn eq(&self, other: &Self) -> bool {
        let own = |cost: &Cost| (cost.features, cost.multiplications, cost.bytes);
        own(self) == own(other) && same(self.nanoseconds, other.nanoseconds)
    }
}

/// Equal or both NaN.
pub(crate) fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

impl Cost {
    pub(crate) fn of(recipe: &Recipe, scalar: usize, calibration: Option<&Calibration>) -> Self {
        let (features, scales) = (recipe.feature_dim(), recipe.block_count());
        Cost::of_work(&Work::of(recipe), features, scales, scalar, calibration)
    }

    /// The cost of D Nyström features of M landmarks in ℝᵈ, with so many scales. Its time is not known: features are computed in `f64` for any scalar.
    pub(crate) fn of_nystroem(
        d: usize,
        landmarks: usize,
        (features, scales): (usize, usize),
        scalar: usize,
    ) -> Self {
        Cost::of_work(&Work::of_nystroem(d, landmarks, features), features, scales, scalar, None)
    }

    fn of_work(
        work: &Work,
        features: usize,
        scales: usize,
        scalar: usize,
        calibration: Option<&Calibration>,
    ) -> Self {
        Cost {
            features,
            multiplications: work.multiplications(),
            bytes: features as f64 * scalar as f64 + scales as f64 * size_of::<f64>() as f64,
            nanoseconds: calibration.map_or(f64::NAN, |calibration| calibration.nanoseconds(work)),
        }
    }

    /// The cost in a measure.
    pub fn in_measure(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Features => self.features as f64,
            Measure::Multiplications => self.multiplications,
            Measure::Bytes => self.bytes,
            Measure::Nanoseconds => self.nanoseconds,
        }
    }
}
