//! What features cost: their number, operations, bytes and time.
//!
//! Here belongs what depends on a recipe and on the machine alone, and on no data.

mod calibration;
mod cost;
mod work;

pub use self::calibration::Calibration;
pub use self::cost::Measure;
pub(crate) use self::cost::{Cost, same};
