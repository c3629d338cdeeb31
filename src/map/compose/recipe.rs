//! Building a [`Map`] from a [`Recipe`].

use super::{Clustered, Coefficient, Hybrid};
use crate::Real;
use crate::error::{Error, Result};
use crate::map::{CoefficientRecipe, Map, Recipe};

impl Recipe {
    /// The map of this recipe, all of whose frequencies must be drawn.
    ///
    /// # Errors
    /// As [`PlainRecipe::map`](crate::map::PlainRecipe::map), [`Hybrid::sum`],
    /// [`Clustered::from_bases`] and [`Map::conditioned`].
    pub fn map<T: Real>(&self) -> Result<Map<T>> {
        match self {
            Recipe::Plain(plain) => plain.map(),
            Recipe::Hybrid(hybrid) => {
                let term = |(coefficient, base): &(CoefficientRecipe, Recipe)| {
                    Ok((coefficient.coefficient()?, base.map()?))
                };
                let terms = hybrid.terms.iter().map(term).collect::<Result<Vec<_>>>()?;
                Hybrid::sum(terms, hybrid.rest.map()?)
            }
            Recipe::Clustered(clustered) => {
                let bases = clustered.bases.iter().map(Recipe::map).collect::<Result<Vec<_>>>()?;
                Clustered::from_bases(clustered.queries.clone(), clustered.keys.clone(), bases)
            }
            Recipe::Conditioned(conditioned) => {
                conditioned.base.map()?.conditioned(&conditioned.conditioning)
            }
        }
    }

    /// The map of this recipe, after drawing all missing frequencies from one seed.
    ///
    /// # Errors
    /// As [`drawn`](Recipe::drawn) and [`map`](Recipe::map).
    pub fn draw<T: Real>(&self, seed: u64) -> Result<Map<T>> {
        self.drawn(seed)?.map()
    }
}

impl CoefficientRecipe {
    /// The coefficient of this recipe, all of whose frequencies must be drawn.
    ///
    /// # Errors
    /// As [`Coefficient::affine`] and [`Recipe::map`]; [`Parameter`](Error::Parameter) if there is a factor, but no map.
    pub fn coefficient<T: Real>(&self) -> Result<Coefficient<T>> {
        match &self.map {
            None if self.factor != 0.0 => {
                let (name, value) = ("the factor of a coefficient without a map", self.factor);
                Err(Error::Parameter { name, value, domain: "0" })
            }
            None => Coefficient::constant(self.constant),
            Some(map) => Coefficient::affine(self.constant, self.factor, map.map()?),
        }
    }
}
