//! Functions as they travel.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use serde::{Deserialize, Serialize};

use crate::fault::{external, refuse};
use crate::sums::{Constants, RowColumns, SumsFunction, functions};

/// An aggregate whose constants are read.
#[derive(Serialize, Deserialize)]
struct Bound {
    constants: Constants,
    row_columns: RowColumns,
}

/// Writes what an aggregate of sums has beside its name. Nothing for others.
pub fn encode_aggregate(function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<bool> {
    let Some(sums) = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<SumsFunction>() else {
        return Ok(false);
    };
    if let Some(constants) = sums.constants() {
        let bound = Bound { constants: constants.clone(), row_columns: sums.row_columns() };
        serde_json::to_writer(bytes, &bound).map_err(external)?;
    }
    Ok(true)
}

/// The aggregate of a name; `None` if it is none of these.
pub fn decode_aggregate(name: &str, bytes: &[u8]) -> Result<Option<Arc<AggregateUDF>>> {
    let Some(named) = functions().into_iter().find(|function| function.name() == name) else {
        return Ok(None);
    };
    if bytes.is_empty() {
        return Ok(Some(Arc::new(named)));
    }
    let Bound { constants, row_columns } = serde_json::from_slice(bytes).map_err(external)?;
    let bound = AggregateUDF::from(SumsFunction::of_constants(constants, row_columns));
    match bound.name() == name {
        true => Ok(Some(Arc::new(bound))),
        false => refuse(format!("a plan names {name}, and describes {}", bound.name())),
    }
}

/// The scalar function of a name; `None` if it is none of these.
pub fn decode_scalar(name: &str) -> Option<Arc<ScalarUDF>> {
    crate::scalar::functions().into_iter().find(|function| function.name() == name).map(Arc::new)
}
