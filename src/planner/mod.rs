//! From data and a budget to the right features, with the error to expect.
//!
//! Which map, which coupling, which parameters, how many features, and how wrong will they be on these data? A [`Planner`] reads
//! points, asks every page of this crate for maps with parameters fitted to them, evaluates closed forms of their errors at pairs
//! of the points, simulates the few for which there is none, and ranks them in a [`Plan`].
//!
//! ```
//! use ndarray::Array2;
//! use random_features::Map;
//! use random_features::kernel::Softmax;
//! use random_features::planner::Planner;
//! let wave = |f: f64| move |(i, k): (usize, usize)| (f * (7 * i + 3 * k) as f32 as f64).sin() as f32 * 0.4;
//! let (queries, keys) = (Array2::from_shape_fn((200, 8), wave(1.1)), Array2::from_shape_fn((300, 8), wave(0.7)));
//! let plan = Planner::new(&queries, &keys)?.kernel(Softmax::default()).features(128).plan()?;
//! println!("{plan}");
//! let best = plan.best()?;
//! let map: Map<f32> = best.recipe.draw(42)?;
//! assert!(map.feature_dim() <= 128 && best.forecast.gram.value < 0.1);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! # What is evaluated
//! Some 2,000 pairs of points, with E(K̂ − K)² = bias² + variance of each. From these follow the expected error of the Gram matrix and the
//! distribution of errors relative to the kernel. Both are always given: the variance of exponential features grows with
//! e^(‖x+y‖²), so that a mean over pairs is ruled by its few worst, and says little of the others.
//!
//! # What a plan does not know
//! Maps of your own, kernels without a name, and what points it has not seen will be.

// A plan is made in a line, and each room imports only rooms before it: costs (what features cost), question (what is asked),
// proposals (maps that are fitted to the data), forecasts (the errors of one recipe), plan (the answer) and stages, which compare recipes.
mod costs;
mod forecasts;
mod plan;
mod proposals;
mod question;
mod stages;

pub use crate::theory::Basis;
pub use costs::{Calibration, Cost, Measure};
pub use forecasts::{Expected, Forecast, RelativeErrors};
pub use plan::{Advice, Choice, LeftOut, Plan};
pub use question::{Loss, Planner};
