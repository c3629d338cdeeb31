//! Draws of orthogonal frequencies, on the threads of the machine.

use random_features::frequency::Orthogonal;
use random_features::rng;

use crate::Bench;

pub fn orthogonal(c: &mut Bench) {
    let mut group = c.benchmark_group("draw/orthogonal");
    group.sample_size(20);
    for (d, m) in [(64, 256), (256, 1024), (1024, 4096)] {
        let mut rng = rng(2);
        group.bench_function(format!("d{d}/m{m}"), |b| {
            b.iter(|| Orthogonal.draw(d, m, rng.next_u64()).expect("a valid shape"));
        });
    }
}
