//! The errors of one recipe, by closed forms and by draws.

use std::ops::Range;

use super::steps::steps;
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::map::Recipe;
use crate::planner::forecasts::{Forecast, Pairs, Simulated, TaskLoss, closed, forecast, simulate};
use crate::planner::question::{Planner, check, check_attention};
use crate::theory::Basis;

impl Planner {
    /// The errors to expect of any recipe for these points, by closed forms, whatever the budget; `None` where there is no closed form.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::Trigonometric;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::recipe::Draw;
    /// use random_features::kernel::Gaussian;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let gaussian = Gaussian::new(1.0)?;
    /// let planner = Planner::of_one_set(&x)?.with_kernel(gaussian.clone());
    /// let recipe = Trigonometric.recipe(Draw::new(4, 64, Orthogonal), gaussian);
    /// let expected = planner.forecast(&recipe)?.ok_or("no closed form")?;
    /// let measured = planner.measure(&recipe, 100, 0)?;
    /// assert!((measured.gram.value / expected.gram.value - 1.0).abs() < 0.1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) or [`Unsupported`](Error::Unsupported) if the kernel or the loss has no
    /// [plan](Planner::plan); [`Shape`](Error::Shape) if the recipe is for another dimension. [`Cancelled`](Error::Cancelled) if
    /// a [watcher](crate::progress::watch) stops it.
    pub fn forecast(&self, recipe: &Recipe) -> Result<Option<Forecast>> {
        expect(self.with_known_kernel()?.as_ref(), recipe)
    }

    /// The errors of any recipe for these points in so many draws, with the seeds `first`, `first + 1`, …. If rare draws dominate an
    /// error, the measured error is an underestimate.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let planner = Planner::of_one_set(&x)?;
    /// let plan = planner.plan()?;
    /// let best = plan.best()?;
    /// let seen = planner.measure(&best.recipe, 100, 1)?;
    /// println!("expected {}, measured {}", best.loss(), seen.loss.value);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`forecast`](Planner::forecast) and of drawing the recipe; [`Parameter`](Error::Parameter) for fewer than 2
    /// draws.
    pub fn measure(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<Forecast> {
        measure(self.with_known_kernel()?.as_ref(), recipe, draws, first)
    }
}

/// The errors to expect of a recipe, by closed forms.
fn expect(planner: &Planner, recipe: &Recipe) -> Result<Option<Forecast>> {
    let (kernel, pairs) = pairs(planner, recipe)?;
    let Some(ln_squares) = closed(recipe, &planner.kernel, &pairs)? else { return Ok(None) };
    let of_pairs = forecast(&pairs, planner.loss, &ln_squares, Basis::ClosedForm);
    match TaskLoss::new(planner, kernel.as_ref())? {
        None => Ok(Some(of_pairs)),
        Some(task) => Ok(task.closed(recipe)?.map(|(loss, _)| of_pairs.with_loss(loss))),
    }
}

/// The errors of a recipe in so many draws, of consecutive seeds.
fn measure(planner: &Planner, recipe: &Recipe, draws: usize, first: u64) -> Result<Forecast> {
    if draws < 2 {
        let (name, domain) = ("the number of draws", "at least 2");
        return Err(Error::Parameter { name, value: draws as f64, domain });
    }
    let (kernel, pairs) = pairs(planner, recipe)?;
    let seen = Simulated::joined(steps("draws in parts of 16", split(draws), |part| {
        simulate(recipe, &pairs, part.len(), first.wrapping_add(part.start as u64))
    })?);
    let errors = forecast(&pairs, planner.loss, &seen.ln_squares(&pairs), seen.basis());
    let errors = errors.widened(0.5 * seen.gram().1);
    match TaskLoss::new(planner, kernel.as_ref())? {
        None => Ok(errors),
        Some(task) => Ok(errors.with_loss(task.simulated(recipe, draws, first)?.0)),
    }
}

/// Draws in parts of so many.
fn split(draws: usize) -> Vec<Range<usize>> {
    const PART: usize = 16;
    (0..draws.div_ceil(PART)).map(|k| k * PART..draws.min((k + 1) * PART)).collect()
}

/// The exact kernel, and the pairs on which a recipe is evaluated.
fn pairs(planner: &Planner, recipe: &Recipe) -> Result<(Box<dyn Kernel<f64>>, Pairs)> {
    let kernel = check(planner)?;
    check_size("the dimension of the recipe", planner.data.dim(), recipe.dim())?;
    check_attention(planner, recipe)?;
    let pairs = Pairs::draw(&planner.data, kernel.as_ref(), planner.seed)?;
    Ok((kernel, pairs))
}
