//! Tables of points: a point in each row, its class in the last column, perhaps below a line of names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use random_features::rng;

/// Points with numeric attributes, n × d, and the number of the class of each.
pub struct Dataset {
    pub name: String,
    pub points: Array2<f64>,
    pub labels: Vec<usize>,
    pub classes: usize,
    /// What was done with the file beyond reading numbers: a header that was recognised, columns of texts that were coded.
    pub notes: Vec<String>,
}

/// Some of the points.
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

/// Values that a column of texts may have however few its rows are.
const CATEGORIES: usize = 20;

impl Dataset {
    /// Reads a file, and says on standard error what was done with it.
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name} cannot be read: {e}"))?;
        let table = Self::parse(&name, &text)?;
        table.notes.iter().for_each(|note| eprintln!("{name}: {note}"));
        Ok(table)
    }

    /// Reads rows of fields that commas or blanks separate. The first is a header if it has no number and some column has numbers in all
    /// other rows.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let rows = rows(text).map_err(|line| format!("{name}, line {line}: a quote does not end"));
        let (mut lines, mut rows) = rows?;
        let width = rows.first().map_or(0, Vec::len);
        if width < 2 {
            return Err(format!("{name} has no row with an attribute and a class"));
        }
        if let Some(i) = rows.iter().position(|row| row.len() != width) {
            let (line, found) = (lines[i], rows[i].len());
            return Err(format!("{name}, line {line}: {found} fields, but the first row has {width}"));
        }
        let (mut header, mut notes) = (None, Vec::new());
        if has_header(&rows) {
            notes.push(format!("line {} is a header: it names the {width} columns", lines.remove(0)));
            header = Some(rows.remove(0));
        }
        let title = |column: usize| {
            let name = header.as_ref().map_or_else(String::new, |names| format!(" ({})", names[column]));
            format!("column {}{name}", column + 1)
        };
        let field = |column: usize| rows.iter().map(|row| row[column]).collect::<Vec<&str>>();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for column in 0..width - 1 {
            let coded = coded(&field(column));
            let (coded, note) = coded.map_err(|(i, why)| format!("{name}, line {}: {why}", lines[i]))?;
            notes.extend(note.map(|note| format!("{}: {note}", title(column))));
            columns.extend(coded);
        }
        let labels = field(width - 1);
        if let Some(i) = labels.iter().position(|label| label.is_empty()) {
            return Err(format!("{name}, line {}: the class is missing", lines[i]));
        }
        let classes: BTreeSet<&str> = labels.iter().copied().collect();
        let number: BTreeMap<&str, usize> = classes.into_iter().zip(0..).collect();
        let (column, count) = (title(width - 1), number.len());
        notes.push(format!("{column}, the last, is the class: {count} classes coded 0 to {}", count - 1));
        Ok(Dataset {
            name: name.into(),
            points: Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| columns[j][i]),
            labels: labels.iter().map(|label| number[label]).collect(),
            classes: number.len(),
            notes,
        })
    }

    /// Splits the points 90/5/5 at random and standardises them.
    pub fn split(&self, seed: u64) -> Result<Split, String> {
        let n = self.labels.len();
        let held = n.div_ceil(20);
        if n < 3 {
            return Err(format!("{}: {n} points are too few to train, validate and test", self.name));
        }
        let mut order: Vec<usize> = (0..n).collect();
        // Draws of frequencies take equal seeds; a constant keeps the two apart.
        order.shuffle(&mut rng(seed ^ 0x5eed_0f5b_1175));
        let part = |order: &[usize]| Part {
            points: self.points.select(Axis(0), order),
            labels: order.iter().map(|i| self.labels[*i]).collect(),
        };
        let mut split = Split {
            test: part(&order[..held]),
            validation: part(&order[held..2 * held]),
            train: part(&order[2 * held..]),
            classes: self.classes,
        };
        split.standardise();
        Ok(split)
    }
}

