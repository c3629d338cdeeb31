//! [`MapSpec`]: which map features are of, as it travels; and the maps of this process.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use datafusion::common::Result;
use random_features::apply::Standardisation;
use random_features::map::Recipe;
use random_features::{Map, Real};
use serde::{Deserialize, Serialize};

use crate::fault::{external, refuse};

/// A map as it travels: a recipe and a seed, from which each process draws the same frequencies, and what is done to inputs
/// before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapSpec {
    /// The map, without its frequencies.
    pub recipe: Recipe,
    /// The centring and scaling of inputs before the map, if any.
    pub standardisation: Option<Standardisation>,
    /// The seed of the frequencies.
    #[serde(default)]
    pub seed: u64,
    /// The columns of the inputs in their order, if it is for these alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

impl MapSpec {
    /// Features of inputs as they are.
    pub fn new(recipe: Recipe, seed: u64) -> Self {
        MapSpec { recipe, standardisation: None, seed, columns: Vec::new() }
    }

    /// This map of inputs that are centred and scaled.
    pub fn with_standardisation(self, inputs: Standardisation) -> Self {
        MapSpec { standardisation: Some(inputs), ..self }
    }

    /// This map for inputs of these columns.
    pub fn of_columns(self, columns: &[String]) -> Self {
        MapSpec { columns: columns.to_vec(), ..self }
    }

    /// Reads what SQL functions are given as a recipe: the JSON of a [`Recipe`], or of a [`MapSpec`], whose seed is replaced.
    ///
    /// # Errors
    /// A sentence if it is neither.
    pub fn parse(json: &str, seed: u64) -> Result<Self> {
        Ok(MapSpec { seed, ..Self::read(json)? })
    }

    /// As [`parse`](MapSpec::parse), with the seed that is stored; 0 for a [`Recipe`], which has none.
    ///
    /// # Errors
    /// As [`parse`](MapSpec::parse).
    pub fn read(json: &str) -> Result<Self> {
        if let Ok(recipe) = serde_json::from_str::<Recipe>(json) {
            return Ok(MapSpec::new(recipe, 0));
        }
        match serde_json::from_str::<MapSpec>(json) {
            Ok(spec) => Ok(spec),
            Err(error) => refuse(format!("the recipe cannot be understood: {error}")),
        }
    }

    /// The JSON that [`parse`](MapSpec::parse) reads.
    ///
    /// # Errors
    /// If the recipe cannot be stored, as those of user-defined maps.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(external)
    }

    /// The map, drawn once a process.
    ///
    /// # Errors
    /// As [`Recipe::draw`].
    pub fn draw<T: Real>(&self) -> Result<Map<T>> {
        let key = (self.recipe.identity().to_string(), self.seed, TypeId::of::<T>());
        let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = drawn.get(&key).and_then(|map| map.downcast_ref::<Map<T>>()) {
            return Ok(map.clone());
        }
        let map: Map<T> = self.recipe.draw(self.seed).map_err(external)?;
        if drawn.len() >= CAPACITY {
            drawn.clear();
        }
        drawn.insert(key, Arc::new(map.clone()));
        Ok(map)
    }
}

/// Maps that are kept.
const CAPACITY: usize = 16;

type Drawn = HashMap<(String, u64, TypeId), Arc<dyn Any + Send + Sync>>;

static DRAWN: LazyLock<Mutex<Drawn>> = LazyLock::new(Mutex::default);
