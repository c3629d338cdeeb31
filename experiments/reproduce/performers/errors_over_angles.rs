//! Figure 2: trigonometric against positive features over angle and length.

use std::f64::consts::PI;

use experiments::plot::{Panel, Series};
use random_features::num_complex::Complex64;
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::relative_error::{ln_positive, ln_trigonometric};
use random_features::theory::{Law, Pair};

use crate::item::{Item, Outcome, Paper, Stop};
use crate::run::Run;
use crate::table::Table;
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-2",
    paper: Paper::Performers,
    place: "Figure 2",
    claim: "Positive features are arbitrarily more accurate than trigonometric ones where the softmax kernel is small.",
    setting: "Closed forms of the mean squared errors of exp(x·y) at one frequency each, for points of length ℓ ≤ 2 at angles up to π. \
              The ratio of two errors does not depend on the number of frequencies, while two features of a trigonometric frequency count \
              as one frequency; a second column counts them as two.",
    rule: "At every length the ratio of errors, trigonometric over positive, grows with the angle; at π it is above 100 for ℓ ≥ 1, and \
           below 1 at angle 0. Closed forms: no false alarms.",
    minutes: 0.1,
    data: &[],
    run,
};

const LENGTHS: [f64; 4] = [0.5, 1.0, 1.5, 2.0];
/// The dimension, which matters to optimal positive features alone.
const D: usize = 64;
/// Angles of a curve, from 0 to π.
const STEPS: usize = 60;

/// Trigonometric over positive, as a ratio of mean squared errors. Positive estimates have no error where ‖x+y‖ = 0.
fn ratio(angle: f64, length: f64) -> f64 {
    (2.0 * (ln_trigonometric(angle, length, 1) - ln_positive(angle, length, 1))).exp()
}

/// Positive over optimal positive features with A for the pair, in ℝᵈ.
fn gain(angle: f64, length: f64) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let pair = Pair::new(
        [(length, length * cos), (0.0, length * sin)].into_iter().chain((2..D).map(|_| (0.0, 0.0))),
    );
    let a = Complex64::new(gerf::optimal(D, pair.sum).a, 0.0);
    let ln_optimal = gerf::ln_variance(&pair, a, GerfSign::Plus, &Law::independent(1)).unwrap_or(f64::NAN);
    // The variance is that of the Gaussian kernel, relative to it.
    (2.0 * ln_positive(angle, length, 1) - ln_optimal - pair.difference).exp()
}

fn run(_: &mut Run<'_>) -> Result<Outcome, Stop> {
    let angle = |k: usize| PI * k as f64 / STEPS as f64;
    // Not at the ends: errors of one of the two are 0 there.
    let inner = || (1..STEPS).map(angle);
    let mut claim = Claim::default();
    let mut table = Table::new(
        "Mean squared error of trigonometric features over that of positive ones",
        ["ℓ", "π/60", "π/4", "π/2", "3π/4", "59π/60", "equal from", "equal from, features"],
    );
    // Where errors are equal, in parts of π: at equal frequencies, and with two trigonometric features for one frequency.
    let crossing = |length: f64, factor: f64| {
        let below =
            (1..6000).map(|k| PI * f64::from(k) / 6000.0).take_while(|a| factor * ratio(*a, length) < 1.0);
        below.last().unwrap_or(0.0) / PI
    };
    for length in LENGTHS {
        let ratios: Vec<f64> = inner().map(|angle| ratio(angle, length)).collect();
        claim.is(format!("grows with the angle at ℓ = {length}"), ratios.is_sorted());
        claim.is(format!("below 1 at angle 0, ℓ = {length}"), ratios[0] < 1.0);
        if length >= 1.0 {
            claim.is(format!("above 100 at π, ℓ = {length}"), ratios[STEPS - 2] > 100.0);
        }
        let at = |k: usize| ratios[k * STEPS / 4 - 1];
        let equal = [1.0, 2.0].map(|factor| format!("{:.3}π", crossing(length, factor)));
        let mut cells: Vec<crate::table::Cell> =
            [ratios[0], at(1), at(2), at(3), ratios[STEPS - 2]].into_iter().map(Into::into).collect();
        cells.extend(equal.map(Into::into));
        table.row(length.to_string(), cells);
    }
    let mut beyond = Table::new(
        format!(
            "Beyond the paper: mean squared error of positive features over that of optimal positive features (OPRF), d = {D}"
        ),
        ["ℓ", "π/60", "π/4", "π/2", "3π/4", "59π/60"],
    );
    for length in LENGTHS {
        let angles = [1, STEPS / 4, STEPS / 2, 3 * STEPS / 4, STEPS - 1];
        beyond.row(length.to_string(), angles.map(|k| gain(angle(k), length)));
    }
    let series = |length: f64| Series {
        name: format!("ℓ = {length}"),
        line: inner().map(|angle| (angle, ratio(angle, length))).collect(),
        points: Vec::new(),
    };
    let panel = Panel {
        title: "Positive against trigonometric features".into(),
        x_label: "angle".into(),
        y_label: "MSE, trigonometric / positive".into(),
        series: LENGTHS.into_iter().map(series).collect(),
    };
    let ends =
        format!("ratio at ℓ = 1: {:.2} at π/4, {:.0} at 3π/4", ratio(PI / 4.0, 1.0), ratio(0.75 * PI, 1.0));
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: ends,
        theirs: "a picture".into(),
        tables: vec![table, beyond],
        panels: vec![panel],
        ..Outcome::default()
    })
}
