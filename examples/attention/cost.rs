//! Figures 3 and 20: time and memory over the length, beside an output that only copies the values.
//!
//! Each measurement is a process of its own, this example with `--one`: the peak of its resident memory is then that of
//! one kind of attention on one length.

use std::process::Command;
use std::time::Instant;

use ndarray::Array4;
use random_features::apply::attention::{ExactAttention, Heads};
use random_features::frequency::Orthogonal;

use crate::methods::{Kind, Stream, attention, tokens};

/// The dimensions of tokens and values.
pub const D: usize = 64;

/// What is timed, by the names of `--one` and of the table.
pub const WORKS: [(&str, &str); 5] = [
    ("linear", "linear"),
    ("linear-causal", "linear, causal"),
    ("exact", "exact"),
    ("exact-causal", "exact, causal"),
    ("copy", "X, a copy of the values"),
];

/// Work that is repeated stops after so many seconds or runs.
const ENOUGH: (f64, usize) = (0.5, 20);

/// The size of the experiment.
pub struct Setup {
    pub m: usize,
    pub longest: usize,
    pub longest_exact: usize,
    pub seed: u64,
}

/// One kind of attention on one length.
#[derive(Clone, Copy)]
pub struct Cost {
    /// The least of some runs.
    pub seconds: f64,
    /// The peak of resident memory, if the system tells.
    pub bytes: Option<f64>,
}

/// A length, and the costs in the order of [`WORKS`]; `None` is too long.
pub struct Row {
    pub length: usize,
    pub costs: Vec<Option<Cost>>,
}

/// Measures one kind of attention in this process: seconds and bytes, as text.
pub fn one(work: &str, length: usize, m: usize, seed: u64) -> Result<String, String> {
    let stream = |number| Stream::new(seed, [2, 0, number]);
    let words = |error: random_features::Error| error.to_string();
    let [q, k, v] = [0, 1, 2].map(|number| tokens((length, D), 0.5, stream(number)));
    let heads = Heads::new(&q, &k, &v).map_err(words)?;
    let linear = attention(Kind::Positive, &Orthogonal, (D, m), 0.0, stream(3)).map_err(words)?;
    let exact = ExactAttention::new();
    let mut out = Array4::<f32>::zeros(heads.output_dim());
    let (mut least, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    while runs == 0 || (total < ENOUGH.0 && runs < ENOUGH.1) {
        let start = Instant::now();
        match work {
            "linear" => linear.bidirectional_into(&heads, &mut out).map(drop),
            "linear-causal" => linear.causal_into(&heads, &mut out).map(drop),
            "exact" => exact.bidirectional_into(&heads, &mut out).map(drop),
            "exact-causal" => exact.causal_into(&heads, &mut out).map(drop),
            _ => {
                out.assign(&v);
                Ok(())
            }
        }
        .map_err(words)?;
        let seconds = start.elapsed().as_secs_f64();
        (least, total, runs) = (least.min(seconds), total + seconds, runs + 1);
    }
    std::hint::black_box(&out);
    let peak = peak_memory().map_or("-".into(), |bytes| bytes.to_string());
    Ok(format!("{least:e} {peak}\n"))
}

/// The peak of this process's resident memory in bytes, if the system tells as Linux does.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Has another process measure.
fn measure(setup: &Setup, work: &str, length: usize) -> Result<Cost, String> {
    let failed = |why: String| format!("{work} attention of length {length} cannot be measured: {why}");
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let values = [length, setup.m].map(|value| value.to_string());
    let seed = setup.seed.to_string();
    let arguments = ["--one", work, "--length", &values[0], "--m", &values[1], "--seed", &seed];
    let output = Command::new(program).args(arguments).output().map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    match words.next().and_then(|seconds| seconds.parse().ok()) {
        Some(seconds) if output.status.success() => {
            Ok(Cost { seconds, bytes: words.next().and_then(|bytes| bytes.parse().ok()) })
        }
        _ => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string())),
    }
}

pub fn run(setup: &Setup) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let lengths = std::iter::successors(Some(1024.min(setup.longest)), |length| Some(2 * length));
    for length in lengths.take_while(|length| *length <= setup.longest) {
        let mut costs = Vec::new();
        for (work, _) in WORKS {
            let short = length <= setup.longest_exact || !work.starts_with("exact");
            costs.push(short.then(|| measure(setup, work, length)).transpose()?);
        }
        rows.push(Row { length, costs });
    }
    Ok(rows)
}
