//! What long work says on standard error: a line when it begins, and on a terminal how far it is and when it may be done.

use std::sync::LazyLock;

use indicatif::{ProgressBar, ProgressStyle};

/// Says at once what begins: who has started a program need not wonder whether it does anything.
pub fn begin(what: &str) {
    eprintln!("{what} …");
}

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
