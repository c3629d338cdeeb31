//! [`check_memory`]: makes a result that does not fit in memory an error instead of the end of the process.

use std::hint::black_box;

use crate::error::{Error, Result};

/// The bytes up to which nothing is checked: a machine that has not even these is lost anyway.
const FEW: usize = 1 << 20;

/// Rejects `count` of `what`, each of `each` bytes, if the system does not grant all these bytes at once: they are reserved and
/// given back, and none of them is written.
///
/// It is called where the size of a result follows from an argument, with all bytes of the result. A system that promises more
/// memory than it has may still fail later.
pub(crate) fn check_memory(what: &'static str, count: usize, each: usize) -> Result<()> {
    let granted = |bytes: usize| {
        let mut room = Vec::<u8>::new();
        bytes <= FEW || black_box(&mut room).try_reserve_exact(bytes).is_ok()
    };
    // A product that overflows is more than can be reserved.
    if count.checked_mul(each).is_some_and(granted) { Ok(()) } else { Err(Error::Memory { what, count }) }
}

/// Rejects `count` of `what` if an array of so many cannot be addressed: even an array without elements counts its other sizes.
pub(crate) fn check_addressable(what: &'static str, count: usize) -> Result<()> {
    if isize::try_from(count).is_ok() { Ok(()) } else { Err(Error::Memory { what, count }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_refused() {
        for (count, each) in [(0, usize::MAX), (usize::MAX, 0), (10, 8), (1 << 17, 64)] {
            assert_eq!(check_memory("numbers", count, each), Ok(()));
        }
        for (count, each) in [(1 << 50, 8), (1 << 60, 8), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
            assert_eq!(check_memory("numbers", count, each), Err(Error::Memory { what: "numbers", count }));
        }
        let most = isize::MAX as usize;
        assert_eq!(check_addressable("numbers", most), Ok(()));
        let count = most + 1;
        assert_eq!(check_addressable("numbers", count), Err(Error::Memory { what: "numbers", count }));
    }
}
