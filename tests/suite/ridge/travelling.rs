//! Sums that travel without their map: to the bit, to the same map alone, each row once, and without frequencies.

use ndarray::{Array2, s};
use rand::seq::SliceRandom;
use random_features::apply::pca::PcaStatistics;
use random_features::apply::{RidgeStatistics, Standardisation};
use random_features::extend::Facts;
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::reduce::GramSums;
use random_features::{Error, Map, Real, Trigonometric};
use serde_json::{from_value, json, to_value};

use super::{data, statistics, trigonometric};
use crate::common::own_map::ones;
use crate::common::{frequencies, points};
use crate::stored::resealed;

const CHUNK: usize = RidgeStatistics::<f64>::CHUNK as usize;

/// What another machine reads.
fn sent<T: Real>(sums: &GramSums<T>) -> GramSums<T> {
    postcard::from_bytes(&bytes(sums)).unwrap()
}

fn bytes<T: Real>(sums: &GramSums<T>) -> Vec<u8> {
    postcard::to_stdvec(sums).unwrap()
}

fn bits<T: Real>(statistics: &RidgeStatistics<T>) -> Vec<u64> {
    let model = statistics.solve(1e-2).unwrap();
    model.weights().iter().chain(model.intercepts()).map(|v| v.to_bits()).collect()
}

/// Those of some rows, as a machine makes and sends them.
fn part<T: Real>(new: &RidgeStatistics<T>, x: &Array2<T>, y: &Array2<T>, ends: &[usize]) -> GramSums<T> {
    let rows = s![ends[0]..ends[1], ..];
    let mut part = new.clone().with_first_row(ends[0] as u64).unwrap();
    part.update(x.slice(rows), y.slice(rows)).unwrap();
    sent(part.sums())
}

fn in_any_order<T: Real>() {
    let n = 4 * CHUNK + 300;
    let (map, (x, mut y)) = (trigonometric::<T>(20, 1.0), data::<T>(n));
    // Chunks of very different sizes, so that levels rise on the way.
    y.slice_mut(s![2 * CHUNK..3 * CHUNK, 0]).mapv_inplace(|v| v * T::narrow(1e6));
    let new = RidgeStatistics::new(map.clone(), 2).unwrap();
    let new = new.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
    let mut whole = new.clone();
    whole.update(&x, &y).unwrap();
    let ends = [0, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK, n];
    let mut parts: Vec<GramSums<T>> = ends.windows(2).map(|ends| part(&new, &x, &y, ends)).collect();
    let mut rng = random_features::rng(5);
    for _ in 0..5 {
        parts.shuffle(&mut rng);
        let mut all = parts[0].clone();
        parts[1..].iter().for_each(|part| all.merge(part).unwrap());
        assert_eq!(bytes(&all), bytes(whole.sums()));
        let found = RidgeStatistics::of_sums(map.clone(), sent(&all)).unwrap();
        assert_eq!(format!("{found:?}"), format!("{whole:?}"));
        assert_eq!(bits(&found), bits(&whole));
        // In two steps, one of them with the map, and into what has rows already.
        let mut last = parts[4].clone();
        last.merge(&parts[2]).unwrap();
        let mut found = new.clone();
        for part in [&last, &parts[0], &parts[3], &parts[1]] {
            found.merge_sums(part).unwrap();
        }
        assert_eq!((bits(&found), found.row_ranges()), (bits(&whole), whole.row_ranges()));
    }
}

#[test]
fn merged_in_any_order_to_the_bit() {
    in_any_order::<f64>();
    in_any_order::<f32>();
}

