//! Theorem 6: orthogonality for any function with a power series of non-negative terms.

use random_features::extend::Coupling;
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::rng_of_step;
use random_features::workbench::RootDim;
use rayon::prelude::*;

use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-theorem-6",
    paper: Paper::Performers,
    place: "Theorem 6",
    claim: "For any isotropic law and any function with a power series of non-negative coefficients, orthogonal frequencies have the smaller \
            error, by a stated gap.",
    setting: "Estimates of E g(ωᵀz), d = m = 8, ‖z‖ = 0.7, by independent and by orthogonal frequencies, normal and on the sphere; 40,000 draws. \
              The last four functions have no such series, and the theorem says nothing of them.",
    rule: "For each of the other functions and each law: orthogonal frequencies err less, and the gap is not below the stated one, each by 3 standard errors: a \
           false statement of the first kind is taken for true, and a true one of the second for false, with probability 0.0014.",
    minutes: 0.5,
    data: &[],
    run,
};

/// A function, and a₀ of its series if no coefficient is negative.
type Function = (&'static str, fn(f64) -> f64, Option<f64>);

const FUNCTIONS: [Function; 9] = [
    ("exp u", f64::exp, Some(1.0)),
    ("cosh u", f64::cosh, Some(1.0)),
    ("u²", |u| u * u, Some(0.0)),
    ("1 + u + u⁴", |u| 1.0 + u + u.powi(4), Some(1.0)),
    ("exp(u²/8)", |u| (u * u / 8.0).exp(), Some(1.0)),
    ("cos u", f64::cos, None),
    ("max(u, 0)", |u| u.max(0.0), None),
    ("|u|", f64::abs, None),
    ("tanh u", f64::tanh, None),
];
const LAWS: [&str; 2] = ["normal", "sphere"];
const D: usize = 8;
const NORM: f64 = 0.7;

/// An estimate by a draw of D frequencies.
fn estimate(
    g: fn(f64) -> f64,
    coupling: &dyn Coupling,
    law: usize,
    seed: u64,
    number: u64,
) -> Result<f64, Stop> {
    let mut rng = rng_of_step(seed, number);
    let omega = if law == 0 {
        coupling.draw(D, D, rng.next_u64())?
    } else {
        coupling.with_radii(RootDim).draw(D, D, rng.next_u64())?
    };
    let terms = omega.rows().column(0).iter().map(|w| g(NORM * w)).collect::<Vec<f64>>();
    Ok(terms.iter().sum::<f64>() / D as f64)
}

/// The mean of estimates, and the variance of the estimates with its standard error.
fn moments(
    g: fn(f64) -> f64,
    coupling: &dyn Coupling,
    law: usize,
    seed: u64,
    draws: u64,
) -> Result<[f64; 3], Stop> {
    let of = |number: u64| estimate(g, coupling, law, seed, number);
    let estimates = (0..draws).into_par_iter().map(of).collect::<Result<Vec<f64>, Stop>>()?;
    let mean = estimates.iter().sum::<f64>() / draws as f64;
    let squares: Vec<f64> = estimates.iter().map(|e| (e - mean).powi(2)).collect();
    let Mean { value, error } = Mean::of(&squares);
    Ok([mean, value, error])
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let draws = run.full_or_quick(40_000, 400);
    run.expect(2 * FUNCTIONS.len() * LAWS.len());
    let (mut claim, mut ratios) = (Claim::default(), Vec::new());
    let heads =
        ["g, law", "independent", "orthogonal", "ratio", "gap", "stated gap", "beyond: simplex, ratio"];
    let mut table = Table::new("Mean squared errors of estimates of E g(ωᵀz) ± standard error", heads);
    for (name, g, constant) in FUNCTIONS {
        for (law, law_name) in LAWS.into_iter().enumerate() {
            let seed = run.seed();
            let numbers = run.cell(&format!("{name}, {law_name}"), || {
                let independent = moments(g, &Independent, law, seed, draws)?;
                // Other draws than those of the independent ones.
                let orthogonal = moments(g, &Orthogonal, law, seed ^ (1 << 40), draws)?;
                Ok([independent, orthogonal].concat())
            })?;
            let mean = |k: usize| Mean { value: numbers[k], error: numbers[k + 1] };
            let (independent, orthogonal) = (mean(1), mean(4));
            let gap = Mean {
                value: independent.value - orthogonal.value,
                error: independent.error.hypot(orthogonal.error),
            };
            let factor = (1.0 - 1.0 / D as f64) * 2.0 / (D as f64 + 2.0);
            let stated = constant.map(|constant| factor * (numbers[0] - constant).powi(2));
            if let Some(stated) = stated {
                claim.less(format!("orthogonal errs less: {name}, {law_name}"), orthogonal, independent);
                let statement = format!("the gap is not below the stated one: {name}, {law_name}");
                claim.is(statement, gap.value >= stated - 3.0 * gap.error);
            }
            let ratio = orthogonal.over(independent);
            ratios.push(ratio.value);
            let numbers = run.cell(&format!("{name}, {law_name}, simplex"), || {
                Ok(moments(g, &Simplex::default(), law, seed ^ (1 << 41), draws)?.to_vec())
            })?;
            let simplex = Mean { value: numbers[1], error: numbers[2] }.over(independent);
            let cells: [Cell; 6] = [
                independent.into(),
                orthogonal.into(),
                ratio.into(),
                gap.into(),
                stated.into(),
                simplex.into(),
            ];
            table.row(format!("{name}, {law_name}"), cells);
        }
    }
    let least = ratios[..10].iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios[..10].iter().copied().fold(0.0, f64::max);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("ratios of errors from {} to {}", number(least), number(most)),
        theirs: "below 1".into(),
        tables: vec![table],
        notes: vec!["The last eight rows are functions without a series of non-negative terms. Beyond the paper: a simplex is better than orthogonal frequencies for functions \
             that grow with u (exp, max(u, 0), tanh), worse for even ones."
                .into()],
        ..Outcome::default()
    })
}
