//! The papers' data sets: those that are bundled, and others as the UCI repository publishes them.
//!
//! Rules: rows with a missing value (`?`) are left out; a column of texts becomes one indicator for each of its values but the first;
//! the class is the last column.

use std::io::{ErrorKind, Read};
use std::path::Path;

use experiments::dataset::Dataset;
use flate2::Crc;
use flate2::read::GzDecoder;

use crate::item::Stop;

/// A data set, and how its file differs from points with their class in the last column.
struct Source {
    name: &'static str,
    /// The name of the repository's file.
    file: &'static str,
    bundled: Option<&'static [u8]>,
    /// Lines before the points.
    heading: usize,
    /// Whether the first column names the point.
    named: bool,
}

const fn absent(name: &'static str, file: &'static str) -> Source {
    Source { name, file, bundled: None, heading: 0, named: false }
}

const fn bundled(name: &'static str, file: &'static str, bytes: &'static [u8]) -> Source {
    Source { name, file, bundled: Some(bytes), heading: 0, named: false }
}

const SOURCES: [Source; 10] = [
    bundled("abalone", "abalone.data", include_bytes!("../data/uci/abalone.data.gz")),
    bundled(
        "banknote",
        "data_banknote_authentication.txt",
        include_bytes!("../../examples/data/banknote.txt"),
    ),
    bundled("car", "car.data", include_bytes!("../data/uci/car.data.gz")),
    bundled("wifi", "wifi_localization.txt", include_bytes!("../../examples/data/wifi.txt")),
    Source { heading: 1, ..bundled("wine", "wine.csv", include_bytes!("../data/uci/wine.csv.gz")) },
    Source { named: true, ..absent("yeast", "yeast.data") },
    absent("cmc", "cmc.data"),
    absent("nursery", "nursery.data"),
    absent("chess", "krkopt.data"),
    // The last column is a price here; no item takes it for a class.
    absent("boston", "housing.data"),
];

/// The data sets that come with the program.
pub fn is_bundled(name: &str) -> bool {
    SOURCES.iter().any(|source| source.name == name && source.bundled.is_some())
}

/// The data set of that name: the bundled one, or else the repository's file in `folder`.
pub fn load(name: &str, folder: Option<&Path>) -> Result<Dataset, Stop> {
    let Some(source) = SOURCES.iter().find(|source| source.name == name) else {
        return Err(Stop::Failed(format!("there is no data set '{name}'")));
    };
    let text = match (source.bundled, folder) {
        (Some(bytes), _) => unpacked(bytes),
        (None, None) => return Err(Stop::NoData(source.file.into())),
        (None, Some(folder)) => match source.read(folder)? {
            Some(bytes) => unpacked(&bytes),
            None => return Err(Stop::NoData(source.file.into())),
        },
    };
    let wrong = |error: &dyn std::fmt::Display| Stop::Failed(format!("{}: {error}", source.file));
    let text = text.map_err(|error| wrong(&error))?;
    let data = Dataset::parse(name, &source.points(&text)).map_err(|error| wrong(&error))?;
    match data.points.iter().all(|value| value.is_finite()) {
        true => Ok(data),
        false => Err(wrong(&"a number is not finite")),
    }
}

/// A checksum of points and classes, as a number.
pub fn mark(data: &Dataset) -> f64 {
    let mut crc = Crc::new();
    data.points.iter().for_each(|value| crc.update(&value.to_le_bytes()));
    data.labels.iter().for_each(|label| crc.update(&label.to_le_bytes()));
    f64::from(crc.sum())
}

impl Source {
    /// The file in a folder, as it is or compressed; `None` if neither is there.
    fn read(&self, folder: &Path) -> Result<Option<Vec<u8>>, Stop> {
        for name in [self.file.to_owned(), format!("{}.gz", self.file)] {
            match std::fs::read(folder.join(&name)) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Stop::Failed(format!("{name} cannot be read: {error}"))),
            }
        }
        Ok(None)
    }

    /// The lines with points.
    fn points(&self, text: &str) -> String {
        let is_whole = |line: &&str| !line.split([',', ' ', '\t']).any(|field| field.trim() == "?");
        let lines = text.lines().skip(self.heading).filter(is_whole);
        let point = |line: &str| match self.named {
            true => line.trim_start().split_once([',', ' ', '\t']).map_or("", |(_, rest)| rest).to_owned(),
            false => line.to_owned(),
        };
        lines.map(|line| point(line) + "\n").collect()
    }
}

/// The text of a file, which may be compressed.
fn unpacked(bytes: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    match bytes {
        [0x1f, 0x8b, ..] => GzDecoder::new(bytes).read_to_string(&mut text)?,
        mut plain => plain.read_to_string(&mut text)?,
    };
    Ok(text)
}
