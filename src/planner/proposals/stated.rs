//! Recipes that the caller states, in any size.

use super::family::{Couplings, MapFamily};
use crate::error::{Error, Result, check_size};
use crate::map::{Omega, Recipe};

/// A recipe under a name of the caller's.
#[derive(Clone, Debug)]
pub(crate) struct StatedRecipe {
    pub name: String,
    pub recipe: Recipe,
}

impl StatedRecipe {
    /// The recipe with m frequencies in those of its draws that have the most, to be drawn; other draws keep their numbers.
    fn of_size(&self, m: usize) -> Result<Recipe> {
        let largest = self.largest();
        let count = |own| Some(if own == largest { m } else { own });
        self.recipe.with_frequencies(&count).ok_or(Error::Unsupported {
            what: "a plan with a recipe of one size: `Planner::forecast` and `measure` have its errors",
        })
    }

    fn largest(&self) -> usize {
        self.recipe.draws().iter().map(|omega| omega.m()).max().unwrap_or(0)
    }

    /// Rejects recipes for points of another dimension than d, and recipes of one size.
    pub fn check(&self, d: usize) -> Result<()> {
        check_size("the dimension of a recipe", d, self.recipe.dim())?;
        self.of_size(self.largest())?.check()
    }

    /// The recipe in all sizes, with the coupling of its largest draw.
    pub fn family(&self) -> MapFamily {
        let coupling = self.recipe.draws().into_iter().find_map(|omega| match omega {
            Omega::Draw(draw) if draw.m == self.largest() => Some(draw.coupling),
            Omega::Frequencies(omega) if omega.m() == self.largest() => Some(omega.drawn_from()?.0.coupling),
            _ => None,
        });
        let stated = self.clone();
        MapFamily::of_couplings(&self.name, Couplings::Stated(coupling), move |m, _| stated.of_size(m))
    }
}
