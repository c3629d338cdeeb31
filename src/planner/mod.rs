//! From data and a budget to the right features, with the error to expect.
//!
//! A [`Planner`] reads points and answers with a [`Plan`]: which map, which coupling, which parameters, how many features, and how
//! wrong they will be on these data.
//!
//! ```
//! # use random_features::ndarray::Array2;
//! use random_features::Map;
//! use random_features::planner::Planner;
//! # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
//!
//! let plan = Planner::of_one_set(&x)?.with_max_features(256).plan()?;
//! println!("{plan}");                        // ranked recipes, with errors
//! let best = plan.best()?;
//! println!("± {:.1} %", 100.0 * best.relative_error());
//! let map: Map<f32> = best.recipe.draw(42)?;  // from the seed 42
//! # assert!(map.feature_dim() <= 256 && best.loss() < 0.1);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! | points | planner | kernel unless stated |
//! |---|---|---|
//! | one set, such as a table | [`Planner::of_one_set`] | Gaussian with the median lengthscale |
//! | queries and keys | [`Planner::new`] | softmax, exp(x·y) |
//! | heads of attention | [`Planner::of_heads`] | softmax of q·k/√d |
//! | batches, or several machines | [`Planner::of_reservoirs`] | as for one set, or as for queries and keys |
//!
//! # What is evaluated
//! A plan evaluates some 2,000 pairs of points, with E(K̂ − K)² = bias² + variance of each. From these follow the expected error of
//! the Gram matrix and the distribution of errors relative to the kernel. Both are always given: the variance of exponential features
//! grows with e^(‖x+y‖²), so that a mean over pairs depends on its few worst pairs, and says little of the others.
//!
//! Where the loss is the error of the Gram matrix, a plan says how many times the least error of as many features it is ([`Limits`]).
//!
//! # What a plan does not know
//! A plan needs a [named kernel](crate::map::AnyKernel) or your own, and knows nothing of points that it has not seen. [Maps of your own](Planner::with_recipe)
//! are in it only where they are asked for, and so are [Nyström features](Planner::with_nystroem), which are biased and fitted to the points.

// A plan is made in a line, and each room imports only rooms before it: costs (what features cost), question (what is asked),
// proposals (maps that are fitted to the data), forecasts (the errors of one recipe), plan (the answer) and stages, which compare recipes.
mod costs;
mod forecasts;
mod plan;
mod proposals;
mod question;
mod stages;

pub use costs::{Calibration, Measure};
pub use forecasts::{Expected, Forecast};
#[cfg(feature = "testing")]
pub(crate) use plan::Advice;
pub use plan::{Limits, Plan, RankedRecipe};
pub use question::{Loss, Planner};
