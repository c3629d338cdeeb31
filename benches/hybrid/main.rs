//! Hybrid against plain features of equal dimension: what the tensor product saves.
//!
//! `cargo bench --bench hybrid` times `features_into`, on one thread and into arrays that exist, of the angular
//! hybrid with m base frequencies and n sign features, D = 4m(1 + n) features in all, and of `Trigonometric` with D
//! features. Both run in alternation. The table has milliseconds for all points and the ratio plain/hybrid, by
//! medians and by minima, which other work on the machine disturbs least. Beside it stands the ratio of operations,
//!
//!     ((D/2) d + D + D) / ((b m + n) d + (4m + n) + D),    b = 1 with shared, 2 with independent bases:
//!
//! multiply-adds of projections, lifted values and written features, each counted as one. It bounds the gain rather
//! than predicts it: multiply-adds, which the hybrid saves, are the cheapest of the three, since they run in vectors
//! from cache, while features are written to memory, and every point has its overhead, which shows where D is small.

use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use random_features::frequency::{Independent, draw};
use random_features::hybrid::{Bases, Hybrid};
use random_features::{FeatureMap, Real, Result, Side, Trigonometric, rng};

/// The dimension of the points, and how many there are.
const DIM: usize = 64;
const POINTS: usize = 4096;
/// Alternations.
const ROUNDS: usize = 9;
/// m and n.
const SIZES: [(usize, usize); 7] = [(16, 1), (16, 8), (64, 1), (64, 4), (64, 16), (256, 1), (256, 4)];

/// Milliseconds for the features of all points.
fn time<T: Real>(
    map: &dyn FeatureMap<T>,
    x: &Array2<T>,
    values: &mut Array2<T>,
    log_scales: &mut Array2<f64>,
) -> Result<f64> {
    let start = Instant::now();
    map.features_into(Side::X, black_box(x), values, log_scales)?;
    Ok(1e3 * start.elapsed().as_secs_f64())
}

/// The median and the minimum.
fn summary(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0]]
}

/// The ratio of operations, plain to hybrid.
fn predicted(m: usize, n: usize, shared: bool) -> f64 {
    let features = 4 * m * (1 + n);
    let projections = n + if shared { m } else { 2 * m };
    let plain = features / 2 * DIM + 2 * features;
    let hybrid = projections * DIM + 4 * m + n + features;
    plain as f64 / hybrid as f64
}

fn compare<T: Real>(m: usize, n: usize, shared: bool) -> Result<()> {
    let mut rng = rng(1);
    let mut omega = |count: usize| draw(DIM, count, &Independent, &mut rng);
    let bases = if shared { Bases::Shared(omega(m)?) } else { Bases::Independent(omega(m)?, omega(m)?) };
    let hybrid = Hybrid::<T>::angular(bases, omega(n)?)?;
    let features = hybrid.feature_dim();
    let plain = Trigonometric::softmax::<T>(omega(features / 2)?);
    let x = Array2::from_shape_fn((POINTS, DIM), |(i, k)| {
        T::narrow((((i * 31 + k * 7) % 17) as f64 / 17.0 - 0.5) / 4.0)
    });
    // Both write the same values' memory, touched before it is timed.
    let mut values = Array2::from_elem((POINTS, features), T::one());
    let mut scales = [hybrid.blocks().len(), 1].map(|blocks| Array2::zeros((POINTS, blocks)));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(time(&hybrid, &x, &mut values, &mut scales[0])?);
        times[1].push(time(&plain, &x, &mut values, &mut scales[1])?);
    }
    let [hybrid, plain] = times.map(summary);
    let bases = if shared { "shared" } else { "independent" };
    println!(
        "| {} | {bases} | {m} | {n} | {features} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} |",
        std::any::type_name::<T>(),
        hybrid[0],
        plain[0],
        hybrid[1],
        plain[1],
        plain[0] / hybrid[0],
        plain[1] / hybrid[1],
        predicted(m, n, shared),
    );
    Ok(())
}

fn run<T: Real>() -> Result<()> {
    for shared in [true, false] {
        SIZES.iter().try_for_each(|&(m, n)| compare::<T>(m, n, shared))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    println!("d = {DIM}, {POINTS} points, one thread; milliseconds, and ratios plain/hybrid");
    println!("operations: ((D/2)d + 2D) / ((bm + n)d + 4m + n + D), b = 1 if shared, 2 if independent\n");
    println!(
        "| | bases | m | n | D | hybrid median | plain median | hybrid min | plain min | median ratio | min ratio | operations |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let all = || run::<f32>().and_then(|()| run::<f64>());
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(all),
        Err(error) => {
            eprintln!("no pool of one thread ({error}): all threads are used");
            all()
        }
    }
}
