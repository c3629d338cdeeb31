//! Stand-in for the library's ceiling of multiply-adds.

use random_features::Real;

pub fn multiply_adds<T: Real>(rounds: usize) -> u64 {
    let mut sums = [T::one(); 64];
    let (a, b) = (T::narrow(0.999), T::narrow(0.001));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = *sum * a + b;
        }
    }
    std::hint::black_box(sums);
    (2 * 64 * rounds) as u64
}
