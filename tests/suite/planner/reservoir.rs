//! The sample that a reservoir keeps is uniform, and depends on neither batches nor merges.

use super::data::normal;
use ndarray::{Array2, Axis, s};
use random_features::Error;
use random_features::data::{Reservoir, Statistics};

fn of(x: &Array2<f64>, capacity: usize, seed: u64) -> Reservoir {
    let mut reservoir =
        Reservoir::new(x.ncols()).unwrap().with_capacity(capacity).unwrap().with_seed(seed).unwrap();
    reservoir.update(x).unwrap();
    reservoir
}

/// Row i is (i, −i).
fn numbered(rows: std::ops::Range<usize>) -> Array2<f64> {
    let first = rows.start;
    Array2::from_shape_fn((rows.len(), 2), |(i, k)| (first + i) as f64 * if k == 0 { 1.0 } else { -1.0 })
}

/// Samples of 10 of 100 rows with 2000 seeds: how often each row is kept has a binomial law, with a covariance for which the sum
/// of (found − expected)²/(N·p·(1 − p)) times 99/100 is χ² with 99 degrees of freedom. Beyond 47 to 170 it comes with a probability of
/// about 1e-5. So do counts of pairs of rows that are kept together, of which each is 1/110: 4950 of them, 4950 ± 5·100.
#[test]
fn every_row_is_kept_as_often() {
    let (n, k, seeds) = (100, 10, 2000);
    let x = numbered(0..n);
    let (mut kept, mut together) = (vec![0.0; n], Array2::<f64>::zeros((n, n)));
    for seed in 0..seeds {
        let rows = of(&x, k, seed).row_numbers();
        assert_eq!(rows.len(), k);
        for (place, i) in rows.iter().enumerate() {
            kept[*i as usize] += 1.0;
            rows[..place].iter().for_each(|j| together[[*i as usize, *j as usize]] += 1.0);
        }
    }
    let square = |expected: f64, p: f64, found: f64| (found - expected).powi(2) / (expected * (1.0 - p));
    let p = k as f64 / n as f64;
    let chi: f64 = kept.iter().map(|found| square(seeds as f64 * p, p, *found)).sum::<f64>() * 0.99;
    assert!((47.0..170.0).contains(&chi), "χ² of rows {chi}");
    let p = (k * (k - 1)) as f64 / (n * (n - 1)) as f64;
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let chi: f64 = pairs.map(|at| square(seeds as f64 * p, p, together[at])).sum();
    assert!((4450.0..5450.0).contains(&chi), "χ² of pairs of rows {chi}");
}

#[test]
fn rows_are_kept_whole_and_in_order() {
    let reservoir = of(&numbered(0..5000), 300, 4);
    let (rows, points) = (reservoir.row_numbers(), reservoir.points());
    assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(points.dim(), (300, 2));
    for (row, point) in rows.iter().zip(points.rows()) {
        assert_eq!((point[0], point[1]), (*row as f64, -(*row as f64)));
    }
    // Fewer rows than may be kept are all of them.
    let few = of(&numbered(0..7), 300, 4);
    assert_eq!((few.points(), few.row_numbers()), (numbered(0..7), (0..7).collect()));
    // A larger sample of the same seed holds the smaller one.
    let small = of(&numbered(0..5000), 20, 4).row_numbers();
    assert!(small.iter().all(|row| rows.contains(row)));
}

#[test]
fn batches_change_nothing() {
    let x = normal(1000, 3, 1.0, 1);
    let whole = of(&x, 50, 3);
    for size in [1, 7, 64, 999] {
        let mut batched = of(&x.slice(s![..0, ..]).to_owned(), 50, 3);
        x.axis_chunks_iter(Axis(0), size).for_each(|batch| batched.update(&batch).unwrap());
        assert_eq!(
            (batched.row_numbers(), batched.points()),
            (whole.row_numbers(), whole.points()),
            "{size}"
        );
        assert_eq!(batched.statistics().rows(), 1000);
    }
    assert_eq!(whole.statistics(), &Statistics::of(&x).unwrap());
}

#[test]
fn parts_in_any_order_make_the_whole() {
    let x = normal(900, 3, 1.0, 2);
    let whole = of(&x, 40, 5);
    let part = |rows: std::ops::Range<usize>| {
        let mut part = of(&x.slice(s![..0, ..]).to_owned(), 40, 5).with_first_row(rows.start as u64).unwrap();
        part.update(&x.slice(s![rows, ..])).unwrap();
        part
    };
    let parts = [part(0..100), part(100..650), part(650..900)];
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut merged = parts[order[0]].clone();
        order[1..].iter().for_each(|i| merged.merge(&parts[*i]).unwrap());
        assert_eq!(
            (merged.row_numbers(), merged.points()),
            (whole.row_numbers(), whole.points()),
            "{order:?}"
        );
        assert_eq!(merged.statistics().rows(), 900);
        let [own, all] = [&merged, &whole].map(|one| one.statistics().mean().unwrap());
        assert!(own.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-12), "{own:?} {all:?}");
    }
    // A merged one goes on after its last row.
    let mut merged = parts[0].clone();
    merged.merge(&parts[1]).unwrap();
    merged.update(&x.slice(s![650.., ..])).unwrap();
    assert_eq!(merged.row_numbers(), whole.row_numbers());
}

