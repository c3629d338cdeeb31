//! What is made of features, beside the products that it cannot do without.
//!
//! `cargo bench --bench consumers` times, on one thread in alternation,
//!
//! - `gram` of features that exist, of a map of one block, beside one packed product of the same shape;
//! - updates and predictions of the smoother beside features and a product with as many targets;
//! - features of counts beside as many positive ones;
//!
//! and features of few points, of many frequencies each, on one thread and on two. The table has medians in milliseconds and
//! the ratio of the two.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use random_features::apply::Smoother;
use random_features::frequency::{Counts, Frequencies, Independent};
use random_features::workbench::{Projection, Scratch, project};
use random_features::{Map, Poisson, Positive, Real, Side};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Alternations.
const ROUNDS: usize = 15;
/// The dimension of the points.
const DIM: usize = 64;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn frequencies(dim: usize, count: usize) -> Outcome<Frequencies> {
    Ok(Independent.draw(dim, count, 1)?)
}

fn points<T: Real>(n: usize, dim: usize) -> Array2<T> {
    let coordinate = |(i, k)| T::narrow((((i * 31 + k * 7) % 17) as f64 / 17.0 - 0.45) / 4.0);
    Array2::from_shape_fn((n, dim), coordinate)
}

/// Milliseconds of some work.
fn timed(work: impl FnOnce() -> Outcome) -> Outcome<f64> {
    let start = Instant::now();
    work()?;
    Ok(1e3 * start.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times two pieces of work in alternation, after a warm-up, and prints a row.
fn compare(label: &str, mut ours: impl FnMut() -> Outcome, mut least: impl FnMut() -> Outcome) -> Outcome {
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let pair = (timed(&mut ours)?, timed(&mut least)?);
        if round > 0 {
            times.push(pair.0);
            others.push(pair.1);
        }
    }
    let (time, other) = (median(times), median(others));
    println!("| {label} | {time:.3} | {other:.3} | {:.2} |", time / other);
    Ok(())
}

/// One packed product of points with `rows` vectors, and the room for its result.
struct Product<T> {
    projection: Projection<T>,
    x: Array2<T>,
    out: Vec<T>,
    norms: Vec<f64>,
    scratch: Scratch<T>,
}

impl<T: Real> Product<T> {
    fn new(n: usize, depth: usize, rows: usize) -> Outcome<Self> {
        let projection = Projection::new(frequencies(depth, rows)?, 1.0)?;
        let (out, norms) = (vec![T::zero(); n * rows], vec![0.0; n]);
        Ok(Product { projection, x: points(n, depth), out, norms, scratch: Scratch::default() })
    }

    fn run(&mut self) -> Outcome {
        let rows = self.projection.m();
        project(
            &self.projection,
            black_box(self.x.view()),
            &mut self.out,
            rows,
            &mut self.norms,
            &mut self.scratch,
        );
        Ok(())
    }
}

fn grams<T: Real>(name: &str) -> Outcome {
    for (n, m) in [(512, 256), (2048, 256), (2048, 1024), (4096, 512)] {
        let map = Positive.gaussian::<T>(frequencies(DIM, m)?, 1.0)?;
        let features = map.features(Side::X, &points(n, DIM))?;
        let mut product = Product::<T>::new(n, m, n)?;
        let gram = || features.gram(black_box(&features)).map(drop).map_err(Into::into);
        compare(&format!("gram {n}×{m}×{n} {name}"), gram, || product.run())?;
    }
    Ok(())
}

fn smoothers<T: Real>(name: &str) -> Outcome {
    let n = 16384;
    for (m, targets) in [(256, 1), (256, 16), (1024, 64), (4096, 256)] {
        let map = Positive.gaussian::<T>(frequencies(DIM, m)?, 1.0)?;
        let x = points::<T>(n, DIM);
        let y = Array2::from_shape_fn((n, targets), |(i, j)| x[[i, j % DIM]]);
        let mut smoother = Smoother::new(map.clone(), targets)?;
        let (mut values, mut scales) = map.features(Side::X, &x)?.into_parts();
        let mut product = Product::<T>::new(n, m, targets + 1)?;
        let mut least = || {
            map.features_into(Side::X, black_box(&x), &mut values, &mut scales)?;
            product.run()
        };
        let label = |what| format!("{what} {n}×{m}, {targets} targets, {name}");
        compare(&label("update"), || Ok(smoother.update(black_box(&x), &y)?), &mut least)?;
        let predict = || smoother.predict(black_box(&x)).map(drop).map_err(Into::into);
        compare(&label("predict"), predict, &mut least)?;
    }
    Ok(())
}

fn counts<T: Real>(name: &str) -> Outcome {
    let (n, m) = (16384, 256);
    let positive = Positive.softmax::<T>(frequencies(DIM, m)?)?;
    let counts = Counts::poisson(DIM, m, 1.0 / (3 * DIM) as f64, 1)?;
    let poisson = Poisson::default().softmax::<T>(counts)?;
    let x = points::<T>(n, DIM);
    let (mut values, mut scales) = positive.features(Side::X, &x)?.into_parts();
    let (mut others, mut other_scales) = (values.clone(), scales.clone());
    let ours = || fill(&poisson, &x, &mut values, &mut scales);
    compare(&format!("counts {n}×{m} {name}"), ours, || fill(&positive, &x, &mut others, &mut other_scales))
}

fn fill<T: Real>(map: &Map<T>, x: &Array2<T>, values: &mut Array2<T>, scales: &mut Array2<f64>) -> Outcome {
    Ok(map.features_into(Side::X, black_box(x), values, scales)?)
}

fn few_points(one: &ThreadPool, two: &ThreadPool) -> Outcome {
    for (n, d, m) in [(32, 1024, 65536), (8, 256, 16384), (100, 1024, 8192)] {
        let map = Positive.softmax::<f32>(frequencies(d, m)?)?;
        let x = points::<f32>(n, d);
        let (mut values, mut scales) = map.features(Side::X, &x)?.into_parts();
        let (mut others, mut other_scales) = (values.clone(), scales.clone());
        let ours =
            || Ok(one.install(|| map.features_into(Side::X, black_box(&x), &mut values, &mut scales))?);
        let others =
            || Ok(two.install(|| map.features_into(Side::X, black_box(&x), &mut others, &mut other_scales))?);
        compare(&format!("one thread, two threads: {n} points {d}→{m} f32"), ours, others)?;
    }
    Ok(())
}

fn pool(threads: usize) -> Outcome<ThreadPool> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}

fn main() -> Outcome {
    println!("| work | ms | beside, ms | ratio |\n|---|---|---|---|");
    let (one, two) = (pool(1)?, pool(2)?);
    let all = || {
        counts::<f32>("f32")?;
        counts::<f64>("f64")?;
        grams::<f32>("f32")?;
        grams::<f64>("f64")?;
        smoothers::<f32>("f32")?;
        smoothers::<f64>("f64")
    };
    one.install(|| all().map_err(|error| error.to_string()))?;
    few_points(&one, &two)
}
