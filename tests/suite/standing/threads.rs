//! Results are the same to the bit on any number of threads, in any pool, and within work that a caller has spread over threads.

use rayon::prelude::*;

use super::jobs::{Job, jobs};
use crate::threads::on_threads;

/// A way to run all jobs, by its name.
type Way = (&'static str, fn(&[Job]) -> Vec<u64>);

fn each(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| (job.run)()).collect()
}

/// In the caller's own parallel loop: threads that wait take up other jobs meanwhile.
fn in_parallel(jobs: &[Job]) -> Vec<u64> {
    jobs.par_iter().with_max_len(1).map(|job| (job.run)()).collect()
}

const WAYS: [Way; 7] = [
    ("on 2 threads", |jobs| on_threads(2, || each(jobs))),
    ("on 3 threads", |jobs| on_threads(3, || each(jobs))),
    ("on 7 threads", |jobs| on_threads(7, || each(jobs))),
    ("in a pool within a pool", |jobs| on_threads(3, || on_threads(2, || each(jobs)))),
    ("in a parallel loop", |jobs| on_threads(3, || in_parallel(jobs))),
    ("in a parallel loop in a pool within a pool", |jobs| {
        on_threads(2, || on_threads(7, || in_parallel(jobs)))
    }),
    ("on threads of the caller's own", |jobs| {
        std::thread::scope(|scope| {
            let running: Vec<_> = jobs.iter().map(|job| scope.spawn(job.run)).collect();
            running.into_iter().map(|job| job.join().unwrap()).collect()
        })
    }),
];

/// The jobs that have other results than on one thread, each with the way.
fn differing(jobs: &[Job], ways: &[Way]) -> Vec<(&'static str, &'static str)> {
    let one = on_threads(1, || each(jobs));
    let mut found = Vec::new();
    for (way, run) in ways {
        let others = run(jobs);
        let different = jobs.iter().zip(&one).zip(others).filter(|((_, one), other)| **one != *other);
        found.extend(different.map(|((job, _), _)| (job.name, *way)));
    }
    found
}

/// Some ways are enough to notice a sum whose order depends on threads.
#[test]
fn results_are_the_same_wherever_work_is_done() {
    assert_eq!(differing(&jobs(), &[WAYS[1], WAYS[4]]), []);
}

#[test]
#[ignore = "seconds: run by .ci/full"]
fn results_are_the_same_in_every_way() {
    assert_eq!(differing(&jobs(), &WAYS), []);
}

/// A sum that is cut by the number of threads.
#[test]
fn sums_that_depend_on_threads_are_noticed() {
    fn sum() -> u64 {
        let terms: Vec<f32> = (0..1000).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        let run = 1000_usize.div_ceil(rayon::current_num_threads());
        terms
            .par_chunks(run)
            .map(|run| run.iter().sum::<f32>())
            .collect::<Vec<_>>()
            .iter()
            .sum::<f32>()
            .to_bits()
            .into()
    }
    let broken = Job { name: "a sum", run: sum };
    assert_eq!(differing(&[broken], &WAYS[1..2]), [("a sum", "on 3 threads")]);
}
