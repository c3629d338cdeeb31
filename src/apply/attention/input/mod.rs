//! What attention reads and gives: options, heads of queries, keys and values, how tokens become points, and outputs before they are
//! divided. Nothing here computes with pairs or features.

mod attended;
mod attention;
mod checks;
mod element;
mod exact_pairs;
mod heads;
mod job;
mod kept;
mod key_rows;
mod lengthscale;
mod output;
mod reading;
mod shrinkage;

pub use self::attended::Attended;
pub(super) use self::attended::{NonPositive, in_order};
pub use self::attention::Attention;
pub(super) use self::checks::{HEADS_WITH_MAPS, check_output, check_shape};
pub use self::element::{Numbers, TokenElement};
pub(super) use self::exact_pairs::{KeyChoice, Window};
pub use self::heads::Heads;
pub(super) use self::heads::check_multiple;
pub(super) use self::job::{CHUNK, Job, KeyRun, QueryRun, SplitRows, cuts, split_runs, threads_of_each};
pub(super) use self::kept::{Estimated, KeptRows, KeptRun, KeptTokens, Lifted};
pub(super) use self::key_rows::KeyRows;
#[cfg(feature = "serde")]
pub(super) use self::key_rows::stored::StoredKeyRows;
pub(super) use self::lengthscale::{estimated_lengthscale, kernel_lengthscale, softmax_lengthscale};
pub(super) use self::output::{LogScale, Undivided};
pub(crate) use self::reading::TokenScale;
pub(super) use self::reading::{Reading, either};
pub(super) use self::shrinkage::SeenValues;
