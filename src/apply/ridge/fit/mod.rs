//! Code that factorises matrices: solutions of ridge regressions, the choice among them, and variances of predictions.

mod by_criterion;
mod calibration;
mod centred_rows;
mod classifier;
mod criterion;
mod dual;
mod error_table;
mod folds;
mod groups;
mod kernel_ridge;
mod kernel_spectrum;
mod landmarks;
mod levels;
mod normal;
mod points;
mod posterior;
pub(in crate::apply) mod rotation;
mod row_space;
pub(crate) mod search;
mod shrinkage;
mod solve;
mod spectrum;
mod threshold;
mod training;
mod without;

#[cfg(feature = "serde")]
mod stored;

pub use classifier::RidgeClassifier;
pub use criterion::Criterion;
pub(crate) use criterion::least;
pub use kernel_ridge::KernelRidge;
pub use kernel_spectrum::KernelRidgeSpectrum;
pub use posterior::{Prediction, RidgePosterior};
pub use search::{RidgeFit, RidgeGrid, RidgeSearch, RidgeTrial};
pub use spectrum::RidgeSpectrum;

pub(in crate::apply) use centred_rows::{CentredRows, RowAxes};
pub(in crate::apply) use normal::{Normal, symmetric_products};
pub(in crate::apply) use search::{block_of, check_parts, folds_of, labels_of, repeated_rows};

use criterion::RidgeRows;

use super::{Ridge, RidgeStatistics, RidgeWarning, Standardisation};
use crate::data::statistics::is_constant;
use crate::engine::{FeatureBuffers, FeatureSource};
use crate::error::check_finite;
use crate::labels::check_classes;
use crate::reduce::{check_precisions, check_training, too_large};
