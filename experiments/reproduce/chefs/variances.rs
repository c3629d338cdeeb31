//! Figure 5 and Table 5: mean logarithms of variances, of all mechanisms on random and real points.

use experiments::plot::{Panel, Series};
use ndarray::ArrayView1;
use rand::RngExt;
use random_features::rng_of_step;
use rayon::prelude::*;

use super::mechanisms::{Coupling, Fit, Mechanism, Points};
use super::regimes::{self, Regime};
use super::tasks;
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "chefs-figure-5",
    paper: Paper::Chefs,
    place: "Figure 5 and Table 5",
    claim: "Of features that are never negative OPRF has the smallest mean logarithm of the variance, and GERF, of which OPRF is a case, the same.",
    setting: "ln(Var/K²) of the Gaussian kernel by closed forms, with M = 2 real features; relative to K², which changes no comparison; 5 samples of 1,024 queries and \
              1,024 keys, and of each 4,096 random pairs of the 1,048,576 (all of them would take a day, and errors are those of samples of points), without those of equal points, where trigonometric features are exact. Parameters are chosen from each sample. Points are scaled to root mean square norms r, since the paper's \
              σ for its data (Table 5) are not given; queries are from training, keys from test parts of the bundled sets. Real A suffices for GERF: complex A is never better at equal numbers of \
              frequencies.",
    rule: "For each law of points and each r from 0.5 to 2, independent frequencies: OPRF has a mean below those of positive, Poisson+ and geometric+ features with one \
           rate; GERF is not above OPRF by more than 0.01. By 3 standard errors of the difference over 5 samples: 0.02 each for normal means.",
    minutes: 2.0,
    data: &["abalone", "banknote", "car", "wifi"],
    run,
};

/// The root mean square norms r of the points.
const NORMS: [f64; 9] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0];
/// The places of the rule's norms.
const USUAL: std::ops::Range<usize> = 1..7;
/// The place of r = 1.
const UNIT: usize = 3;

/// Real features.
const FEATURES: usize = 2;
const SAMPLES: u64 = 5;

/// The paper's averages over eight tasks of ln Var (Table 5).
const PUBLISHED: [(&str, &str); 8] = [
    ("trigonometric", "−0.8"),
    ("positive", "−0.0"),
    ("GERF", "−20.5"),
    ("Poisson λ", "−0.7"),
    ("geometric", "−7.0"),
    ("OPRF", "−20.5"),
    ("Poisson+ λ", "36.2"),
    ("geometric+", "−16.7"),
];

/// What is drawn: all would hide each other.
const DRAWN: [&str; 9] = [
    "trigonometric",
    "GERF",
    "Poisson λₗ",
    "positive",
    "hyperbolic",
    "OPRF",
    "Poisson+ λ",
    "Poisson+ λₗ",
    "geometric+",
];

/// The means of one sample: for each norm, each mechanism's mean, and then that of ln K².
fn sample(regime: &Regime, mechanisms: &[Mechanism], seed: u64, pairs: usize) -> Result<Vec<f64>, Stop> {
    let mut numbers = Vec::new();
    for norm in NORMS {
        let (queries, keys) = (&regime.queries * norm, &regime.keys * norm);
        let fit = Fit::new(&queries, &keys)?;
        let mut rng = rng_of_step(seed, 0);
        let places: Vec<[usize; 2]> =
            (0..pairs).map(|_| [queries.nrows(), keys.nrows()].map(|n| rng.random_range(0..n))).collect();
        let slice = |row: ArrayView1<'_, f64>| row.to_vec();
        let points: Vec<[Vec<f64>; 2]> =
            places.iter().map(|[i, j]| [slice(queries.row(*i)), slice(keys.row(*j))]).collect();
        // One pair of equal points would make the mean of exact features −∞.
        let differ = points.iter().filter(|[x, y]| x != y);
        let points: Vec<Points<'_>> = differ.map(|[x, y]| Points::new(x, y, &fit)).collect();
        for mechanism in mechanisms {
            let law = mechanism.law(&fit, regime.dim(), FEATURES);
            let value = |points: &Points<'_>| mechanism.ln_relative_variance(&fit, points, &law);
            let values: Vec<f64> = points.par_iter().map(value).collect();
            numbers.push(values.iter().sum::<f64>() / values.len() as f64);
        }
        numbers.push(points.iter().map(Points::ln_squared_kernel).sum::<f64>() / points.len() as f64);
    }
    Ok(numbers)
}

