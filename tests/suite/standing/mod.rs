//! Guards of what an ordinary test cannot see, since it ends, hangs or forks the process: hostile stored forms, forked processes, maps
//! that panic, sizes beyond memory, and callers that are at work on threads themselves.
//!
//! Each guard has a test that it notices what it guards against. The longer tests are `#[ignore]`d; `.ci/full` runs them.

mod jobs;
mod panics;
mod threads;

#[cfg(unix)]
mod forks;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(feature = "serde")]
mod samples;
#[cfg(feature = "serde")]
mod stored;

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The variable of the environment by which a test knows that it runs in a process of its own.
const ROLE: &str = "RANDOM_FEATURES_STANDING";

/// What this process is to do instead of the whole test.
fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// What a process has said, and how it ended: `None` if it had to be stopped.
struct Ended {
    text: String,
    status: Option<ExitStatus>,
}

impl Ended {
    fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Runs one test of this program in a process of its own, on one thread of the harness: no other test holds a lock there.
fn run_alone(mut command: Command, test: &str, role: &str, within: Duration) -> Ended {
    let said = tempfile();
    let output = || Stdio::from(std::fs::File::options().append(true).open(&said).unwrap());
    let arguments = ["--exact", test, "--include-ignored", "--nocapture", "--test-threads", "1"];
    let command = command.args(arguments).env(ROLE, role).stdout(output()).stderr(output());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            None if start.elapsed() < within => std::thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            status => break status,
        }
    };
    let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    std::fs::remove_file(&said).unwrap();
    assert!(!text.contains("running 0 tests"), "{test} is no test");
    Ended { text, status }
}

/// This test program.
fn this_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

/// An empty file of a name that is not in use.
fn tempfile() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("random-features-{}-{number}", std::process::id()));
    std::fs::write(&path, "").unwrap();
    path
}