#[test]
fn statistics_go_on_after_the_last_row() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(300));
    let whole = statistics(&map, &x, &y);
    let mut found = RidgeStatistics::of_sums(map.clone(), sent(whole.sums())).unwrap();
    assert_eq!((found.rows(), found.targets(), found.sums().feature_dim()), (300, 2, 20));
    found.update(&x, &y).unwrap();
    assert_eq!(found.row_ranges(), [std::ops::Range { start: 0, end: 600 }]);
    found.downdate(300, &x, &y).unwrap();
    assert_eq!(bits(&found), bits(&whole));
    // The intercept is of the regression, not of the sums.
    let (with, without) = (found.clone(), found.without_intercept());
    assert_eq!(bytes(with.sums()), bytes(without.sums()));
    assert_ne!(bits(&with), bits(&without));
}

#[test]
fn what_does_not_belong_is_refused() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(60));
    let own = statistics(&map, &x, &y);
    let later = |new: RidgeStatistics<f64>| {
        let mut later = new.with_first_row(60).unwrap();
        later.update(&x, y.slice(s![.., ..later.targets()])).unwrap();
        sent(later.sums())
    };
    let new = |map: &Map<f64>, targets| RidgeStatistics::new(map.clone(), targets).unwrap();
    let inputs = Standardisation::of(&x).unwrap();
    let omega = frequencies(3, 10, &Orthogonal, 8);
    let maps = [trigonometric(10, 1.1), trigonometric(11, 1.0), Trigonometric.gaussian(omega, 1.0).unwrap()];
    let others = maps.iter().map(|map| (new(map, 2), "maps"));
    let more = [
        (new(&map, 2).with_standardisation(inputs).unwrap(), "standardisations"),
        (new(&map, 1), "numbers of targets"),
    ];
    for (other, reason) in others.chain(more) {
        let (other, before) = (later(other), format!("{own:?}"));
        let (mut sums, mut statistics) = (own.sums().clone(), own.clone());
        for error in [sums.merge(&other).unwrap_err(), statistics.merge_sums(&other).unwrap_err()] {
            assert!(matches!(error, Error::Merge { .. }) && error.to_string().contains(reason), "{error}");
        }
        assert_eq!((bytes(&sums), format!("{statistics:?}")), (bytes(own.sums()), before));
        let made = RidgeStatistics::of_sums(map.clone(), other);
        assert_eq!(made.is_err(), reason == "maps", "{reason}");
    }
    // A row of both.
    let mut overlapping = new(&map, 2).with_first_row(59).unwrap();
    overlapping.update(&x, &y).unwrap();
    let mut sums = own.sums().clone();
    assert!(matches!(sums.merge(overlapping.sums()), Err(Error::Row { row: 59, .. })));
    assert!(matches!(overlapping.merge_sums(&sums), Err(Error::Row { row: 59, .. })));
    assert_eq!(bytes(&sums), bytes(own.sums()));
    sums.merge(&later(new(&map, 2))).unwrap();
    assert_eq!(sums.row_ranges(), [std::ops::Range { start: 0, end: 120 }]);
}

#[test]
fn sums_of_a_user_defined_map_belong_to_its_clones() {
    let make = || ones(Facts::new(3, vec![4]).symmetric()).unwrap();
    let (map, (x, y)) = (make(), data::<f64>(20));
    let sums = sent(statistics(&map, &x, &y).sums());
    assert!(RidgeStatistics::of_sums(map.clone(), sums.clone()).is_ok());
    let twin = make();
    assert!(matches!(RidgeStatistics::of_sums(twin, sums), Err(Error::Merge { .. })));
}

