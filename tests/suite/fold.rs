//! Folds show the features that a map stores, to the bit and in order, on any number of threads.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use ndarray::Array2;
use random_features::compose::{Bases, Centres, Clustered, Conditioning, Hybrid};
use random_features::data::Clustering;
use random_features::extend::FeatureRun;
use random_features::frequency::{Counts, Hadamard, Independent, Orthogonal};
use random_features::kernel::Softmax;
use random_features::progress::{Progress, watch};
use random_features::{EluPlusOne, Error, Map, Points, Poisson, Positive, Real, Side, Trigonometric, rng};

use crate::common::{MAPS, MORE_MAPS, frequencies, gaussian, points};
use crate::threads::on_threads;

const D: usize = 5;
const THREADS: [usize; 4] = [1, 2, 3, 7];

/// Maps of each kind: of one block, of several, with absent blocks, and of code of its own.
fn maps<T: Real>() -> Vec<Map<T>> {
    let omega = || frequencies(D, 30, &Orthogonal, 3);
    let centres = Array2::from_shape_fn((3, D), |(c, k)| 0.5 * ((c + k) % 3) as f64 - 0.5);
    let clusters = Clustering::new(centres).unwrap();
    let shape =
        Conditioning::new(Array2::from_diag_elem(D, 0.8)).unwrap().shifted(vec![0.1; D], vec![-0.2; D]);
    let named = MAPS.into_iter().chain(MORE_MAPS);
    let mut maps: Vec<Map<T>> = named.map(|name| name.make(omega(), gaussian())).collect();
    maps.extend([
        Positive.softmax(frequencies(D, 24, &Hadamard::default(), 4)).unwrap(),
        Positive.softmax(omega()).and_then(|map: Map<T>| map.conditioned(&shape.unwrap())).unwrap(),
        Hybrid::angular(Bases::shared(omega()), frequencies(D, 4, &Independent, 6)).unwrap(),
        Clustered::by_centres(Centres::new(&clusters, &clusters), omega(), Softmax::default()).unwrap(),
        Poisson::default().softmax(Counts::poisson(D, 20, 1.5, rng(4).next_u64()).unwrap()).unwrap(),
        EluPlusOne.build(D, 1.0).unwrap(),
    ]);
    maps
}

/// Bits of numbers.
fn bits<T: Real>(numbers: impl IntoIterator<Item = T>) -> Vec<u64> {
    numbers.into_iter().map(|v| v.widen().to_bits()).collect()
}

/// Bits of the values, scales and scaled features of all rows, without those of values of absent blocks.
type Bits = [Vec<u64>; 3];

fn of_run<T: Real>(run: FeatureRun<'_, T>) -> Bits {
    let (values, scales) = (run.mantissas(), run.log_scales());
    assert_eq!(values.dim(), (run.rows().len(), run.feature_dim()));
    assert_eq!(scales.dim(), (run.len(), run.blocks().len()));
    let scaled = (0..run.len()).flat_map(|i| run.row(i).map(T::narrow).collect::<Vec<T>>());
    [bits(values.iter().copied()), bits(scales.iter().copied()), bits(scaled)]
}

/// What is stored of the same rows, where values of absent blocks are 0.
fn stored<T: Real>(map: &Map<T>, side: Side, x: &Array2<T>) -> Bits {
    let features = map.features(side, x).unwrap();
    let mut values = features.mantissas().to_owned();
    for (mut row, scales) in values.rows_mut().into_iter().zip(features.log_scales().rows()) {
        let mut start = 0;
        for (width, scale) in features.blocks().iter().zip(scales) {
            let absent = *scale == f64::NEG_INFINITY;
            row.iter_mut().skip(start).take(*width).filter(|_| absent).for_each(|v| *v = T::zero());
            start += width;
        }
    }
    let scales = bits(features.log_scales().iter().copied());
    [bits(values), scales, bits(features.to_array())]
}

/// All that a fold shows, and the rows of its runs, which follow each other.
fn folded<'a, T: Real>(map: &Map<T>, side: Side, x: impl Into<Points<'a, T>>) -> (Bits, Vec<usize>) {
    let (mut all, mut ends): (Bits, _) = (Bits::default(), vec![0]);
    let part = |run: FeatureRun<'_, T>| (run.rows(), of_run(run));
    map.fold(side, x, part, |(rows, bits)| {
        assert_eq!(Some(&rows.start), ends.last());
        ends.push(rows.end);
        all.iter_mut().zip(bits).for_each(|(all, bits)| all.extend(bits));
    })
    .unwrap();
    (all, ends)
}

/// The rows of a run.
fn chunk<T: Real>(map: &Map<T>) -> usize {
    folded(map, Side::X, &points::<T>(600, D, 1.0)).1[1]
}

fn shows_what_is_stored<T: Real>() {
    for map in maps::<T>() {
        let chunk = chunk(&map);
        assert!((1..=252).contains(&chunk));
        for n in [0, 1, chunk - 1, chunk, chunk + 1, 17 * chunk + 5] {
            let mut x = points::<T>(n, D, 1.0);
            if n > chunk {
                x[[chunk, 2]] = T::nan();
            }
            for (side, threads) in [(Side::X, [1, 3]), (Side::Y, [2, 7])] {
                let stored = stored(&map, side, &x);
                for threads in threads {
                    let (bits, ends) = on_threads(threads, || folded(&map, side, &x));
                    assert!(bits == stored, "{map}, {n} rows on side {side:?}, {threads} threads");
                    assert_eq!(*ends.last().unwrap(), n);
                    assert!(ends.windows(2).all(|run| (1..=chunk).contains(&(run[1] - run[0]))));
                }
            }
        }
    }
}

