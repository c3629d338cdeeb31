//! Grids that grow, a spectral start, scales of coordinates.

use random_features::workbench::search::{End, Growth, own_scales, wave_shares};

use super::{Regression, arrays, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "grid.periodogram" => periodogram(case),
        "grid.own_scales" => scales(case),
        "grid.extend" => extend(case),
        other => Err(format!("{other} is unknown")),
    }
}

/// Frequencies at equal distances.
fn periodogram(case: &Regression<'_>) -> Result<Outcome, String> {
    let [x, y, weights, omegas] = [
        case.numbers("x")?,
        case.numbers("y")?,
        case.numbers("weights")?,
        case.numbers("angular_frequencies")?,
    ];
    let ends = [omegas[0], omegas[1] - omegas[0]];
    let powers = wave_shares(&x.to_vec(), y.view(), &weights, ends, omegas.len()).map_err(text)?;
    let peak = (0..powers.len()).max_by(|i, j| powers[*i].total_cmp(&powers[*j])).ok_or("no frequency")?;
    arrays(vec![Scaled::new("power", powers), Scaled::new("peak", [peak as f64])])
}

/// The medians have units of their own.
fn scales(case: &Regression<'_>) -> Result<Outcome, String> {
    let (medians, common) = own_scales(&case.matrix("x")?).map_err(text)?;
    let start: Vec<f64> = medians.iter().map(|median| common * median).collect();
    arrays(vec![
        Scaled::of_units("medians", medians, |i| i),
        Scaled::new("common", [common]),
        Scaled::of_units("start", start, |i| i),
    ])
}

fn extend(case: &Regression<'_>) -> Result<Outcome, String> {
    let first = case.numbers("first")?;
    let (places, errors) = (case.numbers("k")?, case.numbers("errors")?);
    let limits = [case.number("lowest")?, case.number("highest")?].map(|k| k as i32);
    let budget = case.number("budget")? as usize;
    let mut growth = Growth::new([first[0] as i32, first[1] as i32], limits, budget);
    loop {
        let next = growth.next();
        if next.is_empty() {
            break;
        }
        for k in next {
            let place =
                places.iter().position(|place| *place == f64::from(k)).ok_or("a place without an error")?;
            growth.tell(k, errors[place]);
        }
    }
    let edge = growth.edge().map(|(end, at_limit)| {
        let end = if end == End::Lower { "shortest" } else { "longest" };
        format!("{end} {}", if at_limit { "limit" } else { "budget" })
    });
    if edge.as_deref() != case.expected["edge"].as_str() {
        return Err(format!("the edge is {edge:?}"));
    }
    let best = growth.best().ok_or("no best place")?;
    arrays(vec![Scaled::new("tried", growth.tried().map(f64::from)), Scaled::new("best", [f64::from(best)])])
}
