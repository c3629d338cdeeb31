//! The regret of plans over all couplings, for all kinds of data.

use crate::data::{self, Data, Points};
use experiments::command;
use experiments::planning::kinds::{self, Kind};
use experiments::planning::regret::{Row, head, mean, rows};
use experiments::progress;

/// Draws in each batch.
const DRAWS: usize = 128;

/// Prints the table, a row as soon as it is known.
pub fn run() -> Result<(), String> {
    let words = |error: random_features::Error| error.to_string();
    let mut kinds = kinds::synthetic();
    for name in ["banknote", "wifi"] {
        kinds.push(Kind::of_table(name, &data::named(name)?.points.x));
    }
    let Data { points: Points { x, keys }, .. } = data::named("attention")?;
    kinds.push(Kind { name: "attention", queries: x, keys: keys.unwrap_or_default() });
    command::print(&(head() + "\n"))?;
    let mut all: Vec<Row> = Vec::new();
    for (i, kind) in kinds.iter().enumerate() {
        for softmax in [true, false] {
            progress::show("plans judged", 2 * i + usize::from(!softmax), 2 * kinds.len());
            for row in rows(kind, softmax, None, DRAWS).map_err(words)? {
                command::print(&format!("{row}\n"))?;
                all.push(row);
            }
        }
    }
    progress::show("plans judged", 2 * kinds.len(), 2 * kinds.len());
    let means = [mean(&all, |row| row.planner), mean(&all, |row| row.naive), mean(&all, |row| row.random)];
    let [planner, naive, random] = means.map(|mean| 100.0 * mean);
    command::print(&format!(
        "{:44} {planner:8.2} {naive:8.2} {random:8.2}\n",
        "geometric mean of 1 + regret, less 1"
    ))
}
