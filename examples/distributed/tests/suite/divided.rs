//! Rows with weights, and sums of parts of the rows, against sums in memory.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use random_features::Targets;
use random_features::apply::{Criterion, RidgeStatistics};
use random_features::ndarray::{Array1, Array2, Axis};
use random_features_distributed::division::Division;
use random_features_distributed::fit::{self, Task, column};
use random_features_distributed::map::MapSpec;
use random_features_distributed::session;
use random_features_distributed::sums::State;
use tempfile::TempDir;

use crate::common::{CHUNK, bytes, difference, floats, partitions, spec, table_of, write};

/// Points, targets, weights and groups, also in files.
struct Data {
    x: Array2<f32>,
    y: Array2<f32>,
    w: Array1<f64>,
    folder: TempDir,
}

/// Data of `rows` rows in 300 groups, also written to three files.
fn data(rows: usize) -> Data {
    let folder = tempfile::tempdir().unwrap();
    let at = |i: usize, k: usize| ((i * (2 * k + 3)) as f64 * 0.618).sin();
    let x = Array2::from_shape_fn((rows, 2), |(i, k)| at(i, k) as f32);
    let y = Array2::from_shape_fn((rows, 1), |(i, _)| {
        (2.0 * x[[i, 0]] + x[[i, 1]]).sin() + 0.1 * at(i, 7) as f32
    });
    let w = Array1::from_shape_fn(rows, |i| (i % 4) as f64 / 2.0);
    for (file, first) in (0..rows).step_by(rows.div_ceil(3)).enumerate() {
        let part = first..rows.min(first + rows.div_ceil(3));
        let of = |values: Vec<f32>| floats(part.clone().map(move |i| values[i]));
        let w: ArrayRef = Arc::new(Float64Array::from_iter_values(part.clone().map(|i| w[i])));
        let g: ArrayRef = Arc::new(Int64Array::from_iter_values(part.clone().map(|i| (i % 300) as i64)));
        let s: ArrayRef =
            Arc::new(StringArray::from_iter_values(part.clone().map(|i| format!("site {}", i % 3))));
        let columns = [0, 1].map(|k| of(x.column(k).to_vec()));
        let [x0, x1] = columns;
        let named =
            vec![("x0", x0), ("x1", x1), ("y", of(y.column(0).to_vec())), ("w", w), ("g", g), ("s", s)];
        write(&folder.path().join(format!("{file}.parquet")), named);
    }
    Data { x, y, w, folder }
}

fn ridge(map: &MapSpec) -> Task {
    Task::ridge(map.clone(), "y", ["x0", "x1"])
}

/// The statistics of some rows in memory.
fn local(data: &Data, map: &MapSpec, rows: &[usize], weighted: bool) -> RidgeStatistics<f32> {
    let mut statistics = RidgeStatistics::new(map.draw::<f32>().unwrap(), 1).unwrap();
    let [x, y] = [&data.x, &data.y].map(|all| all.select(Axis(0), rows));
    let w = data.w.select(Axis(0), rows);
    let targets = if weighted { Targets::from(&y).with_weights(&w).unwrap() } else { Targets::from(&y) };
    let numbers: Vec<u64> = rows.iter().map(|row| *row as u64).collect();
    statistics.update_rows(&numbers, &x, targets).unwrap();
    statistics
}

