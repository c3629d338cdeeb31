//! The engine's two loops and the maps that they make, in nanoseconds per point and feature; and orthogonal draws.
//!
//! `cargo bench --bench engine` sweeps n, d and m one at a time from a middle shape; add a filter such as `--
//! map/positive/f32` for some of it. Outputs are allocated once: what is timed is the work, not page faults.

mod draws;
mod per_feature;

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use rand::distr::{Distribution, StandardUniform};
use random_features::extend::Lift;
use random_features::frequency::Independent;
use random_features::workbench::{Projection, Scratch, project};
use random_features::{Hyperbolic, Map, Positive, Real, Side, Trigonometric, rng};

use per_feature::PerFeature;

type Bench = Criterion<PerFeature>;

/// (n, d, m): each of the three is swept while the others stay.
const SHAPES: [(usize, usize, usize); 9] = [
    (4096, 64, 256),
    (1, 64, 256),
    (64, 64, 256),
    (65536, 64, 256),
    (4096, 4, 256),
    (4096, 512, 256),
    (4096, 64, 16),
    (4096, 64, 4096),
    (16384, 128, 512),
];

fn points<T: Real>(n: usize, d: usize) -> Array2<T>
where
    StandardUniform: Distribution<T>,
{
    let mut rng = rng(1);
    let scale = T::narrow((d as f64).sqrt().recip());
    Array2::from_shape_simple_fn((n, d), || StandardUniform.sample(&mut rng) * scale)
}

fn type_name<T>() -> &'static str {
    std::any::type_name::<T>()
}

fn lifts<T: Real>(c: &mut Bench)
where
    StandardUniform: Distribution<T>,
{
    let mut group = c.benchmark_group(format!("lift/{}", type_name::<T>()));
    for m in [16, 256, 4096] {
        let exponents = points::<T>(1, m);
        for lift in [Lift::Exp, Lift::ExpPair, Lift::Polar] {
            let mut row = vec![T::zero(); m * lift.width()];
            group.throughput(Throughput::Elements(row.len() as u64));
            group.bench_function(BenchmarkId::new(format!("{lift:?}"), m), |b| {
                b.iter(|| {
                    row[..m].copy_from_slice(exponents.as_slice().unwrap_or_default());
                    black_box(lift.apply(black_box(&mut row), 1e9))
                });
            });
        }
    }
}

fn projections<T: Real>(c: &mut Bench)
where
    StandardUniform: Distribution<T>,
{
    let mut group = c.benchmark_group(format!("projection/{}", type_name::<T>()));
    let n = 132;
    for (d, m) in [(4, 256), (64, 16), (64, 256), (64, 4096), (128, 512), (512, 512), (1024, 4096)] {
        let omega = Independent.draw(d, m, 2).expect("a valid shape");
        let projection = Projection::<T>::new(omega, 1.0).expect("a valid lengthscale");
        let (x, mut values, mut scales) = (points::<T>(n, d), vec![T::zero(); n * m], vec![0.0; n]);
        group.throughput(Throughput::Elements((n * m) as u64));
        group.bench_function(format!("d{d}/m{m}"), |b| {
            b.iter(|| {
                let scratch = &mut Scratch::default();
                project(&projection, black_box(x.view()), &mut values, m, &mut scales, scratch);
            });
        });
    }
}

fn map<T: Real>(
    c: &mut Bench,
    name: &str,
    make: impl Fn(random_features::frequency::Frequencies) -> random_features::Result<Map<T>>,
) where
    StandardUniform: Distribution<T>,
{
    let mut group = c.benchmark_group(format!("map/{name}/{}", type_name::<T>()));
    group.sample_size(20);
    for (n, d, m) in SHAPES {
        let map = make(Independent.draw(d, m, 2).expect("a valid shape")).expect("a valid map");
        let x = points::<T>(n, d);
        let (mut values, mut scales) = (Array2::zeros((n, map.feature_dim())), Array2::zeros((n, 1)));
        group.throughput(Throughput::Elements(values.len() as u64));
        group.bench_function(format!("n{n}/d{d}/m{m}"), |b| {
            b.iter(|| map.features_into(Side::X, black_box(&x), &mut values, &mut scales));
        });
    }
}

/// Small work, which no thread and no allocation should slow: nanoseconds a call are the number to look at.
fn calls(c: &mut Bench) {
    let mut group = c.benchmark_group("call/positive/f32");
    for (n, m) in [(1, 16), (1, 256), (16, 16)] {
        let map = Positive.softmax::<f32>(Independent.draw(64, m, 2).expect("a valid shape"));
        let map = map.expect("a valid map");
        let x = points::<f32>(n, 64);
        let (mut values, mut scales) = (Array2::zeros((n, m)), Array2::zeros((n, 1)));
        group.bench_function(format!("features_into/n{n}/m{m}"), |b| {
            b.iter(|| map.features_into(Side::X, black_box(&x), &mut values, &mut scales));
        });
        group.bench_function(format!("features/n{n}/m{m}"), |b| {
            b.iter(|| map.features(Side::X, black_box(&x)))
        });
    }
}

fn engine(c: &mut Bench) {
    calls(c);
    lifts::<f32>(c);
    lifts::<f64>(c);
    projections::<f32>(c);
    projections::<f64>(c);
    map::<f32>(c, "positive", |omega| Positive.softmax(omega));
    map::<f64>(c, "positive", |omega| Positive.softmax(omega));
    map::<f32>(c, "hyperbolic", |omega| Hyperbolic.softmax(omega));
    map::<f32>(c, "trigonometric", |omega| Trigonometric.softmax(omega));
    map::<f64>(c, "trigonometric", |omega| Trigonometric.softmax(omega));
    draws::orthogonal(c);
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(PerFeature(WallTime));
    targets = engine
}
criterion_main!(benches);
