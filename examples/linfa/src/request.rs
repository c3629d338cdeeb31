//! The command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use pico_args::Arguments;

/// What `--help` prints.
pub const HELP: &str = "\
random-features-linfa [--m M] [--splits SPLITS]

Prints the accuracy of linear classifiers on columns and on random features of them.

  --m M            takes this many frequencies, from 1 to 500 [128]
  --splits SPLITS  averages over this many splits of the points, from 2 to 1000 [20]
  --help           prints this
";

/// What was asked.
pub struct Request {
    /// The number of frequencies.
    pub m: usize,
    pub splits: u64,
}

impl Request {
    /// The request, or `None` for a request for help.
    pub fn read(mut arguments: Arguments) -> Result<Option<Self>, String> {
        if arguments.contains(["-h", "--help"]) {
            return Ok(None);
        }
        let request = Request {
            m: whole(&mut arguments, "--m", 128, 1..=500)?,
            splits: whole(&mut arguments, "--splits", 20, 2..=1000)?,
        };
        match arguments.finish().first() {
            None => Ok(Some(request)),
            Some(other) => Err(format!("'{}' is not understood; --help names the options", other.display())),
        }
    }
}

/// A whole number in a range, or the default.
fn whole<N: FromStr + PartialOrd + Display>(
    arguments: &mut Arguments,
    option: &'static str,
    default: N,
    range: RangeInclusive<N>,
) -> Result<N, String> {
    let text: Option<String> = arguments.opt_value_from_str(option).map_err(|error| error.to_string())?;
    let Some(text) = text else { return Ok(default) };
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (least, most) = range.into_inner();
    number.ok_or_else(|| format!("{option} takes a whole number from {least} to {most}, not '{text}'"))
}