/// Weights have the bits of a local pass, with numbers and in SQL without.
#[tokio::test(flavor = "multi_thread")]
async fn weights_count_as_in_memory() {
    let (data, map) = (data(30_000), spec(2, 32));
    let expected = local(&data, &map, &(0..30_000).collect::<Vec<_>>(), true);
    for count in [1, 3] {
        let context = session::local_with(count);
        let table = table_of(&context, data.folder.path()).await;
        assert_eq!(partitions(&table, count).await, count);
        let task = ridge(&map).with_weight(column("w"));
        let state = fit::run(&context, table.clone(), &task).await.unwrap();
        assert!(bytes(&state.gram::<f32>().unwrap()) == bytes(expected.sums()));
        context.register_table("n", Arc::new(table)).unwrap();
        let recipe = serde_json::to_string(&map.recipe).unwrap();
        for (function, row) in [("ridge_weighted_rows", "_row, "), ("ridge_weighted", "")] {
            let sql = format!("SELECT {function}('{recipe}', 42, {row}w, y, x0, x1) FROM n");
            let state = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
            assert!(difference(&state.gram::<f32>().unwrap(), expected.sums(), &map) < 1e-6);
        }
        let sql = format!("SELECT pca_weighted('{recipe}', 42, w, x0, x1) FROM n");
        let state = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
        assert_eq!(state.count().unwrap(), 30_000);
        for (wrong, why) in
            [("-w", "negative weight"), ("1.0 / (w - w)", "not finite"), ("s", "not a number")]
        {
            let sql = format!("SELECT ridge_weighted_rows('{recipe}', 42, _row, {wrong}, y, x0, x1) FROM n");
            let error =
                async { fit::state_of(context.sql(&sql).await?).await }.await.unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}

/// The states of parts, whose bits do not depend on partitions.
async fn states(data: &Data, map: &MapSpec, division: &Division) -> Vec<State> {
    let mut all = Vec::new();
    for count in [1, 2, 5] {
        let context = session::local_with(count);
        let table = table_of(&context, data.folder.path()).await;
        all.push(fit::run_divided(&context, table, &ridge(map), division).await.unwrap());
    }
    assert!(all.iter().all(|states| *states == all[0]), "{division:?}");
    all.swap_remove(0)
}

/// Parts hold all rows, each the sums of its own, and choose λ as folds in memory do.
#[tokio::test(flavor = "multi_thread")]
async fn parts_have_the_sums_of_their_rows() {
    let n = 40_000;
    let (data, map) = (data(n), spec(2, 32));
    let whole = local(&data, &map, &(0..n).collect::<Vec<_>>(), false);
    for (division, parts) in [
        (Division::Folds(4), 4),
        (Division::Groups("g".into(), 5, Vec::new()), 5),
        (Division::Values("s".into()), 3),
        (Division::Blocks(7), 7),
    ] {
        let states = states(&data, &map, &division).await;
        assert_eq!(states.len(), parts);
        let folds: Vec<RidgeStatistics<f32>> =
            states.iter().map(|state| state.ridge(&map).unwrap()).collect();
        let mut merged = folds[0].clone();
        folds[1..].iter().for_each(|fold| merged.merge(fold).unwrap());
        assert_eq!(merged.row_ranges(), std::slice::from_ref(&(0..n as u64)));
        assert!(difference(merged.sums(), whole.sums(), &map) < 1e-6);
        for fold in &folds {
            let rows: Vec<usize> = fold.row_ranges().into_iter().flatten().map(|row| row as usize).collect();
            assert!(bytes(fold.sums()) == bytes(local(&data, &map, &rows, false).sums()), "{division:?}");
            assert!(rows.len() > n / parts / 2, "{division:?}: {}", rows.len());
        }
        let spectrum = merged.spectrum().unwrap();
        let (_, error) = spectrum.choose(&Criterion::folds_of(&folds), &spectrum.lambdas()).unwrap();
        // The noise has variance 0.01 / 2, and few features leave as much again.
        assert!((0.005..0.015).contains(&error), "{division:?}: {error}");
        let rows_of = |fold: &RidgeStatistics<f32>| fold.row_ranges();
        match division {
            Division::Blocks(_) => {
                let starts: Vec<u64> = folds.iter().map(|fold| fold.row_ranges()[0].start).collect();
                assert!(
                    starts.is_sorted() && folds.iter().all(|fold| rows_of(fold).len() == 1),
                    "{starts:?}"
                );
            }
            Division::Values(_) => assert!(folds.iter().all(|fold| {
                let first = rows_of(fold)[0].start % 3;
                rows_of(fold).into_iter().flatten().all(|row| row % 3 == first)
            })),
            Division::Groups(..) => {
                let groups = |fold: &RidgeStatistics<f32>| {
                    rows_of(fold)
                        .into_iter()
                        .flatten()
                        .map(|row| row % 300)
                        .collect::<std::collections::BTreeSet<u64>>()
                };
                assert_eq!(folds.iter().map(|fold| groups(fold).len()).sum::<usize>(), 300);
            }
            Division::Folds(_) => {}
        }
    }
}

/// A column with few values has a part for each, one with many has folds; what divides nothing is refused.
#[tokio::test(flavor = "multi_thread")]
async fn columns_divide_rows() {
    let data = data(3 * CHUNK as usize);
    let context = session::local_with(2);
    let table = table_of(&context, data.folder.path()).await;
    let by = async |name: &str, folds| Division::by(&context, &table, name, folds).await;
    assert_eq!(by("s", 10).await.unwrap(), Division::Values("s".into()));
    assert!(matches!(by("s", 2).await.unwrap(), Division::Groups(_, 2, values) if values.len() == 3));
    let many = by("g", 10).await.unwrap();
    assert!(matches!(&many, Division::Groups(_, 10, values) if values.len() == 300));
    // Groups are dealt in turn, and rows too.
    for (division, parts) in [(many, 10), (by("s", 2).await.unwrap(), 2), (Division::Folds(7), 7)] {
        let states = fit::run_divided(&context, table.clone(), &ridge(&spec(2, 8)), &division).await.unwrap();
        let mut counts: Vec<u64> = states.iter().map(|state| state.count().unwrap()).collect();
        counts.sort();
        let least = if parts == 2 { CHUNK } else { 3 * CHUNK / parts - 50 };
        assert_eq!(counts.len() as u64, parts);
        assert!(counts[0] >= least, "{division:?}: {counts:?}");
    }
    let missing = by("none", 5).await.unwrap_err().to_string();
    assert!(missing.contains("no column none"), "{missing}");
    for division in [
        Division::Folds(1),
        Division::Folds(101),
        Division::Blocks(0),
        Division::Groups("g".into(), 1, Vec::new()),
    ] {
        let error =
            fit::run_divided(&context, table.clone(), &ridge(&spec(2, 8)), &division).await.unwrap_err();
        assert!(error.to_string().contains("2 to 100 parts"), "{error}");
    }
}
