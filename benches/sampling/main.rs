//! Softmax sampling with positive features: draws for one h, replaced classes and building, over the number of classes and
//! the leaf size.
//!
//! `cargo bench --bench sampling`; add a filter such as `-- draw/L1` for some of it. Queries take turns, so that not all of
//! what is read is in the caches.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use rand::distr::{Distribution, StandardUniform};
use random_features::apply::softmax_sampling::{Proposal, SoftmaxSampler};
use random_features::frequency::{Coupling, Independent};
use random_features::{Positive, rng};

const D: usize = 64;
const M: usize = 128;
const QUERIES: usize = 16;
const CLASSES: [usize; 4] = [1000, 10_000, 100_000, 1_000_000];
/// Classes of a leaf.
const LEAVES: [usize; 2] = [1, 8];

fn points(n: usize) -> Array2<f32> {
    let mut rng = rng(1);
    let scale = (D as f32).sqrt().recip();
    Array2::from_shape_simple_fn((n, D), || {
        let uniform: f32 = StandardUniform.sample(&mut rng);
        uniform * scale
    })
}

fn sampler(classes: &Array2<f32>, leaf: usize) -> SoftmaxSampler<f32> {
    let map = Positive.softmax(Independent.draw(D, M, 2).expect("a valid shape")).expect("a valid map");
    let proposal = Proposal::new(map).with_exact_below(0).with_leaf_size(leaf).expect("a valid leaf size");
    proposal.build(classes).expect("finite classes")
}

fn sampling(c: &mut Criterion) {
    let (queries, mut seed) = (points(QUERIES), 0);
    for count in CLASSES {
        let classes = points(count);
        for leaf in LEAVES {
            let mut sampler = sampler(&classes, leaf);
            let mut group = c.benchmark_group(format!("draw/L{leaf}"));
            for draws in [1, 64] {
                let mut turns = queries.rows().into_iter().cycle();
                group.throughput(Throughput::Elements(draws as u64));
                group.bench_function(BenchmarkId::new(format!("C{count}"), draws), |b| {
                    b.iter(|| {
                        let h = turns.next().expect("a cycle");
                        seed += 1;
                        black_box(sampler.sample_of(&h, draws, seed)).expect("finite points")
                    });
                });
            }
            group.finish();
            let mut class = 0;
            c.bench_function(&format!("replace/L{leaf}/C{count}"), |b| {
                b.iter(|| {
                    class = (class + 7919) % count;
                    sampler.replace(&[class], &queries.slice(ndarray::s![..1, ..])).expect("a class")
                });
            });
        }
    }
}

fn building(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    group.sample_size(10);
    for count in &CLASSES[..3] {
        let classes = points(*count);
        group.throughput(Throughput::Elements(*count as u64));
        for leaf in LEAVES {
            group.bench_function(format!("L{leaf}/C{count}"), |b| {
                b.iter(|| black_box(sampler(&classes, leaf)));
            });
        }
    }
}

criterion_group!(benches, sampling, building);
criterion_main!(benches);
