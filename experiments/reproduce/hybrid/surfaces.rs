//! Figure 1: mean squared errors over angle and length.

use std::f64::consts::{LN_10, PI};

use ndarray::Array2;

use super::methods::{Method, Size, ln_optimal_error};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::run::Run;
use crate::surface::{Bands, Surface};
use crate::table::{Cell, Table};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "hybrid-figure-1",
    paper: Paper::Hybrid,
    place: "Figure 1",
    claim: "Trigonometric features err least at angle 0 and hyperbolic ones at π, where they are exact; the angular hybrid is exact at both, and \
            its errors are the most even.",
    setting: "Closed forms of the mean squared error of exp(x·y) for ‖x‖ = ‖y‖ = r at an angle θ, m = 10 and n = 1, r up to 5 as in the paper; \
              and relative to the kernel, √MSE/K, for r up to 2. Both bases of the hybrid share their frequencies.",
    rule: "The errors vanish where the claim says so, for r = 1 to 5; and at each r the hybrid's largest relative error over all angles is the \
           least of the three. Closed forms: no false alarms.",
    minutes: 0.1,
    data: &[],
    run,
};

const ESTIMATORS: [(Method, Size); 3] = [
    (Method::Trigonometric, Size { m: 10, n: 0 }),
    (Method::Hyperbolic, Size { m: 10, n: 0 }),
    (Method::Angular, Size { m: 10, n: 1 }),
];
const LONGEST: f64 = 5.0;
/// Optimal positive features, as many as the hybrid's, and their dimension.
const OPTIMAL: usize = 40;
const D: usize = 64;
/// Cells along the angle and along the length.
const CELLS: (usize, usize) = (90, 80);
/// Decimal logarithms of a smaller MSE are those of rounding.
const ROUNDING: f64 = -20.0;

/// The decimal logarithm of √MSE/K.
fn log_error((method, size): (Method, Size), angle: f64, r: f64) -> f64 {
    method.ln_relative_error(angle, r, size) / LN_10
}

/// The decimal logarithm of the MSE.
fn log_mse(estimator: (Method, Size), angle: f64, r: f64) -> f64 {
    2.0 * (log_error(estimator, angle, r) + r * r * angle.cos() / LN_10)
}

fn run(_: &mut Run<'_>) -> Result<Outcome, Stop> {
    let mut claim = Claim::default();
    let worst = |estimator, r: f64| {
        let angles = (1..180).map(|k| PI * f64::from(k) / 180.0);
        angles.map(|angle| log_error(estimator, angle, r)).fold(f64::NEG_INFINITY, f64::max)
    };
    let degrees = [0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0f64];
    let heads = ["estimator, r".to_owned()].into_iter().chain(degrees.map(|d| format!("{d}°")));
    let mut table =
        Table::new("log₁₀ MSE; – where it is 0 but for rounding", heads.chain(["largest √MSE/K".into()]));
    let mut largest = Vec::new();
    for r in (1..=LONGEST as u32).map(f64::from) {
        let all = ESTIMATORS.map(|estimator| worst(estimator, r));
        claim.is(
            format!("the hybrid has the least largest relative error at r = {r}"),
            all[2] <= all[0].min(all[1]),
        );
        for (k, angle) in [(0, 0.0), (1, PI), (2, 0.0), (2, PI)] {
            let vanishes = log_error(ESTIMATORS[k], angle, r) < 0.5 * ROUNDING;
            claim.is(format!("{} is exact at {angle:.2}, r = {r}", ESTIMATORS[k].0.name()), vanishes);
        }
        for (estimator, worst) in ESTIMATORS.iter().zip(all) {
            let cells = degrees.iter().map(|d| {
                let log = log_mse(*estimator, d.to_radians(), r);
                if log < ROUNDING { Cell::Empty } else { Cell::Text(format!("{log:.1}").replace('-', "−")) }
            });
            table.row(format!("{}, {r}", estimator.0.name()), cells.chain([Cell::Number(10f64.powf(worst))]));
        }
        let optimal = |degrees: f64| ln_optimal_error(degrees.to_radians(), r, OPTIMAL, D) / LN_10;
        let cells = degrees.iter().map(|d| {
            let log = 2.0 * (optimal(*d) + r * r * d.to_radians().cos() / LN_10);
            Cell::Text(format!("{log:.1}").replace('-', "−"))
        });
        let worst = (0..=180).map(|d| optimal(f64::from(d))).fold(f64::NEG_INFINITY, f64::max);
        table.row(format!("beyond: OPRF, {r}"), cells.chain([Cell::Number(10f64.powf(worst))]));
        largest.push(all.map(|log| 10f64.powf(log)));
    }
    let first = largest[0].map(|value| format!("{value:.2}"));
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "largest √MSE/K at r = 1: trigonometric {}, hyperbolic {}, hybrid {}",
            first[0], first[1], first[2]
        ),
        theirs: "pictures".into(),
        tables: vec![table],
        surfaces: surfaces(),
        notes: vec![format!(
            "Beyond the paper: {OPTIMAL} optimal positive features (OPRF) on simplices in ℝ^{D}, as many as the hybrid has, with A for the mean of ‖x+y‖² over all angles."
        )],
        ..Outcome::default()
    })
}

/// The MSE, as in the paper, and below it the relative error.
fn surfaces() -> Vec<Surface> {
    let mse = Bands { name: "MSE", limits: -5.0..60.0, step: 5.0, logarithms: true };
    let relative = Bands { name: "√MSE/K", limits: -2.0..3.0, step: 0.5, logarithms: true };
    type Value = fn((Method, Size), f64, f64) -> f64;
    let kinds: [(Bands, f64, Value); 2] = [(mse, LONGEST, log_mse), (relative, 2.0, log_error)];
    let mut all = Vec::new();
    for (bands, longest, value) in kinds {
        for estimator in ESTIMATORS {
            let (columns, rows) = CELLS;
            let cell = |(row, column): (usize, usize)| {
                let angle = PI * (column as f64 + 0.5) / columns as f64;
                value(estimator, angle, longest * (row as f64 + 0.5) / rows as f64)
            };
            all.push(Surface {
                title: format!("{} of {}, m = 10", bands.name, estimator.0.name()),
                x_label: "θ in degrees".into(),
                y_label: "r".into(),
                x: 0.0..180.0,
                y: 0.0..longest,
                values: Array2::from_shape_fn((rows, columns), cell),
                bands: bands.clone(),
            });
        }
    }
    all
}
