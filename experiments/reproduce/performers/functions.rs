//! Figures 16 to 18: functions other than the softmax's in attention.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::{Language, Row};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-16",
    paper: Paper::Performers,
    place: "Figures 16–18",
    claim: "Of features f(ωᵀx) ReLU learns best; cos, tanh and the identity, whose weights may be negative, fail or stop at NaN; the \
            linear transformer (ELU + 1) is unstable.",
    setting: "In place of proteins, a transformer of the characters of the King James New Testament (the small model of `charlm`: 2 layers \
              of 4 heads, width 64, context 256, 300 steps of 8 windows, 64 orthogonal features a head); bits a character of held-out text, \
              the same seeds for all methods. `/sum` has no normaliser. 300 steps of 2 layers cannot show what the \
              paper saw in 36: that ELU + 1 explodes, early or late, stays untested.",
    rule: "ReLU has fewer bits than each other function; cos, tanh and the identity more than exact attention; ELU + 1 more than ReLU. \
           Each by 3 standard errors of the paired difference, which is at least the one pooled over all methods that learn alike: a false statement is \
           taken for true with probability 0.006 at most each.",
    minutes: 12.0,
    data: &[],
    run,
};

const METHODS: [&str; 22] = [
    "exact",
    "relu",
    "sigmoid",
    "exp",
    "abs",
    "gelu",
    "cos",
    "tanh",
    "identity",
    "elu",
    "relu/sum",
    "sigmoid/sum",
    "exp/sum",
    "abs/sum",
    "gelu/sum",
    "cos/sum",
    "tanh/sum",
    "identity/sum",
    "elu/sum",
    "favor-orthogonal",
    "favor-orthogonal/near",
    "shaped",
];
/// The functions that may have negative weights.
const SIGNED: [&str; 3] = ["cos", "tanh", "identity"];

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect(METHODS.len() * language.seeds() as usize);
    let rows = language.compare(run, &METHODS)?;
    let mut claim = Claim::default();
    for name in &METHODS[2..9] {
        claim.less(format!("ReLU is better than {name}"), than(&rows, "relu", name), Mean::exact(0.0));
    }
    for name in SIGNED {
        let statement = format!("{name} is worse than exact attention");
        claim.less(statement, than(&rows, "exact", name), Mean::exact(0.0));
    }
    claim.less("ELU + 1 is worse than ReLU", than(&rows, "relu", "elu"), Mean::exact(0.0));
    let more = |name: &str| than(&rows, name, "exact");
    let worst = SIGNED.map(|name| format!("{name} {}", number(more(name).value)));
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("bits more than exact: ReLU {}; {}", number(more("relu").value), worst.join(", ")),
        theirs: "accuracies as curves".into(),
        tables: vec![table(&rows)],
        notes: vec![
            "Beyond the paper: the last rows are FAVOR+, exact neighbours with it, and features shaped by the data.".into(),
        ],
        reasons: vec![
            "Why not more of it: after 300 steps all features that are never negative, and those of |u| and the GELU, are within 0.05 bits of each other, which is what attention is worth in this model so far; \
             three seeds do not rank them. What the figures show of functions whose weights may be negative is here too. Rows with /sum have no normaliser.".into(),
        ],
        ..Outcome::default()
    })
}

/// How many more bits one method has than another; not a number where one is not among the rows.
pub fn than(rows: &[Row], method: &str, other: &str) -> Mean {
    let row = |name: &str| rows.iter().find(|row| row.method == name);
    row(method).zip(row(other)).map_or(Mean::exact(f64::NAN), |(own, other)| own.than(other))
}

/// A row for each method.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "Bits a character of held-out text ± standard error",
        ["method", "bits", "more than exact"],
    );
    for row in rows {
        table.row(row.method, [row.bits, row.more]);
    }
    table
}
