//! The command line of an example: options with a value each, whole numbers, and a table on standard output.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};

/// The options in order, each with its value, or `None` for a request for help.
pub fn options(
    mut arguments: impl Iterator<Item = OsString>,
    known: &[&str],
    usage: &str,
) -> Result<Option<Vec<(String, OsString)>>, String> {
    let mut options = Vec::new();
    while let Some(argument) = arguments.next() {
        let option = argument.to_string_lossy().into_owned();
        if option == "--help" || option == "-h" {
            return Ok(None);
        }
        if !known.contains(&option.as_str()) {
            return Err(format!("'{option}' is not an option; usage: {usage}"));
        }
        let value = arguments.next().ok_or(format!("{option} needs a value; usage: {usage}"))?;
        options.push((option, value));
    }
    Ok(Some(options))
}

/// A whole number from `least` to `most`.
#[allow(dead_code, reason = "one example takes other numbers")]
pub fn whole(option: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{option} takes a whole number from {least} to {most}, not '{value}'"))
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
