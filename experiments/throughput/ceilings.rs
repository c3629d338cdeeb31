//! What this machine can do at best, measured on all threads of the current pool.

use std::hint::black_box;
use std::time::Instant;

use random_features::Real;
use random_features::extend::Lift;
use random_features::workbench;
use rayon::prelude::*;

use crate::work::Cost;

/// Bytes that are written and read: more than any cache holds.
const BUFFER: usize = 512 << 20;
/// Bytes of a row of exponents: with its features a part of the first cache.
const ROW: usize = 4 << 10;
/// Operations and exponents of a measurement: a millisecond or so, which other work on the machine often spares.
const OPERATIONS: u64 = 100_000_000;
const EXPONENTS: u64 = 1_000_000;
/// Repetitions; the best one counts.
const REPEAT: usize = 50;
const REPEAT_BUFFER: usize = 4;

/// Rates of all threads together.
pub struct Ceilings {
    /// Operations of multiply-adds a second, two for each.
    pub flops: f64,
    /// Bytes a second.
    pub write: f64,
    pub read: f64,
}

impl Ceilings {
    pub fn measure<T: Real>() -> Result<Self, String> {
        let mut buffer = Vec::new();
        let reserved = buffer.try_reserve_exact(BUFFER);
        reserved.map_err(|error| format!("no {} MB to measure bandwidth: {error}", BUFFER >> 20))?;
        buffer.resize(BUFFER, 1);
        let chunk = BUFFER.div_ceil(rayon::current_num_threads());
        // A fill with one byte has the stores that pass by the cache.
        let write = best(REPEAT_BUFFER, BUFFER as f64, || {
            black_box(&mut buffer).par_chunks_mut(chunk).for_each(|chunk| chunk.fill(2));
        });
        let read = best(REPEAT_BUFFER, BUFFER as f64, || {
            black_box(black_box(&buffer).par_chunks(chunk).map(sum).reduce(|| 0, u64::wrapping_add));
        });
        Ok(Ceilings { flops: multiply_adds::<T>(), write, read })
    }

    /// Seconds that a case takes at least.
    pub fn least_time<T: Real>(&self, cost: &Cost) -> f64 {
        let lifts: f64 = cost.lifts.iter().map(|(lift, count)| count / lifts::<T>(*lift)).sum();
        let compute = cost.flops / self.flops + lifts;
        let memory = cost.written / self.write + cost.read / self.read;
        compute.max(memory)
    }
}

/// Operations a second of one thread.
pub fn multiply_adds_of_one<T: Real>() -> f64 {
    rate(OPERATIONS, |rounds| workbench::multiply_adds::<T>(black_box(rounds)))
}

/// Operations a second of all threads.
fn multiply_adds<T: Real>() -> f64 {
    rate_of_all(OPERATIONS, |rounds| workbench::multiply_adds::<T>(black_box(rounds)))
}

/// Exponents a second of all threads.
fn lifts<T: Real>(lift: Lift) -> f64 {
    let count = ROW / size_of::<T>();
    let exponents = vec![T::narrow(0.5); count * lift.width()];
    rate_of_all(EXPONENTS, |rounds| {
        let mut row = exponents.clone();
        for round in 0..rounds {
            // The features of one round are the exponents of the next and stay within the bound. Now and then they
            // start anew, lest they vanish.
            if round % 64 == 0 {
                row.copy_from_slice(&exponents);
            }
            lift.apply(black_box(&mut row), 1.0);
        }
        (rounds * count) as u64
    })
}

/// As [`rate`], of all threads while they run together.
fn rate_of_all(amount: u64, run: impl Fn(usize) -> u64 + Sync) -> f64 {
    let rates = rayon::broadcast(|_| rate(amount, &run));
    // Threads beyond the cores take turns.
    let cores = std::thread::available_parallelism().map_or(rates.len(), usize::from);
    rates.iter().sum::<f64>() * cores.min(rates.len()) as f64 / rates.len() as f64
}

/// What `run`, given a number of rounds, says that it did, a second: so many rounds that it is `amount` or a little more.
fn rate(amount: u64, run: impl Fn(usize) -> u64) -> f64 {
    let rounds = amount.div_ceil(run(1)) as usize;
    best(REPEAT, run(rounds) as f64, || {
        black_box(run(rounds));
    })
}

/// `amount` by the seconds of the fastest repetition.
fn best(repeat: usize, amount: f64, mut run: impl FnMut()) -> f64 {
    let times = (0..repeat).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    amount / times.fold(f64::INFINITY, f64::min)
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.as_chunks().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}
