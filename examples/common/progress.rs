//! A line on the terminal that says how far the work is.

use std::io::{IsTerminal, Write};

/// Nothing where standard error is not a terminal.
pub fn show(what: &str, done: usize, of: usize) {
    if std::io::stderr().is_terminal() {
        let filled = 40 * done / of.max(1);
        eprint!("\r  [{}{}] {done}/{of} {what}", "#".repeat(filled), ".".repeat(40 - filled));
        if done == of {
            eprint!("\r{}\r", " ".repeat(100));
        }
        // A lost progress bar is no reason to stop.
        let _ = std::io::stderr().flush();
    }
}
