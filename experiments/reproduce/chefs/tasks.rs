//! What the tables of classification have in common: data sets, methods, and the choice of their parameters.
//!
//! One split 90/5/5 of each data set stays fixed; a method is drawn anew 50 times. Its parameters are those with the best mean accuracy
//! over the draws on the validation part, from ten values 10⁻²…10² on a logarithmic grid.

use experiments::dataset::{Dataset, Split};
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::recipe::AnyCoupling;
use rayon::prelude::*;

use crate::item::Stop;
use crate::mean::Mean;
use crate::run::Run;
use crate::source::Source;
use crate::table::{Cell, Table, number};

/// The data sets, in the paper's order.
pub const SETS: &[&str] = &["abalone", "banknote", "car", "yeast", "cmc", "nursery", "wifi", "chess"];

/// Features of all tables but Table 4.
pub const FEATURES: usize = 128;

/// The paper's methods in the order of its columns, then what is beyond it.
pub const METHODS: [&str; 12] = [
    "TrigRF",
    "PosRF",
    "GERF",
    "PoisRF",
    "GeomRF",
    "OPRF",
    "PoisRF+",
    "GeomRF+",
    "beyond: PoisRF, λₗ",
    "beyond: PoisRF+, λₗ",
    "beyond: PosRF, simplex",
    "beyond: OPRF, simplex",
];

/// The number of methods that are the paper's.
pub const PUBLISHED: usize = 8;

/// The places of three of them.
pub const POSITIVE: usize = 1;
pub const GERF: usize = 2;
pub const OPTIMAL: usize = 5;

/// The methods that are named in a line.
const SHOWN: [usize; 4] = [0, POSITIVE, GERF, OPTIMAL];

/// A method of [`METHODS`]; the paper's frequencies are orthogonal where there are any.
pub fn source(method: usize) -> Source {
    let simplex = || AnyCoupling::from(Simplex::default());
    match method {
        0..=2 | 5 => coupled(method, Orthogonal),
        3 => Source::Poisson { each: false, shifted: false },
        4 => Source::Geometric { shifted: false },
        6 => Source::Poisson { each: false, shifted: true },
        7 => Source::Geometric { shifted: true },
        8 => Source::Poisson { each: true, shifted: false },
        9 => Source::Poisson { each: true, shifted: true },
        10 => Source::Positive(simplex()),
        _ => Source::Optimal(simplex()),
    }
}

/// The methods that have frequencies, with independent ones: TrigRF, PosRF, GERF, OPRF.
pub const COUPLED: [usize; 4] = [0, 1, 2, 5];

pub fn independent(method: usize) -> Source {
    coupled(method, Independent)
}

fn coupled(method: usize, coupling: impl Into<AnyCoupling>) -> Source {
    match method {
        0 => Source::Trigonometric(coupling.into()),
        1 => Source::Positive(coupling.into()),
        2 => Source::Gerf(coupling.into()),
        _ => Source::Optimal(coupling.into()),
    }
}

/// The values that are tried for σ and for the penalty.
pub fn grid() -> Vec<f64> {
    (0..10).map(|k| 10f64.powf(-2.0 + 4.0 * f64::from(k) / 9.0)).collect()
}

/// What a method reaches on a data set.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The chosen σ and penalty.
    pub chosen: [f64; 2],
    /// On the test part; the error is that of the draws.
    pub accuracy: Mean,
    /// The standard deviation over draws.
    pub deviation: f64,
}

impl Reached {
    /// The numbers that are kept.
    pub const NUMBERS: usize = 5;

    pub fn numbers(self) -> [f64; Self::NUMBERS] {
        [self.chosen[0], self.chosen[1], self.accuracy.value, self.accuracy.error, self.deviation]
    }

    pub fn of_numbers(numbers: &[f64]) -> Self {
        // Draws that all reach the same deviate by rounding.
        let but_rounding = |value: f64| if value < 1e-12 { 0.0 } else { value };
        Reached {
            chosen: [numbers[0], numbers[1]],
            accuracy: Mean { value: numbers[2], error: but_rounding(numbers[3]) },
            deviation: but_rounding(numbers[4]),
        }
    }

    /// The best of candidates: parameters with the accuracies of each draw on the validation and on the test part.
    fn best(candidates: &[([f64; 2], Vec<[f64; 2]>)]) -> Self {
        let validation = |(_, draws): &([f64; 2], Vec<[f64; 2]>)| {
            draws.iter().map(|one| one[0]).sum::<f64>() / draws.len() as f64
        };
        let mut best = &candidates[0];
        for candidate in candidates {
            if validation(candidate) > validation(best) {
                best = candidate;
            }
        }
        let test: Vec<f64> = best.1.iter().map(|one| one[1]).collect();
        let accuracy = Mean::of(&test);
        Reached { chosen: best.0, accuracy, deviation: accuracy.error * (test.len() as f64).sqrt() }
    }
}

