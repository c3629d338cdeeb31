//! Data files: points in rows, the label in the last column.

use std::collections::{BTreeMap, BTreeSet};

use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use random_features::rng;

/// Points with numeric attributes, and the number of the class of each.
pub struct Dataset {
    pub name: String,
    pub points: Array2<f64>,
    pub labels: Vec<usize>,
    pub classes: Vec<String>,
}

/// Some of the points of a data set.
pub struct Part {
    pub points: Array2<f64>,
    pub labels: Vec<usize>,
}

/// The parts of a data set, standardised on the training part.
pub struct Split {
    pub train: Part,
    pub validation: Part,
    pub test: Part,
    pub classes: usize,
}

/// Values that a column may have to be text without being mostly text.
const CATEGORIES: usize = 20;

/// The line a row stands in, from 1, and its fields.
type Row = (usize, Vec<String>);

impl Dataset {
    pub fn read(file: &str) -> Result<Self, String> {
        let bytes = std::fs::read(file).map_err(|e| format!("{file} cannot be read: {e}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{file} is not a text file in UTF-8"))?;
        let name = std::path::Path::new(file).file_stem().map_or(file.into(), |s| s.to_string_lossy());
        Self::parse(&name, &text)
    }

    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let rows = fields(name, text)?;
        let width = rows[0].1.len();
        if width < 2 {
            return Err(format!("{name}, line {}: a row needs an attribute and a label", rows[0].0));
        }
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for column in 0..width - 1 {
            columns.extend(coded(name, &rows, column)?);
        }
        let points = Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| columns[j][i]);
        if let Some((line, _)) = rows.iter().find(|(_, row)| row[width - 1].is_empty()) {
            return Err(format!("{name}, line {line}: the label is missing"));
        }
        let label = |row: &Row| row.1[width - 1].clone();
        let classes: Vec<String> = rows.iter().map(label).collect::<BTreeSet<_>>().into_iter().collect();
        let labels = rows.iter().filter_map(|row| classes.binary_search(&label(row)).ok()).collect();
        Ok(Dataset { name: name.into(), points, labels, classes })
    }

    /// Splits the points 90/5/5 at random and standardises them.
    pub fn split(&self, seed: u64) -> Result<Split, String> {
        let n = self.labels.len();
        let held = n.div_ceil(20);
        if n < 3 {
            return Err(format!("{}: {n} points are too few to train, validate and test", self.name));
        }
        let mut order: Vec<usize> = (0..n).collect();
        // Draws of frequencies take the same seeds; another constant keeps the two apart.
        order.shuffle(&mut rng(seed ^ 0x5eed_0f5b_1175));
        let part = |order: &[usize]| Part {
            points: self.points.select(Axis(0), order),
            labels: order.iter().map(|i| self.labels[*i]).collect(),
        };
        let mut split = Split {
            test: part(&order[..held]),
            validation: part(&order[held..2 * held]),
            train: part(&order[2 * held..]),
            classes: self.classes.len(),
        };
        split.standardise();
        Ok(split)
    }
}

impl Split {
    /// Gives each attribute mean 0 and deviation 1 over the training part; constant attributes are only
    /// centred.
    fn standardise(&mut self) {
        let moments = |points: ArrayView2<f64>| {
            let mean = points.mean_axis(Axis(0)).unwrap_or_default();
            let deviation = points.std_axis(Axis(0), 0.0).mapv(|s| if s > 1e-12 { s } else { 1.0 });
            (mean, deviation)
        };
        let (mean, deviation) = moments(self.train.points.view());
        for part in [&mut self.train, &mut self.validation, &mut self.test] {
            part.points -= &mean;
            part.points /= &deviation;
        }
    }
}

/// The fields of all rows that are not blank; all rows have equally many.
fn fields(name: &str, text: &str) -> Result<Vec<Row>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let rows = if text.contains(',') { comma_separated(name, text)? } else { blank_separated(text) };
    let Some((_, first)) = rows.first() else {
        return Err(format!("{name} holds no rows"));
    };
    match rows.iter().find(|(_, row)| row.len() != first.len()) {
        None => Ok(rows),
        Some((line, row)) => {
            Err(format!("{name}, line {line}: {} fields, but the first row has {}", row.len(), first.len()))
        }
    }
}

fn blank_separated(text: &str) -> Vec<Row> {
    let row = |(i, line): (usize, &str)| (i + 1, line.split_whitespace().map(String::from).collect());
    text.lines().enumerate().map(row).filter(|(_, fields): &Row| !fields.is_empty()).collect()
}

fn comma_separated(name: &str, text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    // Line by line, so that an error can name the line whatever ends it and however many are blank.
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
        for record in reader.records() {
            let record = record.map_err(|e| format!("{name}, line {}: {e}", i + 1))?;
            rows.push((i + 1, record.iter().map(String::from).collect()));
        }
    }
    Ok(rows)
}

fn number(field: &str) -> Option<f64> {
    field.parse().ok().filter(|v: &f64| v.is_finite())
}

/// The attributes that a column gives: itself if numeric, an indicator of each value but the first if text.
///
/// A column is text if most of its fields are, or if it has few values and those that are no numbers recur,
/// like "2, 3, 4, more". In other columns a field that is no number is a mistake in the file.
fn coded(name: &str, rows: &[Row], column: usize) -> Result<Vec<Vec<f64>>, String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(&row.1[column]).or_default() += 1);
    let strays = || counts.iter().filter(|(value, _)| number(value).is_none());
    let stray_rows: usize = strays().map(|(_, count)| count).sum();
    if stray_rows == 0 {
        return Ok(vec![rows.iter().filter_map(|row| number(&row.1[column])).collect()]);
    }
    let recur = strays().all(|(_, count)| count * 20 >= rows.len().max(40));
    if 2 * stray_rows <= rows.len() && !(recur && counts.len() <= CATEGORIES) {
        let first = rows.iter().find(|row| number(&row.1[column]).is_none());
        let (line, field) = first.map_or((0, ""), |(line, row)| (*line, row[column].as_str()));
        return Err(format!("{name}, line {line}: '{field}' in column {} is not a number", column + 1));
    }
    if counts.len() > CATEGORIES && 2 * counts.len() > rows.len() {
        let (values, column) = (counts.len(), column + 1);
        return Err(format!(
            "{name}: column {column} has {values} different texts, too many to be categories"
        ));
    }
    let indicator =
        |value: &&str| rows.iter().map(|row| f64::from(u8::from(row.1[column] == **value))).collect();
    Ok(counts.keys().skip(usize::from(counts.len() > 1)).map(indicator).collect())
}
