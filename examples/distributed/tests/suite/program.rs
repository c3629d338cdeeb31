//! The program `rf`, as a person would run it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use random_features_distributed::generate::Generator;
use random_features_distributed::model::Model;

use crate::common::{floats, names, pattern, refused, rf, text, write, write_with};

#[test]
fn plan_fit_and_predict() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let made = rf(here, &["generate", "d", "--rows", "30000", "--columns", "3", "--files", "3"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let planned = rf(here, &["plan", "d/*.parquet", "--target", "y", "--features", "128", "--out", "r.json"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    let said = text(&planned.stdout);
    assert!(said.contains("30000 rows in 3 files") && said.contains("x2"), "{said}");

    let fit =
        ["fit", "ridge", "--input", "d/*.parquet", "--target", "y", "--recipe", "r.json", "--out", "m.json"];
    let fitted = rf(here, &fit);
    assert!(fitted.status.success(), "{}", text(&fitted.stderr));
    assert!(text(&fitted.stderr).contains("30000 rows in"), "{}", text(&fitted.stderr));
    let model = Model::parse(&std::fs::read_to_string(here.join("m.json")).unwrap()).unwrap();
    assert_eq!((model.rows, model.columns.len(), model.is_double()), (30_000, 3, false));

    let predicted = rf(
        here,
        &["predict", "--model", "m.json", "--input", "d/*.parquet", "--out", "p.parquet", "--quiet"],
    );
    assert!(predicted.status.success(), "{}", text(&predicted.stderr));
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(here.join("p.parquet")).unwrap());
    let batches: Vec<RecordBatch> = reader.unwrap().build().unwrap().map(Result::unwrap).collect();
    let predictions =
        batches.iter().flat_map(|batch| batch.column(2).as_primitive::<Float32Type>().values().to_vec());
    let generator = Generator { rows: 30_000, columns: 3, files: 3, ..Default::default() };
    let (_, y) = generator.points(0, 30_000);
    let errors: Vec<f32> = predictions.zip(y).map(|(a, b)| (a - b).powi(2)).collect();
    assert_eq!(errors.len(), 30_000);
    let mean = errors.iter().sum::<f32>() / 30_000.0;
    // Targets have variance 0.5, their noise 0.2² / 12.
    assert!(mean < 0.02, "{mean}");

    let explained = rf(here, &[&fit[..], &["--explain"]].concat());
    assert!(
        text(&explained.stdout).contains("RowScan: 30000 rows of 3 files"),
        "{}",
        text(&explained.stdout)
    );
    let pca = [
        "fit",
        "pca",
        "--input",
        "d",
        "--columns",
        "x0,x1",
        "--features",
        "64",
        "--components",
        "3",
        "--out",
        "c.json",
    ];
    let pca = rf(here, &pca);
    assert!(pca.status.success(), "{}", text(&pca.stderr));
    let components = rf(here, &["predict", "--model", "c.json", "--input", "d", "--out", "c.parquet"]);
    assert!(components.status.success(), "{}", text(&components.stderr));
}

#[test]
fn classes_are_predicted_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let x: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.37).sin()).collect();
    let labels: ArrayRef =
        Arc::new(StringArray::from_iter_values(x.iter().map(|x| if *x > 0.0 { "up" } else { "down" })));
    write(&here.join("a.parquet"), vec![("x", floats(x.clone())), ("c", labels.clone())]);
    let fit =
        ["fit", "ridge", "--input", "a.parquet", "--target", "c", "--features", "32", "--out", "m.json"];
    let fitted = rf(here, &[&fit[..], &["--classes", "up,down"]].concat());
    assert!(fitted.status.success(), "{}", text(&fitted.stderr));
    assert!(
        rf(here, &["predict", "--model", "m.json", "--input", "a.parquet", "--out", "p.parquet"])
            .status
            .success()
    );
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(here.join("p.parquet")).unwrap());
    let batch = reader.unwrap().build().unwrap().next().unwrap().unwrap();
    let same = batch
        .column(2)
        .as_string::<i32>()
        .iter()
        .zip(labels.as_string::<i32>())
        .filter(|(a, b)| a == b)
        .count();
    assert!(same > 1000 * batch.num_rows() / 1050, "{same} of {}", batch.num_rows());
    refused(
        here,
        &[&fit[..], &["--classes", "up,left"]].concat(),
        &["a.parquet, row ", "column c", "\"down\"", "up"],
    );
    refused(here, &[&fit[..], &["--classes", "up,down,up"]].concat(), &["--classes", "up twice"]);
    refused(here, &fit, &["column c", "a.parquet", "Utf8"]);
}

