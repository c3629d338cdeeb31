//! Figures 3, 20 and 21: time and memory over the length.

use std::process::Command;
use std::time::Instant;

use experiments::attention::{Kind, Stream, attention, tokens};
use experiments::plot::{Panel, Series};
use experiments::transformer::shape::Size;
use experiments::transformer::train;
use ndarray::Array4;
use random_features::Result;
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Orthogonal;

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::Language;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-3",
    paper: Paper::Performers,
    place: "Figures 3, 20 and 21",
    claim: "Forward and backward pass take nearly linear time and sub-quadratic memory, for any number of layers, and are nearly as fast as a model \
            whose attention returns the values (\"X\").",
    setting: "On the processor instead of a V100. Attention alone: one head, f32, d = d_v = 64, 256 positive orthogonal features; the least time of some \
              runs, and the peak of resident memory of a process that does this alone. A model: the transformer of `charlm`, width 64, 4 heads, 64 \
              features a head; time of a gradient for one text.",
    rule: "Between the two longest lengths, which differ by a factor of 4, time of linear attention grows with an exponent below 1.2, \
           forward and with the backward pass, and memory with one below 1.1; time of exact attention with one above 1.7. A gradient of the model with \
           FAVOR+ takes less than twice that of X at the longest length, and of 4 layers less than 4.8 times that of one. Times are not \
           samples: no rate of false alarms.",
    minutes: 4.0,
    data: &[],
    run,
};

/// The dimensions of tokens and values, and the frequencies.
const D: usize = 64;
const M: usize = 256;

/// What is timed, by its name in another process and in the table.
const WORKS: [(&str, &str); 5] = [
    ("linear", "linear"),
    ("linear-causal", "linear, causal"),
    ("exact", "exact"),
    ("exact-causal", "exact, causal"),
    ("copy", "X, a copy of the values"),
];
const MODELS: [&str; 3] = ["exact", "favor-orthogonal", "values"];
const LAYERS: [usize; 3] = [1, 2, 4];

/// Work that is repeated stops after so many seconds or runs.
const ENOUGH: (f64, usize) = (0.5, 20);

/// The least time of some runs.
pub fn least(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let (mut least, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    while runs == 0 || (total < ENOUGH.0 && runs < ENOUGH.1) {
        let start = Instant::now();
        work()?;
        let seconds = start.elapsed().as_secs_f64();
        (least, total, runs) = (least.min(seconds), total + seconds, runs + 1);
    }
    Ok(least)
}

/// Does one work of attention in this process: seconds forward, peak of memory, seconds forward and backward, peak of memory, as
/// text.
pub fn one(work: &str, length: usize, seed: u64) -> std::result::Result<String, String> {
    if !WORKS.iter().any(|(name, _)| *name == work) {
        return Err(format!("--one takes one of {}, not '{work}'", WORKS.map(|(name, _)| name).join(", ")));
    }
    let numbers = measured(work, length, seed).map_err(|error| error.to_string())?;
    Ok(numbers.map(|number| format!("{number:e}")).join(" ") + "\n")
}

fn measured(work: &str, length: usize, seed: u64) -> Result<[f64; 4]> {
    let stream = |number| Stream::new(seed, [2, 0, number]);
    let [q, k, v] = [0, 1, 2].map(|number| tokens((length, D), 0.5, stream(number)));
    let heads = Heads::new(&q, &k, &v)?;
    let linear: Attention<f32> = attention(Kind::Positive, &Orthogonal, (D, M), 0.0, stream(3))?;
    let exact = ExactAttention::new();
    let mut out = Array4::<f32>::zeros(heads.output_dim());
    let forward = least(|| {
        match work {
            "linear" => linear.bidirectional_into(&heads, &mut out).map(drop)?,
            "linear-causal" => linear.causal_into(&heads, &mut out).map(drop)?,
            "exact" => exact.bidirectional_into(&heads, &mut out).map(drop)?,
            "exact-causal" => exact.causal_into(&heads, &mut out).map(drop)?,
            _ => out.assign(&v),
        }
        Ok(())
    })?;
    let of_forward = peak_memory();
    let backward = least(|| {
        let gradients = match work {
            "linear" => linear.bidirectional_backward(&heads, &v)?,
            "linear-causal" => linear.causal_backward(&heads, &v)?,
            "exact" => exact.bidirectional_backward(&heads, &v)?,
            "exact-causal" => exact.causal_backward(&heads, &v)?,
            _ => {
                std::hint::black_box([Array4::zeros(q.dim()), Array4::zeros(k.dim()), v.clone()]);
                return Ok(());
            }
        };
        std::hint::black_box(&gradients);
        Ok(())
    })?;
    std::hint::black_box(&out);
    Ok([forward, of_forward, forward + backward, peak_memory()])
}

/// The peak of this process's resident memory in bytes, if the system tells as Linux does.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    line.and_then(|kilobytes| kilobytes.trim().parse::<f64>().ok())
        .map_or(f64::NAN, |kilobytes| 1024.0 * kilobytes)
}

