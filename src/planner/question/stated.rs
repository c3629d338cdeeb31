//! [`StatedRecipe`]: a recipe of the caller's, in any size.

use crate::error::{Error, Result, check_size};
use crate::map::{Omega, Recipe};

/// The most letters of a name: a plan prints its first ones.
const LETTERS: usize = 60;
/// Numbers of frequencies that a recipe is asked for before a plan begins: the first, odd and even ones, and the most.
const SIZES: [usize; 5] = [1, 2, 3, 256, 1 << 22];

/// A recipe under a name of the caller's.
#[derive(Clone, Debug)]
pub(crate) struct StatedRecipe {
    pub name: String,
    pub recipe: Recipe,
}

impl StatedRecipe {
    /// The recipe with m frequencies or terms of a sketch, to be drawn.
    pub fn of_size(&self, m: usize) -> Result<Recipe> {
        let what = "a plan with a recipe of several parts, of given numbers or of few sizes: \
                    `Planner::forecast` and `measure` have its errors";
        let resized = match self.recipe {
            Recipe::Plain(_) => self.recipe.with_frequencies(&|_| Some(m)),
            Recipe::Composite(_) => None,
        };
        resized.ok_or(Error::Unsupported { what })
    }

    /// Whether it is a sketch.
    pub fn is_sketch(&self) -> bool {
        matches!(&self.recipe, Recipe::Plain(plain) if matches!(plain.omega, Omega::Sketch(_)))
    }

    /// Rejects names that a table cannot hold, recipes for points of another dimension than d, and recipes that do not grow.
    pub fn check(&self, d: usize) -> Result<()> {
        let letters = self.name.chars().count();
        if !(1..=LETTERS).contains(&letters) || self.name.contains(char::is_control) {
            return Err(Error::Unsupported {
                what: "a plan with a recipe whose name is not a line of 1 to 60 letters",
            });
        }
        check_size("the dimension of a recipe", d, self.recipe.dim())?;
        let sizes = SIZES.map(|m| self.of_size(m).map(|recipe| recipe.feature_dim()));
        let sizes = sizes.into_iter().collect::<Result<Vec<_>>>()?;
        if sizes.windows(2).any(|pair| pair[1] <= pair[0]) {
            return Err(Error::Unsupported {
                what: "a plan with a recipe whose features do not grow with its size",
            });
        }
        self.of_size(2)?.check()
    }
}
