//! [`Redraw`]: a schedule for redrawing frequencies.

use super::{Map, Recipe};
use crate::error::{Error, Result};
use crate::once::once;
use crate::{Real, rng_of_step};

/// A schedule that redraws the frequencies of a map after a fixed number of steps of training or of a stream.
///
/// ```
/// use random_features::Positive;
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::Softmax;
/// use random_features::map::Redraw;
/// use random_features::recipe::Draw;
/// let recipe =
///     Positive.recipe(Draw::new(16, 64, Orthogonal), Softmax::default());
/// let redraw = Redraw::new(recipe, 42, 1000)?;
/// assert_eq!(redraw.number(2500), 2);
/// let (first, third) =
///     (redraw.build::<f32>(999)?, redraw.build::<f32>(2500)?);
/// assert_eq!(first.identity(), redraw.build::<f32>(0)?.identity());
/// assert_ne!(first.identity(), third.identity());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// A draw depends only on the seed and the step, never on data. A run can therefore be repeated or resumed from any
/// step, and later tokens of a sequence do not influence the frequencies of earlier ones. The first draw is that of
/// [`Recipe::drawn`].
#[derive(Clone, Debug, PartialEq)]
pub struct Redraw {
    recipe: Recipe,
    seed: u64,
    interval: u64,
}

impl Redraw {
    /// Redraws the frequencies of `recipe` every `interval` steps.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the interval is 0.
    pub fn new(recipe: Recipe, seed: u64, interval: u64) -> Result<Self> {
        if interval == 0 {
            return Err(Error::Parameter {
                name: "the number of steps between redraws",
                value: 0.0,
                domain: "at least 1",
            });
        }
        Ok(Redraw { recipe, seed, interval })
    }

    /// The number of redraws before a step. Steps with equal numbers of redraws share a map.
    pub fn number(&self, step: u64) -> u64 {
        step / self.interval
    }

    /// The recipe of a step, with all frequencies drawn.
    ///
    /// # Errors
    /// The errors of [`Recipe::drawn`].
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
    /// The errors of [`Recipe::build`].
    #[inline(never)]
    pub fn build<T: Real>(&self, step: u64) -> Result<Map<T>> {
        self.recipe(step)?.build()
    }
}

once!(Redraw::build::<T>);
