//! Points to train with and points to test with.

use std::collections::BTreeSet;
use std::error::Error;

use ndarray::{Array2, Axis};
use random_features::rand::seq::SliceRandom;
use random_features::rng;

/// Points, and the number of the class of each.
#[derive(Clone)]
pub struct Part {
    pub points: Array2<f64>,
    pub labels: Vec<usize>,
}

/// A data set in two parts, standardised on the first.
pub struct Split {
    pub train: Part,
    pub test: Part,
    pub classes: usize,
}

/// The points of a table: a row has numbers, between commas or blanks, and a label.
pub fn parse(table: &str) -> Result<Part, Box<dyn Error>> {
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split([',', '\t']).map(str::trim).collect()).collect();
    let (mut numbers, mut names) = (Vec::new(), Vec::new());
    for row in &rows {
        let (label, columns) = row.split_last().ok_or("a row is empty")?;
        names.push(*label);
        for column in columns {
            numbers.push(column.parse()?);
        }
    }
    let points = Array2::from_shape_vec((rows.len(), numbers.len() / rows.len().max(1)), numbers)?;
    let classes: Vec<&str> = names.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let labels = names.iter().filter_map(|name| classes.binary_search(name).ok()).collect();
    Ok(Part { points, labels })
}

impl Part {
    fn classes(&self) -> usize {
        self.labels.iter().collect::<BTreeSet<_>>().len()
    }

    fn select(&self, rows: &[usize]) -> Part {
        Part {
            points: self.points.select(Axis(0), rows),
            labels: rows.iter().map(|row| self.labels[*row]).collect(),
        }
    }

    /// Leaves out a tenth of the points at random, to test with.
    pub fn split(&self, seed: u64) -> Split {
        let mut rows: Vec<usize> = (0..self.labels.len()).collect();
        // Draws of frequencies take the same seeds; another constant keeps the two apart.
        rows.shuffle(&mut rng(seed ^ 0x5eed_0f5b_1175));
        let (test, train) = rows.split_at(2 * rows.len().div_ceil(20));
        let mut split = Split { train: self.select(train), test: self.select(test), classes: self.classes() };
        split.standardise();
        split
    }
}

impl Split {
    /// Gives each column mean 0 and deviation 1 over the points to train with.
    fn standardise(&mut self) {
        let mean = self.train.points.mean_axis(Axis(0)).unwrap_or_default();
        let deviation = self.train.points.std_axis(Axis(0), 0.0);
        for part in [&mut self.train, &mut self.test] {
            part.points -= &mean;
            part.points /= &deviation;
        }
    }
}
