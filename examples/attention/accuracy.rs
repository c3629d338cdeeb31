//! Figure 4: the error of the output on random tokens, over the number of frequencies.

use ndarray::{Array2, Array4, Axis};
use random_features::apply::attention::{ExactAttention, Heads, Sample};
use random_features::frequency::{Coupling, Independent};
use random_features::{Error, Result};
use rayon::prelude::*;

use crate::methods::{self, KINDS, Kind, Stream, attention, couplings, tokens};

/// The dimension of tokens, as in the paper.
pub const D: usize = 16;

/// Standard deviations of the entries of queries and keys. The paper says "appropriately normalized" and no more: at 1 the
/// logits q·k/√d have variance 1, at ½ reports are valid from few frequencies on.
const SIZES: [f64; 2] = [0.5, 1.0];

/// Queries and keys of a report, and the number of reports that predictions are the mean of.
const SAMPLE: [usize; 2] = [32, 256];
const SAMPLES: usize = 8;

/// The size of the experiment.
pub struct Setup {
    pub length: usize,
    /// The numbers of frequencies, increasing.
    pub frequencies: Vec<usize>,
    pub repetitions: u64,
    pub seed: u64,
}

/// All maps on tokens of one size.
pub struct Panel {
    pub size: f64,
    /// The mean squared error of an output that is the mean of the values for every query.
    pub mean: f64,
    pub curves: Vec<Curve>,
}

/// A map's errors over the number of frequencies.
pub struct Curve {
    pub map: &'static str,
    pub coupling: &'static str,
    /// Mean squared errors with their standard errors.
    pub measured: Vec<(f64, f64)>,
    /// What the report expects, where it is valid; `None` if there is no report.
    pub predicted: Option<Vec<Option<f64>>>,
    /// The share of outputs that are 0 because their normaliser was not positive.
    pub lost: f64,
}

/// The rows of one head.
fn rows(head: &Array4<f32>) -> Array2<f32> {
    head.index_axis(Axis(0), 0).index_axis_move(Axis(0), 0).to_owned()
}

/// Queries, keys, values and the exact output.
struct Data {
    tokens: [Array4<f32>; 3],
    exact: Array4<f32>,
    squared_sum: f64,
}

impl Data {
    fn draw(setup: &Setup, [queries, keys]: [usize; 2], size: f64, repetition: u64) -> Result<Self> {
        let stream = |which| Stream::new(setup.seed, [0, repetition as usize, which]);
        let q = tokens((queries, D), size, stream(0));
        let k = tokens((keys, D), size, stream(1));
        let v = tokens((keys, D), 1.0, stream(2));
        let exact = ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v)?)?.output;
        let squared_sum = methods::squared_sum(rows(&q).view(), rows(&k).view())?;
        Ok(Data { tokens: [q, k, v], exact, squared_sum })
    }

    /// The mean squared error of the output, and the number of rows that are lost.
    fn error(&self, kind: Kind, coupling: &dyn Coupling, m: usize, stream: Stream) -> Result<(f64, usize)> {
        let [q, k, v] = &self.tokens;
        let attention = attention(kind, coupling, (D, m), self.squared_sum, stream)?;
        let attended = attention.bidirectional(&Heads::new(q, k, v)?)?;
        let error = methods::square_distance(&attended.output, &self.exact) / self.exact.len() as f64;
        Ok((error, attended.non_positive.len()))
    }

    fn error_of_mean(&self) -> f64 {
        let mean = self.tokens[2].mean_axis(Axis(2)).unwrap_or_default().insert_axis(Axis(2));
        let mean = mean.broadcast(self.exact.dim()).map(|mean| mean.to_owned()).unwrap_or_default();
        methods::square_distance(&mean, &self.exact) / self.exact.len() as f64
    }
}

/// The report on a sample, and the mean squared errors that it expects for each number of frequencies.
fn report(setup: &Setup, sample: &Data, kind: Kind) -> Result<Option<Vec<Option<f64>>>> {
    let most = setup.frequencies[setup.frequencies.len() - 1];
    let stream = Stream::new(setup.seed, [1, 0, most]);
    let attention = attention(kind, &Independent, (D, most), sample.squared_sum, stream)?;
    let [q, k, v] = sample.tokens.each_ref().map(rows);
    let report = match attention.error_report(&Sample::new(&q, &k).values(&v)) {
        Ok(report) => report,
        Err(Error::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = sample.exact.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / sample.exact.len() as f64;
    // It speaks of the sample's keys. With values that do not depend on keys, squared errors fall with the number of keys,
    // as those of any mean.
    let keys = k.nrows() as f64 / setup.length as f64;
    let of = |m: &usize| report.output_error_with(*m).map(|error| error.powi(2) * size * keys);
    Ok(Some(setup.frequencies.iter().map(of).collect()))
}

/// The mean squared errors that reports on some samples expect, where all of them are valid.
fn predicted(setup: &Setup, samples: &[Data], kind: Kind) -> Result<Option<Vec<Option<f64>>>> {
    let Some(first) = report(setup, &samples[0], kind)? else { return Ok(None) };
    // Reports that say what else would do take far longer than those with an error.
    let valid = first.iter().any(Option::is_some);
    let others = if valid { &samples[1..] } else { &[] };
    let others = others.par_iter().map(|sample| report(setup, sample, kind)).collect::<Result<Vec<_>>>()?;
    let reports: Vec<_> = std::iter::once(first).chain(others.into_iter().flatten()).collect();
    let mean = |m: usize| {
        let sum = reports.iter().map(|report| report[m]).sum::<Option<f64>>();
        sum.map(|sum| sum / reports.len() as f64)
    };
    Ok(Some((0..setup.frequencies.len()).map(mean).collect()))
}

fn panel(setup: &Setup, size: f64) -> Result<Panel> {
    let repetitions = 0..setup.repetitions;
    let data = |repetition| Data::draw(setup, [setup.length; 2], size, 1 + repetition);
    let data = repetitions.map(data).collect::<Result<Vec<_>>>()?;
    let sample =
        |number| Data::draw(setup, SAMPLE.map(|n| n.min(setup.length)), size, 1 + setup.repetitions + number);
    let samples = (0..SAMPLES as u64).map(sample).collect::<Result<Vec<_>>>()?;
    let mut curves = Vec::new();
    for (map, kind) in KINDS {
        let report = predicted(setup, &samples, kind)?;
        for (name, coupling) in couplings() {
            let (mut measured, mut lost) = (Vec::new(), 0);
            for m in &setup.frequencies {
                let mut errors = Vec::new();
                for (repetition, data) in data.iter().enumerate() {
                    let stream = Stream::new(setup.seed, [1, 1 + repetition, *m]);
                    let (error, rows) = data.error(kind, &*coupling, *m, stream)?;
                    errors.push(error);
                    lost += rows;
                }
                measured.push(methods::mean(&errors));
            }
            let rows = data.len() * setup.frequencies.len() * setup.length;
            let predicted = report.clone().filter(|_| name == "independent");
            curves.push(Curve { map, coupling: name, measured, predicted, lost: lost as f64 / rows as f64 });
        }
    }
    let mean = data.iter().map(Data::error_of_mean).sum::<f64>() / data.len() as f64;
    Ok(Panel { size, mean, curves })
}

pub fn run(setup: &Setup) -> Result<Vec<Panel>> {
    SIZES.into_iter().map(|size| panel(setup, size)).collect()
}
