//! [`MapFamily`]: a map with parameters fitted to data, of any size.

use crate::error::Result;
use crate::frequency::AnyCoupling;
use crate::map::Recipe;

/// A map with its parameters, and recipes of it with any number of frequencies.
pub(crate) struct MapFamily {
    /// The name of the map and its parameters in words.
    pub name: String,
    pub couplings: Couplings,
    make: Box<Make>,
}

/// The couplings of the frequencies of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Couplings {
    /// All couplings of the plan are tried.
    Planned,
    /// A recipe of the caller's states its coupling, if it has one.
    Stated(Option<AnyCoupling>),
    /// The map has counts, or one size.
    None,
}

type Make = dyn Fn(usize, AnyCoupling) -> Result<Recipe> + Send + Sync;

impl MapFamily {
    /// Recipes from a number of frequencies and their coupling.
    pub fn coupled(
        name: impl Into<String>,
        make: impl Fn(usize, AnyCoupling) -> Result<Recipe> + Send + Sync + 'static,
    ) -> Self {
        MapFamily::of_couplings(name, Couplings::Planned, make)
    }

    /// Recipes from a number of frequencies, with these couplings.
    pub fn of_couplings(
        name: impl Into<String>,
        couplings: Couplings,
        make: impl Fn(usize, AnyCoupling) -> Result<Recipe> + Send + Sync + 'static,
    ) -> Self {
        MapFamily { name: name.into(), couplings, make: Box::new(make) }
    }

    /// Recipes from a number of counts.
    pub fn counts(
        name: impl Into<String>,
        make: impl Fn(usize) -> Result<Recipe> + Send + Sync + 'static,
    ) -> Self {
        MapFamily::of_couplings(name, Couplings::None, move |m, _| make(m))
    }

    /// One recipe, of one size.
    pub fn fitted(name: impl Into<String>, recipe: Recipe) -> Self {
        MapFamily::counts(name, move |_| Ok(recipe.clone()))
    }

    /// Whether the map is a recipe of the caller's.
    pub fn is_stated(&self) -> bool {
        matches!(self.couplings, Couplings::Stated(_))
    }

    /// The recipe with m frequencies, in each of its bases if it has several.
    ///
    /// # Errors
    /// Errors of the recipe, before anything is drawn.
    pub fn recipe(&self, m: usize, coupling: AnyCoupling) -> Result<Recipe> {
        let recipe = (self.make)(m, coupling)?;
        recipe.check()?;
        Ok(recipe)
    }
}

/// Proposals, and what could not be proposed.
#[derive(Default)]
pub(crate) struct Proposals {
    pub usable: Vec<MapFamily>,
    /// The name of a map, and why there is no proposal.
    pub refused: Vec<(&'static str, crate::Error)>,
}

impl Proposals {
    /// Adds what is proposed of a map.
    pub fn add(&mut self, map: &'static str, proposed: Result<Vec<MapFamily>>) {
        match proposed {
            Ok(proposed) => self.usable.extend(proposed),
            Err(error) => self.refused.push((map, error)),
        }
    }
}
