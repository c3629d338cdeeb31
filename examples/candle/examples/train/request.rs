//! The command line.

use pico_args::Arguments;

use crate::arguments::{nothing_left, whole};

/// What `--help` prints.
pub const HELP: &str = "\
train [--steps STEPS] [--length LENGTH] [--features M] [--redraw STEPS] [--longest LENGTH]

Trains a small language model on linear attention as an operation, and composed of candle's own operations.

  --steps STEPS     trains for this many steps, from 1 to 100000 [200]
  --length LENGTH   trains on texts of this many tokens, from 1 to 4096 [64]
  --features M      takes this many frequencies, from 1 to 4096 [64]
  --redraw STEPS    redraws them every so many steps, from 1 to 100000 [50]
  --longest LENGTH  measures times up to this length, from 256 to 8192 [2048]
  --help            prints this
";

/// What was asked.
pub struct Request {
    pub steps: usize,
    pub length: usize,
    /// The number of frequencies.
    pub features: usize,
    /// The steps between two draws of frequencies.
    pub redraw: usize,
    /// The longest text whose times are measured.
    pub longest: usize,
}

impl Request {
    /// The request, or `None` for a request for help.
    pub fn read(mut arguments: Arguments) -> Result<Option<Self>, String> {
        if arguments.contains(["-h", "--help"]) {
            return Ok(None);
        }
        let request = Request {
            steps: whole(&mut arguments, "--steps", 200, 1..=100_000)?,
            length: whole(&mut arguments, "--length", 64, 1..=4096)?,
            features: whole(&mut arguments, "--features", 64, 1..=4096)?,
            redraw: whole(&mut arguments, "--redraw", 50, 1..=100_000)?,
            longest: whole(&mut arguments, "--longest", 2048, 256..=8192)?,
        };
        nothing_left(arguments).map(|()| Some(request))
    }
}
