//! Scores of models, and λ by folds, groups and blocks, as a person would ask for them.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use random_features::ndarray::Array2;
use random_features_distributed::fit::column;
use random_features_distributed::model::{Fitted, Model};
use random_features_distributed::score::{Score, Scoring};
use random_features_distributed::session;

use crate::common::{refused, rf, table_of, text, write};

fn numbers(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

/// What a command says on standard output.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = rf(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The number behind a word.
fn number(said: &str, word: &str) -> f64 {
    let rest = said.split_once(word).unwrap_or_else(|| panic!("no {word} in {said}")).1;
    rest.split([' ', ',', '\n']).find(|word| !word.is_empty()).unwrap().parse().unwrap()
}

/// A uniform number in (0, 1) for a place.
fn uniform(i: usize, k: usize) -> f64 {
    let mut z = ((i * 31 + k) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn model(folder: &Path, name: &str) -> Model {
    Model::parse(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// A target far from 0, with weights: against plain sums over the model's own predictions.
#[tokio::test(flavor = "multi_thread")]
async fn scores_of_numbers_are_those_of_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let n = 5000;
    let x: Vec<f64> = (0..n).map(|i| 6.0 * uniform(i, 0)).collect();
    let y: Vec<f64> =
        (0..n).map(|i| 1.6e9 + 60.0 * (2.0 * x[i]).sin() + 20.0 * (uniform(i, 1) - 0.5)).collect();
    let w: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    let columns = || vec![("x", numbers(x.clone())), ("y", numbers(y.clone())), ("w", numbers(w.clone()))];
    write(&here.join("a.parquet"), columns());
    let fit = ["fit", "ridge", "--input", "a.parquet", "--target", "y", "--weights", "w", "--features", "64"];
    let fitted = said(here, &[&fit[..], &["--out", "m.json", "--lambda", "auto"]].concat());
    assert!(number(&fitted, "expected R²: ") > 0.97, "{fitted}");
    let fitted = said(here, &[&fit[..], &["--out", "m.json", "--lambda", "0.01"]].concat());
    assert!(fitted.contains("on the rows of the fit") && number(&fitted, "\nR²: ") > 0.97, "{fitted}");

    let model = model(here, "m.json");
    let Fitted::RidgeDouble(ridge) = &model.fitted else { panic!("not of f64") };
    let predicted = ridge.predict(&Array2::from_shape_vec((n, 1), x.clone()).unwrap()).unwrap();
    let total: f64 = w.iter().sum();
    let mean_of = |value: &dyn Fn(usize) -> f64| (0..n).map(|i| w[i] * value(i)).sum::<f64>() / total;
    let mean = 1.6e9 + mean_of(&|i| y[i] - 1.6e9);
    let variance = mean_of(&|i| (y[i] - mean).powi(2));
    let squared = mean_of(&|i| (y[i] - predicted[[i, 0]]).powi(2));
    let absolute = mean_of(&|i| (y[i] - predicted[[i, 0]]).abs());
    let context = session::local_with(2);
    let table = table_of(&context, here).await;
    let scoring = Scoring::new(model).unwrap().with_weight(column("w"));
    let Score::Numbers(score) = scoring.run(&context, &table).await.unwrap() else { panic!("no numbers") };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs();
    assert!(near(score.mean - 1.6e9, mean - 1.6e9) || (score.mean - mean).abs() < 1e-6, "{score:?} {mean}");
    assert!(
        near(score.variance, variance) && near(score.squared_error, squared),
        "{score:?} {variance} {squared}"
    );
    assert!(near(score.absolute_error, absolute), "{score:?} {absolute}");
    let told = said(here, &["score", "--model", "m.json", "--input", "a.parquet", "--weights", "w"]);
    assert!((number(&told, "R²: ") - (1.0 - squared / variance)).abs() < 1e-4, "{told}");
    assert!((number(&told, "squared error: ") / squared.sqrt() - 1.0).abs() < 1e-3, "{told}");

    let score = ["score", "--model", "m.json", "--input", "a.parquet"];
    refused(here, &[&score[..], &["--target", "z"]].concat(), &["no column z"]);
    refused(here, &[&score[..], &["--columns", "y"]].concat(), &["columns x"]);
    let constant = numbers(std::iter::repeat_n(3.0, n));
    write(
        &here.join("b.parquet"),
        vec![("x", numbers(x)), ("y", constant), ("w", numbers(w.iter().map(|w| -w)))],
    );
    let told = said(here, &["score", "--model", "m.json", "--input", "b.parquet"]);
    assert!(told.contains("no R²: y is constant"), "{told}");
    refused(
        here,
        &["score", "--model", "m.json", "--input", "b.parquet", "--weights", "w"],
        &["w", "negative"],
    );
}

/// Labels of numbers and texts: against counts of predictions.
#[test]
fn scores_of_classes_are_counts() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let n = 3000;
    let x: Vec<f64> = (0..n).map(|i| 2.0 * uniform(i, 0) - 1.0).collect();
    // A tenth of the labels is wrong.
    let class = |i: usize| (x[i] > 0.5) != (uniform(i, 1) < 0.1);
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..n).map(|i| if class(i) { "up" } else { "down" })));
    let columns =
        vec![("x", numbers(x.clone())), ("c", texts), ("f", numbers((0..n).map(|i| f64::from(class(i)))))];
    write(&here.join("a.parquet"), columns);
    let fit =
        ["fit", "ridge", "--input", "a.parquet", "--columns", "x", "--features", "64", "--out", "m.json"];
    for (target, classes) in [("c", "down,up"), ("f", "0,1")] {
        let fitted = said(here, &[&fit[..], &["--target", target, "--classes", classes]].concat());
        assert!((number(&fitted, "accuracy: ") - 0.9).abs() < 0.03, "{fitted}");
        assert!(fitted.contains(&format!("{target}: ")) && fitted.contains(" %"), "{fitted}");
        let told = said(here, &["score", "--model", "m.json", "--input", "a.parquet"]);
        assert_eq!(number(&told, "accuracy: "), number(&fitted, "accuracy: "));
        let rows: Vec<&str> = told.lines().rev().take(2).collect();
        let counted: f64 =
            rows.iter().map(|row| row.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()).sum();
        assert_eq!(counted, n as f64, "{told}");
        // Accuracy is the mean of recalls, weighted by rows.
        let right: f64 = rows
            .iter()
            .map(|row| {
                let words: Vec<f64> =
                    row.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
                words[0] * words[1]
            })
            .sum();
        assert!((right / n as f64 - number(&told, "accuracy: ")).abs() < 1e-3, "{told}");
    }
    let wrong = ["score", "--model", "m.json", "--input", "a.parquet", "--target", "c"];
    refused(here, &wrong, &["column c", "none of the classes"]);
}