/// A law of points, and means for each norm and mechanism.
struct Block {
    name: &'static str,
    real: bool,
    samples: Vec<Vec<f64>>,
    /// The number of mechanisms.
    count: usize,
}

impl Block {
    /// A mechanism's number of each sample; that of ln K² stands behind those of the mechanisms.
    fn all(&self, norm: usize, mechanism: usize) -> Vec<f64> {
        self.samples.iter().map(|sample| sample[norm * (self.count + 1) + mechanism]).collect()
    }

    fn of(&self, norm: usize, mechanism: usize) -> Mean {
        Mean::of(&self.all(norm, mechanism))
    }

    /// The mean of ln Var.
    fn ln_variance(&self, norm: usize, mechanism: usize) -> Mean {
        let kernel = self.all(norm, self.count).into_iter();
        Mean::of(
            &self.all(norm, mechanism).iter().zip(kernel).map(|(own, ln)| own + ln).collect::<Vec<f64>>(),
        )
    }
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let mechanisms = Mechanism::all();
    let (points, pairs) = run.full_or_quick((1024, 4096), (64, 50));
    run.expect(regimes::LAWS.len() * SAMPLES as usize);
    let mut blocks = Vec::new();
    for (name, real) in regimes::LAWS {
        let mut samples = Vec::new();
        for number in 0..SAMPLES {
            let seed = run.seed() + number;
            let data = if real { Some(run.data(name)?) } else { None };
            let cell = format!("{name}, sample {number}");
            samples.push(run.cell(&cell, || {
                let regime = Regime::draw(name, data.as_ref(), points, seed)?;
                sample(&regime, &mechanisms, seed, pairs)
            })?);
        }
        blocks.push(Block { name, real, samples, count: mechanisms.len() });
    }
    let place = |name: &str| {
        let is =
            |mechanism: &Mechanism| mechanism.name == name && mechanism.coupling == Coupling::Independent;
        mechanisms.iter().position(is).unwrap_or_default()
    };
    let mut claim = Claim::default();
    for block in &blocks {
        for norm in USUAL {
            let of = |name: &str| block.of(norm, place(name));
            let all = |name: &str| block.all(norm, place(name));
            let at = format!("{}, r = {}", block.name, NORMS[norm]);
            for other in ["positive", "Poisson+ λ", "geometric+"] {
                let difference = Mean::of_differences(&all("OPRF"), &all(other));
                claim.less(format!("{at}: OPRF below {other}"), difference, Mean::exact(0.0));
            }
            claim.is(format!("{at}: GERF not above OPRF"), of("GERF").value <= of("OPRF").value + 0.01);
        }
    }
    let over_data_at = |norm: usize, of: fn(&Block, usize, usize) -> Mean, name: &str| {
        let real = blocks.iter().filter(|block| block.real);
        tasks::average(&real.map(|block| of(block, norm, place(name))).collect::<Vec<Mean>>())
    };
    let over_data = |of: fn(&Block, usize, usize) -> Mean, name: &str| over_data_at(UNIT, of, name);
    let both = |name: &str| [over_data(Block::of, name), over_data(Block::ln_variance, name)].map(Cell::Mean);
    let shown = ["trigonometric", "positive", "OPRF", "GERF"]
        .map(|name| format!("{name} {}", number(over_data(Block::of, name).value)));
    let mut tables: Vec<Table> = blocks.iter().map(|block| table(block, &mechanisms)).collect();
    let mut averages = Table::new(
        "Averages over the data sets at r = 1, and the paper's over its eight (Table 5), at norms that it does not say",
        ["mechanism", "ln(Var/K²)", "ln Var", "ln Var in the paper"],
    );
    for (name, published) in PUBLISHED {
        averages.row(name, both(name).into_iter().chain([published.into()]));
    }
    for name in ["Poisson λₗ", "Poisson+ λₗ"] {
        averages.row(format!("{name} (beyond)"), both(name).into_iter().chain([Cell::Empty]));
    }
    tables.push(averages);
    let heads = NORMS.iter().map(|norm| format!("r = {norm}")).chain(["paper".into()]);
    let title = "ln Var, averages over the data sets at each norm, and the paper's over its eight";
    let mut over_norms = Table::new(title, ["mechanism".to_owned()].into_iter().chain(heads));
    for (name, published) in PUBLISHED {
        let of = |norm: usize| over_data_at(norm, Block::ln_variance, name).value;
        over_norms.row(name, (0..NORMS.len()).map(|norm| Cell::Number(of(norm))).chain([published.into()]));
    }
    tables.push(over_norms);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("averages of ln(Var/K²) over four data sets at r = 1: {}", shown.join(", ")),
        theirs: "averages of ln Var over eight: −0.8, −0.0, −20.5, −20.5".into(),
        tables,
        panels: blocks.iter().map(|block| panel(block, &mechanisms)).collect(),
        notes: vec![
            "Beyond the paper: orthogonal and simplex frequencies, one rate λₗ for each coordinate, the regularised and the hyperbolic map, the best \
             complex exponential; * is the least of all, + the least of those that are never negative. Above 0 an estimate is no better than 0."
                .into(),
        ],
        reasons: vec![
            "The paper does not say at which norms its Table 5 stands. Between r = 3 and 4 seven of its eight numbers are near ours, Poisson+ features with their 36.2 among them; positive features are not, −0.8 here and −0.0 there."
                .into(),
            "What fails is of one law, shifted points, whose keys have a mean: Poisson+ and geometric+ shift them, and OPRF do not (`Conditioning` would). At r = 0.25, where a GERF with s = −1 of one \
             frequency is better than OPRF of two, and elsewhere, GERF is chosen at an equal number of features.".into(),
        ],
        ..Outcome::default()
    })
}

