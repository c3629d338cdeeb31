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
    /// Numbers with what they are called, and how they are shown.
    Parts(String, Vec<(&'static str, f64)>),
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
        let mut parts: Vec<Vec<&str>> = vec![Vec::new(); self.columns.len().saturating_sub(1)];
        for (column, cell) in self.rows.iter().flat_map(|(_, cells)| parts_of(cells)) {
            if let Some(known) = parts.get_mut(column).filter(|known| !known.contains(&cell.0)) {
                known.push(cell.0);
            }
        }
        let mut writer = csv::WriterBuilder::new().flexible(true).from_path(path).map_err(wrong)?;
        let head = |(column, parts): (&String, &Vec<&str>)| -> Vec<String> {
            let named =
                |part: &&str| if part.is_empty() { column.clone() } else { format!("{column}, {part}") };
            parts.iter().map(named).collect()
        };
        let heads = self.columns.iter().skip(1).zip(&parts).flat_map(head);
        writer.write_record(self.columns.first().cloned().into_iter().chain(heads)).map_err(wrong)?;
        for (name, cells) in &self.rows {
            let value = |column: usize, part: &str| {
                let own = cells.get(column).map(Cell::values).unwrap_or_default();
                own.into_iter().find(|(name, _)| *name == part).map_or(String::new(), |(_, value)| value)
            };
            let columns = parts.iter().enumerate();
            let line = columns.flat_map(|(k, parts)| parts.iter().map(move |part| value(k, part)));
            writer.write_record(std::iter::once(ascii(name)).chain(line)).map_err(wrong)?;
        }
        writer.flush().map_err(|error| wrong(error.into()))
    }
}

/// The parts of cells, with the numbers of their columns.
fn parts_of(cells: &[Cell]) -> impl Iterator<Item = (usize, (&'static str, String))> {
    cells.iter().enumerate().flat_map(|(k, cell)| cell.values().into_iter().map(move |part| (k, part)))
}

/// As other programs read numbers.
fn ascii(text: &str) -> String {
    text.replace('−', "-").replace('∞', "inf")
}

impl Cell {
    /// The number that it shows first.
    pub fn value(&self) -> Option<f64> {
        match self {
            Cell::Number(value) => Some(*value),
            Cell::Mean(mean) | Cell::Noted(mean, _) => Some(mean.value),
            Cell::Parts(_, parts) => parts.first().map(|(_, value)| *value),
            Cell::Text(text) => ascii(text.split(" ± ").next()?).parse().ok(),
            Cell::Empty => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Cell::Number(value) => number(*value),
            Cell::Mean(mean) if mean.error > 0.0 => format!("{} ± {}", number(mean.value), short(mean.error)),
            Cell::Mean(mean) => number(mean.value),
            Cell::Noted(mean, note) => Cell::Mean(*mean).text() + note,
            Cell::Text(text) | Cell::Parts(text, _) => text.clone(),
            Cell::Empty => "–".into(),
        }
    }

    /// Its parts, by name; the first one has none.
    fn values(&self) -> Vec<(&'static str, String)> {
        match self {
            Cell::Number(value) => vec![("", value.to_string())],
            Cell::Mean(mean) => vec![("", mean.value.to_string()), (ERROR, mean.error.to_string())],
            Cell::Noted(mean, note) => {
                let note = note.trim_start_matches(',').trim_start().to_owned();
                vec![("", mean.value.to_string()), (ERROR, mean.error.to_string()), ("note", note)]
            }
            Cell::Parts(_, parts) => parts.iter().map(|(name, value)| (*name, value.to_string())).collect(),
            // A published number may have its deviation with it.
            Cell::Text(text) => match text.split_once(" ± ") {
                Some((value, deviation)) => vec![("", ascii(value)), ("±", ascii(deviation))],
                None => vec![("", ascii(text))],
            },
            Cell::Empty => vec![("", String::new())],
        }
    }
}

/// What the column of a mean's error is called.
const ERROR: &str = "standard error";

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
