//! Figure 10: accuracy of classification over σ.

use experiments::dataset::Dataset;
use experiments::plot::{Panel, Series};
use random_features::frequency::{Independent, Orthogonal, Simplex};

use super::classification::{self, SETS, TUNING, Tried, best, mean, means, repetitions, sigmas, try_sigmas};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::source::Source;
use crate::table::{Cell, Table};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-figure-10",
    paper: Paper::Simplex,
    place: "Figure 10",
    claim: "The σ at which independent positive features classify best is in general not the one at which the exact kernel does.",
    setting: "Kernel regression, m = d, protocol as in Table 2; accuracies on validation parts over 17 values of σ, from 2⁻⁵ to 8.",
    rule: "On each data set at hand, on test parts: the exact kernel is better at the σ that its validation parts choose than at that of \
           independent features, and these are better at theirs than at the kernel's, by 3 standard errors of paired differences. A true \
           statement is called false with probability 0.00135.",
    minutes: 3.0,
    data: SETS,
    run,
};

const NAMES: [&str; 6] = [
    "exact kernel",
    "independent",
    "orthogonal",
    "simplex",
    "beyond: OPRF, simplex",
    "beyond: trigonometric, orthogonal",
];

fn source(k: usize) -> Source {
    match k {
        0 => Source::Exact,
        1 => Source::Positive(Independent.into()),
        2 => Source::Positive(Orthogonal.into()),
        3 => Source::Positive(Simplex::default().into()),
        4 => Source::Optimal(Simplex::default().into()),
        _ => Source::Trigonometric(Orthogonal.into()),
    }
}

/// For each source the place of its best σ and its accuracies on validation parts; then what the exact kernel and independent features
/// gain on test parts from a σ of their own.
fn numbers(data: &Dataset, seed: u64, count: u64) -> Result<Vec<f64>, Stop> {
    let tried: Vec<Tried> =
        (0..NAMES.len()).map(|k| try_sigmas(data, source(k), seed, count)).collect::<Result<_, _>>()?;
    let mut numbers: Vec<f64> = tried.iter().map(|tried| best(tried) as f64).collect();
    for tried in &tried {
        numbers.extend((0..sigmas().len()).flat_map(|i| mean(tried, |row| row[i][0])));
    }
    let (exact, features) = (best(&tried[0]), best(&tried[1]));
    numbers.extend(mean(&tried[0], |row| row[exact][1] - row[features][1]));
    numbers.extend(mean(&tried[1], |row| row[features][1] - row[exact][1]));
    Ok(numbers)
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let here = run.here(SETS.iter().copied());
    run.expect(here);
    let (seed, sigmas) = (run.seed(), sigmas());
    let mut claim = Claim::default();
    let heads = ["data set".to_owned()].into_iter().chain(NAMES.map(|name| format!("best σ: {name}")));
    let gains = ["gain, exact kernel", "gain, independent"].map(String::from);
    let mut table = Table::new(
        "The σ that is best on validation parts, and what a σ of its own gains on test parts",
        heads.chain(gains),
    );
    let (mut tables, mut panels, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for set in SETS {
        let Ok(data) = classification::data(run, set)? else {
            table.row(*set, ["not run"]);
            continue;
        };
        let count = repetitions(run, &data, TUNING);
        let numbers = run.cell(&format!("{set}, {count} repetitions"), || numbers(&data, seed, count))?;
        let (places, rest) = numbers.split_at(NAMES.len());
        let all = means(rest);
        let of = |k: usize| &all[k * sigmas.len()..][..sigmas.len()];
        let gains = &all[NAMES.len() * sigmas.len()..];
        let at = |k: usize| sigmas[places[k] as usize];
        claim.less(format!("{set}: the exact kernel gains"), Mean::exact(0.0), gains[0]);
        claim.less(format!("{set}: independent features gain"), Mean::exact(0.0), gains[1]);
        ours.push(format!("{set} {:.2} and {:.2}", at(1), at(0)));
        let own = (0..NAMES.len()).map(|k| Cell::from(at(k)));
        table.row(*set, own.chain([gains[0].into(), gains[1].into()]));
        let mut curves = Table::new(
            format!("{set}: accuracy on validation parts"),
            ["σ".to_owned()].into_iter().chain(NAMES.map(String::from)),
        );
        for (i, sigma) in sigmas.iter().enumerate() {
            curves.row(format!("{sigma:.3}"), (0..NAMES.len()).map(|k| of(k)[i]));
        }
        tables.push(curves);
        let series = |(k, name): (usize, &&str)| {
            let points = sigmas.iter().map(|sigma| sigma.log2()).zip(of(k).iter().map(|mean| mean.value));
            Series { name: (**name).into(), line: points.collect(), points: Vec::new() }
        };
        panels.push(Panel {
            title: (*set).into(),
            x_label: "log₂ σ".into(),
            y_label: "accuracy, validation parts".into(),
            series: NAMES.iter().enumerate().map(series).collect(),
        });
    }
    tables.insert(0, table);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("best σ, features and exact: {}", ours.join(", ")),
        theirs: "pictures of 8 sets".into(),
        tables,
        panels,
        ..Outcome::default()
    })
}
