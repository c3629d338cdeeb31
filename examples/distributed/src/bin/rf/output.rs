//! [`Output`]: a file that is written whole, or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stop;

/// The files on their way, as they are called meanwhile. No file is begun or completed while this is locked.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all files on their way, before this process ends: none is begun or completed from here on.
pub fn abandon() {
    let files = unfinished();
    for file in files.iter() {
        let _ = fs::remove_file(file);
    }
    std::mem::forget(files);
}

/// A file on its way: it has another name beside its own until it is complete, and is removed if it never is.
///
/// What is there and is no plain file, such as a device or a pipe, is written as it is.
#[derive(Debug)]
pub struct Output {
    /// As it was asked for.
    asked: PathBuf,
    /// Where it will be.
    place: PathBuf,
    /// Where it is meanwhile.
    partial: Option<PathBuf>,
}

impl Output {
    /// Begins a file, and makes sure that it can be written.
    pub fn begin(out: &Path) -> Result<Self, String> {
        let place = place(out);
        if place.is_dir() {
            return Err(format!("{} cannot be written: it is a folder", out.display()));
        }
        let partial = (!place.exists() || place.is_file()).then(|| partial(&place));
        let output = Output { asked: out.to_owned(), place, partial };
        output.create().map_err(|error| output.failed(&error))?;
        Ok(output)
    }

    /// The file that is there already and will be replaced, or the place of a new one.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The empty file.
    pub fn create(&self) -> std::io::Result<File> {
        let Some(partial) = &self.partial else { return File::options().write(true).open(&self.place) };
        let mut files = unfinished();
        let file = File::create(partial)?;
        files.push(partial.clone());
        Ok(file)
    }

    /// The file has its name from here on, unless this process was asked to end.
    pub fn finish(mut self) -> Result<(), String> {
        let Some(partial) = &self.partial else { return Ok(()) };
        let mut files = unfinished();
        stop::check()?;
        fs::rename(partial, &self.place).map_err(|error| self.failed(&error))?;
        files.retain(|file| file != partial);
        drop(files);
        self.partial = None;
        Ok(())
    }

    /// Writes all of a text.
    pub fn write(self, text: &str) -> Result<(), String> {
        let written = self.create().and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| self.failed(&error))?;
        self.finish()
    }

    /// A sentence.
    fn failed(&self, error: &std::io::Error) -> String {
        format!("{} cannot be written: {error}", self.asked.display())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let mut files = unfinished();
            let _ = fs::remove_file(partial);
            files.retain(|file| file != partial);
        }
    }
}

/// Where a path leads, whether it is there or only its folder.
fn place(out: &Path) -> PathBuf {
    if let Ok(place) = out.canonicalize() {
        return place;
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (folder.unwrap_or(Path::new(".")).canonicalize(), out.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => out.to_owned(),
    }
}

/// Another name in the same folder, which no pattern for Parquet files matches.
fn partial(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}
