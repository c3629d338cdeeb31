//! Figure 9: a Performer with simplex features.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::Language;
use crate::mean::Mean;
use crate::performers::functions;
use crate::run::Run;
use crate::table::number;
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-figure-9",
    paper: Paper::Simplex,
    place: "Figure 9",
    claim: "A Performer with simplex features learns better than one with orthogonal features, and these are better than independent \
            ones (ImageNet: 0.5 % and more).",
    setting: "The small model of `charlm` as in performers-figure-16, in place of a vision transformer on ImageNet; 64 positive features a head, \
              which are 4 blocks of dimension 16.",
    rule: "Simplex features have fewer bits than orthogonal ones, and these fewer than independent ones, by 3 standard errors of the paired \
           difference, at least the pooled one over all methods that learn alike: at most 0.006 each.",
    minutes: 5.0,
    data: &[],
    run,
};

const METHODS: [&str; 7] = [
    "exact",
    "favor-independent",
    "favor-orthogonal",
    "favor-simplex",
    "favor-independent/redrawn",
    "favor-orthogonal/redrawn",
    "favor-simplex/redrawn",
];
const BEYOND: [&str; 2] = ["favor-orthogonal/near", "shaped"];

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect((METHODS.len() + BEYOND.len() + 1) * language.seeds() as usize);
    let mut rows = language.compare(run, &METHODS)?;
    let mut claim = Claim::default();
    for redrawn in ["", ", redrawn"] {
        let first = if redrawn.is_empty() { 1 } else { 4 };
        let mut less = |better: &str, worse: &str, k: usize| {
            let difference = rows[first + k].than(&rows[first + k - 1]);
            claim.less(format!("{better} is better than {worse}{redrawn}"), difference, Mean::exact(0.0));
        };
        less("orthogonal", "independent", 1);
        less("simplex", "orthogonal", 2);
    }
    let shown = rows[1..4].iter().map(|row| format!("{} {}", row.method, number(row.more.value)));
    let ours = format!("bits more than exact: {}", shown.collect::<Vec<_>>().join(", "));
    rows.extend(language.beyond(run, &BEYOND)?);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours,
        theirs: "accuracies as curves".into(),
        tables: vec![functions::table(&rows)],
        panels: Vec::new(),
        surfaces: Vec::new(),
        notes: vec![
            "No mechanism is worse than exact attention in this model, so that better estimates cannot make it better: it cannot tell couplings apart. Beyond the paper: the last rows are FAVOR+ with exact neighbours, and features shaped by the data."
                .into(),
        ],
    })
}
