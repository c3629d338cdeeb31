//! The stored forms of statistics and models, checked when they are read.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::ranges::InputRanges;
use super::sums::NormalSums;
use super::{Ridge, RidgeStatistics, Standardisation};
use crate::Real;
use crate::map::Map;
use crate::reduce::RowRanges;
use crate::sealed::{sealed, sealed_fields};

sealed_fields! {
    RidgeStatistics<T>, T,
    #[serde(rename = "RidgeStatistics", bound = "")]
    pub(in crate::apply) struct StoredRidgeStatistics {
        map: Map<T>,
        inputs: Option<Standardisation>,
        intercept: bool,
        sums: NormalSums,
        rows: RowRanges,
        ranges: InputRanges,
        present: u64,
        next: u64,
    }
}

impl<T: Real> TryFrom<StoredRidgeStatistics<T>> for RidgeStatistics<T> {
    type Error = String;

    fn try_from(stored: StoredRidgeStatistics<T>) -> Result<Self, String> {
        let statistics = stored.checked()?;
        if statistics.targets() == 0 { Err("statistics without targets".into()) } else { Ok(statistics) }
    }
}

impl<T: Real> StoredRidgeStatistics<T> {
    /// The statistics, of any number of targets.
    pub(in crate::apply) fn checked(self) -> Result<RidgeStatistics<T>, String> {
        let StoredRidgeStatistics { map, inputs, intercept, sums, rows, ranges, present, next } = self;
        let Some(targets) = sums.cross.len().checked_sub(1) else {
            return Err("sums of no feature".into());
        };
        RidgeStatistics::check(&map, targets).map_err(|error| error.to_string())?;
        if !sums.fit::<T>(targets, map.feature_dim()) {
            return Err("sums of another shape than that of the map and the targets".into());
        }
        check_inputs(&inputs, &map)?;
        if !rows.is_sound() {
            return Err("ranges of rows that overlap, touch or are out of order".into());
        }
        if !ranges.fit(map.input_dim()) {
            return Err("ranges of another number of coordinates than the map's, or out of order".into());
        }
        Ok(RidgeStatistics { map, inputs, intercept, sums, rows, ranges, present, next })
    }
}

fn check_inputs<T: Real>(inputs: &Option<Standardisation>, map: &Map<T>) -> Result<(), &'static str> {
    match inputs {
        Some(inputs) if inputs.centre().len() != map.input_dim() => {
            Err("a standardisation for another dimension than that of the map")
        }
        _ => Ok(()),
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
        check_inputs(&inputs, &map)?;
        Ok(Ridge { map, inputs, weights: weights.into_shared(), intercepts: Array1::from(intercepts) })
    }
}
