//! The choice of lengthscales, numbers of features and λ: [`RidgeSearch`] for data in memory, [`RidgeGrid`] for streams.

mod attempts;
mod chosen;
mod division;
mod errors;
mod finish;
mod fit;
mod grid;
pub(crate) mod growth;
mod options;
pub(crate) mod periodogram;
mod repeated;
mod rows;
mod source;
mod starts;
mod steps;
mod trial;
mod warning;

pub(in crate::apply) use division::{block_of, check_parts, folds_of, labels_of};
pub use grid::RidgeGrid;
pub use options::RidgeSearch;
pub(in crate::apply) use repeated::repeated_rows;
pub use trial::{RidgeFit, RidgeTrial};
