//! What is printed.

use std::io::{ErrorKind, Write};

/// Prints lines on standard output. That nobody reads on is no error.
pub fn say(lines: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints on standard error, as far as that can be written.
pub fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}