/// The best of all σ, and of all penalties: `accuracies` says, of a σ and the number of a draw, what each penalty reaches on the
/// validation and on the test part.
pub fn tune(
    penalties: &[f64],
    draws: u64,
    accuracies: impl Fn(f64, u64) -> Result<Vec<[f64; 2]>, Stop> + Sync,
) -> Result<Reached, Stop> {
    let mut candidates = Vec::new();
    for sigma in grid() {
        let found: Vec<Vec<[f64; 2]>> =
            (0..draws).into_par_iter().map(|draw| accuracies(sigma, draw)).collect::<Result<_, _>>()?;
        for (k, penalty) in penalties.iter().enumerate() {
            candidates.push(([sigma, *penalty], found.iter().map(|draw| draw[k]).collect()));
        }
    }
    Ok(Reached::best(&candidates))
}

/// A data set at hand with its split, by its place in [`SETS`].
pub struct Task {
    pub set: usize,
    pub split: Split,
}

/// The tasks whose data are here, and the names of the others.
pub fn tasks(run: &mut Run<'_>) -> Result<(Vec<Task>, Vec<&'static str>), Stop> {
    let (mut tasks, mut missing) = (Vec::new(), Vec::new());
    for (set, name) in SETS.iter().enumerate() {
        match run.data(name) {
            Ok(data) => tasks.push(Task { set, split: split(&data, run)? }),
            Err(Stop::NoData(_)) => missing.push(*name),
            Err(other) => return Err(other),
        }
    }
    Ok((tasks, missing))
}

/// The split; of few points in quick runs.
fn split(data: &Dataset, run: &Run<'_>) -> Result<Split, Stop> {
    let mut split = data.split(run.seed())?;
    let rows = run.full_or_quick(usize::MAX, 200).min(split.train.labels.len());
    split.train.labels.truncate(rows);
    split.train.points = split.train.points.slice_move(ndarray::s![..rows, ..]);
    Ok(split)
}

/// The sentence about data that are not here.
pub fn absent(missing: &[&str]) -> Option<String> {
    (!missing.is_empty())
        .then(|| format!("Not run, since their files are not here (--data): {}.", missing.join(", ")))
}

/// The mean over tasks.
pub fn average(tasks: &[Mean]) -> Mean {
    let n = tasks.len() as f64;
    let value = tasks.iter().map(|mean| mean.value).sum::<f64>() / n;
    let error = tasks.iter().map(|mean| mean.error.powi(2)).sum::<f64>().sqrt() / n;
    Mean { value, error }
}

/// In percent.
pub fn percent(mean: Mean) -> Mean {
    mean.times(100.0)
}

/// A row for each method and a column for each data set at hand and their average, each beside the paper's.
pub fn beside(
    title: &str,
    tasks: &[Task],
    ours: impl Fn(usize, usize) -> Mean,
    theirs: impl Fn(usize, usize) -> Cell,
) -> Table {
    let heads = tasks.iter().map(|task| SETS[task.set]).chain(["average"]).flat_map(|name| [name, "paper"]);
    let mut table = Table::new(title, ["method"].into_iter().chain(heads));
    for (method, name) in METHODS.iter().enumerate() {
        let own: Vec<Mean> = (0..tasks.len()).map(|task| ours(task, method)).collect();
        let mut cells = Vec::new();
        let published = |task: &Task| if method < PUBLISHED { theirs(task.set, method) } else { Cell::Empty };
        for (task, mean) in tasks.iter().zip(&own) {
            cells.extend([Cell::from(*mean), published(task)]);
        }
        let of_paper = average_of_paper(&tasks.iter().map(published).collect::<Vec<Cell>>());
        cells.extend([Cell::from(average(&own)), of_paper.into()]);
        table.row(*name, cells);
    }
    table
}

/// Averages of some methods in a line.
pub fn shown(average: impl Fn(usize) -> f64) -> String {
    SHOWN.map(|method| format!("{} {}", METHODS[method], number(average(method)))).join(", ")
}

/// The paper's averages of these methods, over the data sets at hand and over all.
pub fn shown_of_paper(tasks: &[Task], theirs: impl Fn(usize, usize) -> Cell, over_all: &str) -> String {
    let here = shown(|method| {
        let cells: Vec<Cell> = tasks.iter().map(|task| theirs(task.set, method)).collect();
        average_of_paper(&cells).unwrap_or(f64::NAN)
    });
    format!("averages over these: {here}; over 8: {over_all}")
}

/// The mean of the paper's numbers for the data sets at hand, if it has all of them.
fn average_of_paper(theirs: &[Cell]) -> Option<f64> {
    let values: Vec<f64> = theirs.iter().map(Cell::value).collect::<Option<_>>()?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The parameters that were chosen, as a table.
pub fn chosen(title: &str, tasks: &[Task], show: impl Fn(usize, usize) -> String) -> Table {
    let heads = tasks.iter().map(|task| SETS[task.set]);
    let mut table = Table::new(title, ["method"].into_iter().chain(heads));
    for (method, name) in METHODS.iter().enumerate() {
        table.row(*name, (0..tasks.len()).map(|task| show(task, method)));
    }
    table
}
