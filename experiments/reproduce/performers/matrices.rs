//! Figures 10 to 12: attention matrices of a trained Performer.

use experiments::transformer::mechanism::{Mechanism, Tokens};
use experiments::transformer::model::{LayerTrace, Model};
use experiments::transformer::text::Window;
use experiments::transformer::train::CONTEXT;
use ndarray::{Array2, Array4, ArrayView2, Axis, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use rayon::prelude::*;

use crate::item::{Item, Outcome, Paper, Stop};
use crate::language::Language;
use crate::mean::Mean;
use crate::run::Run;
use crate::surface::{Bands, Surface};
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-10",
    paper: Paper::Performers,
    place: "Figures 10 to 12",
    claim: "Attention matrices of a trained Performer have diagonal heads, which attend to neighbours, and vertical ones, which attend to fixed \
            places.",
    setting: "The small model of `charlm` with orthogonal positive features, causal; matrices are its outputs for one-hot values, on 16 held-out \
              sequences of 256 characters. Local: the weight of the 8 last characters over that of equal weights, over places of the second half. Vertical: the same of that place of the first half which has \
              the most. Beside it the exact attention of the same queries and keys. In place of a protein model on TrEMBL; the similarity of amino acids (Figure 13) has no \
              stand-in.",
    rule: "The head with the largest ratio is above 2, of \
           local and of vertical ones, by 3 standard errors over sequences. False alarms: below 0.0014 for each of the two, which is for means of one \
           head.",
    minutes: 0.5,
    data: &[],
    run,
};

const SEQUENCES: usize = 16;
/// What counts as near.
const NEAR: usize = 8;
/// The ratio that counts as a pattern.
const PATTERN: f64 = 2.0;
/// Characters of a side of a cell of the pictures.
const CELL: usize = 4;
const CELLS: usize = CONTEXT / CELL;

/// A head: its matrix and the exact one.
struct Head {
    linear: Array2<f64>,
    exact: Array2<f64>,
    /// The largest distance of a row's sum from 1, and that of matrix times values from the layer's output, relative to its largest entry.
    defects: [f64; 2],
}

/// All heads of a layer on one sequence.
fn heads(attention: &Attention<f32>, layer: &LayerTrace<f32>, count: usize) -> Result<Vec<Head>, Stop> {
    let (length, width) = (layer.tokens.nrows(), layer.tokens.ncols() / 3);
    let dim = width / count;
    let tokens = Tokens::new(&layer.tokens, length, count);
    let part = |part: usize| {
        let mut all = Array4::zeros((1, count, length, dim));
        for head in 0..count {
            all.slice_mut(s![0, head, .., ..]).assign(&tokens.head(0, head)[part]);
        }
        all
    };
    let places = Array2::<f32>::eye(length);
    let one_hot = places.broadcast((1, count, length, length)).map(|all| all.to_owned()).unwrap_or_default();
    let (queries, keys) = (part(0), part(1));
    let all = Heads::new(&queries, &keys, &one_hot)?;
    let (linear, exact) = (attention.causal(&all)?.output, ExactAttention::new().causal(&all)?.output);
    let head = |head: usize| {
        let matrix = |all: &Array4<f32>| -> Array2<f64> { all.slice(s![0, head, .., ..]).mapv(f64::from) };
        let columns = |rows: &Array2<f32>, first: usize| {
            rows.slice(s![.., first + head * dim..first + (head + 1) * dim]).mapv(f64::from)
        };
        let (linear, output) = (matrix(&linear), columns(&layer.mixed, 0));
        let distance = (linear.dot(&columns(&layer.tokens, 2 * width)) - &output).mapv(f64::abs);
        let largest = |values: &Array2<f64>| values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let sums = linear.sum_axis(Axis(1)).iter().fold(0.0, |most: f64, sum| most.max((sum - 1.0).abs()));
        let defects = [sums, largest(&distance) / largest(&output)];
        Head { linear, exact: matrix(&exact), defects }
    };
    Ok((0..count).map(head).collect())
}

/// The heads of all layers.
fn all_heads(model: &Model<'_, f32>, window: &Window) -> Result<Vec<Head>, Stop> {
    let trace = model.forward(std::slice::from_ref(window))?;
    let mut all = Vec::new();
    for (layer, mechanism) in trace.layers.iter().zip(model.attention) {
        let Mechanism::Linear(attention) = mechanism else {
            return Err(Stop::Failed("the model's attention is not linear".into()));
        };
        all.extend(heads(attention, layer, model.shape.size.heads)?);
    }
    Ok(all)
}

/// Over equal weights: the weight of the last characters, a mean over places of the second half.
fn local(matrix: &Array2<f64>) -> f64 {
    let rows = CONTEXT / 2..matrix.nrows();
    let count = rows.len() as f64;
    rows.map(|i| matrix.slice(s![i, i + 1 - NEAR..=i]).sum() * (i + 1) as f64 / NEAR as f64).sum::<f64>()
        / count
}

/// Over equal weights: the weight of each place of the first half, means over the second half; the largest.
fn vertical(matrix: &Array2<f64>) -> f64 {
    let rows = CONTEXT / 2..matrix.nrows();
    let count = rows.len() as f64;
    let place = |j: usize| rows.clone().map(|i| matrix[[i, j]] * (i + 1) as f64).sum::<f64>() / count;
    (0..CONTEXT / 2).map(place).fold(0.0, f64::max)
}

/// ‖A − exact A‖/‖exact A‖ in the Frobenius norm.
fn distance(head: &Head) -> f64 {
    let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
    norm(&(&head.linear - &head.exact)) / norm(&head.exact)
}