/// Has another process measure.
fn measure(work: &str, length: usize, seed: u64) -> std::result::Result<Vec<f64>, Stop> {
    let failed =
        |why: &str| Stop::Failed(format!("{work} attention of length {length} cannot be measured: {why}"));
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let (length, seed) = (length.to_string(), seed.to_string());
    let output = Command::new(program).args(["--one", work, "--length", &length, "--seed", &seed]).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers.len() {
        4 => Ok(numbers),
        _ => Err(failed(String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The time of a gradient of a model with so many layers for a text of so many characters.
fn gradient(
    language: &Language,
    method: &str,
    layers: usize,
    length: usize,
    seed: u64,
) -> std::result::Result<f64, Stop> {
    let plan = language.plan(method, seed);
    let size = Size { layers, context: length, ..plan.size };
    let windows = language.text().batch(1, length, [seed, 0]);
    let run = train::Run::new(train::Plan { size, ..plan }, language.text())?;
    Ok(least(|| run.model().gradient(&windows, length).map(drop))?)
}

/// What was measured: of attention over the length, and of models.
struct Costs {
    lengths: Vec<usize>,
    /// For each work and length; none where it is too long.
    attention: Vec<Vec<Option<[f64; 4]>>>,
    texts: Vec<usize>,
    /// For each model, number of layers and length.
    models: Vec<Vec<Vec<f64>>>,
}

fn measure_all(run: &mut Run<'_>) -> std::result::Result<Costs, Stop> {
    let language = Language::new(run)?;
    let (lengths, longest_exact) =
        run.full_or_quick(((10..18).map(|k| 1 << k).collect(), 1 << 14), (vec![256, 512, 1024], 512));
    let texts: Vec<usize> = run.full_or_quick((8..14).map(|k| 1 << k).collect(), vec![64, 128, 256]);
    let seed = run.seed();
    run.expect(WORKS.len() * lengths.len() + MODELS.len() * LAYERS.len() * texts.len());
    let mut attention = Vec::new();
    for (work, _) in WORKS {
        let mut over_lengths = Vec::new();
        for &length in &lengths {
            let is_short = length <= longest_exact || !work.starts_with("exact");
            let numbers =
                is_short.then(|| run.cell(&format!("{work}, {length}"), || measure(work, length, seed)));
            over_lengths.push(numbers.transpose()?.map(|n| [n[0], n[1], n[2], n[3]]));
        }
        attention.push(over_lengths);
    }
    let mut models = Vec::new();
    for model in MODELS {
        let mut over_layers = Vec::new();
        for layers in LAYERS {
            let mut over_lengths = Vec::new();
            for &length in &texts {
                let name = format!("a model, {model}, {layers} layers, {length}");
                let work = || Ok(vec![gradient(&language, model, layers, length, seed)?]);
                over_lengths.push(run.cell(&name, work)?[0]);
            }
            over_layers.push(over_lengths);
        }
        models.push(over_layers);
    }
    Ok(Costs { lengths, attention, texts, models })
}

impl Costs {
    /// The exponent of growth between the longest length of a work and the one two before it.
    fn exponent(&self, work: usize, which: usize) -> f64 {
        let known = self.lengths.iter().zip(&self.attention[work]);
        let known: Vec<(f64, f64)> = known.filter_map(|(l, n)| Some((*l as f64, (*n)?[which]))).collect();
        let (last, before) = (known[known.len() - 1], known[known.len().saturating_sub(3)]);
        (last.1 / before.1).ln() / (last.0 / before.0).ln()
    }
}

fn run(run: &mut Run<'_>) -> std::result::Result<Outcome, Stop> {
    let costs = measure_all(run)?;
    let mut claim = Claim::default();
    for (which, what) in [(0, "forward"), (2, "forward and backward")] {
        for work in [0, 1] {
            claim.is(format!("{} attention, {what}: time", WORKS[work].1), costs.exponent(work, which) < 1.2);
            claim.is(
                format!("{} attention, {what}: memory", WORKS[work].1),
                costs.exponent(work, which + 1) < 1.1,
            );
        }
        claim.is(format!("exact attention, {what}"), costs.exponent(2, which) > 1.7);
    }
    let [favor, values] = [1, 2].map(|model: usize| &costs.models[model]);
    let last = costs.texts.len() - 1;
    let over_x = favor[LAYERS.len() - 1][last] / values[LAYERS.len() - 1][last];
    claim.is("a model is nearly as fast as X", over_x < 2.0);
    let of_layers = favor[LAYERS.len() - 1][last] / favor[0][last];
    claim.is("time is proportional to the number of layers", of_layers < 4.8);
    let exact_over = costs.models[0][LAYERS.len() - 1][last] / favor[LAYERS.len() - 1][last];
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "exponents of time: linear {}, exact {}; a model at length {} takes {} times X, with exact attention {} times FAVOR+",
            number(costs.exponent(0, 2)),
            number(costs.exponent(2, 2)),
            costs.texts[last],
            number(over_x),
            number(exact_over)
        ),
        theirs: "pictures".into(),
        tables: tables(&costs),
        panels: panels(&costs),
        notes: vec![
            "Exact attention reads keys in blocks here, so that its memory is linear too: the L × L matrix that the paper's baseline keeps, 1 GiB at 16,384 tokens, is nowhere. Its rows end there because of its time."
                .into(),
        ],
        ..Outcome::default()
    })
}

fn tables(costs: &Costs) -> Vec<Table> {
    let heads = || std::iter::once("L".to_owned()).chain(WORKS.map(|(_, name)| name.into()));
    let megabytes = 1.0 / f64::from(1 << 20);
    let parts = [
        ("Milliseconds of attention, forward", 0, 1e3),
        ("Milliseconds of attention, forward and backward", 2, 1e3),
        ("Peak of resident memory in MiB, forward: program, inputs and output included", 1, megabytes),
        ("Peak of resident memory in MiB, forward and backward", 3, megabytes),
    ];
    let mut tables = Vec::new();
    for (title, which, factor) in parts {
        let mut table = Table::new(title, heads());
        for (k, length) in costs.lengths.iter().enumerate() {
            let cell = |all: &Vec<Option<[f64; 4]>>| Cell::from(all[k].map(|n| factor * n[which]));
            table.row(length.to_string(), costs.attention.iter().map(cell));
        }
        tables.push(table);
    }
    let names = MODELS.iter().flat_map(|model| LAYERS.map(|layers| format!("{model}, {layers}")));
    let mut table = Table::new(
        "Milliseconds of a gradient of a model, by its attention and number of layers",
        std::iter::once("L".to_owned()).chain(names),
    );
    for (k, length) in costs.texts.iter().enumerate() {
        table.row(length.to_string(), costs.models.iter().flatten().map(|all| 1e3 * all[k]));
    }
    tables.push(table);
    tables
}

fn panels(costs: &Costs) -> Vec<Panel> {
    let panel = |title: &str, series: Vec<Series>| Panel {
        title: title.into(),
        x_label: "log₂ L".into(),
        y_label: "seconds".into(),
        series,
    };
    let both = |name: String, points: Vec<(f64, f64)>| Series { name, line: points.clone(), points };
    let x = |length: &usize| (*length as f64).log2();
    let of_work = |(k, (_, name)): (usize, &(&str, &str))| {
        let points = costs.lengths.iter().zip(&costs.attention[k]);
        both((*name).into(), points.filter_map(|(l, n)| Some((x(l), (*n)?[2]))).collect())
    };
    let of_model = |(k, name): (usize, &&str)| {
        let points = costs.texts.iter().zip(&costs.models[k][LAYERS.len() - 1]);
        both(format!("a model, {name}"), points.map(|(l, seconds)| (x(l), *seconds)).collect())
    };
    vec![
        panel("Attention, forward and backward", WORKS.iter().enumerate().map(of_work).collect()),
        panel("A gradient of a model of 4 layers", MODELS.iter().enumerate().map(of_model).collect()),
    ]
}
