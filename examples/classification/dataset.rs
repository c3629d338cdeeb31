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

/// The most values that a column of texts may have.
const CATEGORIES: usize = 20;

impl Dataset {
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name} cannot be read: {e}"))?;
        Self::parse(&name, &text)
    }

    /// Reads rows of fields that commas or blanks separate.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (lines, rows) = rows(text);
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

/// The rows that are not blank, and the line of each, from 1.
fn rows(text: &str) -> (Vec<usize>, Vec<Vec<&str>>) {
    let by_commas = text.contains(',');
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let filled = lines.filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(i, line)| (i + 1, if by_commas { by_comma(line) } else { line.split_whitespace().collect() }))
        .unzip()
}

fn by_comma(line: &str) -> Vec<&str> {
    line.split(',').map(|field| field.trim().trim_matches('"')).collect()
}

fn number(field: &str) -> Option<f64> {
    field.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What a column becomes: itself if it has numbers alone, else an indicator of each of its values but the first.
///
/// Texts are categories if most fields are texts or each text stands in several rows, and if the values are few. Other texts are
/// mistakes: the error has the row of the first and a sentence.
fn coded(fields: &[&str]) -> Result<Vec<Vec<f64>>, (usize, String)> {
    let Some(first) = fields.iter().position(|field| number(field).is_none()) else {
        return Ok(vec![fields.iter().filter_map(|field| number(field)).collect()]);
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    fields.iter().for_each(|field| *counts.entry(field).or_default() += 1);
    let texts = || counts.iter().filter(|(value, _)| number(value).is_none()).map(|(_, count)| *count);
    let are_usual = 2 * texts().sum::<usize>() > fields.len() || texts().all(|count| count > 1);
    if !are_usual || counts.len() > CATEGORIES {
        return Err((first, format!("'{}' is not a number", fields[first])));
    }
    let indicator = |value: &&str| fields.iter().map(|field| f64::from(u8::from(field == value))).collect();
    Ok(counts.keys().skip(usize::from(counts.len() > 1)).map(indicator).collect())
}
