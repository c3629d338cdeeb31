//! [`Cost`]: what the features of a point cost.

use std::fmt;

use super::calibration::Calibration;
use super::work::Work;
use crate::Recipe;

/// What the features of a point cost, on average over both sides.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cost {
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

/// In what a budget is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Measure {
    /// Features of a point, D.
    #[default]
    Features,
    /// Multiplications for the features of a point.
    Multiplications,
    /// Bytes of the features of a point.
    Bytes,
    /// Nanoseconds for the features of one of many points.
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
        let work = Work::of(recipe);
        let (features, scales) = (recipe.feature_dim(), recipe.block_count());
        Cost {
            features,
            multiplications: work.multiplications(),
            bytes: features as f64 * scalar as f64 + scales as f64 * size_of::<f64>() as f64,
            nanoseconds: calibration.map_or(f64::NAN, |calibration| calibration.nanoseconds(&work)),
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
