//! [`check_memory`]: what no memory can be had for is an error, not the end of the process.

use std::hint::black_box;

use crate::error::{Error, Result};

/// Bytes up to which nothing is asked: a machine that has not even these is lost anyway.
const FEW: usize = 1 << 20;

/// Rejects `count` of `what`, each of so many bytes, if the system does not grant them all at once: they are reserved and
/// given back, and none of them is written.
///
/// To be called where the size of a result follows from an argument, with all that the result will consist of. A system that
/// promises more memory than it has may still fail to keep its word later.
pub(crate) fn check_memory(what: &'static str, count: usize, each: usize) -> Result<()> {
    let granted = |bytes: usize| {
        let mut room = Vec::<u8>::new();
        bytes <= FEW || black_box(&mut room).try_reserve_exact(bytes).is_ok()
    };
    // What overflows is more than can be reserved.
    if count.checked_mul(each).is_some_and(granted) { Ok(()) } else { Err(Error::Memory { what, count }) }
}

/// Rejects `count` of `what` if an array of so many cannot be addressed, even one without elements, whose other sizes are counted.
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
