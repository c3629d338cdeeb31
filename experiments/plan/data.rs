//! The points that a plan is made for: a file of the user's, or data that come with the program.

use std::path::Path;

use experiments::command::Request;
use experiments::dataset::Dataset;
use experiments::planning::kinds;
use experiments::tokens::Tokens;
use ndarray::{Array2, Ix2};
use random_features::npy;
use random_features::planner::Planner;

/// One set of points, or queries and keys.
pub struct Points {
    pub x: Array2<f64>,
    pub keys: Option<Array2<f64>>,
}

/// Points with what they are.
pub struct Data {
    pub name: String,
    pub points: Points,
    /// Whether coordinates are the columns of a table, of which each has its own unit.
    table: bool,
}

impl Points {
    pub fn planner(&self) -> random_features::Result<Planner> {
        match &self.keys {
            Some(keys) => Planner::new(&self.x, keys),
            None => Planner::of_one_set(&self.x),
        }
    }
}

impl Data {
    pub fn of(name: &str, x: Array2<f64>, keys: Option<Array2<f64>>) -> Self {
        Data { name: name.into(), points: Points { x, keys }, table: false }
    }

    fn of_table(table: Dataset) -> Self {
        Data { table: true, ..Data::of(&table.name, table.points, None) }
    }

    /// The points, and how they were treated: columns of a table are standardised for kernels of distances, which add up what
    /// is measured in different units.
    pub fn prepared(&self, of_distances: bool) -> (Points, &'static str) {
        let Points { x, keys } = &self.points;
        match self.table && of_distances {
            true => (Points { x: kinds::standardised(x, 1.0), keys: None }, ", columns standardised"),
            false => (Points { x: x.clone(), keys: keys.clone() }, ""),
        }
    }
}

/// The data that are asked for.
pub fn requested(request: &Request) -> Result<Data, String> {
    match (request.files.first(), request.text("--data")) {
        (Some(_), Some(_)) => Err("a file and --data exclude each other".into()),
        (Some(file), None) => read(file),
        (None, name) => named(name.as_deref().unwrap_or("banknote")),
    }
}

pub fn named(name: &str) -> Result<Data, String> {
    match name {
        "banknote" => {
            Ok(Data::of_table(Dataset::parse(name, include_str!("../../examples/data/banknote.txt"))?))
        }
        "wifi" => Ok(Data::of_table(Dataset::parse(name, include_str!("../../examples/data/wifi.txt"))?)),
        "attention" => attention(),
        _ => (kinds::synthetic().into_iter().find(|kind| kind.name == name))
            .map(|kind| Data::of(kind.name, kind.queries, Some(kind.keys)))
            .ok_or_else(|| {
                format!("--data {name} is not known: --help lists the names; a file needs no option")
            }),
    }
}

/// The first head of the bundled transformer, as `Attention` sees it: logits q·k/√d.
fn attention() -> Result<Data, String> {
    let [queries, keys, _] = Tokens::bundled()?.head(0);
    let factor = (queries.ncols() as f64).powf(-0.25);
    let scaled = |x: &Array2<f32>| x.mapv(|v| f64::from(v) * factor);
    Ok(Data::of("attention, head 0, times d^-1/4", scaled(&queries), Some(scaled(&keys))))
}

fn read(file: &Path) -> Result<Data, String> {
    let name = file.to_string_lossy();
    if file.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("npy")) {
        return Dataset::read(&name).map(Data::of_table);
    }
    let points = npy::read_as::<f64, Ix2>(file).map_err(|error| error.to_string())?;
    Ok(Data::of(&name, points, None))
}