#[test]
fn wrong_parts_are_refused_and_nothing_is_added() {
    let own = of(&numbered(0..50), 10, 1);
    let refused = |other: &Reservoir, words: &str| {
        let mut merged = own.clone();
        let error = merged.merge(other).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(merged, own);
    };
    refused(&of(&numbered(0..50), 10, 2), "their seeds or the numbers of rows to keep differ");
    refused(&of(&numbered(0..50), 11, 1), "their seeds or the numbers of rows to keep differ");
    refused(&own, "row 0 is counted already");
    refused(
        &of(&Array2::zeros((3, 5)), 10, 1),
        "the dimension of the rows that are added is 5, but must be 2",
    );
    assert!(matches!(own.clone().with_seed(3), Err(Error::Merge { .. })));
    assert!(matches!(own.clone().with_capacity(0), Err(Error::Parameter { .. })));
    assert!(matches!(Reservoir::new(0), Err(Error::Parameter { .. })));
    assert!(matches!(Reservoir::new(3).unwrap().with_capacity(usize::MAX), Err(Error::Memory { .. })));
    let mut kept = own.clone();
    let mut bad = numbered(0..5);
    bad[[3, 1]] = f64::NAN;
    assert!(matches!(kept.update(&bad), Err(Error::NotFinite { row: 3, .. })));
    assert!(matches!(kept.update(&Array2::<f64>::zeros((2, 3))), Err(Error::Shape { .. })));
    assert_eq!(kept, own);
}

/// Parts that were both read from row 0 on overlap, whether or not a row that is in both is still kept.
#[test]
fn overlapping_parts_are_refused() {
    for seed in 0..20 {
        let [mut a, mut b] =
            [0, 1].map(|_| Reservoir::new(2).unwrap().with_capacity(2).unwrap().with_seed(seed).unwrap());
        a.update(&numbered(0..1000)).unwrap();
        b = b.with_first_row(500).unwrap();
        b.update(&numbered(500..1500)).unwrap();
        assert!(a.merge(&b).is_err(), "seed {seed}: 500 rows are in both");
    }
}

#[test]
fn the_last_numbers_of_rows_can_be_read() {
    let mut last = Reservoir::new(2).unwrap().with_first_row(u64::MAX - 1).unwrap();
    last.update(&numbered(0..1)).unwrap();
    assert_eq!(last.row_numbers(), [u64::MAX - 1]);
    // No number comes after the last one.
    assert!(last.update(&numbered(1..2)).is_err());
    assert_eq!(last.statistics().rows(), 1);
}

/// Parts travel between machines.
#[cfg(feature = "serde")]
#[test]
fn parts_are_stored_and_go_on() {
    let x = numbered(0..700);
    let whole = of(&x, 40, 5);
    let text = serde_json::to_string(&of(&x.slice(s![..300, ..]).to_owned(), 40, 5)).unwrap();
    let mut read: Reservoir = serde_json::from_str(&text).unwrap();
    read.update(&x.slice(s![300.., ..])).unwrap();
    assert_eq!((read.row_numbers(), read.points()), (whole.row_numbers(), whole.points()));
    // Damage is seen.
    assert!(serde_json::from_str::<Reservoir>(&text.replacen("300", "301", 1)).is_err());
}

/// Weights count in the statistics, and rows of weight 0 are in no sample.
#[test]
fn weights_count_in_the_statistics() {
    let x = Array2::from_shape_fn((500, 2), |(i, k)| ((i * (k + 2)) as f64 * 0.37).sin() + 5.0);
    let w = ndarray::Array1::from_shape_fn(500, |i| (i % 3) as f64);
    let mut whole = Reservoir::new(2).unwrap().with_capacity(40).unwrap();
    whole.update_weighted(&x, &w).unwrap();
    let mut expected = Statistics::new(2).unwrap();
    expected.update_weighted(&x, &w).unwrap();
    assert_eq!((whole.rows(), whole.statistics().rows()), (500, expected.rows()));
    assert_eq!(whole.statistics().mean().unwrap(), expected.mean().unwrap());
    assert_eq!(whole.statistics().variance().unwrap(), expected.variance().unwrap());
    assert_eq!(whole.row_numbers().len(), 40);
    assert!(whole.row_numbers().iter().all(|row| row % 3 > 0));
    // Those that are kept are the same in two parts, and do not depend on the weights but for 0.
    let mut left = Reservoir::new(2).unwrap().with_capacity(40).unwrap();
    left.update_weighted(&x.slice(s![..123, ..]), &w.slice(s![..123]).mapv(|w| 7.0 * w)).unwrap();
    let mut right = Reservoir::new(2).unwrap().with_capacity(40).unwrap().with_first_row(123).unwrap();
    right.update_weighted(&x.slice(s![123.., ..]), &w.slice(s![123..])).unwrap();
    left.merge(&right).unwrap();
    assert_eq!((left.row_numbers(), left.points()), (whole.row_numbers(), whole.points()));
    #[cfg(feature = "serde")]
    {
        let stored = postcard::to_stdvec(&whole).unwrap();
        let again: Reservoir = postcard::from_bytes(&stored).unwrap();
        assert_eq!((again.rows(), again.points()), (whole.rows(), whole.points()));
    }
    let before = left.clone();
    let negative = ndarray::arr1(&[1.0, -1.0]);
    assert!(left.update_weighted(&x.slice(s![..2, ..]), &negative).is_err());
    assert!(left.update_weighted(&x.slice(s![..3, ..]), &negative).is_err());
    assert_eq!((left.rows(), left.points()), (before.rows(), before.points()));
}
