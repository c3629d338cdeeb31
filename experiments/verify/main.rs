#![doc = include_str!("help.txt")]

mod simulate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use experiments::command::{self, Command, Request};
use experiments::golden;
use experiments::golden::formulas::{self, Outcome};
use experiments::progress;
use serde_json::Value;

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--draws"],
    flags: &["--simulate"],
    files: 1,
    ..Command::new("verify [FILE.json] [--simulate] [--draws DRAWS]")
};

/// What became of the cases of one formula.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    worst: f64,
    /// The first failure, in words.
    complaint: Option<String>,
}

impl Tally {
    fn fail(&mut self, sentence: String) {
        self.failed += 1;
        self.complaint.get_or_insert(sentence);
    }

    fn take(&mut self, case: &Value) {
        let id = case["id"].as_str().unwrap_or("a case without id");
        let distance = match formulas::compute(case) {
            Ok(Outcome::Later) => {
                self.skipped += 1;
                return;
            }
            Ok(Outcome::Computed(computed)) => golden::distance(&computed, case),
            Err(sentence) => Err(sentence),
        };
        match distance {
            Ok(distance) => {
                self.worst = self.worst.max(distance);
                if distance <= 1.0 {
                    self.passed += 1;
                } else {
                    self.fail(format!("{id}: off by {distance:.3} tolerances"));
                }
            }
            Err(sentence) => self.fail(format!("{id}: {sentence}")),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.failed, self.passed) {
            (0, 0) => "skipped",
            (0, _) => "passed",
            _ => "FAILED",
        }
    }
}

/// Checks all cases: the table, and whether some passed and none failed.
fn verify(cases: &[Value]) -> Result<(String, bool), std::fmt::Error> {
    let mut formulas: BTreeMap<&str, Tally> = BTreeMap::new();
    for case in cases {
        formulas.entry(case["formula"].as_str().unwrap_or("(no formula)")).or_default().take(case);
    }
    let mut table = String::new();
    writeln!(table, "{:<42}{:>6}{:>18}  verdict", "formula", "cases", "error/tolerance")?;
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (formula, tally) in &formulas {
        let cases = tally.passed + tally.failed + tally.skipped;
        let worst = if tally.skipped == cases { "-".into() } else { format!("{:.3}", tally.worst) };
        writeln!(table, "{formula:<42}{cases:>6}{worst:>18}  {}", tally.verdict())?;
        if let Some(complaint) = &tally.complaint {
            writeln!(table, "    {complaint}")?;
        }
        passed += tally.passed;
        failed += tally.failed;
        skipped += tally.skipped;
    }
    writeln!(table, "{passed} passed, {failed} failed, {skipped} skipped")?;
    Ok((table, failed == 0 && passed > 0))
}

fn run(request: &Request) -> Result<bool, String> {
    let draws = request.whole("--draws", 20_000, (100, u64::MAX))?;
    if request.has("--simulate") {
        progress::begin(&format!("draws each estimator {draws} times"));
        let (table, well) = simulate::run(draws).map_err(|e| e.to_string())?;
        return command::print(&table).map(|()| well);
    }
    let file = request.files.first().map(|file| file.to_string_lossy());
    let cases = file.as_deref().map_or_else(golden::bundled, golden::read)?;
    progress::begin(&format!("evaluates {} cases", cases.len()));
    let (table, well) = verify(&cases).map_err(|e| e.to_string())?;
    command::print(&table).map(|()| well)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
