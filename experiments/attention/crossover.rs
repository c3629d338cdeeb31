//! From which length on linear attention is faster than exact attention, beside what `Attention::bidirectional_auto` goes by.

use std::time::Instant;

use experiments::attention::{Kind, Stream, attention, tokens};
use ndarray::Array4;
use random_features::Result;
use random_features::apply::attention::{ExactAttention, Heads};
use random_features::frequency::Orthogonal;

/// The dimensions of tokens and values.
pub const D: usize = 64;

/// Lengths from the first on, each √2 times the one before, to a multiple of 32.
const FIRST: usize = 128;

/// Rounds in which everything runs in turn; the least times count.
const ROUNDS: usize = 15;

/// The size of the experiment.
pub struct Setup {
    /// Numbers of frequencies.
    pub frequencies: Vec<usize>,
    pub longest: usize,
    pub seed: u64,
}

/// Seconds for one length.
pub struct Row {
    pub length: usize,
    pub exact: f64,
    /// For each number of frequencies.
    pub linear: Vec<f64>,
}

/// All lengths, bidirectional or causal.
pub struct Panel {
    pub causal: bool,
    pub rows: Vec<Row>,
    /// What [`Attention::bidirectional_crossover`](random_features::apply::attention::Attention::bidirectional_crossover) says for each number of
    /// frequencies.
    pub expected: Vec<usize>,
}

impl Panel {
    /// The length from which on linear attention was faster, between two lengths by their logarithms; `None` if it always
    /// or never was.
    pub fn measured(&self, which: usize) -> Option<f64> {
        let gain = |row: &Row| (row.exact / row.linear[which]).ln();
        let last = self.rows.iter().rposition(|row| gain(row) < 0.0)?;
        let (row, next) = (&self.rows[last], self.rows.get(last + 1)?);
        let share = -gain(row) / (gain(next) - gain(row));
        Some(row.length as f64 * (next.length as f64 / row.length as f64).powf(share))
    }
}

fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn row(setup: &Setup, length: usize, causal: bool) -> Result<Row> {
    let stream = |number| Stream::new(setup.seed, [4, 0, number]);
    let [q, k, v] = [0, 1, 2].map(|number| tokens((length, D), 0.5, stream(number)));
    let heads = Heads::new(&q, &k, &v)?;
    let mut out = Array4::<f32>::zeros(heads.output_dim());
    let linear = |m: &usize| attention(Kind::Positive, &Orthogonal, (D, *m), 0.0, stream(3));
    let linear = setup.frequencies.iter().map(linear).collect::<Result<Vec<_>>>()?;
    let mut row = Row { length, exact: f64::INFINITY, linear: vec![f64::INFINITY; linear.len()] };
    for _ in 0..ROUNDS {
        let exact = seconds(|| match causal {
            true => ExactAttention::new().causal_into(&heads, &mut out).map(drop),
            false => ExactAttention::new().bidirectional_into(&heads, &mut out).map(drop),
        })?;
        row.exact = row.exact.min(exact);
        for (least, linear) in row.linear.iter_mut().zip(&linear) {
            *least = least.min(seconds(|| match causal {
                true => linear.causal_into(&heads, &mut out).map(drop),
                false => linear.bidirectional_into(&heads, &mut out).map(drop),
            })?);
        }
    }
    Ok(row)
}

fn panel(setup: &Setup, causal: bool) -> Result<Panel> {
    let lengths = (0..).map(|i| (FIRST as f64 * 2f64.powf(0.5 * f64::from(i)) / 32.0).round() as usize * 32);
    let lengths = lengths.take_while(|length| *length <= setup.longest.max(FIRST));
    // The longest first, so that the allocator has memory at hand for the others.
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.reverse();
    let mut rows =
        lengths.into_iter().map(|length| row(setup, length, causal)).collect::<Result<Vec<_>>>()?;
    rows.reverse();
    let crossover = |m: &usize| {
        let stream = Stream::new(setup.seed, [4, 1, *m]);
        let attention = attention(Kind::Positive, &Orthogonal, (D, *m), 0.0, stream)?;
        Ok(if causal { attention.causal_crossover(D) } else { attention.bidirectional_crossover(D) })
    };
    let expected = setup.frequencies.iter().map(crossover).collect::<Result<_>>()?;
    Ok(Panel { causal, rows, expected })
}

pub fn run(setup: &Setup) -> Result<Vec<Panel>> {
    [false, true].into_iter().map(|causal| panel(setup, causal)).collect()
}