impl Split {
    /// Gives each attribute mean 0 and deviation 1 over the training part; constant attributes are only centred.
    fn standardise(&mut self) {
        let points = self.train.points.view();
        let mean = points.mean_axis(Axis(0)).unwrap_or_default();
        let deviation = points.std_axis(Axis(0), 0.0).mapv(|s| if s > 1e-12 { s } else { 1.0 });
        for part in [&mut self.train, &mut self.validation, &mut self.test] {
            part.points -= &mean;
            part.points /= &deviation;
        }
    }
}

/// The rows that are not blank, and the line of each, from 1. The error is the line of a quote that does not end.
fn rows(text: &str) -> Result<(Vec<usize>, Vec<Vec<&str>>), usize> {
    let by_commas = text.contains(',');
    let lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
    let filled = lines.filter(|(line, _)| !line.trim().is_empty());
    filled
        .map(|(line, i)| match by_commas {
            true => Ok((i, by_comma(line).ok_or(i)?)),
            false => Ok((i, line.split_whitespace().collect())),
        })
        .collect()
}

/// The fields of a line, in which commas between quotes separate nothing; `None` if a quote does not end.
fn by_comma(line: &str) -> Option<Vec<&str>> {
    // A quote opens where a field begins, or just after another, since two of them stand for one.
    let (mut quoted, mut may_open) = (false, true);
    let fields = line.split(|c: char| {
        let separates = c == ',' && !quoted;
        quoted ^= c == '"' && (quoted || may_open);
        may_open = separates || c == '"' || may_open && c.is_whitespace();
        separates
    });
    let fields = fields.map(|field| unquoted(field.trim())).collect();
    (!quoted).then_some(fields)
}

fn unquoted(field: &str) -> &str {
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field).trim()
}

fn number(field: &str) -> Option<f64> {
    field.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Whether the first row names the columns.
fn has_header(rows: &[Vec<&str>]) -> bool {
    let Some((first, rest)) = rows.split_first() else { return false };
    let numbers = |column: usize| rest.iter().all(|row| number(row[column]).is_some());
    let names = first.iter().all(|field| !field.is_empty() && number(field).is_none());
    names && !rest.is_empty() && (0..first.len()).any(numbers)
}

/// The columns that a column becomes, and how it was coded if it has texts.
type Coded = (Vec<Vec<f64>>, Option<String>);

/// What a column becomes: itself if it has numbers alone, else an indicator of each of its values but the first.
///
/// Texts are categories if most fields are texts and their values are few for the number of rows, or if the values are few and each
/// text recurs, like "2, 3, 4, more". Other texts are mistakes: the error has the row of the first and a sentence.
fn coded(fields: &[&str]) -> Result<Coded, (usize, String)> {
    let Some(first) = fields.iter().position(|field| number(field).is_none()) else {
        return Ok((vec![fields.iter().filter_map(|field| number(field)).collect()], None));
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    fields.iter().for_each(|field| *counts.entry(field).or_default() += 1);
    let texts = || counts.iter().filter(|(value, _)| number(value).is_none()).map(|(_, count)| *count);
    let (n, are_few) = (fields.len(), counts.len() <= CATEGORIES);
    let are_categories = match 2 * texts().sum::<usize>() > n {
        true => are_few || 2 * counts.len() <= n,
        // A mistake, such as a missing value, may be there twice.
        false => are_few && texts().all(|count| 20 * count >= n.max(40)),
    };
    if !are_categories {
        return Err((first, format!("'{}' is not a number", fields[first])));
    }
    let indicator = |value: &&str| fields.iter().map(|field| f64::from(u8::from(field == value))).collect();
    let indicators: Vec<_> = counts.keys().skip(usize::from(counts.len() > 1)).map(indicator).collect();
    let note = match counts.keys().next() {
        Some(first) if counts.len() > 1 => format!(
            "{} categories, coded as {} columns of 0 and 1, one for each but “{first}”",
            counts.len(),
            indicators.len()
        ),
        _ => format!("“{}” in all rows, coded 1", fields[first]),
    };
    Ok((indicators, Some(note)))
}
