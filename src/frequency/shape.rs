//! Checks of d and m.

use crate::error::{Error, Result, check_positive};

/// Rejects sizes for which no matrix of m × d numbers can exist.
pub(crate) fn check_shape(d: usize, m: usize) -> Result<()> {
    check_positive("the dimension d", d)?;
    check_positive("the number of frequencies m", m)?;
    let most = isize::MAX as usize / size_of::<f64>() / 2;
    if d.checked_mul(m).is_none_or(|size| size > most) || d > most { Err(too_many(m)) } else { Ok(()) }
}

/// Rejects dense rows for which there is no memory.
pub(super) fn check_memory(d: usize, m: usize) -> Result<()> {
    let room = d.checked_mul(m).map(|size| Vec::<f64>::new().try_reserve_exact(size));
    if matches!(room, Some(Ok(()))) { Ok(()) } else { Err(too_many(m)) }
}

/// The error for more frequencies than fit in memory.
pub(super) fn too_many(m: usize) -> Error {
    let domain = "small enough for m × d numbers to fit in memory";
    Error::Parameter { name: "the number of frequencies m", value: m as f64, domain }
}

/// The error for an integer outside its domain.
pub(super) fn outside(name: &'static str, value: usize, domain: &'static str) -> Error {
    Error::Parameter { name, value: value as f64, domain }
}
