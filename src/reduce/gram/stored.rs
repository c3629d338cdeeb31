//! The stored forms of sums, checked when they are read.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::counts::RowCounts;
use super::normal::stored::StoredNormalSums;
use super::ranges::Ranges;
use super::sums::MapIdentity;
use super::{GramIntake, GramSums, Standardisation};
use crate::Real;
use crate::map::Map;
use crate::rows::RowRanges;
use crate::sealed::sealed;

/// Sums, the numbers of their rows, and the identity of the map.
#[derive(Serialize, Deserialize)]
#[serde(rename = "GramSums")]
struct StoredGramSums {
    map: MapIdentity,
    inputs: Option<Standardisation>,
    totals: StoredNormalSums,
    rows: RowRanges,
    ranges: Ranges,
    target_ranges: Ranges,
    present: RowCounts,
}

sealed!(GramSums<T>, StoredGramSums, T, [T: Real]);

impl<T: Real> From<&GramSums<T>> for StoredGramSums {
    fn from(sums: &GramSums<T>) -> Self {
        let GramSums { map, inputs, totals, rows, ranges, target_ranges, present, scalar: _ } = sums.clone();
        let totals = (&totals).into();
        StoredGramSums { map, inputs, totals, rows, ranges, target_ranges, present }
    }
}

impl<T: Real> TryFrom<StoredGramSums> for GramSums<T> {
    type Error = String;

    fn try_from(stored: StoredGramSums) -> Result<Self, String> {
        let StoredGramSums { map, inputs, totals, rows, ranges, target_ranges, present } = stored;
        let Some(targets) = totals.cross.len().checked_sub(1) else {
            return Err("sums of no feature".into());
        };
        GramSums::<T>::check(map.feature_dim, targets).map_err(|error| error.to_string())?;
        let Some(totals) = totals.restored::<T>(targets, map.feature_dim) else {
            return Err("sums of another shape than that of the map and the targets".into());
        };
        if inputs.as_ref().is_some_and(|inputs| inputs.centre().len() != map.input_dim) {
            return Err("a standardisation for another dimension than that of the map".into());
        }
        if !present.fit(rows.len(), targets) {
            return Err("more rows of positive weight, or of a target that is not 0, than rows".into());
        }
        if !ranges.fit(map.input_dim) {
            return Err("ranges of another number of coordinates than the map's, or out of order".into());
        }
        if !target_ranges.fit(targets)
            || (present.all > 0 && targets > 0 && target_ranges == Ranges::default())
        {
            return Err("ranges of another number of targets than that of the sums, or out of order".into());
        }
        Ok(GramSums { map, inputs, totals, rows, ranges, target_ranges, present, scalar: PhantomData })
    }
}

/// Sums with their map, as parts of a sealed form.
#[derive(Serialize, Deserialize)]
#[serde(rename = "GramIntake", bound = "")]
pub(crate) struct StoredGramIntake<T: Real> {
    map: Map<T>,
    sums: StoredGramSums,
    next: u64,
}

impl<T: Real> From<&GramIntake<T>> for StoredGramIntake<T> {
    fn from(GramIntake { map, sums, next }: &GramIntake<T>) -> Self {
        StoredGramIntake { map: map.clone(), sums: sums.into(), next: *next }
    }
}

impl<T: Real> TryFrom<StoredGramIntake<T>> for GramIntake<T> {
    type Error = String;

    fn try_from(StoredGramIntake { map, sums, next }: StoredGramIntake<T>) -> Result<Self, String> {
        let intake = GramIntake::of_sums(map, sums.try_into()?).map_err(|error| error.to_string())?;
        Ok(GramIntake { next, ..intake })
    }
}
