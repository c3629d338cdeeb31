//! Table 1: how the time to draw frequencies, and to apply them, grows with the dimension.

use std::time::Instant;

use experiments::plot::{Panel, Series};
use random_features::frequency::{Hadamard, Orthogonal, Simplex, SimplexPlus};
use random_features::ndarray::Array2;
use random_features::recipe::AnyCoupling;
use random_features::workbench::RotationLaw;
use random_features::{Positive, Side};

use crate::item::{Item, Outcome, Paper, Stop};
use crate::run::Run;
use crate::table::{Cell, Table};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-table-1",
    paper: Paper::Simplex,
    place: "Table 1, Section 4.2",
    claim: "SimRF cost as much as orthogonal frequencies: regular ones O(d³) to draw and O(d²) to apply to a point, fast ones O(d log d); \
            SimRF+ take O(d³) to draw even if they are fast.",
    setting: "Seconds to draw m = d frequencies, and for each of 32 points to compute positive features of them, on one thread: the least of \
              many repetitions. Growth is the exponent of d between d = 256 and 1024. The table's entries are lost in the text: those of \
              Section 4.2 are compared. Our SimRF+ keep a running sum, and take O(d²) for each of three passes.",
    rule: "At d = 512 and 1024 SimRF take at most 1.25 times as long as orthogonal frequencies to draw and to apply, regular and fast. \
           Growth of drawing: from 2.3 to 3.3 for regular frequencies, below 1.5 for fast orthogonal and simplex ones, from 1.7 to 3.3 for \
           fast SimRF+; of applying: from 1.5 to 2.5 for regular ones, below 1.5 for fast orthogonal and simplex ones. Times are those of one \
           machine, and a false alarm has no known rate: on a busy one it is likely.",
    minutes: 0.2,
    data: &[],
    run,
};

const DIMENSIONS: [usize; 5] = [64, 128, 256, 512, 1024];
/// Points to which frequencies are applied.
const POINTS: usize = 32;
const NAMES: [&str; 6] =
    ["orthogonal", "simplex", "SimRF+", "orthogonal, fast", "simplex, fast", "SimRF+, fast"];
/// What counts as equal costs.
const RATIO: f64 = 1.25;

fn coupling(k: usize) -> AnyCoupling {
    let hadamard = Hadamard::default();
    let fast = RotationLaw::Hadamard(hadamard);
    match k {
        0 => Orthogonal.into(),
        1 => Simplex::default().into(),
        2 => SimplexPlus::default().into(),
        3 => hadamard.into(),
        4 => Simplex::on(fast).into(),
        _ => SimplexPlus::on(fast).into(),
    }
}

