//! The command line.

use std::path::PathBuf;

use pico_args::Arguments;

use crate::arguments::{nothing_left, whole};

/// What `--help` prints.
pub const HELP: &str = "\
encoder [--model FOLDER] [--text FILE] [--features M] [--pairs PAIRS] [--length LENGTH] [--calibration SEGMENTS] [--segments SEGMENTS] [--passages PASSAGES] [--longest LENGTH] [--seed SEED]

Reads texts with a trained encoder whose attention is exact, or linear in one of several ways that are chosen on another text.

  --model FOLDER          reads config.json, tokenizer.json and model.safetensors there, or else makes a small random model
  --text FILE             reads this text, or else the bundled one
  --features M            takes this many frequencies, from 2 to 4096 [64]
  --pairs PAIRS           gives queries of the calibrated way this many exact pairs, from 0 to 512 [21]
  --length LENGTH         reads segments of this many tokens, from 16 to 512 [384]
  --calibration SEGMENTS  chooses on this many segments, from 1 to 16 [4]
  --segments SEGMENTS     judges on this many segments, from 1 to 50 [4]
  --passages PASSAGES     seeks among this many passages at most, from 20 to 2000 [200]
  --longest LENGTH        measures times up to this length, from 64 to 8192 [512]
  --seed SEED             begins the draws of all frequencies, from 0 to 1000000 [1]
  --help                  prints this
";

/// What was asked.
pub struct Request {
    /// The folder of a trained model.
    pub model: Option<PathBuf>,
    /// The file of a text of one's own.
    pub text: Option<PathBuf>,
    /// The number of frequencies.
    pub features: usize,
    /// Exact pairs of a query of the calibrated way, on average over the heads of a layer.
    pub pairs: usize,
    /// Tokens of a segment.
    pub length: usize,
    /// Segments that are chosen on.
    pub calibration: usize,
    /// Segments that are judged on.
    pub segments: usize,
    pub passages: usize,
    /// The longest text whose times are measured.
    pub longest: usize,
    pub seed: u64,
}

impl Request {
    /// The request, or `None` for a request for help.
    pub fn read(mut arguments: Arguments) -> Result<Option<Self>, String> {
        if arguments.contains(["-h", "--help"]) {
            return Ok(None);
        }
        let mut path = |option| arguments.opt_value_from_str(option).map_err(|error| error.to_string());
        let (model, text) = (path("--model")?, path("--text")?);
        let request = Request {
            model,
            text,
            features: whole(&mut arguments, "--features", 64, 2..=4096)?,
            pairs: whole(&mut arguments, "--pairs", 21, 0..=512)?,
            length: whole(&mut arguments, "--length", 384, 16..=512)?,
            calibration: whole(&mut arguments, "--calibration", 4, 1..=16)?,
            segments: whole(&mut arguments, "--segments", 4, 1..=50)?,
            passages: whole(&mut arguments, "--passages", 200, 20..=2000)?,
            longest: whole(&mut arguments, "--longest", 512, 64..=8192)?,
            seed: whole(&mut arguments, "--seed", 1, 0..=1_000_000)? as u64,
        };
        nothing_left(arguments).map(|()| Some(request))
    }
}
