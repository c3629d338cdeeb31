//! [`Redraw`]: frequencies that are drawn again from time to time.

use rand::Rng;

use super::{Map, Recipe};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::rng_of_step;

/// A schedule by which a map's frequencies are drawn again, every so many steps of training or of a stream.
///
/// What is drawn depends on the seed and the step alone, never on data: a run can be repeated, or go on, from any step, and
/// no later token of a sequence has a say in the frequencies of an earlier one. The first draw is that of
/// [`Recipe::drawn`].
///
/// ```
/// use random_features::frequency::{Draw, Orthogonal};
/// use random_features::kernel::Softmax;
/// use random_features::map::Redraw;
/// use random_features::Positive;
/// let recipe = Positive.recipe(Draw::new(16, 64, Orthogonal), Softmax::default());
/// let redraw = Redraw::new(recipe, 42, 1000)?;
/// assert_eq!(redraw.number(2500), 2);
/// let (first, third) = (redraw.map::<f32>(999)?, redraw.map::<f32>(2500)?);
/// assert_eq!(first.identity(), redraw.map::<f32>(0)?.identity());
/// assert_ne!(first.identity(), third.identity());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Redraw {
    recipe: Recipe,
    seed: u64,
    interval: u64,
}

impl Redraw {
    /// Draws the frequencies of `recipe` anew every `interval` steps.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the interval is 0.
    pub fn new(recipe: Recipe, seed: u64, interval: u64) -> Result<Self> {
        if interval == 0 {
            return Err(Error::Parameter { name: "the interval", value: 0.0, domain: "at least 1" });
        }
        Ok(Redraw { recipe, seed, interval })
    }

    /// The number of redraws before a step: maps of steps with the same number are the same.
    pub fn number(&self, step: u64) -> u64 {
        step / self.interval
    }

    /// The recipe of a step, with everything drawn that was to be drawn.
    ///
    /// # Errors
    /// As [`Recipe::drawn`].
    pub fn recipe(&self, step: u64) -> Result<Recipe> {
        let seed = match self.number(step) {
            0 => self.seed,
            number => rng_of_step(self.seed, number).next_u64(),
        };
        self.recipe.drawn(seed)
    }

    /// The map of a step.
    ///
    /// # Errors
    /// As [`Recipe::map`].
    pub fn map<T: Real>(&self, step: u64) -> Result<Map<T>> {
        self.recipe(step)?.map()
    }
}
