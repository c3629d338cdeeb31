//! The choice of lengthscales, numbers of features and λ: [`RidgeSearch`] for data in memory, [`RidgeGrid`] for streams.

mod chosen;
mod division;
mod errors;
mod fit;
mod grid;
mod options;
mod repeated;
mod steps;
mod trial;
mod warning;

pub use grid::RidgeGrid;
pub use options::RidgeSearch;
pub use trial::{RidgeFit, RidgeTrial};
