//! The tables and the lines for programs.

use crate::maps::{ALONE, KINDS};
use crate::sequences::{Errors, WAYS, WINDOW};
use crate::splits::FITS;
use crate::synthetic::Saved;
use crate::trained::{Outcome, Results, Setup};

/// One line for each outcome.
pub fn json(results: &Results) -> String {
    // Not a number is none in JSON: errors relative to an output that is 0, or that overflows.
    let number = |v: f64| if v.is_finite() { v.to_string() } else { "null".into() };
    let line = |o: &Outcome| {
        format!(
            "{{\"map\": \"{}\", \"fit\": \"{}\", \"m\": {}, \"biased\": {}, \"predicted\": {}, \"error\": {}, \
             \"standard_error\": {}}}\n",
            o.map,
            o.fit,
            o.m,
            o.biased,
            number(o.predicted),
            number(o.error),
            number(o.standard_error)
        )
    };
    results.outcomes.iter().map(line).collect()
}

/// Errors of all maps and fits over the number of features.
pub fn trained(setup: &Setup, heads: usize, results: &Results) -> String {
    let Setup { features, repeat, seed } = setup;
    let mut text = format!(
        "ERROR of the output against exact attention (relative, Frobenius; ± standard error over heads)\n\
         {heads} heads of a trained transformer, {repeat} draws, seed {seed}; r: coordinates that are kept\n\n"
    );
    for (name, _) in FITS {
        let mean = results.means.iter().find(|(fit, _)| *fit == name).map_or(f64::NAN, |(_, mean)| *mean);
        text += &format!("chosen on: {name} (the mean of the values has {mean:.2})\n  {:<18}", "m");
        features.iter().for_each(|m| text += &format!("{m:>22}"));
        text += "\n";
        let found =
            |map: &str, m: usize| results.outcomes.iter().find(|o| (o.map, o.fit, o.m) == (map, name, m));
        for (map, kind) in KINDS.into_iter().filter(|(map, _)| found(map, features[0]).is_some()) {
            text += &format!("  {map:<18}");
            for m in features {
                let cell = |o: &Outcome| {
                    let rank = if kind.is_biased() { format!(" r {:.0}", o.rank) } else { String::new() };
                    format!("{:.2} ±{:.2}{rank:<6}", o.error, o.standard_error)
                };
                text += &format!("{:>22}", found(map, *m).map(cell).unwrap_or_default());
            }
            text += if kind.is_biased() { "  biased\n" } else { "\n" };
        }
        let alone = ALONE.iter().filter_map(|(map, _)| found(map, 0));
        alone.for_each(|o| text += &format!("  {:<18}{:.2} without features\n", o.map, o.error));
        text += "\n";
    }
    text
}

/// What shaping saves on synthetic data.
pub fn synthetic(all: &[Saved]) -> String {
    let mut text = String::from(
        "SAVED on synthetic data: the factor by which the number of features may fall at the same error, of 256\n\
         in closed form: the geometric mean over pairs of the ratio of variances; measured: squared errors of attention\n\n",
    );
    text += &format!(
        "  {:<14}{:>12}{:>16}{:>12}{:>22}\n",
        "data", "E‖x+y‖²", "closed form", "measured", "error of positive"
    );
    for Saved { name, squared_sum, predicted, measured, error } in all {
        text += &format!("  {name:<14}{squared_sum:>12.1}{predicted:>16.1}{measured:>12.1}{error:>22.2}\n");
    }
    text + "\n"
}

/// Errors for long sequences.
pub fn sequences(setup: &Setup, all: &[Errors]) -> String {
    let mut text = format!(
        "SEQUENCES of 4096 tokens, causal, m = 256, {} draws: errors of the output; near: {WINDOW} keys up to each\n\
         query's own are exact; shapes are chosen on another sequence of the kind\n\n  {:<8}",
        setup.repeat, "looks"
    );
    WAYS.iter().for_each(|way| text += &format!("{way:>16}"));
    text += "\n";
    for Errors { name, errors } in all {
        text += &format!("  {name:<8}");
        errors.iter().for_each(|error| text += &format!("{error:>16.2}"));
        text += "\n";
    }
    text + "\n"
}