#[test]
fn what_cannot_be_fulfilled_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let with_nulls: ArrayRef = Arc::new(Float32Array::from_iter((0..10).map(|i| (i % 3 > 0).then_some(1.0))));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..10).map(|i| i.to_string())));
    let wide: ArrayRef = Arc::new(Float64Array::from_iter_values((0..10).map(f64::from)));
    let plain = || floats((0..10).map(|i| i as f32));
    let columns = || vec![("x", plain()), ("n", with_nulls.clone()), ("t", text.clone()), ("y", plain())];
    write(&here.join("a.parquet"), columns());
    write(&here.join("b.parquet"), vec![("x", wide), ("y", plain())]);
    let nan = floats((0..10).map(|i| if i == 7 { f32::NAN } else { i as f32 }));
    write(&here.join("c.parquet"), vec![("x", nan), ("y", plain())]);
    let unknown = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    write_with(&here.join("e.parquet"), columns(), unknown);
    std::fs::write(here.join("d.parquet"), b"not Parquet at all").unwrap();
    std::fs::write(here.join("broken.json"), b"{}").unwrap();
    let fit = |file: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        let fit = ["fit", "ridge", "--input", file, "--target", "y", "--features", "8", "--out", "m.json"];
        fit.into_iter().chain(more.iter().copied()).collect()
    };
    refused(here, &fit("a.parquet", &["--columns", "z"]), &["a.parquet", "no column z", "x, n, t, y"]);
    refused(here, &fit("a.parquet", &["--columns", "x,n"]), &["column n", "a.parquet", "4 nulls"]);
    refused(here, &fit("a.parquet", &["--columns", "x,t"]), &["column t", "a.parquet", "Utf8"]);
    refused(here, &fit("a.parquet", &["--columns", "x,y"]), &["column y"]);
    refused(here, &fit("*.parquet", &["--columns", "x"]), &["d.parquet", "footer"]);
    refused(here, &fit("[ab].parquet", &["--columns", "x"]), &["column x", "b.parquet", "Float64"]);
    refused(
        here,
        &fit("c.parquet", &["--columns", "x", "--lambda", "1"]),
        &["c.parquet, row 7: column x", "finite"],
    );
    refused(here, &fit("e.parquet", &["--columns", "x,n"]), &["e.parquet, row 0: column n has 4 nulls"]);
    refused(here, &fit("none/*.parquet", &[]), &["none"]);
    let stored =
        ["fit", "ridge", "--input", "a.parquet", "--target", "y", "--columns", "x", "--out", "m.json"];
    refused(here, &[&stored[..], &["--recipe", "broken.json"]].concat(), &["broken.json", "understood"]);
    refused(here, &[&stored[..], &["--recipe", "absent.json"]].concat(), &["absent.json", "cannot be read"]);
    refused(here, &fit("a.parquet", &["--columns", "x", "--lambda", "-1"]), &["--lambda"]);
    refused(here, &fit("a.parquet", &["--columns", "x", "--partitions", "0"]), &["--partitions"]);
    let reason = if cfg!(feature = "cluster") { "reached" } else { "feature cluster" };
    refused(
        here,
        &fit("a.parquet", &["--columns", "x", "--ballista", "127.0.0.1:9"]),
        &["127.0.0.1:9", reason],
    );
    refused(here, &["fit", "ridge", "--input", "a.parquet", "--out", "m.json"], &["--target"]);
    refused(here, &["fit", "pca", "--input", "a.parquet", "--target", "y", "--out", "m.json"], &["PCA"]);
    refused(
        here,
        &["predict", "--model", "broken.json", "--input", "a.parquet", "--out", "p.parquet"],
        &["broken.json"],
    );
    refused(here, &["nonsense"], &["nonsense"]);
    assert_eq!(pattern(here).matches('*').count(), 1);
}

