//! What the machine can do at most, for benchmarks.

use crate::Real;
use crate::numeric::{self, Isa};

/// Does `rounds` rounds of independent fused multiply-adds in registers, with the vectors that the crate's loops use, and
/// returns the number of floating-point operations: two for each multiply-add.
pub fn multiply_adds<T: Real>(rounds: usize) -> u64 {
    numeric::multiply_adds::<T>(Isa::best(), rounds)
}
