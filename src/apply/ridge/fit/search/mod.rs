//! The choice of lengthscales, numbers of features and λ: [`RidgeSearch`] for data in memory, [`RidgeGrid`] for streams.

mod chosen;
mod grid;
mod options;
mod steps;
mod trial;

pub use grid::RidgeGrid;
pub use options::{RidgeSearch, SearchCriterion, SearchProgress};
pub use trial::{RidgeFit, RidgeTrial};