/// Mean weights of cells, to four digits: a picture shows no more.
fn cells(matrix: &Array2<f64>) -> impl Iterator<Item = f64> {
    let mean = |part: ArrayView2<'_, f64>| (part.sum() / (CELL * CELL) as f64 * 1e4).round() / 1e4;
    matrix.exact_chunks((CELL, CELL)).into_iter().map(mean).collect::<Vec<f64>>().into_iter()
}

/// For each head: local and vertical of linear and of exact attention, and their distance, means with errors; then the two defects; and cells
/// of the most local and the most vertical head on the first sequence, linear and exact.
fn numbers(language: &Language, seed: u64) -> Result<Vec<f64>, Stop> {
    let trained = language.trained(language.plan("favor-orthogonal", seed))?;
    let model = trained.model();
    let plan = language.plan("favor-orthogonal", seed);
    let windows = plan.task.examination(language.text(), CONTEXT);
    let found: Vec<Vec<Head>> = windows[..SEQUENCES.min(windows.len())]
        .par_iter()
        .map(|window| all_heads(&model, window))
        .collect::<Result<_, _>>()?;
    let measures: [fn(&Head) -> f64; MEASURES] = [
        |head| local(&head.linear),
        |head| vertical(&head.linear),
        |head| local(&head.exact),
        |head| vertical(&head.exact),
        distance,
    ];
    let of = |head: usize, measure: fn(&Head) -> f64| {
        Mean::of(&found.iter().map(|sequence| measure(&sequence[head])).collect::<Vec<f64>>())
    };
    let mut numbers = vec![found[0].len() as f64];
    for head in 0..found[0].len() {
        numbers.extend(measures.iter().flat_map(|measure| {
            let Mean { value, error } = of(head, *measure);
            [value, error]
        }));
    }
    for defect in 0..2 {
        numbers.push(found.iter().flatten().map(|head| head.defects[defect]).fold(0.0, f64::max));
    }
    for measure in &measures[..2] {
        let most = |a: &usize, b: &usize| of(*a, *measure).value.total_cmp(&of(*b, *measure).value);
        let head = &found[0][(0..found[0].len()).max_by(most).unwrap_or(0)];
        numbers.extend(cells(&head.linear).chain(cells(&head.exact)));
    }
    Ok(numbers)
}

const MEASURES: usize = 5;

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let language = Language::new(run)?;
    run.expect(1);
    let seed = run.seed();
    let numbers = run.cell("matrices", || numbers(&language, seed))?;
    let count = numbers[0] as usize;
    let (means, rest) = numbers[1..].split_at(2 * MEASURES * count);
    let mean = |head: usize, measure: usize| {
        let place = 2 * (MEASURES * head + measure);
        Mean { value: means[place], error: means[place + 1] }
    };
    let largest = |measure: usize| {
        let above = |a: &usize, b: &usize| mean(*a, measure).value.total_cmp(&mean(*b, measure).value);
        mean((0..count).max_by(above).unwrap_or(0), measure)
    };
    // Matrices are the model's: their rows sum to 1, and with the values they give its outputs.
    if !(rest[0] <= 1e-4 && rest[1] <= 1e-3) {
        return Err(Stop::Failed(format!("matrices are wrong by {} and {}", rest[0], rest[1])));
    }
    let mut claim = Claim::default();
    claim.less("a head is local", Mean::exact(PATTERN), largest(0));
    claim.less("a head is vertical", Mean::exact(PATTERN), largest(1));
    let layers = count / experiments::transformer::train::HEADS;
    let heads = ["layer, head", "local", "vertical", "exact: local", "exact: vertical", "distance to exact"];
    let mut table = Table::new("Weights over equal weights, of local and of single places", heads);
    for head in 0..count {
        let name = format!("{}, {}", head / (count / layers) + 1, head % (count / layers) + 1);
        table.row(name, (0..MEASURES).map(|measure| Cell::from(mean(head, measure))));
    }
    let pictures = ["most local head", "most local, exact", "most vertical head", "most vertical, exact"];
    let surface = |(title, cells): (&str, &[f64])| -> Result<Surface, Stop> {
        let values = Array2::from_shape_vec((CELLS, CELLS), cells.to_vec())
            .map_err(|error| Stop::Failed(error.to_string()))?;
        // Logarithms show what is small; a cell above the diagonal has no weight at all.
        Ok(Surface {
            title: title.into(),
            x_label: "key".into(),
            y_label: "query".into(),
            x: 0.0..CONTEXT as f64,
            y: 0.0..CONTEXT as f64,
            values: values.mapv(|v| v.max(1e-5).log10()),
            bands: Bands { name: "weight", limits: -4.0..0.0, step: 0.25, logarithms: true },
        })
    };
    let surfaces: Result<Vec<Surface>, Stop> =
        pictures.into_iter().zip(rest[2..].chunks_exact(CELLS * CELLS)).map(surface).collect();
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "the most local head gives the last {NEAR} characters {} times equal weights, the most vertical one a place {} times",
            number(largest(0).value),
            number(largest(1).value)
        ),
        theirs: "pictures of 32 heads".into(),
        tables: vec![table],
        surfaces: surfaces?,
        notes: vec![
            "Queries run upwards in the pictures; cells are means of 4 × 4 weights.".into(),
        ],
        reasons: vec![
            "Why no head is local: the embedding of a place is the sum of those of its last four characters, so that attention need not look at neighbours; vertical heads are there, under exact attention too.".into(),
        ],
        ..Outcome::default()
    })
}
