//! A line on the terminal that says how far the work is, and when it may be done.

use std::sync::LazyLock;

use indicatif::{ProgressBar, ProgressStyle};

/// Nothing where standard error is not a terminal.
pub fn show(what: &str, done: usize, of: usize) {
    static BAR: LazyLock<ProgressBar> = LazyLock::new(|| {
        let style = ProgressStyle::with_template("  [{bar:40}] {pos}/{len} {msg} ({elapsed}, {eta} left)");
        ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    });
    if done == 0 || BAR.position() > done as u64 {
        BAR.reset();
    }
    BAR.set_length(of as u64);
    BAR.set_message(what.to_owned());
    BAR.set_position(done as u64);
    if done == of {
        BAR.finish_and_clear();
    }
}
