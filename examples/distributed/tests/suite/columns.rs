//! Columns of all types, as points, targets and labels.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeListArray, Float32Array, Float64Array, Int64Array, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int8Type};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use random_features_distributed::model::Model;

use crate::common::{floats, refused, rf, spec, text, write};

const ROWS: usize = 3000;

/// Points on a line, as they lie in no order.
fn line() -> Vec<f64> {
    (0..ROWS).map(|i| (i as f64 * 0.37).sin() * 3.0).collect()
}

fn doubles(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn singles(values: &[f64]) -> ArrayRef {
    floats(values.iter().map(|value| *value as f32))
}

/// What `rf fit ridge` says, on both outputs.
fn fitted(here: &Path, more: &[&str]) -> String {
    let fit = ["fit", "ridge", "--target", "y", "--features", "64", "--out", "m.json", "--quiet", "--input"];
    let fitted = rf(here, &[&fit[..], more].concat());
    assert!(fitted.status.success(), "{}", text(&fitted.stderr));
    text(&fitted.stdout) + &text(&fitted.stderr)
}

/// The predictions of the model for the rows of a file.
fn predicted(here: &Path, file: &str) -> ArrayRef {
    let predict = ["predict", "--model", "m.json", "--out", "p.parquet", "--quiet", "--input", file];
    let predicted = rf(here, &predict);
    assert!(predicted.status.success(), "{}", text(&predicted.stderr));
    let file = std::fs::File::open(here.join("p.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(ROWS).build();
    reader.unwrap().next().unwrap().unwrap().column(2).clone()
}

/// The root of the mean squared difference of predictions from values.
fn difference(predictions: &ArrayRef, y: &ArrayRef) -> f64 {
    let [predictions, y] = [predictions, y].map(|values| cast(values, &DataType::Float64).unwrap());
    let (predictions, y) = (predictions.as_primitive::<Float64Type>(), y.as_primitive::<Float64Type>());
    let squares = predictions.values().iter().zip(y.values()).map(|(a, b)| (a - b).powi(2));
    (squares.sum::<f64>() / y.len() as f64).sqrt()
}

/// Points of `f32` do not round a target of more digits: not where it is sampled, summed or predicted.
#[test]
fn targets_keep_their_digits() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let x = line();
    std::fs::write(here.join("r.json"), spec(1, 64).to_json().unwrap()).unwrap();
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let lists = FixedSizeListArray::try_new(item, 1, singles(&x), None).unwrap();
    let points: [ArrayRef; 2] = [singles(&x), Arc::new(lists)];
    // Seconds since 1970, which differ by a minute.
    let seconds = || x.iter().map(|x| 1.6e9 + 60.0 * x.sin());
    let whole = Int64Array::from_iter_values(seconds().map(|y| y.round() as i64));
    let targets: [ArrayRef; 2] = [doubles(seconds()), Arc::new(whole)];
    for points in &points {
        for target in &targets {
            write(&here.join("a.parquet"), vec![("x", points.clone()), ("y", target.clone())]);
            let fit = ["fit", "ridge", "--input", "a.parquet", "--target", "y", "--recipe", "r.json"];
            let fitted = rf(here, &[&fit[..], &["--lambda", "1e-2", "--out", "m.json"]].concat());
            assert!(fitted.status.success(), "{}", text(&fitted.stderr));
            let model = Model::parse(&std::fs::read_to_string(here.join("m.json")).unwrap()).unwrap();
            let predictions = predicted(here, "a.parquet");
            let error = difference(&predictions, target);
            assert!(model.is_double() && error < 2.0, "{error} of 42");
        }
    }
}

/// An offset of the target changes neither the λ that is chosen nor the error that is expected.
#[test]
fn the_mean_of_a_target_does_not_choose() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let x = line();
    std::fs::write(here.join("r.json"), spec(1, 64).to_json().unwrap()).unwrap();
    let noise = |i: usize| (((i * i) as f64 * 0.7).sin() + (i as f64 * 1.9).cos()) * 6.0;
    let said: Vec<f64> = [0.0, 1.6e9]
        .into_iter()
        .map(|offset| {
            let y = doubles(x.iter().enumerate().map(|(i, x)| offset + 60.0 * (2.0 * x).sin() + noise(i)));
            write(&here.join("a.parquet"), vec![("x", singles(&x)), ("y", y)]);
            let fit = ["fit", "ridge", "--input", "a.parquet", "--target", "y", "--recipe", "r.json"];
            let fitted = rf(here, &[&fit[..], &["--lambda", "auto", "--out", "m.json"]].concat());
            assert!(fitted.status.success(), "{}", text(&fitted.stderr));
            let said = text(&fitted.stdout) + &text(&fitted.stderr);
            let (_, number) = said.split_once("expected squared error of predictions: ").unwrap();
            number.split_whitespace().next().unwrap().parse().unwrap()
        })
        .collect();
    assert!((20.0..60.0).contains(&said[0]) && (said[1] / said[0] - 1.0).abs() < 1e-3, "{said:?}");
}

/// Numbers and Booleans are points, and what is left out is named with the reason.
#[test]
fn every_column_is_read_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::create_dir_all(here.join("d/day=1")).unwrap();
    let x = line();
    let z: Vec<i64> = (0..ROWS as i64).map(|i| i % 5).collect();
    let b: Vec<bool> = (0..ROWS).map(|i| i % 3 == 0).collect();
    let y = (0..ROWS).map(|i| 0.1 * x[i] + z[i] as f64 + if b[i] { 2.0 } else { 0.0 });
    let y = doubles(y);
    let names = StringArray::from_iter_values(z.iter().map(i64::to_string));
    let dictionary: DictionaryArray<Int8Type> = names.iter().collect();
    let columns = || -> Vec<(&str, ArrayRef)> {
        vec![
            ("x", doubles(x.clone())),
            ("z", Arc::new(Int64Array::from(z.clone()))),
            ("b", Arc::new(BooleanArray::from(b.clone()))),
            ("date", Arc::new(Date32Array::from_iter_values(z.iter().map(|z| *z as i32)))),
            ("kind", Arc::new(dictionary.clone())),
            ("name", Arc::new(names.clone())),
            ("y", y.clone()),
        ]
    };
    write(&here.join("d/day=1/a.parquet"), columns());
    let later: Vec<(&str, ArrayRef)> = columns().into_iter().chain([("later", doubles(x.clone()))]).collect();
    write(&here.join("d/day=1/b.parquet"), later);
    let said = fitted(here, &["d"]);
    for line in [
        "columns of the points: x, z, b\n",
        "left out: date: of Date32",
        "left out: kind: of Dictionary(",
        "left out: name: of Utf8",
        "left out: day: stands in the names of folders",
        "left out: later: is in",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(
        said.contains("b.parquet, and not in the first file") && said.contains("expected R²: 1.0000"),
        "{said}"
    );
    let error = difference(&predicted(here, "d/day=1/a.parquet"), &y);
    assert!(error < 0.1, "{error}");
    // What is named needs no word.
    let said = fitted(here, &["d", "--columns", "x,z,b"]);
    assert!(!said.contains("left out"), "{said}");
    let planned = rf(here, &["plan", "d", "--target", "y", "--features", "8", "--quiet"]);
    assert!(text(&planned.stderr).contains("left out: later"), "{}", text(&planned.stderr));
}

/// Labels are names in dictionaries, Booleans and numbers too; a number that is no class is named.
#[test]
fn labels_of_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let x = line();
    let up: Vec<bool> = x.iter().map(|x| *x > 0.0).collect();
    let names = || up.iter().map(|up| if *up { "up" } else { "down" });
    let numbers = || up.iter().map(|up| f64::from(u8::from(*up)));
    let dictionary: DictionaryArray<Int8Type> = names().collect();
    let numbered = cast(&doubles(numbers()), &DataType::Float32).unwrap();
    let of_numbers = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int64));
    let of_numbers = cast(&cast(&numbered, &DataType::Int64).unwrap(), &of_numbers).unwrap();
    let decimals = Decimal128Array::from_iter_values(up.iter().map(|up| if *up { 100 } else { 0 }));
    let labels: [(ArrayRef, [&str; 2]); 8] = [
        (Arc::new(dictionary), ["up", "down"]),
        (Arc::new(BooleanArray::from(up.clone())), ["true", "false"]),
        (doubles(numbers()), ["1", "0"]),
        (doubles(numbers()), ["1.0", "0.0"]),
        (numbered, ["1", "0"]),
        (of_numbers, ["1", "0"]),
        (Arc::new(decimals.with_precision_and_scale(5, 2).unwrap()), ["1", "0"]),
        (Arc::new(Float32Array::from_iter_values(numbers().map(|n| n as f32 + 0.1))), ["1.1", "0.1"]),
    ];
    for (labels, [yes, no]) in labels {
        write(&here.join("a.parquet"), vec![("x", singles(&x)), ("y", labels.clone())]);
        fitted(here, &["a.parquet", "--classes", &format!("{yes},{no}")]);
        let predictions = predicted(here, "a.parquet");
        let right = predictions.as_string::<i32>().iter().zip(&up);
        let right = right.filter(|(name, up)| *name == Some(if **up { yes } else { no })).count();
        assert!(right > ROWS * 95 / 100, "{right} of {}", labels.data_type());
    }
    let fit = ["fit", "ridge", "--input", "a.parquet", "--target", "y", "--features", "8", "--out", "m.json"];
    let unknown = doubles((0..ROWS).map(|i| if i == 70 { 2.0 } else { 1.0 }));
    write(&here.join("a.parquet"), vec![("x", singles(&x)), ("y", unknown)]);
    refused(
        here,
        &[&fit[..], &["--classes", "0,1"]].concat(),
        &["a.parquet, row 70: column y holds \"2.0\""],
    );
    let booleans: ArrayRef = Arc::new(BooleanArray::from(up.clone()));
    for labels in [booleans, Arc::new(StringArray::from_iter_values(names()))] {
        write(&here.join("a.parquet"), vec![("x", singles(&x)), ("y", labels)]);
        refused(here, &fit, &["column y", "a.parquet", "--classes"]);
    }
}
