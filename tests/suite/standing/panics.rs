//! A user's own map that panics, and whose panic is caught: what was given to it has changed as a whole or not at all, or each later
//! call says that it has not.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array2, Array4, ArrayView2, s};
use random_features::apply::attention::{Attention, CausalState, Heads};
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax, SoftmaxSampler};
use random_features::apply::{Criterion, RidgeGrid, RidgeSearch, RidgeStatistics, Smoother};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::progress::{self, Progress};
use random_features::{Error, Map, Side};

use crate::common::{points, tokens, weigh};
use crate::threads::on_threads;

/// The coordinate of the points at which a map panics.
const BAD: f64 = 77.0;

/// The rows of a batch, of which one of the last is bad.
const ROWS: usize = 3000;

/// The features 1 + x², 2 and 3 for points in two dimensions.
#[derive(Debug)]
struct Fragile;

impl FeatureMap<f64> for Fragile {
    fn facts(&self) -> Facts {
        Facts::new(2, vec![3]).symmetric().non_negative().logarithms()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, form: Form, tile: &mut Tile<'_, f64>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            assert!(x[0] != BAD, "a point that this map cannot take");
            let row = tile.row(i);
            for (f, feature) in [1.0 + x[0] * x[0], 2.0 + x[1], 3.0].into_iter().enumerate() {
                row.values[f] = if form == Form::Values { feature } else { feature.ln() };
                if let Some(sign) = row.signs.get_mut(f) {
                    *sign = 1.0;
                }
            }
            row.log_scales[0] = 0.0;
        }
    }
}

fn fragile() -> Map<f64> {
    Map::of_feature_map(Fragile).unwrap()
}

fn good(n: usize) -> Array2<f64> {
    points(n, 2, 0.9)
}

fn bad(n: usize) -> Array2<f64> {
    let mut x = good(n);
    x[[n - 5, 0]] = BAD;
    x
}

fn targets(n: usize) -> Array2<f64> {
    points(n, 1, 1.0)
}

/// Whether a state is as it was after some work on a copy of it panicked, or says that it is not.
///
/// What a state is shows in what it gives after further use.
fn is_whole<S: Clone, R: PartialEq + Debug>(
    state: &S,
    work: &dyn Fn(&mut S),
    use_it: &dyn Fn(&mut S) -> Result<R, Error>,
) -> Result<(), String> {
    let expected = use_it(&mut state.clone()).map_err(|error| format!("cannot be used: {error}"))?;
    let mut hurt = state.clone();
    if catch_unwind(AssertUnwindSafe(|| work(&mut hurt))).is_ok() {
        return Err("the map did not panic".into());
    }
    match catch_unwind(AssertUnwindSafe(|| use_it(&mut hurt))) {
        Ok(Ok(found)) if found == expected => Ok(()),
        Ok(Ok(_)) => Err("it has changed, and does not say so".into()),
        Ok(Err(_)) => Ok(()),
        Err(_) => Err("it panics after that".into()),
    }
}

/// As [`is_whole`], on one thread and on three.
#[track_caller]
fn stays_whole<S: Clone + Sync, R: PartialEq + Debug>(
    state: &S,
    work: impl Fn(&mut S) + Sync,
    use_it: impl Fn(&mut S) -> Result<R, Error> + Sync,
) {
    for threads in [1, 3] {
        let found = on_threads(threads, || is_whole(state, &work, &use_it));
        assert_eq!(found, Ok(()), "{threads} threads");
    }
}

fn statistics() -> RidgeStatistics<f64> {
    let mut statistics = RidgeStatistics::new(fragile(), 1).unwrap();
    statistics.update(&good(ROWS), &targets(ROWS)).unwrap();
    statistics
}

fn model(statistics: &mut RidgeStatistics<f64>) -> Result<(Array2<f64>, u64), Error> {
    statistics.update(&good(40), &targets(40))?;
    Ok((statistics.products()?, statistics.rows()))
}

#[test]
fn statistics_are_whole() {
    let x = bad(ROWS);
    stays_whole(&statistics(), |statistics| drop(statistics.update(&x, &targets(ROWS))), model);
    let labels = vec![0; ROWS];
    let mut classes = RidgeStatistics::new(fragile(), 2).unwrap();
    classes.update(&good(ROWS), &labels).unwrap();
    stays_whole(
        &classes,
        |classes| drop(classes.update(&x, &labels)),
        |classes| {
            classes.update(&good(40), &labels[..40])?;
            Ok((classes.products()?, classes.rows()))
        },
    );
    let w = ndarray::Array1::from_elem(ROWS, 2.0);
    stays_whole(&statistics(), |statistics| drop(statistics.update(&x, weigh(&targets(ROWS), &w))), model);
    stays_whole(&statistics(), |statistics| drop(statistics.downdate(0, &x, &targets(ROWS))), model);
    use random_features::apply::pca::PcaStatistics;
    let mut sums = PcaStatistics::new(fragile()).unwrap();
    sums.update(&good(ROWS)).unwrap();
    stays_whole(
        &sums,
        |sums| drop(sums.update(&x)),
        |sums| {
            sums.update(&good(40))?;
            Ok((sums.products()?, sums.rows()))
        },
    );
}

