//! Data files: points in rows, the label in the last column, perhaps below a line of names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use random_features::rng;

/// Points with numeric attributes, and the number of the class of each.
pub struct Dataset {
    pub name: String,
    pub points: Array2<f64>,
    pub labels: Vec<usize>,
    pub classes: Vec<String>,
    /// What was done with the file beyond reading numbers: a header that was recognised, columns of texts that were coded.
    pub notes: Vec<String>,
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
    /// Reads a file, and says on standard error what was done with it.
    pub fn read(file: &str) -> Result<Self, String> {
        let bytes = std::fs::read(file).map_err(|e| format!("{file} cannot be read: {e}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{file} is not a text file in UTF-8"))?;
        let name = std::path::Path::new(file).file_stem().map_or(file.into(), |s| s.to_string_lossy());
        let table = Self::parse(&name, &text)?;
        table.notes.iter().for_each(|note| eprintln!("{file}: {note}"));
        Ok(table)
    }

    /// A bundled data set, in the order of scikit-learn: `wine`, `breast_cancer` or `digits`.
    pub fn bundled(name: &str) -> Result<Self, String> {
        let file = match name {
            "wine" => &include_bytes!("../data/uci/wine.csv.gz")[..],
            "breast_cancer" => include_bytes!("../data/uci/breast_cancer.csv.gz"),
            "digits" => include_bytes!("../data/uci/digits.csv.gz"),
            _ => return Err(format!("'{name}' is not bundled; wine, breast_cancer and digits are")),
        };
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).map_err(|e| e.to_string())?;
        // The first line of most has numbers of rows and columns.
        let rows = if name == "digits" { &text } else { text.split_once('\n').map_or("", |(_, rows)| rows) };
        Self::parse(name, rows)
    }

    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut rows = fields(name, text)?;
        let (header, mut notes) = (has_header(&rows).then(|| rows.remove(0)), Vec::new());
        if let Some((line, names)) = &header {
            notes.push(format!("line {line} is a header: it names the {} columns", names.len()));
        }
        let width = rows[0].1.len();
        if width < 2 {
            return Err(format!("{name}, line {}: a row needs an attribute and a label", rows[0].0));
        }
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for column in 0..width - 1 {
            let Coded { attributes, categories } = coded(name, &rows, column)?;
            if let Some(categories) = categories {
                let column = title(header.as_ref(), column);
                notes.push(format!("{column}: {}", coding(&categories, attributes.len())));
            }
            columns.extend(attributes);
        }
        let points = Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| columns[j][i]);
        if let Some((line, _)) = rows.iter().find(|(_, row)| row[width - 1].is_empty()) {
            return Err(format!("{name}, line {line}: the label is missing"));
        }
        let label = |row: &Row| row.1[width - 1].clone();
        let classes: Vec<String> = rows.iter().map(label).collect::<BTreeSet<_>>().into_iter().collect();
        let labels = rows.iter().filter_map(|row| classes.binary_search(&label(row)).ok()).collect();
        let column = title(header.as_ref(), width - 1);
        notes.push(format!(
            "{column}, the last, is the label: {} classes coded 0 to {}",
            classes.len(),
            classes.len() - 1
        ));
        Ok(Dataset { name: name.into(), points, labels, classes, notes })
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

/// Whether the first row names the columns: it has no number, and some column has numbers in all other rows.
fn has_header(rows: &[Row]) -> bool {
    let Some(((_, first), rest)) = rows.split_first() else { return false };
    let numbers = |column: usize| rest.iter().all(|(_, row)| number(&row[column]).is_some());
    let names = first.iter().all(|field| !field.is_empty() && number(field).is_none());
    names && !rest.is_empty() && (0..first.len()).any(numbers)
}

/// A column in words: its number, from 1, and its name if there is a header.
fn title(header: Option<&Row>, column: usize) -> String {
    let name = header.map_or_else(String::new, |(_, names)| format!(" ({})", names[column]));
    format!("column {}{name}", column + 1)
}

/// How categories are coded, in words.
fn coding(categories: &[String], indicators: usize) -> String {
    match categories {
        [one] => format!("“{one}” in all rows, coded 1"),
        [first, ..] => {
            let count = categories.len();
            format!(
                "{count} categories, coded as {indicators} columns of 0 and 1, one for each but “{first}”"
            )
        }
        [] => String::new(),
    }
}

/// What becomes of a column.
struct Coded {
    attributes: Vec<Vec<f64>>,
    /// The values of a column of texts, in their order.
    categories: Option<Vec<String>>,
}

/// The attributes that a column gives: itself if numeric, an indicator of each value but the first if text.
///
/// A column is text if most of its fields are, or if it has few values and those that are no numbers recur,
/// like "2, 3, 4, more". In other columns a field that is no number is a mistake in the file.
fn coded(name: &str, rows: &[Row], column: usize) -> Result<Coded, String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(&row.1[column]).or_default() += 1);
    let strays = || counts.iter().filter(|(value, _)| number(value).is_none());
    let stray_rows: usize = strays().map(|(_, count)| count).sum();
    if stray_rows == 0 {
        let numbers = rows.iter().filter_map(|row| number(&row.1[column])).collect();
        return Ok(Coded { attributes: vec![numbers], categories: None });
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
    let attributes = counts.keys().skip(usize::from(counts.len() > 1)).map(indicator).collect();
    Ok(Coded { attributes, categories: Some(counts.keys().map(|value| value.to_string()).collect()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(text: &str) -> Vec<String> {
        Dataset::parse("table", text).unwrap().notes
    }

    #[test]
    fn headers_and_categories_are_said() {
        let rows: String =
            (0..20).map(|i| format!("{i},{},{}\n", ["red", "green", "blue"][i % 3], i % 2)).collect();
        let plain = Dataset::parse("table", &rows).unwrap();
        let categories = "3 categories, coded as 2 columns of 0 and 1, one for each but “blue”";
        assert_eq!(
            plain.notes,
            [&format!("column 2: {categories}"), "column 3, the last, is the label: 2 classes coded 0 to 1"]
        );
        let headed = Dataset::parse("table", &format!("size,colour,class\n{rows}")).unwrap();
        assert_eq!(
            (&headed.points, &headed.labels, &headed.classes),
            (&plain.points, &plain.labels, &plain.classes)
        );
        assert_eq!(
            headed.notes,
            [
                "line 1 is a header: it names the 3 columns",
                &format!("column 2 (colour): {categories}"),
                "column 3 (class), the last, is the label: 2 classes coded 0 to 1"
            ]
        );
        assert_eq!(notes("a b\n1 x\n2 y\n")[0], "line 1 is a header: it names the 2 columns");
        assert_eq!(notes("ok,1,x\nok,2,y\n")[0], "column 1: “ok” in all rows, coded 1");
    }

    #[test]
    fn rows_that_may_be_points_are_no_headers() {
        // A number in the first row; texts alone in every column; a first row alone.
        for text in ["a,2,x\na,3,y\n", "a,b\na,c\n"] {
            assert!(!notes(text)[0].contains("header"), "{text}");
        }
        assert!(Dataset::parse("table", "size,class\n").is_ok_and(|table| table.points.nrows() == 1));
        // A missing value in the first row is still a mistake.
        assert!(Dataset::parse("table", "?,2,x\n1,3,y\n2,4,x\n").is_err());
        // The bundled sets have none.
        for text in
            [include_str!("../../examples/data/banknote.txt"), include_str!("../../examples/data/wifi.txt")]
        {
            assert_eq!(notes(text).len(), 1);
        }
    }
}