#[test]
fn components_of_sums_that_travelled() {
    let (map, (x, y)) = (trigonometric::<f32>(10, 1.0), data::<f32>(2 * CHUNK));
    let new = || PcaStatistics::new(map.clone()).unwrap();
    let (mut whole, mut left, mut right) = (new(), new(), new().with_first_row(CHUNK as u64).unwrap());
    whole.update(&x).unwrap();
    left.update(x.slice(s![..CHUNK, ..])).unwrap();
    right.update(x.slice(s![CHUNK.., ..])).unwrap();
    let mut all = sent(right.sums());
    all.merge(&left.into_sums()).unwrap();
    assert_eq!((all.targets(), bytes(&all)), (0, bytes(whole.sums())));
    let expected = whole.components(3).unwrap();
    let found = PcaStatistics::of_sums(map.clone(), all.clone()).unwrap();
    assert_eq!(found.components(3).unwrap().directions(), expected.directions());
    let mut found = new();
    found.merge_sums(&all).unwrap();
    assert_eq!(found.components(3).unwrap().directions(), expected.directions());
    // Regressions have targets, and these sums have none.
    let regression = statistics(&map, &x, &y).into_sums();
    assert!(matches!(RidgeStatistics::of_sums(map.clone(), all), Err(Error::Parameter { .. })));
    assert!(matches!(PcaStatistics::of_sums(map.clone(), regression.clone()), Err(Error::Merge { .. })));
    assert!(matches!(new().merge_sums(&regression), Err(Error::Merge { .. })));
}

/// Given frequencies are numbers, 8 MB of them here: they stay where the map is.
#[test]
fn frequencies_stay_at_home() {
    let size = |d: usize| {
        let omega = Frequencies::from_rows(points::<f64>(512, d, 1.0)).unwrap();
        let map: Map<f32> = Trigonometric.gaussian(omega, d as f64).unwrap();
        assert_eq!(map.feature_dim(), 1024);
        let mut statistics = RidgeStatistics::new(map.clone(), 1).unwrap();
        statistics.update(&points(50, d, 1.0), &points(50, 1, 1.0)).unwrap();
        let stored = bytes(statistics.sums());
        let with_map = postcard::to_stdvec(&statistics).unwrap().len();
        assert!(with_map >= stored.len() + 512 * d * size_of::<f64>(), "{with_map}, {}", stored.len());
        // The sums as whole numbers of few digits, each pair of features once, and ranges of coordinates.
        let most = statistics.sums().bytes() / 2 + 2 * d * size_of::<f64>() + 1024;
        assert!(stored.len() <= most, "{} bytes, at most {most}", stored.len());
        let found = RidgeStatistics::of_sums(map, sent(statistics.sums())).unwrap();
        assert_eq!(bytes(found.sums()), stored);
        stored.len() - 2 * d * size_of::<f64>()
    };
    let (small, large) = (size(8), size(2048));
    // Points of other dimensions have other sums, with other numbers of digits.
    assert!(large.abs_diff(small) < small / 50, "{small}, {large}");
}

#[test]
fn what_is_read_is_checked() {
    let (map, (x, y)) = (trigonometric::<f32>(5, 1.0), data::<f32>(300));
    let sums = statistics(&map, &x, &y).into_sums();
    let error = from_value::<GramSums<f64>>(to_value(&sums).unwrap()).unwrap_err().to_string();
    assert!(error.contains("stored for f32"), "{error}");
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = to_value(&sums).unwrap();
        change(&mut value["data"]);
        resealed::<GramSums<f32>>(value)
    };
    assert_eq!(bytes(&changed(&|_| {}).unwrap()), bytes(&sums));
    assert!(changed(&|v| v["map"]["identity"] = "0".into()).is_err());
    assert!(changed(&|v| v["map"]["feature_dim"] = 11.into()).is_err());
    assert!(changed(&|v| v["map"]["feature_dim"] = u64::MAX.into()).is_err());
    assert!(changed(&|v| v["map"]["input_dim"] = 4.into()).is_err());
    assert!(changed(&|v| v["totals"]["cross"] = json!([])).is_err());
    assert!(changed(&|v| v["totals"]["gram"]["words"][3] = "inf".into()).is_err());
    assert!(changed(&|v| v["rows"]["ranges"] = json!([{"start": 5, "end": 5}])).is_err());
    assert!(changed(&|v| v["ranges"]["least"][0] = "1e9".into()).is_err());
    // Of another map, by its word.
    let forged = changed(&|v| v["map"]["identity"] = "0123456789abcdef".into()).unwrap();
    assert!(matches!(RidgeStatistics::of_sums(map, forged), Err(Error::Merge { .. })));
}
