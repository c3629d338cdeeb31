//! The heads of a trained transformer.

use ndarray::{Array2, Array4, Axis};
use random_features::Result;
use random_features::apply::attention::{ExactAttention, Heads};
use rayon::prelude::*;

use crate::files::Tokens;
use crate::maps::{KINDS, Kind, one_head, relative_error};
use crate::progress;
use crate::splits::{FITS, Fit, Split};

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

/// The tokens of a split that are evaluated, with their exact attention.
struct Evaluation {
    tokens: [Array4<f32>; 3],
    exact: Array4<f32>,
}

impl Evaluation {
    fn new([q, k, v]: &[Array2<f32>; 3], split: &Split) -> Result<Self> {
        let rows = |x: &Array2<f32>, rows: &[usize]| one_head(&x.select(Axis(0), rows));
        let (queries, keys) = (&split.evaluated.queries, &split.evaluated.keys);
        let tokens = [rows(q, queries), rows(k, keys), rows(v, keys)];
        let exact =
            ExactAttention::new().bidirectional(&Heads::new(&tokens[0], &tokens[1], &tokens[2])?)?.output;
        Ok(Evaluation { tokens, exact })
    }

    /// The error of an output that is the mean of the values for every query.
    fn error_of_mean(&self) -> f64 {
        let mean = self.tokens[2].mean_axis(Axis(2)).unwrap_or_default().insert_axis(Axis(2));
        let square = |sum: f64, v: f64| sum + v * v;
        let off = (&self.exact - &mean).iter().map(|v| f64::from(*v)).fold(0.0, square);
        (off / self.exact.iter().map(|v| f64::from(*v)).fold(0.0, square)).sqrt()
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
                errors.draws.push(relative_error(&attention, &evaluation.tokens, &evaluation.exact)?);
            }
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

fn outcome(
    setup: &Setup,
    heads: &[Head],
    (map, kind): (&'static str, Kind),
    fit: &'static str,
    m: usize,
) -> Result<Outcome> {
    let errors = heads.par_iter().map(|head| head.errors(setup, kind, m)).collect::<Result<Vec<_>>>()?;
    let of_heads: Vec<f64> = errors.iter().map(|errors| mean(errors.draws.iter().copied())).collect();
    let spread = if errors.len() > 1 { &of_heads } else { &errors[0].draws };
    Ok(Outcome {
        map,
        fit,
        m,
        biased: kind.is_biased(),
        predicted: mean(errors.iter().map(|errors| errors.predicted)),
        rank: mean(errors.iter().map(|errors| errors.rank)),
        error: mean(of_heads.iter().copied()),
        standard_error: standard_error(spread),
    })
}

pub fn run(setup: &Setup, tokens: &Tokens) -> Result<Results> {
    let of = FITS.len() * KINDS.len() * setup.features.len();
    let mut results = Results { outcomes: Vec::new(), means: Vec::new() };
    for (name, fit) in FITS {
        let head = |number: usize| {
            let tokens = tokens.head(number);
            let splits = fit.splits(tokens[0].nrows(), tokens[1].nrows(), setup.seed).into_iter();
            let evaluated = |split| Evaluation::new(&tokens, &split).map(|evaluation| (split, evaluation));
            let splits = splits.map(evaluated).collect::<Result<_>>()?;
            Ok(Head { number, tokens, splits, fit })
        };
        let heads = (0..tokens.heads()).map(head).collect::<Result<Vec<Head>>>()?;
        let of_mean = heads.iter().map(|head| mean(head.splits.iter().map(|(_, e)| e.error_of_mean())));
        results.means.push((name, mean(of_mean)));
        for kind in KINDS {
            for m in &setup.features {
                results.outcomes.push(outcome(setup, &heads, kind, name, *m)?);
                progress::show("maps", results.outcomes.len(), of);
            }
        }
    }
    Ok(results)
}