/// Repeated measurements, whose features tell their own noise: folds of rows promise what groups do not.
#[test]
fn groups_are_left_out_together() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let n = 250;
    let point = |i: usize, k: usize| 4.0 * uniform(i / 5, k) - 2.0;
    let columns = (0..5).map(|k| numbers((0..n).map(|i| point(i, k))));
    let y = numbers((0..n).map(|i| point(i, 0) + 2.0 * (uniform(i / 5, 9) - 0.5)));
    let subjects: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("s{}", i / 5))));
    let site: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n).map(|i| (i / 5 % 4) as i64)));
    let names = ["x0", "x1", "x2", "x3", "x4"];
    let all = names.into_iter().zip(columns).chain([("y", y), ("subject", subjects), ("site", site)]);
    write(&here.join("a.parquet"), all.collect());
    let fit = [
        "fit",
        "ridge",
        "--input",
        "a.parquet",
        "--columns",
        "x0,x1,x2,x3,x4",
        "--target",
        "y",
        "--features",
        "96",
    ];
    let fit = [&fit[..], &["--out", "m.json"]].concat();
    let by = |more: &[&str]| said(here, &[&fit[..], more].concat());
    let rows = by(&["--folds", "5"]);
    let subjects = by(&["--groups", "subject"]);
    let sites = by(&["--groups", "site"]);
    let blocks = by(&["--forward", "5", "--gap", "1"]);
    assert!(
        rows.contains("(5 folds of rows)") && subjects.contains("(10 folds of groups, by subject)"),
        "{rows}{subjects}"
    );
    assert!(
        sites.contains("(4 groups, by site)") && blocks.contains("(5 blocks in order, with a gap of 1)"),
        "{sites}{blocks}"
    );
    let [rows, subjects, sites, blocks] =
        [rows, subjects, sites, blocks].map(|said| number(&said, "predictions: "));
    // The noise has variance 1/3 and is the same for all rows of a subject: other rows of it tell most of it.
    assert!(rows < 0.5 * subjects && subjects > 0.25 && subjects < 0.8, "{rows} {subjects}");
    assert!(sites > 0.25 && sites < 0.9 && blocks > 0.25, "{sites} {blocks}");
}

#[test]
fn divisions_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(rf(here, &["generate", "d", "--rows", "500", "--columns", "2", "--files", "1"]).status.success());
    let fit = ["fit", "ridge", "--input", "d", "--target", "y", "--features", "8", "--out", "m.json"];
    let wrong = |more: &[&str], names: &[&str]| refused(here, &[&fit[..], more].concat(), names);
    wrong(&["--folds", "1"], &["--folds"]);
    wrong(&["--folds", "5", "--lambda", "1"], &["--lambda"]);
    wrong(&["--folds", "5", "--forward", "5"], &["--forward"]);
    wrong(&["--forward", "3", "--gap", "2"], &["--gap"]);
    wrong(&["--gap", "2"], &["--forward"]);
    wrong(&["--folds", "5", "--gap", "2"], &["--gap", "--forward"]);
    wrong(&["--folds", "101"], &["--folds", "100"]);
    wrong(&["--groups", "z"], &["no column z"]);
    wrong(&["--weights", "z"], &["no column z"]);
    let pca = [
        "fit",
        "pca",
        "--input",
        "d",
        "--columns",
        "x0,x1",
        "--components",
        "2",
        "--features",
        "8",
        "--out",
        "m.json",
    ];
    refused(here, &[&pca[..], &["--folds", "5"]].concat(), &["PCA", "--folds"]);
    assert!(rf(here, &pca).status.success());
    refused(here, &["score", "--model", "m.json", "--input", "d"], &["predicts no column"]);
}
