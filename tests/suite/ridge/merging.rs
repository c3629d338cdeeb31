//! States that merge: to the bit where they are cut at chunks, to rounding elsewhere.

use ndarray::{Array1, Array2, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use random_features::apply::RidgeStatistics;
use random_features::{Map, Real};

use super::{data, distance, statistics, trigonometric, weights};
use crate::common::weigh;

const CHUNK: usize = RidgeStatistics::<f64>::CHUNK as usize;

fn bits<T: Real>(statistics: &RidgeStatistics<T>) -> Vec<u64> {
    let model = statistics.solve(1e-2).unwrap();
    model.weights().iter().chain(model.intercepts()).map(|v| v.to_bits()).collect()
}

/// Statistics of the rows between `ends`, each in a state of its own.
fn parts<T: Real>(map: &Map<T>, x: &Array2<T>, y: &Array2<T>, ends: &[usize]) -> Vec<RidgeStatistics<T>> {
    let range = |pair: &[usize]| {
        let new = RidgeStatistics::new(map.clone(), y.ncols()).unwrap();
        let mut part = new.with_first_row(pair[0] as u64).unwrap();
        part.update(x.slice(s![pair[0]..pair[1], ..]), y.slice(s![pair[0]..pair[1], ..])).unwrap();
        part
    };
    ends.windows(2).map(range).collect()
}

fn merged<T: Real>(parts: &[RidgeStatistics<T>]) -> RidgeStatistics<T> {
    let mut all = parts[0].clone();
    parts[1..].iter().for_each(|part| all.merge(part).unwrap());
    all
}

fn cut_at_chunks<T: Real>() {
    let n = 5 * CHUNK + 700;
    let (map, (x, mut y)) = (trigonometric::<T>(20, 1.0), data::<T>(n));
    // Chunks of very different sizes, so that levels rise on the way.
    y.slice_mut(s![3 * CHUNK..4 * CHUNK, 0]).mapv_inplace(|v| v * T::narrow(1e6));
    let whole = statistics(&map, &x, &y);
    let mut rng = random_features::rng(3);
    for _ in 0..8 {
        let cuts = (1..=5).filter(|_| rng.random::<bool>()).map(|k| k * CHUNK);
        let ends: Vec<usize> = std::iter::once(0).chain(cuts).chain([n]).collect();
        let mut parts = parts(&map, &x, &y, &ends);
        let all = merged(&parts);
        assert_eq!(bits(&all), bits(&whole), "{ends:?}");
        assert_eq!((all.row_ranges(), all.rows()), (whole.row_ranges(), n as u64));
        // In any order, and in batches.
        parts.shuffle(&mut rng);
        assert_eq!(bits(&merged(&parts)), bits(&whole), "{ends:?}");
        let mut stream = RidgeStatistics::new(map.clone(), 2).unwrap();
        for pair in ends.windows(2) {
            stream.update(x.slice(s![pair[0]..pair[1], ..]), y.slice(s![pair[0]..pair[1], ..])).unwrap();
        }
        assert_eq!(bits(&stream), bits(&whole), "{ends:?}");
    }
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| bits(&statistics(&map, &x, &y))), bits(&whole));
    }
}

#[test]
fn cuts_at_chunks_do_not_change_a_bit() {
    cut_at_chunks::<f64>();
    cut_at_chunks::<f32>();
}

#[test]
fn other_cuts_agree_to_rounding() {
    let n = CHUNK + 500;
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(n));
    let whole = statistics(&map, &x, &y).solve(1e-2).unwrap();
    for ends in [vec![0, 1, n], vec![0, 100, 4000, 4100, n], vec![0, CHUNK - 1, CHUNK + 1, n]] {
        let model = merged(&parts(&map, &x, &y, &ends)).solve(1e-2).unwrap();
        let error = distance(&model.predict(&x).unwrap(), &whole.predict(&x).unwrap());
        assert!(error < 1e-11, "{ends:?}: {error:e}");
    }
}

