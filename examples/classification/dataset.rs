//! Tables of points: a point in each row, its class in the last column.

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
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name} cannot be read: {e}"))?;
        Self::parse(&name, &text)
    }

    /// Reads rows of fields that commas or blanks separate.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let rows = rows(text).map_err(|line| format!("{name}, line {line}: a quote does not end"));
        let (lines, rows) = rows?;
        let width = rows.first().map_or(0, Vec::len);
        if width < 2 {
            return Err(format!("{name} has no row with an attribute and a class"));
        }
        if let Some(i) = rows.iter().position(|row| row.len() != width) {
            let (line, found) = (lines[i], rows[i].len());
            return Err(format!("{name}, line {line}: {found} fields, but the first row has {width}"));
        }
        let field = |column: usize| rows.iter().map(|row| row[column]).collect::<Vec<&str>>();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for column in 0..width - 1 {
            let coded = coded(&field(column));
            columns.extend(coded.map_err(|(i, why)| format!("{name}, line {}: {why}", lines[i]))?);
        }
        let labels = field(width - 1);
        if let Some(i) = labels.iter().position(|label| label.is_empty()) {
            return Err(format!("{name}, line {}: the class is missing", lines[i]));
        }
        let classes: BTreeSet<&str> = labels.iter().copied().collect();
        let number: BTreeMap<&str, usize> = classes.into_iter().zip(0..).collect();
        Ok(Dataset {
            name: name.into(),
            points: Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| columns[j][i]),
            labels: labels.iter().map(|label| number[label]).collect(),
            classes: number.len(),
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

/// What a column becomes: itself if it has numbers alone, else an indicator of each of its values but the first.
///
/// Texts are categories if most fields are texts and their values are few for the number of rows, or if the values are few and each
/// text recurs, like "2, 3, 4, more". Other texts are mistakes: the error has the row of the first and a sentence.
fn coded(fields: &[&str]) -> Result<Vec<Vec<f64>>, (usize, String)> {
    let Some(first) = fields.iter().position(|field| number(field).is_none()) else {
        return Ok(vec![fields.iter().filter_map(|field| number(field)).collect()]);
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
    Ok(counts.keys().skip(usize::from(counts.len() > 1)).map(indicator).collect())
}
