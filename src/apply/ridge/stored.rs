//! The stored forms of statistics and models, checked when they are read.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::{Ridge, RidgeStatistics, Standardisation};
use crate::Real;
use crate::map::Map;
use crate::reduce::StoredGramIntake;
use crate::sealed::sealed;

#[derive(Serialize, Deserialize)]
#[serde(rename = "RidgeStatistics", bound = "")]
struct StoredRidgeStatistics<T: Real> {
    intake: StoredGramIntake<T>,
    intercept: bool,
}

sealed!(RidgeStatistics<T>, StoredRidgeStatistics<T>, T, [T: Real]);

impl<T: Real> From<&RidgeStatistics<T>> for StoredRidgeStatistics<T> {
    fn from(RidgeStatistics { intake, intercept }: &RidgeStatistics<T>) -> Self {
        StoredRidgeStatistics { intake: intake.into(), intercept: *intercept }
    }
}

impl<T: Real> TryFrom<StoredRidgeStatistics<T>> for RidgeStatistics<T> {
    type Error = String;

    fn try_from(stored: StoredRidgeStatistics<T>) -> Result<Self, String> {
        let statistics = RidgeStatistics::of_intake(stored.intake.try_into()?);
        let statistics = statistics.map_err(|error| error.to_string())?;
        Ok(RidgeStatistics { intercept: stored.intercept, ..statistics })
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

sealed!(Ridge<T>, StoredRidge<T>, T, [T: Real]);

impl<T: Real> From<&Ridge<T>> for StoredRidge<T> {
    fn from(model: &Ridge<T>) -> Self {
        let Ridge { map, inputs, weights, intercepts } = model.clone();
        StoredRidge { map, inputs, weights: weights.into_owned(), intercepts: intercepts.to_vec() }
    }
}

impl<T: Real> TryFrom<StoredRidge<T>> for Ridge<T> {
    type Error = &'static str;

    fn try_from(stored: StoredRidge<T>) -> Result<Self, &'static str> {
        let StoredRidge { map, inputs, weights, intercepts } = stored;
        let finite = weights.iter().chain(&intercepts).all(|v| v.is_finite());
        if !finite || intercepts.is_empty() || weights.dim() != (intercepts.len(), map.feature_dim()) {
            return Err("weights of another shape than that of the map and the targets");
        }
        if inputs.as_ref().is_some_and(|inputs| inputs.centre().len() != map.dim()) {
            return Err("a standardisation for another dimension than that of the map");
        }
        Ok(Ridge { map, inputs, weights: weights.into_shared(), intercepts: Array1::from(intercepts) })
    }
}