fn table(block: &Block, mechanisms: &[Mechanism]) -> Table {
    let heads = ["mechanism".to_owned()].into_iter().chain(NORMS.map(|norm| format!("r = {norm}")));
    let mut table = Table::new(
        format!("{}: {}, mean ln(Var/K²) ± standard error", block.name, regimes::description(block.name)),
        heads,
    );
    let least = |norm: usize, among: fn(&Mechanism) -> bool| {
        let rows = (0..mechanisms.len()).filter(|row| among(&mechanisms[*row]));
        rows.min_by(|a, b| block.of(norm, *a).value.total_cmp(&block.of(norm, *b).value))
    };
    for (row, mechanism) in mechanisms.iter().enumerate() {
        let cell = |norm: usize| {
            let mean = block.of(norm, row);
            let mark = match mean.value < 0.0 {
                true if least(norm, |_| true) == Some(row) => "*",
                true if least(norm, |mechanism| mechanism.positive) == Some(row) => "+",
                _ => "",
            };
            Cell::Noted(mean, mark.to_owned())
        };
        let name = format!("{}, {}", mechanism.name, mechanism.coupling.name());
        table.row(name, (0..NORMS.len()).map(cell));
    }
    table
}

fn panel(block: &Block, mechanisms: &[Mechanism]) -> Panel {
    let drawn = |(_, mechanism): &(usize, &Mechanism)| {
        DRAWN.contains(&mechanism.name) && mechanism.coupling == Coupling::Independent
    };
    let series = |(row, mechanism): (usize, &Mechanism)| {
        let points: Vec<(f64, f64)> =
            NORMS.into_iter().enumerate().map(|(k, r)| (r, block.of(k, row).value.exp())).collect();
        // Beyond, estimates are worse than 0.
        let shown: Vec<(f64, f64)> = points.into_iter().filter(|(_, value)| *value < 20.0).collect();
        Series { name: mechanism.name.into(), line: shown.clone(), points: shown }
    };
    Panel {
        title: block.name.into(),
        x_label: "root mean square norm".into(),
        y_label: "geometric mean of Var/K²".into(),
        series: mechanisms.iter().enumerate().filter(drawn).map(series).collect(),
    }
}
