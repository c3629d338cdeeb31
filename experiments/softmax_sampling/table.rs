//! The tables.

use crate::cost::{self, Row};
use experiments::sampling::data;
use experiments::sampling::training::Mean;
use experiments::sampling::training::{self, Curve};

/// A mean ± its standard error, with as many digits as the error has, and one more.
fn plus_minus((mean, error): Mean) -> String {
    if error == 0.0 {
        return format!("{mean}");
    }
    let digits = (1.0 - error.log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{mean:.digits$} ± {error:.digits$}")
}

/// Costs over the number of classes.
pub fn cost(rows: &[Row]) -> String {
    let mut text = format!(
        "COST of a draw, of {} for each h: positive features, D = {}, d = {}, f32; least times\n\n\
         {:>10}{:>14}{:>14}{:>9}{:>14}{:>12}{:>10}\n",
        cost::DRAWS,
        cost::FEATURES,
        data::D,
        "classes",
        "tree, µs",
        "exact, µs",
        "ratio",
        "replace, µs",
        "build, ms",
        "MB"
    );
    for row in rows {
        text += &format!(
            "{:>10}{:>14.2}{:>14.2}{:>9.1}{:>14.2}{:>12.1}{:>10.1}\n",
            row.classes,
            1e6 * row.tree,
            1e6 * row.exact,
            row.exact / row.tree,
            1e6 * row.replace,
            1e3 * row.build,
            1e-6 * row.bytes as f64
        );
    }
    text + "\n"
}

/// Test losses over steps.
pub fn training(setup: &training::Setup, curves: &[Curve]) -> String {
    let training::Setup { classes, seeds, seed, .. } = setup;
    let mut text = format!(
        "TRAINING of a classifier: C = {classes}, d = {}, {} draws a point, D = {}, temperature {}\n\
         {seeds} seeds from {seed}; loss on test points over all classes, in nats, ± its standard error\n\n  {:<16}",
        training::D,
        training::DRAWS,
        training::FEATURES,
        training::TEMPERATURE,
        "step"
    );
    let steps = || curves[0].losses.iter().step_by(2);
    steps().for_each(|(step, _)| text += &format!("{step:>18}"));
    text += "\n";
    for curve in curves {
        text += &format!("  {:<16}", curve.name);
        let losses = curve.losses.iter().step_by(2);
        losses.for_each(|(_, mean)| text += &format!("{:>18}", plus_minus(*mean)));
        text += "\n";
    }
    text + "\n"
}
