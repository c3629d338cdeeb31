//! The tables, written as their rows are known.

use std::io::Write;

use crate::choice::Choice;
use crate::outcome::Outcome;
use crate::quality::Quality;
use crate::retrieval::{NEAREST, Passages};
use crate::study::Study;
use crate::timing::{Cost, REPETITIONS, cost};

/// The shortest text whose time is measured.
const SHORTEST: usize = 64;

/// What is printed of costs, and under which title.
type Column = (String, fn(&Cost) -> f64);

/// Writes the table of errors.
pub fn quality(study: &Study, out: &mut dyn Write) -> Outcome<()> {
    let Study { bert, choices, segments, .. } = study;
    let passages = Passages::new(bert, &choices[0], &study.passages)?;
    writeln!(
        out,
        "features and exact pairs of a query; cosine to the exact embedding; share of the {NEAREST} nearest of {} passages;\n\
         relative error of the outputs of attention in each layer",
        study.passages.len()
    )?;
    write!(out, "{:<18}{:>9}{:>8}{:>9}{:>9}  ", "", "features", "pairs", "cosine", "nearest")?;
    (1..=bert.config().layers).try_for_each(|layer| write!(out, "{:>8}", format!("layer {layer}")))?;
    writeln!(out)?;
    for choice in choices {
        let Quality { features, pairs, cosine, errors } = Quality::new(bert, choice, segments)?;
        let overlap = passages.overlap(bert, choice)?;
        write!(out, "{:<18}{features:>9.0}{pairs:>8.1}{cosine:>9.4}{overlap:>9.3}  ", choice.name)?;
        errors.iter().try_for_each(|error| write!(out, "{error:>8.3}"))?;
        writeln!(out)?;
    }
    Ok(writeln!(out)?)
}

/// Writes the tables of times and memory, for lengths that double.
pub fn costs(study: &Study, out: &mut dyn Write) -> Outcome<()> {
    let lengths: Vec<usize> = std::iter::successors(Some(SHORTEST), |length| Some(2 * length))
        .take_while(|length| *length <= study.long.len())
        .collect();
    let of_choice = |choice: &Choice| {
        let costs = lengths.iter().map(|length| cost(&study.bert, choice, &study.long[..*length]));
        costs.collect::<Outcome<Vec<Cost>>>()
    };
    let costs = study.choices.iter().map(of_choice).collect::<Outcome<Vec<_>>>()?;
    let columns: [Column; 4] = [
        (format!("ms of a pass, least of {REPETITIONS}, over the length{}", tiled(study)), |cost| {
            cost.all.milliseconds
        }),
        ("ms of attention in it".into(), |cost| cost.attention.milliseconds),
        ("MB that a pass holds at most beyond the model".into(), |cost| cost.all.megabytes),
        ("MB that the attention of a layer holds at most beyond its inputs".into(), |cost| {
            cost.attention.megabytes
        }),
    ];
    for (title, number) in columns {
        write!(out, "{title}\n{:<18}", "")?;
        lengths.iter().try_for_each(|length| write!(out, "{length:>9}"))?;
        writeln!(out)?;
        for (choice, costs) in study.choices.iter().zip(&costs) {
            write!(out, "{:<18}", choice.name)?;
            costs.iter().try_for_each(|cost| write!(out, "{:>9.2}", number(cost)))?;
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What must be said of texts that are longer than the model allows.
fn tiled(study: &Study) -> String {
    let positions = study.bert.config().positions;
    match study.long.len() > positions {
        true => format!("; beyond {positions} tokens places begin again, for times alone"),
        false => String::new(),
    }
}
