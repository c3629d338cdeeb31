//! A map, a kernel and a coupling of your own, verified by the suite of the feature `testing`.
//!
//! Each stands in a file: `map.rs`, `kernel.rs`, `coupling.rs`. The suite checks what every map must keep, and compares
//! the mean and the variance of estimates over many draws with the exact kernel and the closed form.
//!
//!     cargo run --release --example own_map -- [--runs 20000]
//!
//! Exit code 0 if all is well, 1 if a mean or a variance is more than 4.5 standard errors off (by chance once in 24,000
//! runs), 2 if the request cannot be understood or a map breaks what it must keep.

mod coupling;
mod kernel;
mod map;

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

use random_features::frequency::Independent;
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::map::AnyKernel;
use random_features::ndarray::{Array1, Array2, arr1};
use random_features::testing::{check_unbiased, conform};
use random_features::{Map, Positive, Result, Trigonometric};

const USAGE: &str = "usage: own_map [--runs RUNS]";

/// The standard errors that a number may be off.
const LIMIT: f64 = 4.5;

/// Verifies one map, and says whether mean and variance are right.
fn verify(
    name: &str,
    exact: f64,
    runs: u64,
    draw: impl Fn(u64) -> Result<Map<f64>>,
) -> std::result::Result<bool, Box<dyn Error>> {
    let (x, y) = pair();
    let points = Array2::from_shape_fn((40, 3), |(i, k)| ((i * 5 + k * 3) as f64).sin());
    conform(&draw(0)?, &points).map_err(|error| format!("{name}: {error}"))?;
    let found = check_unbiased(draw, &x, &y, exact, runs)?;
    let well = found.z.abs() < LIMIT && found.variance_z.is_none_or(|z| z.abs() < LIMIT);
    writeln!(stdout(), "{name}\n  {found}{}", if well { "" } else { "  WRONG" })?;
    Ok(well)
}

/// The points whose kernel is estimated.
fn pair() -> (Array1<f64>, Array1<f64>) {
    (arr1(&[0.5, -0.3, 0.6]), arr1(&[-0.2, 0.4, 0.3]))
}

/// The number of draws that the command line asks for; `None` if it asks for help.
fn runs() -> std::result::Result<Option<u64>, Box<dyn Error>> {
    let mut asked = pico_args::Arguments::from_env();
    if asked.contains(["-h", "--help"]) {
        return Ok(None);
    }
    let runs: Option<String> = asked.opt_value_from_str("--runs")?;
    if let Some(other) = asked.finish().first() {
        return Err(format!("'{}' is not understood; {USAGE}", other.display()).into());
    }
    let Some(text) = runs else { return Ok(Some(20_000)) };
    match text.parse() {
        Ok(runs) if (1000..=10_000_000).contains(&runs) => Ok(Some(runs)),
        _ => Err(format!("--runs takes a whole number from 1000 to 10000000, not '{text}'").into()),
    }
}

fn run(runs: u64) -> std::result::Result<bool, Box<dyn Error>> {
    let (x, y) = pair();
    let sinc = kernel::Sinc::default();
    let all = [
        verify("map: random phases, Gaussian kernel", Gaussian::default().value(&x, &y)?, runs, |seed| {
            map::Phases::map(3, 8, seed)
        })?,
        verify("kernel: sinc, by trigonometric features", sinc.value(&x, &y)?, runs, |seed| {
            let omega = Independent.with_radii(sinc.clone()).draw(3, 8, seed)?;
            Trigonometric.build(omega, AnyKernel::own(sinc.clone()))
        })?,
        verify("coupling: right angles, by positive features", x.dot(&y).exp(), runs, |seed| {
            Positive.softmax(Softmax::default().draw(&coupling::RightAngles, 3, 8, seed)?)
        })?,
    ];
    Ok(all.iter().all(|well| *well))
}

fn main() -> ExitCode {
    let done = runs().and_then(|runs| match runs {
        Some(runs) => run(runs),
        None => Ok(writeln!(stdout(), "{USAGE}").map(|()| true)?),
    });
    match done {
        Ok(well) => ExitCode::from(u8::from(!well)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
