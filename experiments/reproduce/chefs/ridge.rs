//! Tables 7 and 8: kernel ridge regression for classification.

use super::tasks::{
    FEATURES, GERF, METHODS, OPTIMAL, PUBLISHED, Reached, SETS, absent, average, beside, chosen, grid,
    percent, shown, shown_of_paper, source, tasks, tune,
};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::source::draws;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "chefs-table-7",
    paper: Paper::Chefs,
    place: "Tables 7 and 8",
    claim: "In kernel ridge regression OPRF and GERF have the best accuracy on average.",
    setting: "Ridge regression on indicators of the classes with 128 real features, without intercept, orthogonal frequencies, one split 90/5/5, \
              50 draws; σ and the penalty φ on ten values 10⁻²…10² each, best on the validation part. The paper's predictions with complex features use the \
              conjugate on one side only (Re f₁, −Im f₁): its columns of TrigRF and of GERF with s = −1 belong to another kernel; here features are real, and \
              symmetric. Attributes are standardised; the paper does not say how it scales them.",
    rule: "Averaged over the data sets at hand, accuracies of OPRF are above those of each of the paper's others but GERF, by 3 standard \
           errors over draws, and GERF is within one percent of OPRF. Of six true statements one is called false in fewer than 1 of 100 runs; the split \
           and the choice of parameters are the same for all and not counted.",
    minutes: 4.0,
    data: SETS,
    run,
};

const DRAWS: u64 = 50;
/// By how much GERF may differ from OPRF.
const NEAR: f64 = 0.01;

/// The paper's accuracies in percent (Table 7), a row for each data set.
const ACCURACIES: [[&str; PUBLISHED]; 8] = [
    ["10.1", "21.4", "21.9", "23.2", "25.1", "21.8", "16.3", "13.6"],
    ["38.7", "99.1", "99.8", "100.0", "100.0", "99.7", "90.8", "99.2"],
    ["36.1", "70.7", "70.8", "34.0", "39.0", "70.5", "62.7", "67.4"],
    ["15.9", "49.2", "51.8", "39.4", "52.2", "52.6", "5.6", "20.8"],
    ["34.1", "46.6", "47.3", "44.9", "49.4", "47.8", "37.2", "40.8"],
    ["27.5", "58.5", "57.4", "30.0", "31.0", "57.7", "41.0", "46.6"],
    ["13.7", "97.2", "98.1", "92.7", "97.1", "97.3", "36.1", "81.6"],
    ["11.0", "17.2", "16.9", "12.5", "13.7", "17.4", "12.7", "16.3"],
];

/// Their standard deviations over draws (Table 8).
const DEVIATIONS: [[&str; PUBLISHED]; 8] = [
    ["3.1", "1.8", "1.8", "2.1", "1.8", "1.6", "3.2", "3.4"],
    ["4.9", "1.1", "0.6", "0.2", "0.2", "0.7", "4.0", "1.2"],
    ["5.3", "3.3", "4.4", "5.8", "6.2", "4.2", "8.1", "3.5"],
    ["3.7", "4.0", "3.6", "6.9", "3.9", "3.6", "10.2", "9.6"],
    ["5.5", "3.3", "4.2", "4.6", "4.2", "3.6", "6.5", "4.9"],
    ["2.0", "3.4", "3.1", "2.7", "3.0", "2.8", "5.4", "6.7"],
    ["5.2", "1.9", "1.1", "2.9", "1.4", "1.3", "4.0", "7.6"],
    ["0.8", "1.7", "1.3", "1.6", "1.2", "1.4", "3.8", "2.6"],
];

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let (tasks, missing) = tasks(run)?;
    run.expect(tasks.len() * METHODS.len());
    let (seed, count) = (run.seed(), run.full_or_quick(DRAWS, 2));
    let penalties = run.full_or_quick(grid(), vec![0.1, 1.0]);
    let mut found: Vec<Vec<Reached>> = Vec::new();
    for task in &tasks {
        let mut row = Vec::new();
        for (method, name) in METHODS.iter().enumerate() {
            let numbers = run.cell(&format!("{}, {name}", SETS[task.set]), || {
                let one = |sigma: f64, draw| {
                    let draws = draws(seed, method as u64, draw);
                    source(method).ridge_accuracies(&task.split, sigma, &penalties, FEATURES, draws)
                };
                Ok(tune(&penalties, count, one)?.numbers().to_vec())
            })?;
            row.push(Reached::of_numbers(&numbers));
        }
        found.push(row);
    }
    let accuracy = |task: usize, method: usize| found[task][method].accuracy;
    let mean =
        |method: usize| average(&(0..tasks.len()).map(|task| accuracy(task, method)).collect::<Vec<Mean>>());
    let published = |set: usize, method: usize| Cell::from(ACCURACIES[set][method]);
    let mut claim = Claim::default();
    for other in (0..PUBLISHED).filter(|other| ![OPTIMAL, GERF].contains(other)) {
        claim.less(format!("OPRF above {}", METHODS[other]), mean(other), mean(OPTIMAL));
    }
    let apart = (mean(GERF).value - mean(OPTIMAL).value).abs();
    claim.is("GERF within one percent of OPRF", apart <= NEAR);
    let tables: Vec<Table> = vec![
        beside(
            "Accuracy on test parts, percent",
            &tasks,
            |task, method| percent(accuracy(task, method)),
            published,
        ),
        beside(
            "Standard deviations over draws, percent",
            &tasks,
            |task, method| Mean::exact(100.0 * found[task][method].deviation),
            |set, method| DEVIATIONS[set][method].into(),
        ),
        chosen("Chosen σ and φ", &tasks, |task, method| {
            let [sigma, penalty] = found[task][method].chosen;
            format!("{}, {}", number(sigma), number(penalty))
        }),
    ];
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("averages over {} data sets: {}", tasks.len(), shown(|method| 100.0 * mean(method).value)),
        theirs: shown_of_paper(&tasks, published, "TrigRF 23.4, PosRF 57.5, GERF 58.0, OPRF 58.1"),
        tables,
        notes: absent(&missing).into_iter().collect(),
        reasons: vec![
            "Why two statements are undecided: with 128 features a regression that chooses σ and φ solves these four tasks as well by trigonometric and positive features as by OPRF; the three agree within their \
     errors. The paper's gap to TrigRF is that of predictions with a conjugate on one side (see the setting).".into(),
        ],
        ..Outcome::default()
    })
}
