//! Tests of whole maps on each instruction set of the machine: the test program runs itself.

use std::io::Write;
use std::process::Command;

use random_features::workbench;

/// The instruction set that a test program has asked itself to run on.
pub fn asked() -> Option<String> {
    std::env::var("RANDOM_FEATURES_ISA").ok()
}

/// Runs the tests whose names contain one of `filters` and none of `others` on every instruction set but the best one, on which
/// they run anyway. Sets that the machine lacks are named on the standard error, which no test harness hides.
pub fn run_on_each(filters: &[&str], others: &[&str]) {
    if let Some(asked) = asked() {
        assert_eq!(workbench::instruction_set(), asked);
        return;
    }
    let available = workbench::instruction_sets();
    let program = std::env::current_exe().unwrap();
    for set in ["portable", "avx2", "avx512"] {
        if !available.contains(&set) {
            let line = format!("{set}: skipped, this machine does not have it\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        } else if set != workbench::instruction_set() {
            // The last one makes sure that the set is in use.
            let filters = filters.iter().chain(&["on_each_instruction_set"]);
            let others = others.iter().flat_map(|other| ["--skip", other]);
            let mut command = Command::new(&program);
            command.env("RANDOM_FEATURES_ISA", set).args(filters).args(others);
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !text.contains("running 0 tests"), "on {set}: {text}");
        }
    }
}
