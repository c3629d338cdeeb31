//! Files that vanish, change or are corrupt after a pass was planned.

use std::fs;
use std::path::Path;

use datafusion::prelude::SessionContext;
use random_features_distributed::fit::{self, Task};
use random_features_distributed::generate::Generator;
use random_features_distributed::session;

use crate::common::{partitions, spec, table_of};

/// A pass over files of which one was spoilt between planning and reading.
async fn spoilt(spoil: impl Fn(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { rows: 40_000, columns: 3, files: 4, ..Default::default() };
    generator.write(folder.path()).unwrap();
    let context: SessionContext = session::local_with(2);
    let table = table_of(&context, folder.path()).await;
    assert_eq!(partitions(&table, 2).await, 2);
    spoil(&folder.path().join("part-00002.parquet"));
    let task = Task::ridge(spec(3, 16), "y", generator.names());
    fit::run(&context, table, &task).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_vanished() {
    let error = spoilt(|file| fs::remove_file(file).unwrap()).await;
    assert!(error.contains("part-00002.parquet"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut() {
    let error = spoilt(|file| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    })
    .await;
    assert!(error.contains("part-00002.parquet") && error.contains("changed"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_written_again_with_other_rows() {
    let error = spoilt(|file| {
        let other = Generator { rows: 10_000, columns: 3, seed: 9, ..Default::default() };
        std::thread::sleep(std::time::Duration::from_millis(5));
        other.write_file(file, 0, 9_000).unwrap();
    })
    .await;
    assert!(error.contains("part-00002.parquet") && error.contains("changed"), "{error}");
}

/// A file of equal size and time, with other bytes: the reader of Parquet finds out where its structure breaks.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_corrupt() {
    let error = spoilt(|file| {
        let mut bytes = fs::read(file).unwrap();
        let modified = fs::metadata(file).unwrap().modified().unwrap();
        bytes[4..64].fill(0xff);
        fs::write(file, &bytes).unwrap();
        fs::File::options().append(true).open(file).unwrap().set_modified(modified).unwrap();
    })
    .await;
    assert!(error.contains("part-00002.parquet"), "{error}");
}
