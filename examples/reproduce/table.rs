//! Tables of numbers, for the terminal, the page and other programs.

use std::path::Path;

use crate::mean::Mean;

/// What a place of a table holds.
#[derive(Clone, Debug)]
pub enum Cell {
    Number(f64),
    Mean(Mean),
    /// A mean with a few words about it.
    Noted(Mean, String),
    Text(String),
    Empty,
}

/// A title, the heads of the columns, of which the first is that of the rows' names, and rows.
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<(String, Vec<Cell>)>,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = impl ToString>) -> Self {
        let columns = columns.into_iter().map(|column| column.to_string()).collect();
        Table { title: title.into(), columns, rows: Vec::new() }
    }

    pub fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push((name.into(), cells.into_iter().map(Into::into).collect()));
    }

    /// Aligned columns.
    pub fn text(&self) -> String {
        let mut lines: Vec<Vec<String>> = vec![self.columns.clone()];
        for (name, cells) in &self.rows {
            lines.push(std::iter::once(name.clone()).chain(cells.iter().map(Cell::text)).collect());
        }
        let count = lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |k: usize| lines.iter().filter_map(|line| line.get(k)).map(|s| s.chars().count()).max();
        let widths: Vec<usize> = (0..count).map(|k| width(k).unwrap_or(0)).collect();
        let mut text = format!("{}\n", self.title);
        for line in lines {
            let padded = line.iter().zip(&widths).enumerate().map(|(k, (cell, width))| match k {
                0 => format!("  {cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            text += padded.collect::<String>().trim_end();
            text.push('\n');
        }
        text
    }

    /// Values with a comma between them, in ASCII where they are numbers; standard errors and notes have columns of their own.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let wrong = |error: csv::Error| format!("{} cannot be written: {error}", path.display());
        let rows: Vec<Vec<[String; PARTS.len()]>> =
            self.rows.iter().map(|(_, cells)| cells.iter().map(Cell::values).collect()).collect();
        // A value always has its column, even if it is empty.
        let has = |k: usize, part: usize| {
            part == 0 || rows.iter().any(|row| row.get(k).is_some_and(|cell| !cell[part].is_empty()))
        };
        let parts = |k: usize| (0..PARTS.len()).filter(move |part| has(k, *part));
        let mut writer = csv::WriterBuilder::new().flexible(true).from_path(path).map_err(wrong)?;
        let mut head = vec![self.columns.first().cloned().unwrap_or_default()];
        for (k, column) in self.columns.iter().skip(1).enumerate() {
            head.extend(parts(k).map(|part| format!("{column}{}", PARTS[part])));
        }
        writer.write_record(&head).map_err(wrong)?;
        for ((name, _), cells) in self.rows.iter().zip(&rows) {
            let cells = cells.iter().enumerate();
            let line = cells.flat_map(|(k, cell)| parts(k).map(|part| cell[part].clone()));
            writer.write_record(std::iter::once(ascii(name)).chain(line)).map_err(wrong)?;
        }
        writer.flush().map_err(|error| wrong(error.into()))
    }
}

/// What a column's head says of the parts of its cells.
const PARTS: [&str; 3] = ["", ", standard error", ", note"];

/// As other programs read numbers.
fn ascii(text: &str) -> String {
    text.replace('−', "-").replace('∞', "inf")
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Cell::Number(value) => number(*value),
            Cell::Mean(mean) if mean.error > 0.0 => format!("{} ± {}", number(mean.value), short(mean.error)),
            Cell::Mean(mean) => number(mean.value),
            Cell::Noted(mean, note) => Cell::Mean(*mean).text() + note,
            Cell::Text(text) => text.clone(),
            Cell::Empty => "–".into(),
        }
    }

    /// The parts of [`PARTS`].
    fn values(&self) -> [String; PARTS.len()] {
        match self {
            Cell::Number(value) => [value.to_string(), String::new(), String::new()],
            Cell::Mean(mean) => [mean.value.to_string(), mean.error.to_string(), String::new()],
            Cell::Noted(mean, note) => {
                let note = note.trim_start_matches(',').trim_start().to_owned();
                [mean.value.to_string(), mean.error.to_string(), note]
            }
            // A published number, with its deviation.
            Cell::Text(text) => {
                let (value, error) = text.split_once(" ± ").unwrap_or((text, ""));
                [ascii(value), ascii(error), String::new()]
            }
            Cell::Empty => Default::default(),
        }
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Number(value)
    }
}

impl From<Mean> for Cell {
    fn from(mean: Mean) -> Self {
        Cell::Mean(mean)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl<C: Into<Cell>> From<Option<C>> for Cell {
    fn from(cell: Option<C>) -> Self {
        cell.map_or(Cell::Empty, Into::into)
    }
}

/// Four digits.
pub fn number(value: f64) -> String {
    digits(value, 4)
}

fn short(value: f64) -> String {
    digits(value, 2)
}

/// So many digits, as a decimal where that is short.
fn digits(value: f64, count: i32) -> String {
    let size = value.abs();
    let text = if !value.is_finite() || value == 0.0 {
        value.to_string()
    } else if (1e-3..1e5).contains(&size) {
        let places = (count - 1 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.places$}")
    } else {
        format!("{value:.*e}", count as usize - 1)
    };
    text.replace('-', "−").replace("inf", "∞")
}
