//! Closed forms against values computed independently, and against simulation.
//!
//!     cargo run --release --example verify -- [FILE.json] [--simulate] [--draws 20000]
//!
//! Evaluates every case of a table (the bundled one by default: some 3000 values to 32 digits, each with the
//! tolerance that its formula's conditioning allows) and prints, for each formula, the number of cases and
//! the largest error in units of the tolerance. With `--simulate` estimators are drawn instead and their
//! sample errors compared with the closed forms, as z-scores.
//!
//! Exit code 0 if all is well, 1 if a case failed or none was evaluated, 2 if the request or the file cannot be understood.

mod formulas;
mod golden;
mod simulate;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use formulas::Outcome;
use serde_json::Value;

const USAGE: &str = "verify [FILE.json] [--simulate] [--draws DRAWS]";

/// What was asked on the command line.
struct Request {
    file: Option<String>,
    simulate: bool,
    draws: u64,
}

fn request(arguments: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let text = |argument: OsString| {
        argument
            .into_string()
            .map_err(|argument| format!("{} is not text in UTF-8", argument.to_string_lossy()))
    };
    let arguments = arguments.map(text).collect::<Result<Vec<_>, _>>()?;
    let mut arguments = arguments.into_iter();
    let mut request = Request { file: None, simulate: false, draws: 20_000 };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--simulate" => request.simulate = true,
            "--draws" => {
                let draws = arguments.next().and_then(|v| v.parse().ok()).filter(|draws| *draws >= 100);
                request.draws = draws.ok_or("--draws takes a whole number from 100 on")?;
            }
            "--help" | "-h" => return Err(format!("usage: {USAGE}")),
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}; usage: {USAGE}"));
            }
            _ if request.file.is_some() => return Err(format!("one file at a time; usage: {USAGE}")),
            _ => request.file = Some(argument),
        }
    }
    Ok(request)
}

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

/// Writes to standard output; a reader that has gone is no mistake.
fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the table cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

fn run(request: &Request) -> Result<bool, String> {
    if request.simulate {
        let (table, well) = simulate::run(request.draws).map_err(|e| e.to_string())?;
        return print(&table).map(|()| well);
    }
    let cases = request.file.as_deref().map_or_else(golden::bundled, golden::read)?;
    let (table, well) = verify(&cases).map_err(|e| e.to_string())?;
    print(&table).map(|()| well)
}

fn main() -> ExitCode {
    match request(std::env::args_os().skip(1)).and_then(|request| run(&request)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
