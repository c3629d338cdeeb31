//! [`Failpoint`]: faults that tests ask a process for.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

/// What goes wrong in this process while it reads rows. Tests of a cluster set it; nothing does otherwise.
#[derive(Clone, Debug)]
pub enum Failpoint {
    /// The first scan, over all processes with this file, writes the number of its process into it and hangs.
    Hang(PathBuf),
    /// Each partition delivers its first batch of rows twice.
    Twice,
}

static FAILPOINT: OnceLock<Failpoint> = OnceLock::new();

impl Failpoint {
    /// Sets it for this process. The first one stays.
    pub fn set(self) {
        let _ = FAILPOINT.set(self);
    }

    pub(super) fn get() -> Option<&'static Failpoint> {
        FAILPOINT.get()
    }

    /// Whether this scan hangs.
    pub(super) fn hangs(&self) -> bool {
        let Failpoint::Hang(marker) = self else { return false };
        let created = OpenOptions::new().write(true).create_new(true).open(marker);
        created.and_then(|mut marker| write!(marker, "{}", std::process::id())).is_ok()
    }
}