#[test]
fn a_fold_shows_what_is_stored() {
    shows_what_is_stored::<f32>();
    shows_what_is_stored::<f64>();
}

/// Sums of rows by either way, over the parts of a batch.
fn sums<T: Real>(map: &Map<T>, x: &Array2<T>) -> [Vec<f64>; 2] {
    let mut total = [vec![0.0; map.feature_dim()], vec![0.0; map.feature_dim()]];
    let part = |run: FeatureRun<'_, T>| {
        let mut sums = [vec![0.0; run.feature_dim()], vec![0.0; run.feature_dim()]];
        for i in 0..run.len() {
            sums[0].iter_mut().zip(run.row(i)).for_each(|(sum, v)| *sum += 0.5 * v);
            run.add_row(i, 0.5, &mut sums[1]);
        }
        sums
    };
    map.fold(Side::X, x, part, |sums| {
        for (total, sums) in total.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    })
    .unwrap();
    total
}

#[test]
fn sums_have_the_same_bits_on_any_number_of_threads() {
    for map in maps::<f32>() {
        let x = points::<f32>(5000, D, 1.0);
        let [rows, added] = sums(&map, &x);
        let size = rows.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
        assert!(rows.iter().zip(&added).all(|(a, b)| (a - b).abs() <= 1e-12 * size), "{map}");
        for threads in THREADS {
            let found = on_threads(threads, || sums(&map, &x));
            assert_eq!(found.map(bits), [&rows, &added].map(|sums| bits(sums.iter().copied())), "{map}");
        }
    }
}

#[test]
fn features_beyond_all_numbers_are_0_or_infinite() {
    let map: Map<f64> = Trigonometric.softmax(frequencies(1, 8, &Independent, 1)).unwrap();
    let x = Array2::from_elem((1, 1), 40.0);
    let all = |map: &Map<f64>| folded(map, Side::X, &x).0[2].clone();
    assert!(all(&map).iter().all(|bits| f64::from_bits(*bits).is_infinite()));
    let map: Map<f64> = Positive.softmax(frequencies(1, 8, &Independent, 1)).unwrap();
    assert!(all(&map).contains(&0));
}

#[cfg(feature = "sparse")]
#[test]
fn points_of_any_layout_have_the_same_bits() {
    use random_features::sprs::CsMat;
    let mut x = points::<f32>(700, D, 1.0);
    x.indexed_iter_mut().filter(|((i, k), _)| (i + k) % 3 > 0).for_each(|(_, v)| *v = 0.0);
    let sparse = CsMat::csr_from_dense(x.view(), 0.0);
    for map in maps::<f32>() {
        assert!(folded(&map, Side::X, &sparse) == folded(&map, Side::X, &x), "{map}");
        let columns = x.t().as_standard_layout().into_owned();
        assert!(folded(&map, Side::X, columns.t()) == folded(&map, Side::X, &x), "{map}");
    }
}

#[test]
fn what_is_stopped_has_added_the_first_runs() {
    let map: Map<f32> = Trigonometric.gaussian(frequencies(D, 64, &Orthogonal, 1), 1.0).unwrap();
    let (x, chunk) = (points::<f32>(40_000, D, 1.0), chunk(&map));
    let mut rows = 0;
    let stop = |_: &Progress<'_>| ControlFlow::Break(());
    let found = watch(stop, || {
        let part = |run: FeatureRun<'_, f32>| run.rows();
        map.fold(Side::X, &x, part, |run| {
            assert_eq!(run.start, rows);
            rows = run.end;
            // The watcher is asked ten times a second.
            thread::sleep(Duration::from_millis(20));
        })
    });
    assert_eq!(found, Err(Error::Cancelled));
    assert!(rows < x.nrows() && rows % chunk == 0, "{rows} rows");
}

#[test]
fn points_of_another_dimension_are_refused_before_anything() {
    let map: Map<f32> = EluPlusOne.build(D, 1.0).unwrap();
    let mut added = 0;
    let found = map.fold(Side::X, &points::<f32>(9, D + 1, 1.0), |_| (), |()| added += 1);
    assert!(matches!(found, Err(Error::Shape { .. })) && added == 0);
}

#[test]
fn panics_are_passed_on_and_leave_the_map() {
    let map: Map<f32> = Positive.softmax(frequencies(D, 64, &Orthogonal, 1)).unwrap();
    let (x, chunk) = (points::<f32>(20_000, D, 1.0), chunk(&map));
    let expected = folded(&map, Side::X, &x);
    for threads in THREADS {
        for in_part in [true, false] {
            let (fails, rows) = on_threads(threads, || {
                let mut rows = 0;
                let part = |run: FeatureRun<'_, f32>| {
                    assert!(!in_part || run.rows().start < 20 * chunk, "a part");
                    run.rows().end
                };
                let add = |end| {
                    assert!(in_part || end <= 20 * chunk, "a sum");
                    rows = end;
                };
                let found = catch_unwind(AssertUnwindSafe(|| map.fold(Side::X, &x, part, add)));
                (found.is_err(), rows)
            });
            // Results that wait are not added where a part panics.
            assert!(fails && rows == if in_part { 16 * chunk } else { 20 * chunk }, "{rows} rows");
            assert!(on_threads(threads, || folded(&map, Side::X, &x)) == expected);
        }
    }
}