/// The least seconds that a call takes, over so many repetitions of at least a millisecond.
fn least(repetitions: usize, work: impl Fn() -> Result<(), Stop>) -> Result<f64, Stop> {
    let mut calls = 1;
    let mut least = f64::INFINITY;
    let mut done = 0;
    while done < repetitions {
        let start = Instant::now();
        for _ in 0..calls {
            work()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        if seconds < 1e-3 {
            calls *= 2;
            continue;
        }
        least = least.min(seconds / f64::from(calls));
        done += 1;
    }
    Ok(least)
}

/// Seconds to draw, and to apply to a point, for each coupling.
fn seconds(d: usize, repetitions: usize) -> Result<Vec<f64>, Stop> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(|error| error.to_string())?;
    let points = Array2::from_shape_fn((POINTS, d), |(i, j)| ((i * d + j) as f64).sin() / (d as f64).sqrt());
    pool.install(|| {
        let mut numbers = Vec::new();
        for k in 0..NAMES.len() {
            let coupling = coupling(k);
            numbers.push(least(repetitions, || {
                std::hint::black_box(coupling.draw(d, d, 1)?);
                Ok(())
            })?);
            let map = Positive.softmax::<f64>(coupling.draw(d, d, 1)?)?;
            let applied = least(3 * repetitions, || {
                std::hint::black_box(map.features(Side::X, &points)?);
                Ok(())
            })?;
            numbers.push(applied / POINTS as f64);
        }
        Ok(numbers)
    })
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let repetitions = run.full_or_quick(15, 1);
    let dimensions = run.full_or_quick(DIMENSIONS.as_slice(), &DIMENSIONS[..4]);
    run.expect(dimensions.len());
    let mut times: Vec<Vec<f64>> = Vec::new();
    for d in dimensions {
        times.push(run.cell(&format!("d = {d}, {repetitions} repetitions"), || seconds(*d, repetitions))?);
    }
    let growth = |column: usize| {
        let (last, before) = (times.len() - 1, times.len() - 3);
        (times[last][column] / times[before][column]).log2() / 2.0
    };
    let mut claim = Claim::default();
    for (d, times) in dimensions.iter().zip(&times).filter(|(d, _)| **d >= 512) {
        for (kind, what) in [(0, "regular"), (3, "fast")] {
            for (column, doing) in ["draw", "apply"].iter().enumerate() {
                let ratio = times[2 * (kind + 1) + column] / times[2 * kind + column];
                claim.is(
                    format!("{what} SimRF at most {RATIO} times as long to {doing} at d = {d} ({ratio:.2})"),
                    ratio <= RATIO,
                );
            }
        }
    }
    let expected = [[(2.3, 3.3), (1.5, 2.5)]; 3].into_iter().chain([[(0.0, 1.5), (0.0, 1.5)]; 2]);
    let expected: Vec<[(f64, f64); 2]> = expected.chain([[(1.7, 3.3), (1.5, 2.5)]]).collect();
    let (mut tables, mut panels) = (Vec::new(), Vec::new());
    for (column, (doing, title)) in [
        ("draw", "Microseconds to draw m = d frequencies"),
        ("apply", "Microseconds for features of a point"),
    ]
    .into_iter()
    .enumerate()
    {
        let heads = dimensions.iter().map(|d| format!("d = {d}"));
        let heads = ["frequencies".to_owned()].into_iter().chain(heads);
        let mut table = Table::new(title, heads.chain(["growth", "paper: growth"].map(String::from)));
        let mut series = Vec::new();
        for (k, name) in NAMES.iter().enumerate() {
            let (own, (low, high)) = (growth(2 * k + column), expected[k][column]);
            claim.is(format!("growth of {name} to {doing} ({own:.2})"), own >= low && own <= high);
            let of = |times: &Vec<f64>| times[2 * k + column] * 1e6;
            let theirs = match (k, column) {
                (3 | 4, _) => "d log d",
                (_, 0) => "d³",
                _ => "d²",
            };
            let cells = times.iter().map(|times| Cell::from(of(times)));
            table.row(*name, cells.chain([Cell::from(own), Cell::from(theirs)]));
            let line: Vec<(f64, f64)> =
                dimensions.iter().zip(&times).map(|(d, times)| ((*d as f64).log2(), of(times))).collect();
            series.push(Series { name: (*name).into(), line: line.clone(), points: line });
        }
        tables.push(table);
        panels.push(Panel { title: title.into(), x_label: "log₂ d".into(), y_label: "µs".into(), series });
    }
    let faster = |column: usize| {
        let at = dimensions.iter().zip(&times).find(|(_, times)| times[8 + column] < times[2 + column]);
        at.map_or("nowhere".into(), |(d, _)| format!("from d = {d} on"))
    };
    let beyond = format!(
        "Beyond the paper: of these dimensions, fast simplex frequencies are drawn in less time than regular ones {}, and applied in less {}.",
        faster(0),
        faster(1)
    );
    let last = &times[times.len() - 1];
    let ratio = |k: usize, column: usize| last[2 * (k + 1) + column] / last[2 * k + column];
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "simplex over orthogonal at d = {}: {:.2} to draw, {:.2} to apply; fast {:.2}, {:.2}",
            dimensions[dimensions.len() - 1],
            ratio(0, 0),
            ratio(0, 1),
            ratio(3, 0),
            ratio(3, 1)
        ),
        theirs: "\"essentially equal\"".into(),
        tables,
        panels,
        notes: vec![beyond],
        ..Outcome::default()
    })
}
