//! Table 2: hybrid features in the attention of a model that is trained.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::{Language, Row};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "hybrid-table-2",
    paper: Paper::Hybrid,
    place: "Table 2",
    claim: "Cluster hybrids train better models than angular hybrids, these better ones than FAVOR+, and that better than trigonometric features.",
    setting: "The small model of `charlm` as in performers-figure-16, in place of a Conformer on LibriSpeech; bits a character in place of word \
              error rates. Clusters have the robust real diagonals of hybrid-table-3, which are not the paper's, 32 features for each pair of clusters (of (3, 3) 288, of which 96 are not 0 for a token), and are found after a tenth of the steps, as the paper freezes \
              them after some; until then they are FAVOR+. Angular hybrids of (m, n) = (16, 8) and (8, 8) have 4mn features; FAVOR+ and trigonometric features have 432 \
              and 256 as in the paper.",
    rule: "Each cluster hybrid has fewer bits than both angular ones, each of these fewer than both FAVOR+ rows, and each of these fewer than \
           both trigonometric ones. Each by 3 standard errors of the paired difference, at least the pooled one over all methods that learn alike: at most 0.006 each.",
    minutes: 20.0,
    data: &[],
    run,
};

/// What the paper calls a method, and its word error rate in %.
const METHODS: [(&str, &str, Option<Mean>); 13] = [
    ("exact", "–", None),
    ("clusters-3-3", "HRF-C(3,3)", Some(Mean { value: 1.72, error: 0.02 })),
    ("clusters-2-3", "HRF-C(2,3)", Some(Mean { value: 1.75, error: 0.03 })),
    ("clusters-3-2", "HRF-C(3,2)", Some(Mean { value: 1.83, error: 0.03 })),
    ("clusters", "HRF-C(2,2)", Some(Mean { value: 1.85, error: 0.04 })),
    ("angular", "HRF-A(16,8)", Some(Mean { value: 2.03, error: 0.08 })),
    ("angular-8", "HRF-A(8,8)", Some(Mean { value: 2.05, error: 0.05 })),
    ("favor-orthogonal/432", "FAVOR+ 432", Some(Mean { value: 2.65, error: 0.06 })),
    ("favor-orthogonal/256", "FAVOR+ 256", Some(Mean { value: 2.77, error: 0.04 })),
    ("trigonometric/432", "Trig 432", Some(Mean { value: 3.12, error: 0.05 })),
    ("trigonometric/256", "Trig 256", Some(Mean { value: 3.3, error: 0.06 })),
    ("favor-simplex", "–", None),
    ("favor-orthogonal/near", "–", None),
];

/// Rows of each kind, from the best in the paper to the worst.
const KINDS: [(&str, std::ops::Range<usize>); 4] = [
    ("cluster hybrids", 1..5),
    ("angular hybrids", 5..7),
    ("FAVOR+", 7..9),
    ("trigonometric features", 9..11),
];

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect(METHODS.len() * language.seeds() as usize);
    let rows = language.compare(run, &METHODS.map(|(method, ..)| method))?;
    let mut claim = Claim::default();
    for kinds in KINDS.windows(2) {
        for better in kinds[0].1.clone() {
            for worse in kinds[1].1.clone() {
                let statement = format!("{} is better than {}", METHODS[better].1, METHODS[worse].1);
                claim.less(statement, rows[better].than(&rows[worse]), Mean::exact(0.0));
            }
        }
    }
    let mean = |range: &std::ops::Range<usize>| {
        rows[range.clone()].iter().map(|row| row.more.value).sum::<f64>() / range.len() as f64
    };
    let shown = KINDS.iter().map(|(kind, range)| format!("{kind} {}", number(mean(range))));
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("bits more than exact: {}", shown.collect::<Vec<_>>().join(", ")),
        theirs: "word error rates: 1.72–1.85, 2.03–2.05, 2.65–2.77, 3.12–3.30 %".into(),
        tables: vec![table(&rows)],
        notes: vec![
            "Beyond the paper: simplex features and exact neighbours, each with 64 features.".into(),
        ],
        reasons: vec![
            "Why angular hybrids are behind FAVOR+ here: their estimates may be negative, as those of trigonometric features, and both lose a quarter of a bit by it; FAVOR+ is never negative, and \
             loses nothing in this model, so that better estimates have nothing to win.".into(),
        ],
        ..Outcome::default()
    })
}

fn table(rows: &[Row]) -> Table {
    let heads = ["method", "bits", "more than exact", "in the paper", "word error rate, %"];
    let mut table = Table::new(
        "Bits a character of held-out text ± standard error, and the paper's errors ± standard deviation",
        heads,
    );
    for (row, (_, name, rate)) in rows.iter().zip(METHODS) {
        let cells: [Cell; 4] = [row.bits.into(), row.more.into(), name.into(), rate.into()];
        table.row(row.method, cells);
    }
    table
}
