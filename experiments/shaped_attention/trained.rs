//! The heads of a trained transformer.

use experiments::progress;
use experiments::tokens::Tokens;
use ndarray::{Array2, Array4, Axis};
use random_features::Result;
use random_features::apply::attention::{ExactAttention, Heads};
use rayon::prelude::*;

use crate::alone;
use crate::maps::{ALONE, Choice, Exact, KINDS, Kind, distance, one_head};
use crate::splits::{FITS, Fit, Rows, Split};

/// The size of the experiment.
pub struct Setup {
    pub features: Vec<usize>,
    pub repeat: u64,
    pub seed: u64,
}

/// A map's errors, chosen in one way.
pub struct Outcome {
    pub map: &'static str,
    pub fit: &'static str,
    pub m: usize,
    pub biased: bool,
    /// What the choice expects: the mean logarithm of the relative second moment, less ln m.
    pub predicted: f64,
    /// The number of coordinates, on average.
    pub rank: f64,
    pub error: f64,
    /// Over heads; over draws if there is but one head.
    pub standard_error: f64,
}

/// The mean of the values for every query, beside it.
pub struct Results {
    pub outcomes: Vec<Outcome>,
    /// For each fit.
    pub means: Vec<(&'static str, f64)>,
}

/// The tokens of a split with their exact attention, and the queries whose outputs are evaluated.
struct Evaluation {
    tokens: [Array4<f32>; 3],
    exact: Array4<f32>,
    rows: Vec<usize>,
}

impl Evaluation {
    /// Neighbours are those in the sequence, so all queries are asked where all tokens are there.
    fn new([q, k, v]: &[Array2<f32>; 3], split: &Split, fit: Fit) -> Result<Self> {
        let Rows { queries, keys } = &split.evaluated;
        let of = |x: &Array2<f32>, rows: &[usize]| one_head(&x.select(Axis(0), rows));
        let (queries, rows) = match fit {
            Fit::Tokens => (of(q, queries), (0..queries.len()).collect()),
            _ => (one_head(q), queries.clone()),
        };
        let tokens = [queries, of(k, keys), of(v, keys)];
        let exact =
            ExactAttention::new().bidirectional(&Heads::new(&tokens[0], &tokens[1], &tokens[2])?)?.output;
        Ok(Evaluation { tokens, exact, rows })
    }

    /// The relative error of the outputs of the queries that are evaluated.
    fn error(&self, out: &Array4<f32>) -> f64 {
        let rows = |x: &Array4<f32>| x.select(Axis(2), &self.rows);
        distance(rows(out).iter().zip(&rows(&self.exact)))
    }

    /// The error of an output that is the mean of the values for every query.
    fn error_of_mean(&self) -> f64 {
        let mean = self.tokens[2].mean_axis(Axis(2)).unwrap_or_default().insert_axis(Axis(2));
        self.error(&(&self.exact * 0.0 + &mean))
    }
}

/// One head under one fit.
struct Head {
    number: usize,
    tokens: [Array2<f32>; 3],
    splits: Vec<(Split, Evaluation)>,
    fit: Fit,
}

/// Errors of all draws and splits of a head, what was expected and the number of coordinates.
struct Errors {
    draws: Vec<f64>,
    predicted: f64,
    rank: f64,
}

impl Head {
    fn errors(&self, setup: &Setup, kind: Kind, m: usize) -> Result<Errors> {
        let [q, k, _] = &self.tokens;
        let count = self.splits.len() as f64;
        let mut errors = Errors { draws: Vec::new(), predicted: 0.0, rank: 0.0 };
        for (number, (split, evaluation)) in self.splits.iter().enumerate() {
            let (x, y) = (q.select(Axis(0), &split.chosen.queries), k.select(Axis(0), &split.chosen.keys));
            let chosen = kind.choose((x.view(), &split.attention, y.view()), m, self.fit.ridge())?;
            errors.predicted += chosen.predicted / count;
            errors.rank += chosen.rank() as f64 / count;
            for repeat in 0..setup.repeat {
                let parts = [self.number as u64, number as u64, repeat, m as u64];
                let stream = parts.iter().fold(0, |stream, part| (stream << 16) | part);
                let attention = chosen.attention(self.fit.keys(), (setup.seed, stream))?;
                let [q, k, v] = &evaluation.tokens;
                let out = attention.bidirectional(&Heads::new(q, k, v)?)?.output;
                errors.draws.push(evaluation.error(&out));
            }
        }
        Ok(errors)
    }

