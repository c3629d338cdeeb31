//! Figure 10: a language model that is trained with sampled softmax.

use super::words::{self, Size, Words};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;
use experiments::plot::{Panel, Series};
use experiments::sampling::methods::{METHODS, Method};
use experiments::sampling::training::{DRAWS, FEATURES};
use experiments::transformer::text::Text;

pub const ITEM: Item = Item {
    name: "hybrid-figure-10",
    paper: Paper::Hybrid,
    place: "Figure 10",
    claim: "Trained by 40 sampled negative classes, a language model learns alike whatever features propose them: differences between mechanisms are not \
            very significant.",
    setting: "In place of Penn Treebank and an LSTM, and of `charlm`, whose 63 classes need no draws, the words of the King James New Testament (those that occur at least 3 times, and one class for all others) and \
              a log-bilinear model: a linear map of the embeddings of the last 3 words, in ℝ³², Adagrad, 1500 steps of 64 words; 40 draws, D = 128 features (1024 in the \
              paper), hybrids with D/8 base frequencies and 8 of λ, proposals for directions at temperature 0.25; loss over all classes for 4000 held-out words, 3 seeds. All mechanisms with features are mixed with one tenth of uniform draws, which those that may be negative need.",
    rule: "Every two mechanisms with features end within 0.05 nats of each other: by 3 standard errors of the paired difference over 3 \
           seeds, 0.05 for each with normal means. Few seeds: differences of runs of one mechanism are some 0.1 nats, so that it takes luck to be true.",
    minutes: 6.0,
    data: &[],
    run,
};

/// Nats that are not significant.
const ALIKE: f64 = 0.05;
const MEASURED: usize = 5;

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let size = Size {
        steps: run.full_or_quick(1500, 20),
        examined: run.full_or_quick(4000, 200),
        measured: MEASURED,
    };
    let seeds = run.full_or_quick(3, 2);
    let text = Text::bundled()?;
    let words = Words::of(&(text.string(&text.training) + &text.string(&text.held_out)));
    let ways: Vec<(&str, Option<Method>)> = std::iter::once(("full softmax", None))
        .chain(METHODS.map(|method| (method.name(), Some(method))))
        .chain([("beyond: OPRF, simplex", Some(Method::Optimal))])
        .collect();
    run.expect(ways.len() * seeds);
    let mut losses = vec![vec![Vec::new(); MEASURED]; ways.len()];
    for seed in 0..seeds as u64 {
        for ((name, method), losses) in ways.iter().zip(&mut losses) {
            let seed = run.seed() + seed;
            let own =
                run.cell(&format!("{name}, seed {seed}"), || Ok(words::train(&words, *method, size, seed)?))?;
            losses.iter_mut().zip(own).for_each(|(all, loss)| all.push(loss));
        }
    }
    let means: Vec<Vec<Mean>> =
        losses.iter().map(|way| way.iter().map(|own| Mean::of(own)).collect()).collect();
    let at_end = |k: usize| means[k][MEASURED - 1];
    // The first ways are the full softmax and uniform draws, and the last is beyond the paper.
    let with_features: Vec<usize> = (2..ways.len() - 1).collect();
    let difference =
        |a: usize, b: usize| Mean::of_differences(&losses[a][MEASURED - 1], &losses[b][MEASURED - 1]);
    let mut claim = Claim::default();
    for (place, &k) in with_features.iter().enumerate() {
        for &other in &with_features[place + 1..] {
            let statement = format!("{} and {}: within {ALIKE} nats", ways[k].0, ways[other].0);
            claim.within(statement, difference(k, other), ALIKE);
        }
    }
    let title = format!(
        "Loss in nats of held-out words; {} classes, {} words to learn from, {DRAWS} draws, {FEATURES} features",
        words.classes,
        words.len()
    );
    let steps = || (1..=MEASURED).map(|k| k * size.steps / MEASURED);
    let mut table =
        Table::new(title, std::iter::once("steps".to_owned()).chain(steps().map(|s| s.to_string())));
    for ((name, _), means) in ways.iter().zip(&means) {
        table.row(*name, means.iter().map(|mean| Cell::Mean(*mean)));
    }
    let series = |((name, _), means): (&(&str, Option<Method>), &Vec<Mean>)| {
        let line: Vec<(f64, f64)> = steps().map(|s| s as f64).zip(means.iter().map(|m| m.value)).collect();
        Series { name: (*name).into(), points: line.clone(), line }
    };
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "nats at the end: full softmax {}, uniform {}, features {} to {}",
            number(at_end(0).value),
            number(at_end(1).value),
            number(with_features.iter().map(|k| at_end(*k).value).fold(f64::INFINITY, f64::min)),
            number(with_features.iter().map(|k| at_end(*k).value).fold(0.0, f64::max)),
        ),
        theirs: "curves of perplexity; “not very significant”".into(),
        tables: vec![table],
        panels: vec![Panel {
            title: "A language model trained by 40 draws".into(),
            x_label: "steps".into(),
            y_label: "nats, held-out words".into(),
            series: ways.iter().zip(&means).map(series).collect(),
        }],
        reasons: vec![
            "Uniform draws learn worse than equal logits, whose loss is ln 3105 = 8.04 nats, and get worse from the middle of the run on: at the rate of all rows 40 of 3105 classes say too little of the others. \
             The paper's other reference, draws from the exact softmax, is not run: the full softmax, which has its gradient without noise, stands for it."
                .into(),

            "Features that are never negative end some 0.3 nats behind the others, which is more than the rule calls alike; in a first run they had no part of uniform draws, and were as far behind. What this crate would choose \
             here is every class: a tree of draws pays from some thousand classes on (the experiment `softmax_sampling`), and loses some 0.6 nats.".into(),
        ],
        ..Outcome::default()
    })
}
