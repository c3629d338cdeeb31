//! [`Reading`]: which columns of files are points, unless that is stated.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::DataType;
use random_features_distributed::columns::{is_coordinate, is_list};
use random_features_distributed::table::RowTable;

use crate::say::note;

/// Names that are printed of many.
const NAMES: usize = 20;

/// The columns of the points, and why others are left out.
pub struct Reading {
    pub points: Vec<String>,
    /// For each reason the columns.
    left_out: BTreeMap<String, Vec<String>>,
}

impl Reading {
    /// The only list of floats, or all numbers and Booleans but the columns that are named for something else.
    pub fn of(table: &RowTable, others: &[&str]) -> Result<Self, String> {
        let is_other = |name: &str| others.contains(&name);
        let fields = || table.file_schema().fields().iter().filter(|field| !is_other(field.name()));
        let of = |fits: fn(&DataType) -> bool| -> Vec<String> {
            fields().filter(|field| fits(field.data_type())).map(|field| field.name().clone()).collect()
        };
        let points = match (of(is_list), of(is_coordinate)) {
            (lists, _) if lists.len() == 1 => lists,
            (lists, numbers) if lists.is_empty() && !numbers.is_empty() => numbers,
            _ => return Err("name the columns of the points by --columns: there is no column of numbers, or more than one of lists".into()),
        };
        let mut left_out = BTreeMap::<String, Vec<String>>::new();
        let mut leave =
            |name: &str, reason: String| left_out.entry(reason).or_default().push(name.to_owned());
        for field in fields().filter(|field| !points.contains(field.name())) {
            leave(field.name(), reason(field.data_type(), &points));
        }
        for name in folders(table) {
            leave(&name, "stands in the names of folders, which are not read".into());
        }
        for (name, file) in later(table) {
            leave(&name, format!("is in {file}, and not in the first file"));
        }
        Ok(Reading { points, left_out })
    }

    /// Says what is read, and what is not.
    pub fn tell(&self) {
        let all = match self.points.get(NAMES..) {
            None | Some([]) => self.points.join(", "),
            Some(more) => format!("{} and {} more", self.points[..NAMES].join(", "), more.len()),
        };
        note(&format!("columns of the points: {all}\n"));
        for (reason, names) in &self.left_out {
            note(&format!("left out: {}: {reason}\n", names.join(", ")));
        }
    }
}

/// Why a column of this type is none of the points.
fn reason(kind: &DataType, points: &[String]) -> String {
    match kind {
        kind if is_coordinate(kind) => format!("{} has all coordinates", points.join(", ")),
        DataType::Dictionary(..) => format!("of {kind}, whose values are names and no numbers"),
        kind if kind.is_temporal() => format!("of {kind}, which is no number: cast it to one"),
        kind => format!("of {kind}, which is no number"),
    }
}

/// Columns of which the names of folders give the values, such as `day=1`.
fn folders(table: &RowTable) -> BTreeSet<String> {
    let folders = table.files().files.iter().filter_map(|file| file.path.rsplit_once('/'));
    let keys = folders.flat_map(|(folders, _)| folders.split('/')).filter_map(|name| name.split_once('='));
    let keys = keys.map(|(key, _)| key).filter(|key| table.file_schema().index_of(key).is_err());
    keys.map(str::to_owned).collect()
}

/// Columns that the first file lacks, each with a file that has it.
fn later(table: &RowTable) -> BTreeMap<String, String> {
    let files = table.files().files.iter().rev();
    files.flat_map(|file| file.more.iter().map(|name| (name.clone(), file.path.clone()))).collect()
}