    /// The errors of exact pairs without any features: one for each split.
    fn errors_alone(&self, exact: Exact) -> Result<Errors> {
        let [q, k, _] = &self.tokens;
        let mut errors = Errors { draws: Vec::new(), predicted: f64::NAN, rank: 0.0 };
        for (split, evaluation) in &self.splits {
            let chosen = Kind { choice: Choice::Weighted, exact }.choose(
                (q.view(), &split.attention, k.view()),
                2,
                self.fit.ridge(),
            )?;
            let seen = |i: usize, j: usize| exact.is_near(i, j) || chosen.keys.contains(&j);
            errors.draws.push(evaluation.error(&alone::output(&evaluation.tokens, seen)));
        }
        Ok(errors)
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn standard_error(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, mean(values.iter().copied()));
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n).sqrt()
}

/// The outcome of a map with m features from the errors of all heads.
fn outcome(map: &'static str, fit: &'static str, (m, biased): (usize, bool), errors: &[Errors]) -> Outcome {
    let of_heads: Vec<f64> = errors.iter().map(|errors| mean(errors.draws.iter().copied())).collect();
    let spread = if errors.len() > 1 { &of_heads } else { &errors[0].draws };
    Outcome {
        map,
        fit,
        m,
        biased,
        predicted: mean(errors.iter().map(|errors| errors.predicted)),
        rank: mean(errors.iter().map(|errors| errors.rank)),
        error: mean(of_heads.iter().copied()),
        standard_error: standard_error(spread),
    }
}

pub fn run(setup: &Setup, tokens: &Tokens) -> Result<Results> {
    let kinds = |fit: Fit| KINDS.iter().filter(move |(_, kind)| fit.has(kind.exact));
    let of: usize = FITS.iter().map(|(_, fit)| kinds(*fit).count() * setup.features.len()).sum();
    let (mut done, mut results) = (0, Results { outcomes: Vec::new(), means: Vec::new() });
    for (name, fit) in FITS {
        let head = |number: usize| {
            let tokens = tokens.head(number);
            let splits = fit.splits(tokens[0].nrows(), tokens[1].nrows(), setup.seed).into_iter();
            let evaluated =
                |split| Evaluation::new(&tokens, &split, fit).map(|evaluation| (split, evaluation));
            let splits = splits.map(evaluated).collect::<Result<_>>()?;
            Ok(Head { number, tokens, splits, fit })
        };
        let heads = (0..tokens.heads()).map(head).collect::<Result<Vec<Head>>>()?;
        let of_mean = heads.iter().map(|head| mean(head.splits.iter().map(|(_, e)| e.error_of_mean())));
        results.means.push((name, mean(of_mean)));
        for (map, kind) in kinds(fit) {
            for m in &setup.features {
                let errors = heads.par_iter().map(|head| head.errors(setup, *kind, *m));
                let errors = errors.collect::<Result<Vec<_>>>()?;
                results.outcomes.push(outcome(map, name, (*m, kind.is_biased()), &errors));
                done += 1;
                progress::show("maps", done, of);
            }
        }
        for (map, exact) in ALONE.into_iter().filter(|(_, exact)| fit.has(*exact) && fit != Fit::Tokens) {
            let errors = heads.iter().map(|head| head.errors_alone(exact)).collect::<Result<Vec<_>>>()?;
            results.outcomes.push(outcome(map, name, (0, true), &errors));
        }
    }
    Ok(results)
}
