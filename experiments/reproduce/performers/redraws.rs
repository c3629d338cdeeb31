//! Figures 5 (right) and 15: lucky and unlucky features, and features that are drawn again.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::Language;
use crate::mean::Mean;
use crate::performers::functions;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-15",
    paper: Paper::Performers,
    place: "Figures 5 (right) and 15",
    claim: "Trigonometric features are unstable in training; positive ones need redraws to reach exact attention; regularised ones with \
            redraws converge faster. Positive features reach what ReLU features do.",
    setting: "The small model of `charlm` as in performers-figure-16, features fixed or drawn again 20 times in a run; in place of PG-19. \
              Lucky and unlucky features: 8 draws of independent frequencies with the same weights to begin with and the same text.",
    rule: "Trigonometric features have more bits than positive ones, redrawn or not; redrawn positive features fewer than fixed ones, \
           independent and orthogonal; fixed ones more than exact attention; regularised features with redraws have fewer bits than positive ones with them; ReLU features are within 0.02 bits of positive ones, with redraws. Each by 3 standard errors of the paired difference, at least the \
           pooled one over all methods that learn alike: at most 0.006 each. An unlucky draw spoils training where it is fixed, and does not where it is redrawn: \
           the worst of 8 is more than 0.05 bits behind the best, or is not; of numbers as they are.",
    minutes: 14.0,
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
/// Draws of frequencies, all else being equal, and how many bits one of them must cost to spoil training.
const DRAWS: usize = 8;
const SPOILT: f64 = 0.05;

/// The bits of each draw of fixed and of redrawn frequencies.
struct Luck([(&'static str, Vec<f64>); 2]);

impl Luck {
    fn of(run: &mut Run<'_>, language: &Language) -> Result<Self, Stop> {
        let mut bits_of = |options: &str| -> Result<Vec<f64>, Stop> {
            let seed = run.seed();
            let bits = |draw| language.cell(run, &format!("favor-independent{options}/draw-{draw}"), seed);
            (1..=DRAWS).map(bits).collect()
        };
        Ok(Luck([("fixed", bits_of("")?), ("redrawn", bits_of("/redrawn")?)]))
    }

    /// The bits of the best and of the worst draw.
    fn ends(bits: &[f64]) -> [f64; 2] {
        [bits.iter().copied().fold(f64::INFINITY, f64::min), bits.iter().copied().fold(0.0, f64::max)]
    }

    fn judge(&self, claim: &mut Claim) {
        let [fixed, redrawn] = [0, 1].map(|k| Luck::ends(&self.0[k].1));
        claim.is("an unlucky draw spoils training if it is fixed", fixed[1] - fixed[0] > SPOILT);
        claim.is("and does not if it is redrawn", redrawn[1] - redrawn[0] <= SPOILT);
    }

    fn table(&self) -> Table {
        let title = "Luck: bits of 8 draws of 64 independent frequencies, weights to begin with and text being the same";
        let mut table = Table::new(title, ["frequencies", "mean", "best", "worst", "deviation"]);
        for (name, bits) in &self.0 {
            let (mean, [best, worst]) = (Mean::of(bits), Luck::ends(bits));
            let deviation = mean.error * (bits.len() as f64).sqrt();
            table.row(*name, [Cell::Mean(mean), best.into(), worst.into(), deviation.into()]);
        }
        table
    }
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect((METHODS.len() + BEYOND.len() + 1) * language.seeds() as usize + 2 * DRAWS);
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
    let lucky = Luck::of(run, &language)?;
    lucky.judge(&mut claim);
    let shown = ["trigonometric", "favor-orthogonal", "favor-orthogonal/redrawn", "regularised"];
    let shown = shown.map(|name| format!("{name} {}", number(functions::than(&rows, name, "exact").value)));
    let ours = format!("bits more than exact: {}", shown.join(", "));
    rows.extend(language.beyond(run, &BEYOND)?);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours,
        theirs: "curves of perplexity".into(),
        tables: vec![functions::table(&rows), lucky.table()],
        notes: vec![
            "Beyond the paper: the last rows are simplex features, exact neighbours with FAVOR+, and features shaped by the data."
                .into(),
        ],
        reasons: vec![
            "Why redraws change nothing: fixed positive features are not worse than exact attention in this model, so that there is nothing for redraws, or for the regularised kernel, to bring back. Trigonometric \
             ones are worse, and worst with redraws.".into(),
            "Why luck does not show: fixed or redrawn, the eight draws differ alike, and by less than three seeds of weights and text do \
             in exact attention: no draw is a bad one in a model of this size.".into(),
        ],
        ..Outcome::default()
    })
}
