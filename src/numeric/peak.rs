//! The peak rate of multiply-adds of the machine.

use super::{Lane, Vector};

/// The number of independent chains: more than the latency of a fused multiply-add times its throughput per cycle.
const CHAINS: usize = 12;

multiversion! {
    /// Does `rounds` rounds of independent multiply-adds in registers and returns the number of operations, two for
    /// each multiply-add of each element: an upper bound for products.
    pub fn multiply_adds<T, vector>(rounds: usize) -> u64 = body;
}

/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn body<T: Lane, V: Vector<T>>(rounds: usize) -> u64 {
    // SAFETY: the caller's promise; `last` holds a vector.
    unsafe {
        let (factor, term) = (V::splat(std::hint::black_box(T::zero())), V::splat(T::one()));
        let mut sums = [term; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = sum.madd(factor, term);
            }
        }
        for sum in sums {
            std::hint::black_box(sum);
        }
    }
    2 * (rounds * CHAINS * V::WIDTH) as u64
}