#[test]
fn grids_are_whole() {
    // One map after the other takes the batch, and the second panics.
    let sturdy = random_features::EluPlusOne.build(2, 1.0).unwrap();
    let mut grid = RidgeGrid::new([sturdy, fragile()], 1).unwrap();
    grid.update(&good(ROWS), &targets(ROWS)).unwrap();
    stays_whole(
        &grid,
        |grid| drop(grid.update(&bad(ROWS), &targets(ROWS))),
        |grid| {
            grid.update(&good(40), &targets(40))?;
            let chosen = grid.choose(&Criterion::GeneralisedCrossValidation, None)?;
            Ok((chosen.to_string(), chosen.model().weights().to_owned()))
        },
    );
}

#[test]
fn smoothers_are_whole() {
    let mut smoother = Smoother::new(fragile(), 1).unwrap();
    smoother.update(&good(ROWS), &targets(ROWS)).unwrap();
    let predict = |smoother: &mut Smoother<f64>| {
        smoother.update(&good(40), &targets(40))?;
        Ok((smoother.predict(&good(9))?, smoother.rows()))
    };
    stays_whole(&smoother, |smoother| drop(smoother.update(&bad(ROWS), &targets(ROWS))), predict);
    let mut classes = Smoother::new(fragile(), 2).unwrap();
    classes.update(&good(ROWS), &[0; ROWS]).unwrap();
    stays_whole(
        &classes,
        |classes| drop(classes.update(&bad(ROWS), &[0; ROWS])),
        |classes| {
            classes.update(&good(40), &[0; 40])?;
            Ok((classes.predict(&good(9))?, classes.rows()))
        },
    );
    // Predictions change nothing.
    stays_whole(&smoother, |smoother| drop(smoother.predict(&bad(ROWS))), predict);
}

fn sampler(leaf: usize) -> SoftmaxSampler<f64> {
    let proposal = Proposal::new(fragile()).with_exact_below(0).with_leaf_size(leaf).unwrap();
    proposal.build(&good(ROWS)).unwrap()
}

#[test]
fn samplers_are_whole() {
    let all: Vec<usize> = (0..ROWS).collect();
    let draw = |sampler: &mut SoftmaxSampler<f64>| {
        let first = sampler.sample(&good(9), 30, 1)?;
        sampler.add(&good(40))?;
        Ok((first, sampler.sample(&good(9), 30, 2)?, sampler.classes()))
    };
    for leaf in [1, 8] {
        stays_whole(&sampler(leaf), |sampler| drop(sampler.add(&bad(ROWS))), draw);
        stays_whole(&sampler(leaf), |sampler| drop(sampler.replace(&all, &bad(ROWS))), draw);
        stays_whole(&sampler(leaf), |sampler| drop(sampler.sample(&bad(ROWS), 3, 1)), draw);
    }
}

#[test]
fn layers_are_whole() {
    let all: Vec<usize> = (0..ROWS).collect();
    let draw = |layer: &mut SampledSoftmax<f64>| {
        let first = layer.sample(&good(9), 30, 1)?;
        let classes = layer.add(&good(40))?;
        Ok((first, layer.sample(&good(9), 30, 2)?, layer.vectors().to_owned(), classes))
    };
    for leaf in [1, 8] {
        let proposal = || Proposal::new(fragile()).with_exact_below(0).with_leaf_size(leaf).unwrap();
        let layer = SampledSoftmax::new(proposal(), &good(ROWS)).unwrap();
        stays_whole(&layer, |layer| drop(layer.add(&bad(ROWS))), draw);
        stays_whole(&layer, |layer| drop(layer.replace(&all, &bad(ROWS))), draw);
        // An optimiser that panics at its third class, and one that moves a class to where the map panics.
        let loss = layer.loss(&good(9), &[1, 2, 3, 4, 5, 6, 7, 8, 9], 20, 3).unwrap();
        let panics = |layer: &mut SampledSoftmax<f64>| {
            let mut left = 3;
            drop(layer.update(&loss, |_, _, mut vector| {
                left -= 1;
                assert!(left > 0, "an optimiser that cannot go on");
                vector.fill(0.5);
            }));
        };
        stays_whole(&layer, panics, draw);
        stays_whole(&layer, |layer| drop(layer.update(&loss, |_, _, mut vector| vector.fill(BAD))), draw);
    }
}