/// Inputs are never written to, and a failure leaves what was there before.
#[test]
fn files_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let input = here.join("a b.parquet");
    Generator { rows: 20_000, columns: 2, ..Default::default() }.write_file(&input, 0, 20_000).unwrap();
    let whole = std::fs::read(&input).unwrap();
    let fit = ["fit", "ridge", "--input", "a b.parquet", "--target", "y", "--features", "16", "--out"];
    assert!(rf(here, &[&fit[..], &["m.json"]].concat()).status.success());
    let predict = ["predict", "--model", "m.json", "--input", "a b.parquet", "--out"];
    std::os::unix::fs::symlink("a b.parquet", here.join("link")).unwrap();
    for out in ["a b.parquet", "./a b.parquet", "link"] {
        refused(here, &[&predict[..], &[out]].concat(), &[out, "one of the files that are read"]);
        refused(here, &[&fit[..], &[out]].concat(), &[out, "one of the files that are read"]);
    }
    assert!(std::fs::read(&input).unwrap() == whole);
    refused(here, &[&predict[..], &["none/p.parquet"]].concat(), &["none/p.parquet"]);
    refused(here, &[&predict[..], &["."]].concat(), &["folder"]);

    std::fs::write(here.join("old"), "old").unwrap();
    let mut broken = whole;
    broken[4..64].fill(0xff);
    std::fs::write(&input, broken).unwrap();
    for out in ["new", "old"] {
        refused(here, &[&predict[..], &[out]].concat(), &["a b.parquet"]);
        refused(here, &[&fit[..], &[out]].concat(), &["a b.parquet"]);
    }
    assert_eq!(std::fs::read(here.join("old")).unwrap(), b"old");
    assert_eq!(names(here), ["a b.parquet", "link", "m.json", "old"]);
}

/// Each place has files, and a file that is named may have any ending.
#[test]
fn no_place_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let generator = Generator { rows: 200, columns: 2, ..Default::default() };
    generator.write_file(&here.join("a.parquet"), 0, 100).unwrap();
    generator.write_file(&here.join("b.data"), 100, 100).unwrap();
    std::fs::create_dir(here.join("empty")).unwrap();
    let fit = ["fit", "ridge", "--target", "y", "--features", "8", "--out", "m.json", "--input", "a.parquet"];
    for place in ["c.parquet", "none/*.parquet", "empty", "*.data"] {
        let sentence = format!("there is no Parquet file in {place}");
        refused(here, &[&fit[..], &[place]].concat(), &[&sentence]);
    }
    let fitted = rf(here, &[&fit[..], &["b.data"]].concat());
    assert!(fitted.status.success(), "{}", text(&fitted.stderr));
    let model = Model::parse(&std::fs::read_to_string(here.join("m.json")).unwrap()).unwrap();
    assert_eq!(model.rows, 200);
}

/// The number of rows that a fit takes from places.
fn rows_of(here: &Path, places: &[&str]) -> u64 {
    let fit = ["fit", "pca", "--columns", "x0,x1", "--features", "8", "--components", "1", "--out", "m.json"];
    let fitted = rf(here, &[&fit[..], &["--input"], places].concat());
    assert!(fitted.status.success(), "{}", text(&fitted.stderr));
    Model::parse(&std::fs::read_to_string(here.join("m.json")).unwrap()).unwrap().rows
}

