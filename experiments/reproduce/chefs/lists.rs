//! Table 18: the values of nested lists, in place of Long Range Arena's ListOps.

use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;
use experiments::transformer::lists::CHARACTERS;
use experiments::transformer::shape::Size;
use experiments::transformer::task::Task;
use experiments::transformer::text::Text;
use experiments::transformer::train::{self, HEADS, Plan};

pub const ITEM: Item = Item {
    name: "chefs-table-18",
    paper: Paper::Chefs,
    place: "Table 18",
    claim: "On ListOps FAVOR++ (OPRF) is more accurate than FAVOR+, which is as accurate as exact attention; the linear transformer (ELU + 1) learns next to nothing.",
    setting: "A small stand-in: [MAX 3 [MIN 7 2] 5], with maxima, minima, medians and sums modulo 10, nested 3 deep, 8 to 48 characters in place of 500 to 2,000; the transformer of `charlm` foretells the value behind \
              the last bracket, causally (2 layers, width 64, 4 heads, 64 features a head, 200 steps of 32 expressions, the same seeds for all methods); accuracy on 2,000 others. A trial of exact attention with 96 characters came to 26 % after 200 \
              steps, where the most frequent value has 12.5 %.",
    rule: "Exact attention, FAVOR+ and OPRF are more accurate than the most frequent value; OPRF more than FAVOR+, and ELU + 1 less than FAVOR+; FAVOR+ is within 3 percent of exact attention. By 3 standard errors over 3 seeds, of \
           differences where two are compared: for normal means a false alarm has probability 0.05 each.",
    minutes: 2.0,
    data: &[],
    run,
};

/// What it is called, and the paper's accuracy in percent.
const METHODS: [(&str, Option<f64>); 5] = [
    ("exact", Some(36.38)),
    ("favor-orthogonal", Some(36.00)),
    ("oprf", Some(42.65)),
    ("elu", Some(17.15)),
    ("shaped", None),
];
/// Characters of a window.
const CONTEXT: usize = 48;
const RATE: f64 = 3e-3;
const NEAR: f64 = 0.03;

fn accuracy(text: &Text, method: &str, seed: u64, [steps, batch, judged]: [usize; 3]) -> Result<f64, Stop> {
    let size = Size { characters: CHARACTERS, context: CONTEXT, width: 64, heads: HEADS, layers: 2 };
    let plan = Plan { task: Task::Lists, method: method.into(), size, seed, steps, batch, rate: RATE };
    let mut run = train::Run::new(plan, text)?;
    while !run.is_done() {
        run.step()?;
    }
    Ok(run.judge(judged)?.accuracy())
}

/// The share of the most frequent value of the expressions that judge.
fn majority(text: &Text) -> f64 {
    let windows = Task::Lists.examination(text, CONTEXT);
    let mut counts = [0usize; 10];
    windows.iter().for_each(|window| counts[window.target(CONTEXT - 1)] += 1);
    counts.into_iter().max().unwrap_or(0) as f64 / windows.len() as f64
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let text = Text::bundled()?;
    let size = run.full_or_quick([200, 32, 2000], [10, 4, 100]);
    let seeds = run.full_or_quick(3, 2);
    run.expect(METHODS.len() * seeds);
    let mut found = vec![Vec::new(); METHODS.len()];
    for seed in 0..seeds as u64 {
        for (found, (method, _)) in found.iter_mut().zip(METHODS) {
            let seed = run.seed() + seed;
            let work = || Ok(vec![accuracy(&text, method, seed, size)?]);
            found.push(run.cell(&format!("{method}, seed {seed}"), work)?[0]);
        }
    }
    let mean = |k: usize| Mean::of(&found[k]);
    let difference = |a: usize, b: usize| Mean::of_differences(&found[a], &found[b]);
    let (majority, zero) = (majority(&text), Mean::exact(0.0));
    let mut claim = Claim::default();
    for (k, (method, _)) in METHODS.iter().enumerate().take(3) {
        claim.less(format!("{method} is above the most frequent value"), Mean::exact(majority), mean(k));
    }
    claim.less("OPRF above FAVOR+", zero, difference(2, 1));
    claim.less("ELU + 1 below FAVOR+", difference(3, 1), zero);
    let behind = difference(1, 0);
    claim.less("FAVOR+ not far below exact attention", Mean::exact(-NEAR), behind);
    claim.less("FAVOR+ not far above exact attention", behind, Mean::exact(NEAR));
    let mut table = Table::new(
        format!("Percent of values foretold right; the most frequent one has {}", number(100.0 * majority)),
        ["method", "accuracy", "above exact", "in the paper"],
    );
    for (k, (method, published)) in METHODS.iter().enumerate() {
        let name = if published.is_some() { (*method).to_owned() } else { format!("beyond: {method}") };
        let cells: [Cell; 3] =
            [mean(k).times(100.0).into(), difference(k, 0).times(100.0).into(), (*published).into()];
        table.row(name, cells);
    }
    let shown = METHODS.iter().enumerate().take(4);
    let shown = shown.map(|(k, (method, _))| format!("{method} {}", number(100.0 * mean(k).value)));
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("percent right: {}", shown.collect::<Vec<_>>().join(", ")),
        theirs: "softmax 36.38, FAVOR+ 36.00, FAVOR++ 42.65, ELU + 1 17.15".into(),
        tables: vec![table],
        reasons: vec![
            "Why it does not rank them: after 200 steps exact attention itself is at 27 %, and no features are worse by more than their error; what is learnt so early does not depend on the kernel. The paper trains \
             for 5,000 steps and more on lists of 500 to 2,000 characters.".into(),
        ],
        ..Outcome::default()
    })
}
