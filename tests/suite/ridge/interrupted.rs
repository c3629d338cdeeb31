//! Maps that panic and watchers that stop: sums, grids, samplers and states are as they were.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array2, Array3, Array4, ArrayView1, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::apply::pca::PcaStatistics;
use random_features::apply::softmax_sampling::SoftmaxSampler;
use random_features::apply::{Criterion, RidgeGrid, RidgeStatistics};
use random_features::extend::Facts;
use random_features::progress::{Progress, watch};
use random_features::{Error, Map};

use super::{data, trigonometric};
use crate::common::own_map::own_map;

const CHUNK: usize = RidgeStatistics::<f64>::CHUNK as usize;

/// e^(−x²) for each coordinate, until a row has an entry above 100: then it panics.
fn fragile() -> Map<f64> {
    let write = |x: ArrayView1<'_, f64>, values: &mut [f64], _: &mut [f64]| {
        assert!(x.iter().all(|v| *v < 100.0), "as planned");
        values.iter_mut().zip(x).for_each(|(v, x)| *v = (-x * x).exp());
    };
    own_map(Facts::new(3, vec![3]).symmetric().non_negative(), write).unwrap()
}

/// Whether a call panics as planned.
fn panics<R>(call: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// Points of which the last one makes the map panic.
fn with_a_trap(n: usize) -> (Array2<f64>, Array2<f64>) {
    let (mut x, y) = data::<f64>(n);
    x[[n - 1, 0]] = 1000.0;
    (x, y)
}

#[test]
fn a_map_that_panics_leaves_sums_as_they_were() {
    let (x, y) = data::<f64>(3000);
    let mut ridge = RidgeStatistics::new(fragile(), 2).unwrap();
    ridge.update(&x, &y).unwrap();
    let mut pca = PcaStatistics::new(fragile()).unwrap();
    pca.update(&x).unwrap();
    let mut grid = RidgeGrid::new([trigonometric(5, 1.0), fragile()], 2).unwrap();
    grid.update(&x, &y).unwrap();
    let before = [format!("{ridge:?}"), format!("{pca:?}"), format!("{grid:?}")];
    for n in [2996, 3 * CHUNK] {
        let (far, targets) = with_a_trap(n);
        assert!(panics(|| ridge.update(&far, &targets)));
        assert!(panics(|| pca.update(&far)));
        assert!(panics(|| grid.update(&far, &targets)));
        assert!(panics(|| ridge.downdate(
            0,
            far.slice(s![n - 2996.., ..]),
            targets.slice(s![n - 2996.., ..])
        )));
        assert_eq!([format!("{ridge:?}"), format!("{pca:?}"), format!("{grid:?}")], before);
    }
    // The rows that were not taken in are taken in later.
    ridge.update(&x, &y).unwrap();
    assert_eq!(ridge.rows(), 6000);
}

#[test]
fn a_map_that_panics_leaves_a_sampler_as_it_was() {
    let points = |n: usize| data::<f64>(n).0.mapv(|v| 0.5 * v);
    let mut sampler = SoftmaxSampler::new(fragile(), &points(6000)).unwrap();
    let before = format!("{sampler:?}");
    let (mut far, _) = with_a_trap(900);
    assert!(panics(|| sampler.add(&far)));
    assert_eq!(format!("{sampler:?}"), before);
    assert!(panics(|| sampler.replace(&(0..900).collect::<Vec<_>>(), &far)));
    assert_eq!(format!("{sampler:?}"), before);
    far[[899, 0]] = 0.0;
    assert_eq!(sampler.add(&far).unwrap(), 6000..6900);
}

#[test]
fn a_map_that_panics_leaves_a_state_as_it_was() {
    let attention = Attention::new(fragile()).unwrap();
    let tokens = |n: usize, trap: bool| {
        let entry = |i: usize, k: usize| {
            if trap && (i, k) == (n - 1, 0) { 1e3 } else { ((3 * i + k) % 7) as f64 / 7.0 }
        };
        Array4::from_shape_fn((1, 2, n, 3), |(_, _, i, k)| entry(i, k))
    };
    let mut state = attention.state(1, 2, 3).unwrap();
    let (prompt, trap) = (tokens(3000, false), tokens(2953, true));
    state.prefill(&Heads::new(&prompt, &prompt, &prompt).unwrap()).unwrap();
    let query = Array3::from_elem((1, 2, 3), 0.3);
    let read =
        |state: &mut random_features::apply::attention::CausalState<f64>| state.query(&query).unwrap().output;
    let (lengths, before) = (state.lengths(), read(&mut state));
    assert!(panics(|| state.prefill(&Heads::new(&trap, &trap, &trap).unwrap())));
    assert_eq!((state.lengths(), read(&mut state)), (lengths.clone(), before.clone()));
    let token = trap.slice(s![.., .., 2952, ..]);
    assert!(panics(|| state.step(&token, &token, &token)));
    assert!(panics(|| state.push(&token, &token)));
    assert_eq!((state.lengths(), read(&mut state)), (lengths, before));
}

/// A watcher that stops what it watches after so many calls, and how often it was called.
fn stopped_after<R>(calls: usize, work: impl FnOnce() -> R) -> R {
    let count = AtomicUsize::new(0);
    let watcher = move |_: &Progress<'_>| {
        if count.fetch_add(1, Ordering::Relaxed) < calls {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    watch(watcher, work)
}

#[test]
fn a_watcher_that_stops_leaves_sums_as_they_were() {
    let (x, y) = data::<f64>(4 * CHUNK + 5);
    let mut ridge = RidgeStatistics::new(trigonometric(10, 1.0), 2).unwrap();
    ridge.update(&x, &y).unwrap();
    let mut grid = RidgeGrid::new([trigonometric(5, 1.0), trigonometric(6, 1.0)], 2).unwrap();
    let before = [format!("{ridge:?}"), format!("{grid:?}")];
    for calls in [0, 1, 2, 4] {
        assert_eq!(stopped_after(calls, || ridge.update(&x, &y)), Err(Error::Cancelled), "{calls}");
        assert_eq!(stopped_after(calls, || ridge.downdate(0, &x, &y)), Err(Error::Cancelled));
        assert_eq!(stopped_after(calls, || grid.update(&x, &y)), Err(Error::Cancelled));
        assert_eq!([format!("{ridge:?}"), format!("{grid:?}")], before);
    }
    assert!(stopped_after(usize::MAX, || ridge.update(&x, &y)).is_ok());
    // A watcher that panics is code of a user's too.
    let full = format!("{ridge:?}");
    let watcher = |progress: &Progress<'_>| {
        if progress.done > CHUNK { panic!("as planned") } else { ControlFlow::Continue(()) }
    };
    assert!(panics(|| watch(watcher, || ridge.update(&x, &y))));
    assert_eq!(format!("{ridge:?}"), full);
}

#[test]
fn passes_over_rows_and_solutions_can_be_stopped() {
    let (x, y) = data::<f64>(300);
    let mut ridge = RidgeStatistics::new(trigonometric(10, 1.0), 2).unwrap();
    ridge.update(&x, &y).unwrap();
    let spectrum = ridge.spectrum().unwrap();
    let (model, posterior) = (spectrum.model(1.0).unwrap(), spectrum.posterior(1.0).unwrap());
    // Whatever comes after a stop is stopped too.
    let stopped = |work: &dyn Fn() -> Result<(), Error>| {
        let stop = |_: &Progress<'_>| ControlFlow::Break(());
        watch(stop, || {
            assert_eq!(ridge.clone().update(&data(3 * CHUNK).0, &data(3 * CHUNK).1), Err(Error::Cancelled));
            assert_eq!(work(), Err(Error::Cancelled));
        });
    };
    stopped(&|| ridge.solve(1.0).map(drop));
    stopped(&|| ridge.spectrum().map(drop));
    stopped(&|| ridge.pca(2).map(drop));
    stopped(&|| ridge.products().map(drop));
    stopped(&|| model.predict(&x).map(drop));
    stopped(&|| posterior.predict(&x).map(drop));
    stopped(&|| spectrum.posterior(1.0).map(drop));
    stopped(&|| posterior.clone().with_landmarks(&x).map(drop));
    stopped(&|| spectrum.errors(&Criterion::leave_one_out(&x, &y), &[1.0]).map(drop));
    stopped(&|| spectrum.errors(&Criterion::held_out(&x, &y), &[1.0]).map(drop));
}
