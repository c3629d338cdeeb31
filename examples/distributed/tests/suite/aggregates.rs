//! Sums by the engine against those of one pass in memory.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use random_features::apply::RidgeStatistics;
use random_features::data::Reservoir;
use random_features::data::shaping::Moments;
use random_features::ndarray::Array2;
use random_features_distributed::fault::sentence;
use random_features_distributed::fit::{self, Task};
use random_features_distributed::generate::Generator;
use random_features_distributed::session;
use random_features_distributed::sums::State;
use random_features_distributed::table::RowTable;
use tempfile::TempDir;

use crate::common::{
    CHUNK, bytes, data, difference, floats, local_pca, local_ridge, partitions, pattern, spec, table_of,
    write,
};

async fn table(context: &SessionContext, generator: &Generator) -> (TempDir, RowTable) {
    let folder = tempfile::tempdir().unwrap();
    generator.write(folder.path()).unwrap();
    let table = table_of(context, folder.path()).await;
    (folder, table)
}

/// Bits do not depend on files, row groups and partitions, whether they end at chunks or not.
#[tokio::test(flavor = "multi_thread")]
async fn ridge_has_the_bits_of_a_local_pass() {
    let map = spec(3, 64);
    for (rows, files, group, skewed, list) in [
        (200_000, 1, 1 << 17, false, false),
        (200_000, 7, 10_000, false, true),
        (100_003, 64, 1000, true, false),
        (140_000, 5, 512, true, true),
        (7, 3, 100, false, false),
    ] {
        let generator = Generator { rows, columns: 3, files, group, skewed, list, seed: 5 };
        let expected = bytes(&local_ridge(&generator, &map));
        for count in [1, 3, 8] {
            let context = session::local_with(count);
            let (_folder, table) = table(&context, &generator).await;
            assert_eq!(partitions(&table, count).await, if rows > 8 * CHUNK { count } else { 1 });
            let task = Task::ridge(map.clone(), "y", generator.names());
            let state = fit::run(&context, table, &task).await.unwrap();
            assert!(state.knows_rows());
            assert_eq!(state.gram::<f32>().unwrap().row_ranges(), std::slice::from_ref(&(0..rows)));
            assert!(bytes(&state.gram::<f32>().unwrap()) == expected, "{rows} rows, {files} files, {count}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pca_and_samples_have_the_bits_of_a_local_pass() {
    let map = spec(4, 32);
    let generator =
        Generator { rows: 150_000, columns: 4, files: 7, group: 9999, skewed: true, ..Default::default() };
    let context = session::local_with(4);
    let (_folder, table) = table(&context, &generator).await;
    assert_eq!(partitions(&table, 4).await, 4);
    let state = fit::run(&context, table.clone(), &Task::pca(map.clone(), generator.names())).await.unwrap();
    assert!(bytes(&state.gram::<f32>().unwrap()) == bytes(&local_pca(&generator, &map)));

    let state = fit::run(&context, table, &Task::sample(100, 3, generator.names())).await.unwrap();
    let sample = state.sample().unwrap();
    let mut local = Reservoir::new(4).unwrap().with_capacity(100).unwrap().with_seed(3).unwrap();
    local.update(&data(&generator).0).unwrap();
    assert_eq!((sample.row_numbers(), sample.points()), (local.row_numbers(), local.points()));
    assert_eq!(sample.statistics().rows(), 150_000);
    let mean = |of: &Reservoir| of.statistics().mean().unwrap();
    assert!(mean(&sample).iter().zip(mean(&local)).all(|(a, b)| (a - b).abs() < 1e-12));
}

/// Moments agree with those of all rows at once to rounding, in SQL too, and rows count once.
#[tokio::test(flavor = "multi_thread")]
async fn moments_are_those_of_all_rows() {
    let generator = Generator { rows: 30_000, columns: 3, files: 4, ..Default::default() };
    let context = session::local_with(3);
    let (_folder, rows) = table(&context, &generator).await;
    let state = fit::run(&context, rows.clone(), &Task::moments(generator.names())).await.unwrap();
    let all = Moments::of(&data(&generator).0).unwrap();
    let near = |moments: &Moments| {
        let differences = moments.covariance().unwrap() - all.covariance().unwrap();
        moments.rows() == 30_000 && differences.iter().all(|d| d.abs() < 1e-12)
    };
    assert!(near(&state.moments().unwrap()) && state.knows_rows());
    let error = state.clone().merge(&state).unwrap_err().to_string();
    assert!(error.contains("counted already"), "{error}");
    context.register_table("n", Arc::new(rows)).unwrap();
    let sql = context.sql("SELECT moments(x0, x1, x2) FROM n").await.unwrap();
    let state = fit::state_of(sql).await.unwrap();
    assert!(near(&state.moments().unwrap()) && !state.knows_rows());
}

/// In SQL, over any table: rows are unknown, and sums agree to rounding.
#[tokio::test(flavor = "multi_thread")]
async fn sql_over_any_table() {
    let map = spec(3, 64);
    let generator = Generator { rows: 60_000, columns: 3, files: 5, ..Default::default() };
    let context = session::local_with(3);
    let (folder, rows) = table(&context, &generator).await;
    assert_eq!(partitions(&rows, 3).await, 3);
    context.register_parquet("t", &pattern(folder.path()), ParquetReadOptions::default()).await.unwrap();
    let recipe = serde_json::to_string(&map.recipe).unwrap();
    let sql = format!("SELECT ridge('{recipe}', 42, y, x0, x1, x2) FROM t");
    let state = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
    assert!(!state.knows_rows());
    let (sums, local) = (state.gram::<f32>().unwrap(), local_ridge(&generator, &map));
    assert_eq!(sums.rows(), 60_000);
    assert!(difference(&sums, &local, &map) < 1e-5);

    // Over a table of numbered rows, with their numbers.
    context.register_table("n", Arc::new(rows)).unwrap();
    let sql = format!("SELECT ridge_rows('{recipe}', 42, _row, y, x0, x1, x2) FROM n");
    let state = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
    assert!(state.knows_rows() && bytes(&state.gram::<f32>().unwrap()) == bytes(&local));

    // Groups, and conditions: rows are known, with gaps.
    let sql = format!("SELECT ridge_rows('{recipe}', 42, _row, y, x0, x1, x2) FROM n WHERE x0 > 0");
    let half = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
    let count = half.count().unwrap();
    assert!((29_000..31_000).contains(&count) && half.knows_rows());
    let sql =
        format!("SELECT _file, ridge_rows('{recipe}', 42, _row, y, x0, x1, x2) AS s FROM n GROUP BY _file");
    let sql = format!("SELECT merge_sums(s) FROM ({sql})");
    let merged = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
    assert_eq!(merged.count().unwrap(), 60_000);
}

/// What is delivered twice is an error where rows are known.
#[tokio::test(flavor = "multi_thread")]
async fn a_double_delivery_is_an_error() {
    let map = spec(3, 64);
    let generator = Generator { rows: 5000, columns: 3, files: 2, ..Default::default() };
    let context = session::local_with(2);
    let (_folder, rows) = table(&context, &generator).await;
    assert_eq!(partitions(&rows, 2).await, 2);
    context.register_table("n", Arc::new(rows)).unwrap();
    let recipe = serde_json::to_string(&map.recipe).unwrap();
    let all = format!("SELECT ridge_rows('{recipe}', 42, _row, y, x0, x1, x2) AS s FROM n");
    let twice = format!("SELECT merge_sums(s) FROM ({all} UNION ALL {all})");
    let error = fit::state_of(context.sql(&twice).await.unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("row 0 is counted already"), "{error}");
    let rows = format!(
        "SELECT ridge_rows('{recipe}', 42, _row, y, x0, x1, x2) FROM (SELECT * FROM n UNION ALL SELECT * FROM n WHERE _row = 4000)"
    );
    let error = fit::state_of(context.sql(&rows).await.unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("row 4000 is counted already"), "{error}");
}

/// States of other classes, of another order of them, or of another seed are no sums of the same targets and features.
#[tokio::test(flavor = "multi_thread")]
async fn states_of_other_constants_do_not_merge() {
    let context = session::local_with(1);
    let recipe = serde_json::to_string(&spec(1, 8).recipe).unwrap();
    let values = "(VALUES ('a', 0.1), ('b', 0.2), ('a', 0.3)) AS t(c, x)";
    let of = |seed: u64, classes: &str| {
        format!("SELECT ridge_classes('{recipe}', {seed}, '{classes}', c, x) AS s FROM {values}")
    };
    let merged = async |one: String, other: String| {
        let sql = format!("SELECT merge_sums(s) FROM ({one} UNION ALL {other})");
        fit::state_of(context.sql(&sql).await.unwrap()).await
    };
    let plain = of(1, r#"["a", "b"]"#);
    assert_eq!(merged(plain.clone(), of(1, r#"["a","b"]"#)).await.unwrap().count().unwrap(), 6);
    for other in [of(1, r#"["b", "a"]"#), of(1, r#"["a", "b", "c"]"#), of(2, r#"["a", "b"]"#)] {
        let error = merged(plain.clone(), other).await.unwrap_err().to_string();
        assert!(error.contains("other constants"), "{error}");
    }
}

/// Days whose numbers do not meet have sums that merge; days that all begin at 0 do not.
#[tokio::test(flavor = "multi_thread")]
async fn days_are_merged_by_their_numbers() {
    let (map, context) = (spec(2, 16), session::local_with(2));
    let mut states = Vec::new();
    for (day, rows) in [(0u64, 3000), (1, 5000)] {
        let generator = Generator { rows, columns: 2, files: 2, seed: day, ..Default::default() };
        let (_folder, table) = table(&context, &generator).await;
        assert!(table.clone().with_first_row(5).is_err() && table.clone().with_first_row(1 << 62).is_err());
        let task = Task::ridge(map.clone(), "y", generator.names());
        states.push(fit::run(&context, table.clone(), &task).await.unwrap());
        states.push(fit::run(&context, table.with_first_row(day << 40).unwrap(), &task).await.unwrap());
    }
    let rows = [0..3000, 1 << 40..(1 << 40) + 5000];
    let merged = states[1].clone().merge(&states[3]).unwrap();
    assert_eq!((merged.count().unwrap(), merged.gram::<f32>().unwrap().row_ranges()), (8000, rows.to_vec()));
    assert!(states[0].clone().merge(&states[2]).is_err());
}

/// A state that has changed is refused, wherever it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_state_is_refused() {
    let generator = Generator { rows: 600, columns: 2, ..Default::default() };
    let context = session::local();
    let (_folder, table) = table(&context, &generator).await;
    let state = fit::run(&context, table, &Task::ridge(spec(2, 8), "y", generator.names())).await.unwrap();
    let stored = state.to_bytes();
    assert_eq!(State::of_bytes(&stored).unwrap(), state);
    for place in 0..stored.len() {
        let mut changed = stored.clone();
        changed[place] ^= 1;
        assert!(State::of_bytes(&changed).is_err(), "byte {place}");
    }
    assert!((0..stored.len()).all(|length| State::of_bytes(&stored[..length]).is_err()));
}

/// A state that is larger than the messages of a cluster may be arrives as it is, in parts.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_many_features_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let x: Vec<f32> = (0..20).map(|i| i as f32 / 10.0).collect();
    let y: Vec<f64> = (0..20).map(|i| f64::from(i).sin()).collect();
    let target: ArrayRef = Arc::new(Float64Array::from(y.clone()));
    write(&folder.path().join("a.parquet"), vec![("x", floats(x.clone())), ("y", target)]);
    let (map, context) = (spec(1, 1800), session::local_with(1));
    let table = table_of(&context, folder.path()).await;
    let state = fit::run(&context, table, &Task::ridge(map.clone(), "y", ["x"])).await.unwrap();
    assert!(state.is_double() && state.to_bytes().len() > 16 << 20);
    let mut local = RidgeStatistics::new(map.draw::<f64>().unwrap(), 1).unwrap();
    let x = Array2::from_shape_fn((20, 1), |(i, _)| f64::from(x[i]));
    local.update(&x, &Array2::from_shape_fn((20, 1), |(i, _)| y[i])).unwrap();
    assert!(bytes(&state.gram::<f64>().unwrap()) == bytes(local.sums()));
}

/// A sum over a window is refused in a sentence, and an order among the arguments is no coordinate.
#[tokio::test(flavor = "multi_thread")]
async fn windows_and_orders() {
    let map = spec(2, 16);
    let generator = Generator { rows: 10_000, columns: 3, files: 2, ..Default::default() };
    let context = session::local_with(2);
    let (_folder, rows) = table(&context, &generator).await;
    context.register_table("n", Arc::new(rows)).unwrap();
    let recipe = serde_json::to_string(&map.recipe).unwrap();
    let ridge = |more: &str| format!("ridge_rows('{recipe}', 42, _row, y, x0, x1{more})");
    let of = async |sums: &str| fit::state_of(context.sql(&format!("SELECT {sums} FROM n")).await?).await;
    for window in ["OVER ()", "OVER (PARTITION BY _file)", "OVER (ORDER BY _row)"] {
        for sums in [ridge(""), "moments(x0, x1)".into(), "sample(5, 1, x0)".into()] {
            let error = sentence(&of(&format!("{sums} {window}")).await.unwrap_err());
            assert!(error.contains("no window function"), "{sums} {window}: {error}");
        }
    }
    let plain = of(&ridge("")).await.unwrap();
    for order in ["x2", "x2 DESC, x0", "_row"] {
        assert_eq!(of(&ridge(&format!(" ORDER BY {order}"))).await.unwrap(), plain);
        let moments = of(&format!("moments(x0, x1 ORDER BY {order})")).await.unwrap();
        assert_eq!(moments.moments().unwrap().mean().unwrap().len(), 2);
    }
    let merged = format!(
        "SELECT merge_sums(s ORDER BY _file) FROM (SELECT _file, {} AS s FROM n GROUP BY _file)",
        ridge("")
    );
    let merged = fit::state_of(context.sql(&merged).await.unwrap()).await.unwrap();
    let (merged, plain) = (merged.gram::<f32>().unwrap(), plain.gram::<f32>().unwrap());
    // Files end within chunks.
    assert!(merged.row_ranges() == plain.row_ranges() && difference(&merged, &plain, &map) < 1e-6);
}
