//! The tables.

use crate::crossover;
use crate::trained::{self, Head};

/// Exact and linear attention over the length.
pub fn crossover(setup: &crossover::Setup, panels: &[crossover::Panel]) -> String {
    let mut text = format!(
        "CROSSOVER: one head, f32, d = d_v = {}, positive features, {} threads; milliseconds, the least of some runs\n",
        crossover::D,
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
