//! The stored forms of statistics and models, checked when they are read.

use ndarray::{Array1, Array2};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::rows::RowRanges;
use super::sums::NormalSums;
use super::{Ridge, RidgeStatistics, Standardisation};
use crate::Real;
use crate::map::Map;
use crate::sealed::{seal, unseal};

#[derive(Serialize, Deserialize)]
#[serde(rename = "RidgeStatistics", bound = "")]
struct StoredRidgeStatistics<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    intercept: bool,
    sums: NormalSums,
    rows: RowRanges,
    next: u64,
}

impl<T: Real> Serialize for RidgeStatistics<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RidgeStatistics { map, inputs, intercept, sums, rows, next } = self.clone();
        seal::<T, S>(&StoredRidgeStatistics { map, inputs, intercept, sums, rows, next }, serializer)
    }
}

impl<'de, T: Real> Deserialize<'de> for RidgeStatistics<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredRidgeStatistics { map, inputs, intercept, sums, rows, next } =
            unseal::<T, StoredRidgeStatistics<T>, D>(deserializer)?;
        let targets = sums.cross.len().saturating_sub(1);
        let new = RidgeStatistics::new(map, targets).map_err(D::Error::custom)?;
        if !sums.fit::<T>(targets, new.map.feature_dim()) {
            return Err(D::Error::custom("sums of another shape than that of the map and the targets"));
        }
        if inputs.as_ref().is_some_and(|inputs| inputs.centre().len() != new.map.input_dim()) {
            return Err(D::Error::custom("a standardisation for another dimension than that of the map"));
        }
        if !rows.is_sound() {
            return Err(D::Error::custom("ranges of rows that overlap, touch or are out of order"));
        }
        Ok(RidgeStatistics { inputs, intercept, sums, rows, next, ..new })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Ridge", bound = "")]
struct StoredRidge<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    #[serde(with = "crate::exact")]
    weights: Array2<f64>,
    #[serde(with = "crate::exact")]
    intercepts: Vec<f64>,
}

impl<T: Real> Serialize for Ridge<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Ridge { map, inputs, weights, intercepts } = self.clone();
        seal::<T, S>(&StoredRidge { map, inputs, weights, intercepts: intercepts.to_vec() }, serializer)
    }
}

impl<'de, T: Real> Deserialize<'de> for Ridge<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredRidge { map, inputs, weights, intercepts } = unseal::<T, StoredRidge<T>, D>(deserializer)?;
        let finite = weights.iter().chain(&intercepts).all(|v| v.is_finite());
        if !finite || intercepts.is_empty() || weights.dim() != (intercepts.len(), map.feature_dim()) {
            return Err(D::Error::custom("weights of another shape than that of the map and the targets"));
        }
        if inputs.as_ref().is_some_and(|inputs| inputs.centre().len() != map.input_dim()) {
            return Err(D::Error::custom("a standardisation for another dimension than that of the map"));
        }
        Ok(Ridge { map, inputs, weights, intercepts: Array1::from(intercepts) })
    }
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod classifier {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::sealed::{seal, unseal};

    use super::super::calibration::Calibration;
    use super::super::{Ridge, RidgeClassifier};
    use crate::Real;

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "RidgeClassifier", bound = "")]
    struct StoredClassifier<T: Real> {
        model: Ridge<T>,
        calibration: Option<Calibration>,
    }

    impl<T: Real> Serialize for RidgeClassifier<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let RidgeClassifier { model, calibration } = self.clone();
            seal::<T, S>(&StoredClassifier { model, calibration }, serializer)
        }
    }

    impl<'de, T: Real> Deserialize<'de> for RidgeClassifier<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let StoredClassifier { model, calibration } = unseal::<T, StoredClassifier<T>, D>(deserializer)?;
            let classes = model.intercepts.len();
            if calibration.as_ref().is_some_and(|calibration| !calibration.fits(classes)) {
                return Err(D::Error::custom("a calibration for another number of classes than the model's"));
            }
            Ok(RidgeClassifier { model, calibration })
        }
    }
}
