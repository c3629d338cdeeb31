//! The command line of a program: its options, how it is run, and what its exit code says.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// What a program can be asked.
#[derive(Clone, Copy)]
pub struct Command {
    /// One line that names the program and its options.
    pub usage: &'static str,
    /// What `--help` prints.
    pub help: &'static str,
    /// Options with a value each.
    pub options: &'static [&'static str],
    /// Options without a value.
    pub flags: &'static [&'static str],
    /// The most files that can be named.
    pub files: usize,
}

impl Command {
    /// A program without options.
    pub const fn new(usage: &'static str) -> Self {
        Command { usage, help: "", options: &[], flags: &[], files: 0 }
    }

    /// Reads the command line, prints help if that is what is asked for, and runs `body`.
    ///
    /// Exit code 0 if `body` finds all well, 1 if it finds something wrong, 2 with a sentence on standard error if the
    /// request cannot be understood or fulfilled.
    pub fn run(&self, body: impl FnOnce(&Request) -> Result<bool, String>) -> ExitCode {
        let done = self.read(std::env::args_os().skip(1)).and_then(|request| match request {
            Some(request) => body(&request),
            None if self.help.is_empty() => print(&format!("usage: {}\n", self.usage)).map(|()| true),
            None => print(self.help).map(|()| true),
        });
        match done {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(sentence) => {
                eprintln!("{sentence}");
                ExitCode::from(2)
            }
        }
    }

    /// The request, or `None` for a request for help.
    fn read(&self, mut arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
        let mut request = Request::default();
        while let Some(argument) = arguments.next() {
            let option = argument.to_string_lossy().into_owned();
            let known = |list: &[&str]| list.contains(&option.as_str());
            if option == "--help" || option == "-h" {
                return Ok(None);
            } else if known(self.flags) {
                request.flags.push(option);
            } else if known(self.options) {
                let value =
                    arguments.next().ok_or(format!("{option} needs a value; usage: {}", self.usage))?;
                request.options.push((option, value));
            } else if option.starts_with('-') || request.files.len() == self.files {
                return Err(format!("'{option}' is not an option; usage: {}", self.usage));
            } else {
                request.files.push(argument.into());
            }
        }
        Ok(Some(request))
    }
}

/// What was asked.
#[derive(Default)]
pub struct Request {
    options: Vec<(String, OsString)>,
    flags: Vec<String>,
    /// The files that were named.
    pub files: Vec<PathBuf>,
}

impl Request {
    /// Whether an option without a value was given.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// The value of an option, if it was given; the last one if more than once.
    pub fn text(&self, option: &str) -> Option<String> {
        self.value(option).map(|value| value.to_string_lossy().into_owned())
    }

    fn value(&self, option: &str) -> Option<&OsString> {
        self.options.iter().rev().find(|(known, _)| known == option).map(|(_, value)| value)
    }

    /// A whole number from `least` to `most`, or the default.
    pub fn whole(&self, option: &str, default: u64, range: (u64, u64)) -> Result<u64, String> {
        self.one(option, "a whole number", default, range)
    }

    /// As [`whole`](Request::whole), of something that is counted.
    pub fn count(&self, option: &str, default: usize, range: (usize, usize)) -> Result<usize, String> {
        self.one(option, "a whole number", default, range)
    }

    /// A number from `least` to `most`, or the default.
    pub fn number(&self, option: &str, default: f64, range: (f64, f64)) -> Result<f64, String> {
        self.one(option, "a number", default, range)
    }

    fn one<N: FromStr + PartialOrd + Display>(
        &self,
        option: &str,
        what: &str,
        default: N,
        (least, most): (N, N),
    ) -> Result<N, String> {
        let Some(text) = self.text(option) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number >= least && *number <= most);
        number.ok_or_else(|| format!("{option} takes {what} from {least} to {most}, not '{text}'"))
    }

    /// Where a picture goes: the value of `--out`, or that file in `target`. A file of that name can be written: who waits for a
    /// picture learns at once that there will be none.
    pub fn out(&self, default: &str) -> Result<PathBuf, String> {
        let Some(path) = self.value("--out").map(PathBuf::from) else {
            return Ok(["target", default].iter().collect());
        };
        match probe(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
        }
    }
}

/// Opens a file to write to it, and leaves what is there as it is.
fn probe(path: &Path) -> std::io::Result<()> {
    let is_new = !path.exists();
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    if is_new { std::fs::remove_file(path) } else { Ok(()) }
}

/// Writes to standard output; a reader that has gone is no mistake.
pub fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the table cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    /// A program, the file that names its options, and its help.
    const PROGRAMS: [(&str, &str, &str); 8] = [
        ("attention", include_str!("../attention/main.rs"), include_str!("../attention/help.txt")),
        ("charlm", include_str!("../charlm/request.rs"), include_str!("../charlm/help.txt")),
        ("plan", include_str!("../plan/main.rs"), include_str!("../plan/help.txt")),
        ("reproduce", include_str!("../reproduce/main.rs"), include_str!("../reproduce/help.txt")),
        (
            "shaped_attention",
            include_str!("../shaped_attention/main.rs"),
            include_str!("../shaped_attention/help.txt"),
        ),
        (
            "softmax_sampling",
            include_str!("../softmax_sampling/main.rs"),
            include_str!("../softmax_sampling/help.txt"),
        ),
        ("throughput", include_str!("../throughput/request.rs"), include_str!("../throughput/help.txt")),
        ("verify", include_str!("../verify/main.rs"), include_str!("../verify/help.txt")),
    ];

    /// Options of processes that a program starts itself.
    const INTERNAL: [&str; 2] = ["--one", "--length"];

    /// The options that a program reads: texts of their own in its command.
    fn options(source: &str) -> Vec<&str> {
        let command = source.split("const COMMAND: Command = Command {").nth(1).unwrap_or_default();
        let command = command.split("Command::new(").next().unwrap_or_default();
        command.split('"').filter(|text| text.starts_with("--") && !INTERNAL.contains(text)).collect()
    }

    #[test]
    fn help_explains_every_option_and_gives_an_example() {
        for (name, source, help) in PROGRAMS {
            let (options, run) = (options(source), format!("cargo run --release --example {name} -- "));
            assert!(!options.is_empty(), "{name}");
            // Once in the usage, and once where it is explained.
            let ends = |text: &str| !text.starts_with(|c: char| c.is_alphanumeric() || c == '-');
            let explained =
                |option: &&&str| help.split(**option).skip(1).filter(|rest| ends(rest)).count() >= 2;
            let left_out: Vec<_> = options.iter().filter(|option| !explained(option)).collect();
            assert!(left_out.is_empty(), "{name}: {left_out:?}");
            let examples = help.lines().filter_map(|line| line.trim().strip_prefix(&run));
            assert!(examples.clone().any(|example| !example.contains('[')), "{name} without an example");
            assert!(help.contains("Exit code 0"), "{name}");
            assert!(source.contains("help: include_str!"), "{name}");
        }
    }
}
