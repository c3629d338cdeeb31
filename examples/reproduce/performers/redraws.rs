//! Figures 5 (right) and 15: lucky and unlucky features, and features that are drawn again.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::{Language, Row};
use crate::mean::Mean;
use crate::performers::functions;
use crate::run::Run;
use crate::table::number;
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-15",
    paper: Paper::Performers,
    place: "Figures 5 (right) and 15",
    claim: "Trigonometric features are unstable in training; positive ones need redraws to reach exact attention; regularised ones with \
            redraws converge faster. Positive features reach what ReLU features do.",
    setting: "The small model of `charlm` as in performers-figure-16, features fixed or drawn again 20 times in a run; in place of PG-19.",
    rule: "Trigonometric features have more bits than positive ones, redrawn or not; redrawn positive features fewer than fixed ones, \
           independent and orthogonal; fixed ones more than exact attention; regularised features with redraws have fewer bits than positive ones with them; ReLU features are within 0.02 bits of positive ones, with redraws. Each by 3 standard errors of the paired difference, at least the \
           pooled one over all methods that learn alike: at most 0.006 each.",
    minutes: 10.0,
    data: &[],
    run,
};

const METHODS: [&str; 12] = [
    "exact",
    "trigonometric",
    "trigonometric/redrawn",
    "favor-independent",
    "favor-independent/redrawn",
    "favor-orthogonal",
    "favor-orthogonal/redrawn",
    "regularised",
    "regularised/redrawn",
    "hyperbolic/redrawn",
    "relu",
    "relu/redrawn",
];
/// Bits within which two methods reach the same.
const SAME: f64 = 0.02;
const BEYOND: [&str; 3] = ["favor-simplex/redrawn", "favor-orthogonal/near", "shaped"];

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect((METHODS.len() + BEYOND.len() + 1) * language.seeds() as usize);
    let mut rows = language.compare(run, &METHODS)?;
    let mut claim = Claim::default();
    let mut less = |statement: String, better: &str, worse: &str| {
        claim.less(statement, functions::than(&rows, better, worse), Mean::exact(0.0));
    };
    less("trigonometric is worse, fixed".into(), "favor-orthogonal", "trigonometric");
    less("trigonometric is worse, redrawn".into(), "favor-orthogonal/redrawn", "trigonometric/redrawn");
    for name in ["favor-independent", "favor-orthogonal"] {
        less(format!("redraws help {name}"), &format!("{name}/redrawn"), name);
        less(format!("{name} is worse than exact"), "exact", name);
    }
    less("regularised features learn faster".into(), "regularised/redrawn", "favor-orthogonal/redrawn");
    let apart = functions::than(&rows, "favor-orthogonal/redrawn", "relu/redrawn");
    claim.within("positive features reach what ReLU features do", apart, SAME);
    let spread = |name: &str| {
        let row: Option<&Row> = rows.iter().find(|row| row.method == name);
        row.map_or(f64::NAN, |row| row.bits.error * (language.seeds() as f64).sqrt())
    };
    let lucky = format!(
        "Lucky and unlucky seeds (Figure 15, left): the standard deviation over seeds is {} bits with fixed orthogonal features, {} with \
         redrawn ones, {} with exact attention, which has the same seeds for weights and text: luck of the features alone does not show.",
        number(spread("favor-orthogonal")),
        number(spread("favor-orthogonal/redrawn")),
        number(spread("exact"))
    );
    let shown = ["trigonometric", "favor-orthogonal", "favor-orthogonal/redrawn", "regularised"];
    let shown = shown.map(|name| format!("{name} {}", number(functions::than(&rows, name, "exact").value)));
    let ours = format!("bits more than exact: {}", shown.join(", "));
    rows.extend(language.beyond(run, &BEYOND)?);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours,
        theirs: "curves of perplexity".into(),
        tables: vec![functions::table(&rows)],
        notes: vec![
            "Why redraws change nothing: fixed positive features are not worse than exact attention in this model, so that there is nothing for redraws, or for the regularised kernel, to bring back. Trigonometric \
             ones are worse, and worst with redraws."
                .into(),
            lucky,
            "Beyond the paper: the last rows are simplex features, exact neighbours with FAVOR+, and features shaped by the data."
                .into(),
        ],
        ..Outcome::default()
    })
}