/// Files of inner folders are read, files in the making are not, and a file counts once, whatever paths lead to it.
#[test]
fn a_folder_has_the_files_that_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let generator = Generator { rows: 1000, columns: 2, ..Default::default() };
    for inner in ["d/day=1", "d/_temporary", "d/.hidden"] {
        std::fs::create_dir_all(here.join(inner)).unwrap();
    }
    let names = ["a", "day=1/b", "_c", ".d", "_temporary/e", ".hidden/f"];
    for (name, first) in names.iter().zip((0..).step_by(100)) {
        generator.write_file(&here.join(format!("d/{name}.parquet")), first, 100).unwrap();
    }
    assert_eq!(rows_of(here, &["d"]), 200);
    assert_eq!(rows_of(here, &["d/*.parquet"]), 100);
    assert_eq!(rows_of(here, &["d/*/*.parquet"]), 100);
    assert_eq!(rows_of(here, &["d/**/*.parquet"]), 200);
    assert_eq!(rows_of(here, &["d/_c.parquet"]), 100);
    std::os::unix::fs::symlink("d", here.join("link")).unwrap();
    std::os::unix::fs::symlink("a.parquet", here.join("d/z.parquet")).unwrap();
    assert_eq!(rows_of(here, &["d", "link", "d/a.parquet", "link/z.parquet"]), 200);
    refused(here, &["generate", "d", "--rows", "10"], &["parquet", "is there already"]);
}

/// Options that a method does not have are refused; a plan takes labels and lists.
#[test]
fn options_count_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let list = ["generate", "d", "--rows", "500", "--columns", "3", "--files", "1", "--list"];
    assert!(rf(here, &list).status.success());
    let ridge = ["fit", "ridge", "--input", "d", "--target", "y", "--features", "8", "--out", "m.json"];
    let pca = ["fit", "pca", "--input", "d", "--columns", "x", "--features", "8", "--out", "m.json"];
    assert!(rf(here, &ridge).status.success());
    refused(here, &[&ridge[..], &["--components", "2"]].concat(), &["--components"]);
    refused(here, &[&pca[..], &["--lambda", "1"]].concat(), &["--lambda"]);
    for explained in [&["plan", "d", "--explain"][..], &[&ridge[..], &["--explain"]].concat()] {
        let output = rf(here, explained);
        let (plan, said) = (text(&output.stdout), text(&output.stderr));
        assert!(
            plan.contains("RowScan") && plan.contains("sample") && !said.contains("rows in"),
            "{plan} {said}"
        );
    }
    let x: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin()).collect();
    let labels: ArrayRef = Arc::new(StringArray::from_iter_values(x.iter().map(|x| (*x > 0.0).to_string())));
    write(&here.join("a.parquet"), vec![("x", floats(x)), ("c", labels)]);
    let planned = rf(here, &["plan", "a.parquet", "--target", "c", "--features", "8"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
}

/// A recipe is for its columns in their order, and a model is not written over by its predictions, nor a recipe by its model.
#[test]
fn recipes_and_models_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let made = ["generate", "d", "--rows", "3000", "--columns", "2", "--files", "1"];
    assert!(rf(here, &made).status.success());
    assert!(
        rf(here, &["plan", "d", "--target", "y", "--features", "16", "--out", "r.json"]).status.success()
    );
    let fit = ["fit", "ridge", "--input", "d", "--target", "y", "--recipe", "r.json", "--out", "m.json"];
    refused(here, &[&fit[..], &["--columns", "x1,x0"]].concat(), &["r.json", "x0,x1, in this order"]);
    assert!(rf(here, &[&fit[..], &["--columns", "x0,x1"]].concat()).status.success());
    refused(here, &[&fit[..8], &["--out", "r.json"]].concat(), &["r.json is one of the files that are read"]);
    let predict = ["predict", "--model", "m.json", "--input", "d", "--out", "m.json"];
    refused(here, &predict, &["m.json is one of the files that are read"]);
    let x1 = floats((0..10).map(|i| if i == 6 { f32::INFINITY } else { 0.0 }));
    write(&here.join("e.parquet"), vec![("x0", floats([0.5; 10])), ("x1", x1)]);
    let predict = ["predict", "--model", "m.json", "--input", "e.parquet", "--out", "p.parquet"];
    refused(here, &predict, &["e.parquet, row 6: column x1 holds a number that is not finite"]);
    refused(here, &["plan", "s3://bucket/x"], &["s3://bucket/x", "store"]);
}

