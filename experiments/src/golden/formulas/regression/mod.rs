//! Regression on given features: what sums, searches and criteria give.

mod classes;
mod dual;
mod grid;
mod lambda;
mod noise;
mod targets;
mod validate;

use ndarray::{Array1, Array2, ArrayView2};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::map::Side;
use random_features::{Error, Map, Real};
use serde_json::Value;

use super::Outcome;
use super::case::rows;
use crate::golden::{Computed, Scaled, decimal};

/// Computes a case of a family, which is the first part of its formula's name; `None` for another family.
pub fn compute(family: &str, case: &Value) -> Option<Result<Outcome, String>> {
    let case = Regression {
        formula: case["formula"].as_str()?,
        inputs: &case["inputs"],
        expected: &case["expected"],
    };
    let outcome = match family {
        "standardise" | "targets" => targets::compute(&case),
        "grid" => grid::compute(&case),
        "lambda" => lambda::compute(&case),
        "validate" => validate::compute(&case),
        "noise" => noise::compute(&case),
        "classify" | "weights" => classes::compute(&case),
        "dual" => dual::compute(&case),
        // Later parts: forgetting, Gaussian processes, tests of samples.
        "decay" | "gp" | "test" => Ok(Outcome::Later),
        _ => return None,
    };
    Some(outcome)
}

/// The formula of a case and its inputs, by the names of the table.
pub struct Regression<'a> {
    pub formula: &'a str,
    pub inputs: &'a Value,
    /// What is expected, for words.
    pub expected: &'a Value,
}

impl Regression<'_> {
    pub fn number(&self, name: &str) -> Result<f64, String> {
        decimal(&self.inputs[name]).map_err(|e| format!("{name}: {e}"))
    }

    pub fn numbers(&self, name: &str) -> Result<Array1<f64>, String> {
        let values = self.inputs[name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(decimal).collect()
    }

    /// Whole numbers: labels, groups, folds.
    pub fn counts(&self, name: &str) -> Result<Vec<usize>, String> {
        Ok(self.numbers(name)?.iter().map(|number| *number as usize).collect())
    }

    pub fn matrix(&self, name: &str) -> Result<Array2<f64>, String> {
        rows(&self.inputs[name], decimal).map_err(|e| format!("{name}: {e}"))
    }

    /// Targets, n × t; a list of numbers is one target.
    pub fn targets(&self, name: &str) -> Result<Array2<f64>, String> {
        if self.inputs[name][0].is_array() {
            return self.matrix(name);
        }
        Ok(self.numbers(name)?.insert_axis(ndarray::Axis(1)))
    }
}

/// The words of an error.
pub fn text(error: Error) -> String {
    error.to_string()
}

/// What a case gives, as arrays by name.
pub fn arrays(arrays: Vec<Scaled>) -> Result<Outcome, String> {
    Ok(Outcome::Computed(Computed::Arrays(arrays)))
}

/// The map from points to the points themselves, in `dim` dimensions.
pub fn identity<T: Real>(dim: usize) -> Result<Map<T>, String> {
    Map::of_feature_map(Given(dim)).map_err(text)
}

/// Points that are their own features.
#[derive(Debug)]
pub struct Given(pub usize);

impl<T: Real> FeatureMap<T> for Given {
    fn facts(&self) -> Facts {
        Facts::new(self.0, vec![self.0]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.values.iter_mut().zip(x).for_each(|(value, x)| *value = *x);
            row.log_scales[0] = 0.0;
        }
    }
}
