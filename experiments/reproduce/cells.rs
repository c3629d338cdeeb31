//! What has been computed: numbers by name, kept in a file as they come, so that an interrupted run goes on.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use flate2::Crc;

/// The numbers of one item. The first line of the file says how they were made; each other one has a name, a tab,
/// numbers, a tab, and the checksum of what is before.
#[derive(Default)]
pub struct Cells {
    header: String,
    known: HashMap<String, Vec<f64>>,
    file: Option<File>,
}

impl Cells {
    /// The numbers of a file, to which more are added; a new file if there is none. `header` starts with `made`, which must be equal in a
    /// file that is there.
    pub fn open(path: &Path, made: &str, details: &str) -> Result<Self, String> {
        let mut cells = Cells::read(path)?;
        if !cells.header.is_empty() && !cells.is_made(made) {
            let own = cells.header.split(';').next().unwrap_or_default();
            return Err(format!(
                "{} holds numbers of another run ({own}) than is asked for ({}): with another --out they stay, with --fresh they are forgotten",
                path.display(),
                made.trim_end_matches("; ")
            ));
        }
        let wrong = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(wrong)?;
        let mut text = String::new();
        if cells.header.is_empty() {
            cells.header = format!("{made}{details}");
            text = format!("{}\n", cells.header);
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(wrong)?;
        file.write_all(text.as_bytes()).map_err(wrong)?;
        cells.file = Some(file);
        Ok(cells)
    }

    /// The numbers of a file, without adding any; none if there is no such file. A last line without its end was interrupted and is cut off.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
        let mut cells = Cells::default();
        if !path.exists() {
            return Ok(cells);
        }
        let text = std::fs::read(path).map_err(wrong)?;
        let text = String::from_utf8(text).map_err(|_| damaged(path, "this is no text"))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            let file = OpenOptions::new().write(true).open(path).map_err(wrong)?;
            file.set_len(whole as u64).map_err(wrong)?;
        }
        let mut lines = text[..whole].lines();
        cells.header = lines.next().unwrap_or_default().to_owned();
        if cells.header.is_empty() && whole > 0 {
            return Err(damaged(path, "the first line is empty"));
        }
        for line in lines {
            let wrong = || damaged(path, &format!("this line is not as it was written: '{line}'"));
            let (name, numbers) = entry(line).ok_or_else(wrong)?;
            cells.known.insert(name, numbers);
        }
        Ok(cells)
    }

    /// How they were made.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Whether they were made like this.
    pub fn is_made(&self, made: &str) -> bool {
        self.header.starts_with(made)
    }

    pub fn get(&self, name: &str) -> Option<&Vec<f64>> {
        self.known.get(name)
    }

    /// Whether more can be added.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Keeps numbers, on the disk too.
    pub fn keep(&mut self, name: &str, numbers: &[f64]) -> Result<(), String> {
        let texts: Vec<String> = numbers.iter().map(|v| format!("{v:?}")).collect();
        let line = format!("{name}\t{}", texts.join(" "));
        if let Some(file) = &mut self.file {
            let written = file.write_all(format!("{line}\t{}\n", checksum(&line)).as_bytes());
            written.map_err(|error| format!("the numbers of '{name}' cannot be kept: {error}"))?;
        }
        self.known.insert(name.to_owned(), numbers.to_owned());
        Ok(())
    }
}

fn damaged(path: &Path, what: &str) -> String {
    format!("{}: {what}; with --fresh its item is computed anew", path.display())
}

/// A name with its numbers, of a line that is whole.
fn entry(line: &str) -> Option<(String, Vec<f64>)> {
    let (own, sum) = line.rsplit_once('\t')?;
    let (name, numbers) = own.split_once('\t')?;
    let numbers = numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    (sum == checksum(own)).then(|| (name.to_owned(), numbers))
}

/// The CRC-32 of a text, in hexadecimal digits.
pub fn checksum(text: &str) -> String {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    format!("{:08x}", crc.sum())
}