/// The seed of a recipe is kept, unless another one is given.
#[test]
fn a_recipe_keeps_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(
        rf(here, &["generate", "d", "--rows", "3000", "--columns", "2", "--files", "1"]).status.success()
    );
    let plan = ["plan", "d", "--target", "y", "--features", "16", "--seed", "7", "--out", "r.json"];
    assert!(rf(here, &plan).status.success());
    let fit = ["fit", "ridge", "--input", "d", "--target", "y", "--recipe", "r.json", "--out", "m.json"];
    let model = |more: &[&str]| {
        let fitted = rf(here, &[&fit[..], more].concat());
        assert!(fitted.status.success(), "{}", text(&fitted.stderr));
        std::fs::read(here.join("m.json")).unwrap()
    };
    let kept = model(&[]);
    assert!(kept == model(&["--seed", "7"]));
    assert!(kept != model(&["--seed", "0"]));
    refused(here, &[&fit[..], &["--features", "16"]].concat(), &["--features", "r.json"]);
}

/// The model is there whatever becomes of what is printed, and where it cannot be written nothing is read.
#[test]
fn models_are_written_before_anything_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(
        rf(here, &["generate", "d", "--rows", "3000", "--columns", "2", "--files", "1"]).status.success()
    );
    let fit = ["fit", "ridge", "--input", "d", "--target", "y", "--features", "16", "--out"];
    let printed = |out: &str, to: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rf"));
        command.args(fit).arg(out).current_dir(here).stdout(to).stderr(Stdio::piped());
        command.spawn().unwrap().wait_with_output().unwrap()
    };
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = printed("full.json", full.into());
    let why = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && why.contains("standard output") && !why.contains("panicked"),
        "{why}"
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = printed("unread.json", writer.into());
    assert!(output.status.success(), "{}", text(&output.stderr));
    for model in ["full.json", "unread.json"] {
        Model::parse(&std::fs::read_to_string(here.join(model)).unwrap()).unwrap();
    }
    let output = rf(here, &[&fit[..], &["none/m.json"]].concat());
    let why = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && why.contains("none/m.json") && !why.contains("rows in"),
        "{why}"
    );
}

/// A target without noise wants a λ that sums of `f32` do not resolve: that is said, and not of `f64`.
#[test]
fn a_lambda_that_is_not_resolved_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let x: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let y: Vec<f64> = x.iter().map(|x| (2.0 * x).sin()).collect();
    let single = |values: &[f64]| floats(values.iter().map(|value| *value as f32));
    let double = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    write(&here.join("single.parquet"), vec![("x", single(&x)), ("y", single(&y))]);
    write(&here.join("double.parquet"), vec![("x", double(&x)), ("y", double(&y))]);
    let said = |file: &str| {
        let fit = ["fit", "ridge", "--input", file, "--target", "y", "--features", "32", "--out", "m.json"];
        let fitted = rf(here, &fit);
        assert!(fitted.status.success(), "{}", text(&fitted.stderr));
        text(&fitted.stdout)
    };
    let (single, double) = (said("single.parquet"), said("double.parquet"));
    assert!(single.contains("sums of f32 resolve no smaller λ"), "{single}");
    assert!(!double.contains("sums of f32"), "{double}");
}
