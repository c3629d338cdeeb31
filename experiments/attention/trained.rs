//! What linear attention makes of the queries, keys and values of a trained transformer.

use experiments::attention::{KINDS, Kind, Stream, attention, square_distance, squared_sum};
use experiments::tokens::Tokens;
use ndarray::{Array2, Array4, ArrayView2, Axis};
use random_features::apply::attention::{Attention, ErrorReport, ExactAttention, Heads, TokenSample};
use random_features::frequency::Orthogonal;
use random_features::{Error, Result};
use rayon::prelude::*;

/// Queries and keys that a report takes at most.
const SAMPLE: [usize; 2] = [64, 512];

/// The size of the experiment.
pub struct Setup {
    /// The numbers of frequencies, increasing.
    pub frequencies: Vec<usize>,
    pub repetitions: u64,
    pub seed: u64,
}

/// All maps on one head.
pub struct Head {
    /// The means of ‖x‖² and ‖y‖², queries and keys times d^(−¼).
    pub squares: [f64; 2],
    /// The error of an output that is the mean of the values for every query, relative to the exact output.
    pub mean: f64,
    pub curves: Vec<Curve>,
}

/// A map's errors over the number of frequencies.
pub struct Curve {
    pub map: &'static str,
    /// Errors of the output, relative to the exact one, with their standard errors.
    pub measured: Vec<(f64, f64)>,
    /// For the largest number of frequencies.
    pub report: Option<ErrorReport>,
}

fn one_head(rows: ArrayView2<'_, f32>) -> Array4<f32> {
    rows.to_owned().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// Mean and standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Queries, keys, values and the exact output of one head.
struct Data {
    tokens: [Array2<f32>; 3],
    four: [Array4<f32>; 3],
    exact: Array4<f32>,
    squared_sum: f64,
}

impl Data {
    fn new(tokens: [Array2<f32>; 3]) -> Result<Self> {
        let four = tokens.each_ref().map(|rows| one_head(rows.view()));
        let [q, k, v] = &four;
        let exact = ExactAttention::new().bidirectional(&Heads::new(q, k, v)?)?.output;
        let squared_sum = squared_sum(tokens[0].view(), tokens[1].view())?;
        Ok(Data { tokens, four, exact, squared_sum })
    }

    fn attention(&self, kind: Kind, m: usize, stream: Stream) -> Result<Attention<f32>> {
        attention(kind, &Orthogonal, (self.tokens[0].ncols(), m), self.squared_sum, stream)
    }

    /// ‖out − exact‖/‖exact‖.
    fn relative(&self, out: &Array4<f32>) -> f64 {
        let size: f64 = self.exact.iter().map(|v| f64::from(*v).powi(2)).sum();
        (square_distance(out, &self.exact) / size).sqrt()
    }

    fn error(&self, kind: Kind, m: usize, stream: Stream) -> Result<f64> {
        let [q, k, v] = &self.four;
        let attended = self.attention(kind, m, stream)?.bidirectional(&Heads::new(q, k, v)?)?;
        Ok(self.relative(&attended.output))
    }

    fn error_of_mean(&self) -> f64 {
        let mean = self.tokens[2].mean_axis(Axis(0)).unwrap_or_default();
        let mean = mean.broadcast(self.exact.dim()).map(|mean| mean.to_owned()).unwrap_or_default();
        self.relative(&mean)
    }

    /// The report on tokens that are evenly spread over the head's.
    fn report(&self, kind: Kind, m: usize, stream: Stream) -> Result<Option<ErrorReport>> {
        let some = |x: &Array2<f32>, most: usize| {
            let count = x.nrows().min(most);
            let rows: Vec<usize> = (0..count).map(|i| i * x.nrows() / count).collect();
            x.select(Axis(0), &rows)
        };
        let ([q, k, v], [queries, keys]) = (&self.tokens, SAMPLE);
        let attention = self.attention(kind, m, stream)?;
        let [q, k, v] = [some(q, queries), some(k, keys), some(v, keys)];
        match attention.error_report(&TokenSample::new(&q, &k).with_values(&v)) {
            Ok(report) => Ok(Some(report)),
            Err(Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn mean_square(&self, which: usize) -> f64 {
        let rows = &self.tokens[which];
        let square: f64 = rows.iter().map(|v| f64::from(*v).powi(2)).sum();
        square / rows.nrows() as f64 / (rows.ncols() as f64).sqrt()
    }
}

fn curve(setup: &Setup, data: &Data, (map, kind): (&'static str, Kind)) -> Result<Curve> {
    let stream = |repetition: u64, m: usize| Stream::new(setup.seed, [3, repetition as usize, m]);
    let mut measured = Vec::new();
    for m in &setup.frequencies {
        let error = |repetition| data.error(kind, *m, stream(repetition, *m));
        let errors = (0..setup.repetitions).map(error).collect::<Result<Vec<_>>>()?;
        measured.push(mean(&errors));
    }
    let most = setup.frequencies[setup.frequencies.len() - 1];
    Ok(Curve { map, measured, report: data.report(kind, most, stream(0, most))? })
}

pub fn run(setup: &Setup, tokens: &Tokens) -> Result<Vec<Head>> {
    let head = |head: usize| {
        let data = Data::new(tokens.head(head))?;
        let curves = KINDS.into_par_iter().map(|kind| curve(setup, &data, kind)).collect::<Result<_>>()?;
        Ok(Head { squares: [0, 1].map(|which| data.mean_square(which)), mean: data.error_of_mean(), curves })
    };
    (0..tokens.heads()).map(head).collect()
}
