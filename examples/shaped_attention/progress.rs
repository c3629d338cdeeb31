//! A progress bar on standard error, if that is a terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is done; shared by threads.
pub struct Progress {
    done: AtomicUsize,
    of: usize,
}

impl Progress {
    pub fn new(of: usize) -> Self {
        Progress { done: AtomicUsize::new(0), of }
    }

    pub fn step(&self) {
        let done = 1 + self.done.fetch_add(1, Ordering::Relaxed);
        if std::io::stderr().is_terminal() {
            let filled = 40 * done / self.of;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(40 - filled));
            let end = if done == self.of { format!("\r{}\r", " ".repeat(70)) } else { String::new() };
            eprint!("\r  [{bar}] {done}/{} {end}", self.of);
            // A lost progress bar is no reason to stop.
            let _ = std::io::stderr().flush();
        }
    }
}