/// Tokens of two sequences of two heads; at the end of the last a bad one.
fn prompt(length: usize, is_bad: bool) -> Array4<f64> {
    let mut x = tokens([2, 2, length, 2], 0.5, 3);
    if is_bad {
        x[[1, 1, length - 1, 0]] = BAD;
    }
    x
}

#[test]
fn states_of_attention_are_whole() {
    // A scale of 1: the map sees tokens as they are.
    let attention = Attention::new(fragile()).unwrap().with_scale(1.0).unwrap();
    let mut state = attention.state(2, 2, 2).unwrap();
    let x = prompt(90, false);
    state.prefill(&Heads::new(&x, &x, &x).unwrap()).unwrap();
    let go_on = |state: &mut CausalState<f64>| {
        let x = prompt(70, false);
        let outputs = state.prefill(&Heads::new(&x, &x, &x)?)?.output;
        Ok((outputs, state.lengths()))
    };
    for length in [1, 70, 300] {
        let (x, good) = (prompt(length, true), prompt(length, false));
        let prefill = |q: &Array4<f64>, k: &Array4<f64>, state: &mut CausalState<f64>| {
            drop(state.prefill(&Heads::new(q, k, &good).unwrap()));
        };
        stays_whole(&state, |state| prefill(&good, &x, state), go_on);
        stays_whole(&state, |state| prefill(&x, &good, state), go_on);
    }
    let (x, good) = (prompt(1, true), prompt(1, false));
    let (x, good) = (x.slice(s![.., .., 0, ..]), good.slice(s![.., .., 0, ..]));
    stays_whole(&state, |state| drop(state.step(&good, &x, &good)), go_on);
    stays_whole(&state, |state| drop(state.step(&x, &good, &good)), go_on);
    stays_whole(&state, |state| drop(state.push(&x, &good)), go_on);
    stays_whole(&state, |state| drop(state.query(&x)), go_on);
}

/// A search is options alone: one whose maker of maps, or report of progress, has panicked searches as before.
#[test]
fn searches_are_whole() {
    let (x, y) = (good(200), targets(200));
    let calls = AtomicUsize::new(0);
    let at = |number: usize| {
        assert!(calls.fetch_add(1, Ordering::Relaxed) != number, "what a user has written");
    };
    let omega = crate::common::frequencies(2, 8, &random_features::frequency::Independent, 1);
    let search = || {
        RidgeSearch::new(omega.clone(), |omega, ell| {
            at(1);
            random_features::Trigonometric.gaussian(omega, ell)
        })
        .with_lengthscales([0.5, 1.0, 2.0])
    };
    calls.store(1000, Ordering::Relaxed);
    let expected = search().without_standardisation().fit(&x, &y).unwrap().to_string();
    let fit = || search().without_standardisation().fit(&x, &y);
    for threads in [1, 3] {
        on_threads(threads, || {
            calls.store(0, Ordering::Relaxed);
            assert!(catch_unwind(AssertUnwindSafe(|| fit().map(drop))).is_err());
            calls.store(1000, Ordering::Relaxed);
            let watched = || {
                let watcher = |progress: &Progress<'_>| match progress.done {
                    2 => panic!("what a user has written"),
                    _ => ControlFlow::Continue(()),
                };
                progress::watch(watcher, fit).map(drop)
            };
            assert!(catch_unwind(AssertUnwindSafe(watched)).is_err());
            assert_eq!(fit().unwrap().to_string(), expected);
        });
    }
}

/// A list that has taken part of a batch, and one that panics ever after.
#[test]
fn halves_are_noticed() {
    let half = |list: &mut Vec<f64>| {
        for x in bad(9).column(0) {
            assert!(*x != BAD);
            list.push(*x);
        }
    };
    let length = |list: &mut Vec<f64>| Ok(list.len());
    assert_eq!(is_whole(&vec![1.0], &half, &length), Err("it has changed, and does not say so".into()));
    let none = |list: &mut Vec<f64>| assert!(list.is_empty());
    assert_eq!(is_whole(&vec![1.0], &none, &length), Ok(()));
    assert_eq!(is_whole(&vec![1.0], &|_| (), &length), Err("the map did not panic".into()));
    let refuses = |list: &mut Vec<f64>| match list.len() {
        1 => Ok(1),
        _ => Err(Error::Merge { reason: "it holds part of a batch" }),
    };
    assert_eq!(is_whole(&vec![1.0], &half, &refuses), Ok(()));
    let first = |list: &mut Vec<f64>| Ok(list[list.len() - 1]);
    let empties = |list: &mut Vec<f64>| {
        list.clear();
        half(list);
    };
    let lost = |list: &mut Vec<f64>| {
        list.clear();
        none(&mut vec![1.0]);
    };
    assert!(is_whole(&vec![1.0], &empties, &first).is_err());
    assert_eq!(is_whole(&vec![1.0], &lost, &first), Err("it panics after that".into()));
}