#[test]
fn taking_rows_out_undoes_taking_them_in() {
    let n = 2 * CHUNK + 100;
    let (map, (x, y), w) = (trigonometric::<f32>(20, 1.0), data::<f32>(n), weights(n));
    let (head, tail) = (s![..CHUNK + 50, ..], s![CHUNK + 50.., ..]);
    let mut all = RidgeStatistics::new(map, 2).unwrap();
    all.update(x.slice(head), weigh(y.slice(head), &w.slice(s![..CHUNK + 50]))).unwrap();
    let before = all.clone();
    all.update(x.slice(tail), weigh(y.slice(tail), &w.slice(s![CHUNK + 50..]))).unwrap();
    assert_ne!(bits(&all), bits(&before));
    let out = w.slice(s![CHUNK + 50..]).to_owned();
    all.downdate(CHUNK as u64 + 50, x.slice(tail), weigh(y.slice(tail), &out)).unwrap();
    assert_eq!((bits(&all), all.row_ranges()), (bits(&before), before.row_ranges()));
    // Single rows, in another cut: to rounding.
    let mut one = before.clone();
    let row = s![17..18, ..];
    one.downdate(17, x.slice(row), weigh(y.slice(row), &w.slice(s![17..18]).to_owned())).unwrap();
    assert_eq!(one.row_ranges(), [0..17, 18..CHUNK as u64 + 50]);
    let mut without = RidgeStatistics::new(before.map().clone(), 2).unwrap();
    for rows in [0..17, 18..CHUNK + 50] {
        let (rows, w) = (s![rows.clone(), ..], w.slice(s![rows]));
        without.update(x.slice(rows), weigh(y.slice(rows), &w)).unwrap();
    }
    let (one, without) = (one.solve(1e-2).unwrap(), without.solve(1e-2).unwrap());
    let error =
        distance(&one.predict(&x).unwrap().mapv(f64::from), &without.predict(&x).unwrap().mapv(f64::from));
    assert!(error < 1e-4, "{error:e}");
}

#[test]
fn weights_are_repeated_rows() {
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(300));
    let counts: Vec<usize> = (0..300).map(|i| i * 7 % 4).collect();
    let rows: Vec<usize> = (0..300).flat_map(|i| std::iter::repeat_n(i, counts[i])).collect();
    let repeated = statistics(&map, &x.select(ndarray::Axis(0), &rows), &y.select(ndarray::Axis(0), &rows));
    let mut weighted = RidgeStatistics::new(map, 2).unwrap();
    weighted.update(&x, weigh(&y, &counts.iter().map(|c| *c as f64).collect::<Array1<f64>>())).unwrap();
    let (a, b) = (repeated.solve(1e-3).unwrap(), weighted.solve(1e-3).unwrap());
    assert!(distance(&a.predict(&x).unwrap(), &b.predict(&x).unwrap()) < 1e-11);
    // A common factor of weights is one of λ.
    let mut scaled = RidgeStatistics::new(weighted.map().clone(), 2).unwrap();
    scaled
        .update(&x, weigh(&y, &counts.iter().map(|c| *c as f64 * 1e-200).collect::<Array1<f64>>()))
        .unwrap();
    let c = scaled.solve(1e-203).unwrap();
    assert!(distance(&c.predict(&x).unwrap(), &b.predict(&x).unwrap()) < 1e-10);
}

#[test]
fn an_empty_update_changes_nothing() {
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(100));
    let whole = statistics(&map, &x, &y);
    let mut again = whole.clone();
    again.update(x.slice(s![..0, ..]), y.slice(s![..0, ..])).unwrap();
    again.merge(&RidgeStatistics::new(map, 2).unwrap()).unwrap();
    assert_eq!((bits(&again), again.row_ranges()), (bits(&whole), whole.row_ranges()));
}

/// Rounding errors of heavy rows that came together and went one by one are no directions of the rows that remain.
#[test]
fn removed_rows_leave_no_directions() {
    let (map, (x, y)) = (trigonometric::<f64>(6, 1.0), data::<f64>(23));
    let mut few = RidgeStatistics::new(map, 2).unwrap();
    few.update(x.slice(s![..3, ..]), y.slice(s![..3, ..])).unwrap();
    let expected = few.solve(0.0).unwrap().weights().to_owned();
    for weight in [1.0, 1e2, 1e4, 1e6] {
        let w = Array1::from_elem(20, weight);
        let mut sums = few.clone();
        sums.update(x.slice(s![3.., ..]), weigh(y.slice(s![3.., ..]), &w)).unwrap();
        for i in 3..23 {
            let (row, w) = (s![i..=i, ..], w.slice(s![..1]).to_owned());
            sums.downdate(i as u64, x.slice(row), weigh(y.slice(row), &w)).unwrap();
        }
        let error = distance(&sums.solve(0.0).unwrap().weights().to_owned(), &expected);
        assert!(error < 1e-11 * weight.max(1.0), "{weight}: {error:e}");
        let spectrum = sums.spectrum().unwrap();
        assert!(spectrum.resolution() > weight * few.spectrum().unwrap().resolution());
    }
}
