//! Checks of d and m.

use crate::error::{Error, Result, check_positive};
use crate::memory;

/// Rejects sizes for which no matrix of m × d numbers can exist.
pub(crate) fn check_shape(d: usize, m: usize) -> Result<()> {
    check_positive("the dimension d", d)?;
    check_positive("the number of frequencies m", m)?;
    let most = isize::MAX as usize / size_of::<f64>() / 2;
    if d.checked_mul(m).is_none_or(|size| size > most) || d > most { Err(too_many(d, m)) } else { Ok(()) }
}

/// Rejects dense rows for which there is no memory.
pub(super) fn check_memory(d: usize, m: usize) -> Result<()> {
    memory::check_memory(COORDINATES, d.saturating_mul(m), size_of::<f64>())
}

/// The error for more frequencies than fit in memory.
pub(super) fn too_many(d: usize, m: usize) -> Error {
    Error::Memory { what: COORDINATES, count: d.saturating_mul(m) }
}

/// What a draw needs memory for.
const COORDINATES: &str = "coordinates of frequencies";

/// Rejects counts outside a range that begins at 1.
pub(super) fn check_up_to(name: &'static str, value: usize, most: usize, domain: &'static str) -> Result<()> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(outside(name, value, domain)) }
}

/// The error for an integer outside its domain.
pub(super) fn outside(name: &'static str, value: usize, domain: &'static str) -> Error {
    Error::Parameter { name, value: value as f64, domain }
}
