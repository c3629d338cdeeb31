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
    claim: "A Performer with simplex features often learns better than one with orthogonal features, and is never worse (ImageNet: 0.5 % better).",
    setting: "The small model of `charlm` as in performers-figure-16, in place of a vision transformer on ImageNet; 64 positive features a head, \
              which are 4 blocks of dimension 16.",
    rule: "With fixed frequencies or redrawn ones, simplex features have fewer bits than orthogonal ones, by 3 standard errors of the paired \
           difference, at least the pooled one over all methods that learn alike: at most 0.009 each; and no more than 0.01 bits more, by as many.",
    minutes: 5.0,
    data: &[],
    run,
};

const METHODS: [&str; 5] =
    ["exact", "favor-orthogonal", "favor-simplex", "favor-orthogonal/redrawn", "favor-simplex/redrawn"];
const BEYOND: [&str; 4] =
    ["favor-independent", "favor-independent/redrawn", "favor-orthogonal/near", "shaped"];
/// Bits that are no worse.
const NO_WORSE: f64 = 0.01;

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect((METHODS.len() + BEYOND.len() + 1) * language.seeds() as usize);
    let mut rows = language.compare(run, &METHODS)?;
    let mut claim = Claim::default();
    for (orthogonal, kind) in [(1, "fixed"), (3, "redrawn")] {
        let difference = rows[orthogonal + 1].than(&rows[orthogonal]);
        claim.less(format!("simplex features are better, {kind}"), difference, Mean::exact(0.0));
        claim.less(format!("simplex features are no worse, {kind}"), difference, Mean::exact(NO_WORSE));
    }
    let shown = rows[1..].iter().map(|row| format!("{} {}", row.method, number(row.more.value)));
    let ours = format!("bits more than exact: {}", shown.collect::<Vec<_>>().join(", "));
    rows.extend(language.beyond(run, &BEYOND)?);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours,
        theirs: "accuracies as curves".into(),
        tables: vec![functions::table(&rows)],
        notes: vec![
            "No mechanism is worse than exact attention in this model, so that better estimates cannot make it better: it cannot tell couplings apart. Beyond the paper's figure: the last rows are independent frequencies, FAVOR+ with exact neighbours, and features shaped by the data."
                .into(),
        ],
        ..Outcome::default()
    })
}
