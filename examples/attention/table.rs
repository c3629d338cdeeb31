//! The tables.

use crate::accuracy::{self, D};
use crate::cost::{self, WORKS};
use crate::crossover;
use crate::trained::{self, Head};

/// Errors over the number of frequencies on random tokens.
pub fn accuracy(setup: &accuracy::Setup, panels: &[accuracy::Panel]) -> String {
    let accuracy::Setup { length, repetitions, seed, .. } = setup;
    let mut text = format!(
        "ERROR on random tokens (Performers, Figure 4): L = {length}, d = d_v = {D}, {repetitions} repetitions, seed {seed}\n\
         mean squared error of the output against exact attention ± its standard error; m frequencies, of which\n\
         trigonometric and hyperbolic maps make 2m features; predicted: the error report for independent frequencies\n\n"
    );
    panels.iter().for_each(|panel| text += &panel_of(setup, panel));
    text + "–        no prediction: normalisers vary too much for so few frequencies, or the map has no report\n\
            lost     the share of outputs that are 0 because their normaliser was not positive\n\n"
}

fn panel_of(setup: &accuracy::Setup, panel: &accuracy::Panel) -> String {
    let mut text =
        format!("q, k ~ N(0, {}²), v ~ N(0, 1); the mean of the values: {:.2e}\n", panel.size, panel.mean);
    text += &format!("  {:<29}", "m");
    setup.frequencies.iter().for_each(|m| text += &format!("{m:>14}"));
    text += &format!("{:>9}\n", "lost");
    for curve in &panel.curves {
        text += &format!("  {:<29}", format!("{}, {}", curve.map, curve.coupling));
        curve.measured.iter().for_each(|value| text += &format!("{:>14}", plus_minus(*value)));
        let lost = if curve.lost > 0.0 { format!("{:.2} %", 100.0 * curve.lost) } else { "0".into() };
        text += &format!("{lost:>9}\n");
        if let Some(predicted) = &curve.predicted {
            text += &format!("  {:<29}", "   predicted");
            let cell = |value: &Option<f64>| value.map_or("–".into(), |value| format!("{value:.2e}    "));
            predicted.iter().for_each(|value| text += &format!("{:>14}", cell(value)));
            text += "\n";
        }
    }
    text + &agreement(panel) + "\n"
}

/// A mean and its standard error in percent.
fn plus_minus((mean, error): (f64, f64)) -> String {
    format!("{mean:.2e} {:>4}", format!("±{:.0}%", 100.0 * error / mean))
}

/// How far measured errors are from predicted ones.
fn agreement(panel: &accuracy::Panel) -> String {
    let pairs =
        panel.curves.iter().flat_map(|curve| curve.measured.iter().zip(curve.predicted.iter().flatten()));
    let ratios = pairs.filter_map(|(measured, predicted)| Some(measured.0 / (*predicted)?));
    let (count, least, most) = ratios.fold((0, f64::INFINITY, 0.0f64), |(n, least, most), ratio| {
        (n + 1, least.min(ratio), most.max(ratio))
    });
    match count {
        0 => "  no prediction: all maps would need more frequencies\n".into(),
        _ => {
            format!("  measured/predicted ({count}): from {least:.2} to {most:.2}\n")
        }
    }
}

/// Times and memory over the length.
pub fn cost(setup: &cost::Setup, rows: &[cost::Row]) -> String {
    let mut text = format!(
        "COST over the length (Performers, Figures 3 and 20): one head, f32, d = d_v = {}, m = {}, positive features\n",
        cost::D,
        setup.m
    );
    let memory = "peak of resident memory in MiB, of a process that does this alone: program, inputs and output included";
    for (what, value) in [("milliseconds, the least of some runs", 0), (memory, 1)] {
        text += &format!("\n{what}\n  {:>8}", "L");
        WORKS.iter().for_each(|(_, name)| {
            text += &format!("{:>17}", name.split_inclusive("X").next().unwrap_or(name))
        });
        text += "\n";
        for row in rows {
            text += &format!("  {:>8}", row.length);
            for cost in &row.costs {
                let number = cost.and_then(|cost| match value {
                    0 => Some(1e3 * cost.seconds),
                    _ => cost.bytes.map(|bytes| bytes / f64::from(1 << 20)),
                });
                text += &format!("{:>17}", number.map_or("–".into(), |number| format!("{number:.2}")));
            }
            text += "\n";
        }
    }
    text + "\nX        an output that only copies the values: what no attention can be faster than\n\
            –        longer than --longest-exact, or the system does not tell\n\n"
}

/// Exact and linear attention over the length.
pub fn crossover(setup: &crossover::Setup, panels: &[crossover::Panel]) -> String {
    let mut text = format!(
        "CROSSOVER: one head, f32, d = d_v = {}, positive features, {} threads; milliseconds, the least of some runs\n",
        cost::D,
        rayon::current_num_threads()
    );
    for panel in panels {
        text += &format!("\n{}\n  {:>20}", if panel.causal { "causal" } else { "bidirectional" }, "L");
        text += &format!("{:>12}", "exact");
        setup.frequencies.iter().for_each(|m| text += &format!("{:>12}", format!("m = {m}")));
        text += "\n";
        for row in &panel.rows {
            text += &format!("  {:>20}", row.length);
            let times = std::iter::once(&row.exact).chain(&row.linear);
            times.for_each(|time| text += &format!("{:>12.3}", 1e3 * time));
            text += "\n";
        }
        text += &format!("  {:<20}{:>12}", "linear is faster from", "");
        (0..setup.frequencies.len()).for_each(|which| {
            let measured = panel.measured(which).map_or("–".into(), |length| format!("{length:.0}"));
            text += &format!("{measured:>12}");
        });
        text += &format!("\n  {:<20}{:>12}", "auto goes by", "");
        panel.expected.iter().for_each(|length| text += &format!("{length:>12}"));
        text += "\n";
    }
    text + "\n"
}

/// Errors on the heads of a trained transformer.
pub fn trained(setup: &trained::Setup, heads: &[Head]) -> String {
    let mut text = format!(
        "TRAINED: heads of a transformer, orthogonal frequencies, {} draws\n\
         error of the output relative to the exact one ± its standard error\n\n",
        setup.repetitions
    );
    for (index, head) in heads.iter().enumerate() {
        let [q, k] = head.squares;
        text += &format!("head {index}: mean ‖q‖²/√d = {q:.1}, ‖k‖²/√d = {k:.1}\n  {:<22}", "m");
        setup.frequencies.iter().for_each(|m| text += &format!("{m:>19}"));
        text += "  report\n";
        for curve in &head.curves {
            text += &format!("  {:<22}", curve.map);
            curve
                .measured
                .iter()
                .for_each(|(mean, error)| text += &format!("{:>19}", format!("{mean:.3} ±{error:.3}")));
            let report = curve.report.as_ref().map_or("–".into(), |report| match report.output_error() {
                Some(error) => format!("{error:.3}"),
                None => "hopeless".into(),
            });
            text += &format!("  {report}\n");
        }
        text += &format!("  {:<22}", "mean of the values");
        setup.frequencies.iter().for_each(|_| text += &format!("{:>19}", format!("{:.3}       ", head.mean)));
        text += "\n";
        for curve in &head.curves {
            if let Some(report) = &curve.report {
                text += &format!("  {}: {report}\n", curve.map);
            }
        }
        text += "\n";
    }
    text
}
