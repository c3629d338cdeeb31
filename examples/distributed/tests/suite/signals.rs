//! The program `rf` ends within a second of a signal, whatever it is at, and leaves no file half written.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use random_features_distributed::generate::Generator;

use crate::common::{names, spec, text};

/// A process, ended when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal once `rf` has printed something on standard error, and some time later.
fn interrupted(here: &Path, arguments: &[&str], printed: &str, later: u64, (signal, code): (&str, i32)) {
    let before = names(here);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rf"));
    command.args(arguments).current_dir(here).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut errors = process.0.stderr.take().unwrap();
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !text(&said).contains(printed) {
        assert_eq!(
            errors.read(&mut byte).unwrap(),
            1,
            "{arguments:?} did not print {printed}: {}",
            text(&said)
        );
        said.push(byte[0]);
    }
    std::thread::sleep(Duration::from_millis(later));
    assert!(process.0.try_wait().unwrap().is_none(), "{arguments:?} is done before it is stopped");
    let start = Instant::now();
    Command::new("kill").args([signal, &process.0.id().to_string()]).status().unwrap();
    let status = process.0.wait().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    errors.read_to_end(&mut said).unwrap();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {}", text(&said));
    assert!(seconds < 1.0, "{arguments:?} took {seconds} s to end");
    assert!(text(&said).contains("interrupted"), "{}", text(&said));
    assert_eq!(names(here), before, "{arguments:?}");
}

const INTERRUPT: (&str, i32) = ("-INT", 130);
const TERMINATE: (&str, i32) = ("-TERM", 143);

/// Files of so many rows and columns, and a recipe of so many features for them.
fn prepared(here: &Path, rows: u64, columns: usize, features: usize) {
    let generator = Generator { rows, columns, ..Default::default() };
    fs::create_dir(here.join("d")).unwrap();
    generator.write(&here.join("d")).unwrap();
    fs::write(here.join("r.json"), spec(columns, features).to_json().unwrap()).unwrap();
    fs::write(here.join("m.json"), "the model of yesterday").unwrap();
}

const FIT: [&str; 8] = ["fit", "ridge", "--input", "d", "--target", "y", "--out", "m.json"];

#[test]
fn in_the_search_and_in_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepared(here, 5000, 6, 8);
    let sampled = "sampling: 5000 rows in";
    interrupted(here, &FIT, sampled, 0, INTERRUPT);
    interrupted(here, &["plan", "d", "--target", "y", "--out", "new.json"], sampled, 0, TERMINATE);
    interrupted(here, &["plan", "d", "--columns", "x0,x1,x2,x3,x4,x5"], sampled, 200, INTERRUPT);
    assert_eq!(fs::read(here.join("m.json")).unwrap(), b"the model of yesterday");
}

#[test]
fn in_the_solve_and_in_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepared(here, 1500, 4, 1024);
    let recipe = ["--recipe", "r.json"];
    interrupted(here, &[&FIT[..], &recipe].concat(), "fitting: 1500 rows in", 0, INTERRUPT);
    fs::remove_dir_all(here.join("d")).unwrap();
    fs::remove_file(here.join("m.json")).unwrap();
    prepared(here, 60_000, 4, 2048);
    let one = [&FIT[..], &recipe, &["--partitions", "1"]].concat();
    interrupted(here, &one, "of 60000 rows", 0, TERMINATE);
    assert_eq!(fs::read(here.join("m.json")).unwrap(), b"the model of yesterday");
}

#[test]
fn while_files_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("d")).unwrap();
    let generate = ["generate", "d", "--rows", "1000000000", "--files", "1"];
    let mut child =
        Process(Command::new(env!("CARGO_BIN_EXE_rf")).args(generate).current_dir(here).spawn().unwrap());
    while names(&here.join("d")).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
        assert!(child.0.try_wait().unwrap().is_none());
    }
    Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    assert!(names(&here.join("d")).is_empty());
}
