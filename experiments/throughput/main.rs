#![doc = include_str!("help.txt")]

mod attention;
mod ceilings;
mod regression;
mod report;
mod request;
mod sampling;
mod work;

use std::process::ExitCode;

use experiments::{command, progress};
use rand::distr::{Distribution, StandardUniform};
use random_features::Real;
use rayon::ThreadPoolBuilder;
use serde::Serialize;

use ceilings::Ceilings;
use report::{Peak, Report};
use request::{Case, Dtype, Request};

/// Times what is asked for and prints the line.
fn run(request: &Request) -> Result<(), String> {
    let pool = ThreadPoolBuilder::new().num_threads(request.threads).build();
    let pool = pool.map_err(|error| format!("no pool of {} threads: {error}", request.threads))?;
    let line = pool.install(|| match request.dtype {
        Dtype::F32 => line::<f32>(request),
        Dtype::F64 => line::<f64>(request),
    })?;
    command::print(&format!("{line}\n"))
}

fn line<T: Real>(request: &Request) -> Result<String, String>
where
    StandardUniform: Distribution<T>,
{
    progress::begin(&format!("measures the ceilings of the machine, then {}", request.case.name()));
    let ceilings = Ceilings::measure::<T>()?;
    if request.case == Case::Peak {
        return json(&Peak::new(request, &ceilings, ceilings::multiply_adds_of_one::<T>()));
    }
    let mut work = work::prepare::<T>(request).map_err(|error| error.to_string())?;
    let least = ceilings.least_time::<T>(&work.cost);
    let times = (0..=request.repeat).map(|_| (work.run)()).collect::<Result<Vec<f64>, _>>();
    let times = times.map_err(|error| error.to_string())?;
    // The first one is the warm-up.
    json(&Report::new(request, &work, least, times[1..].to_vec()))
}

fn json(line: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(line).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    request::COMMAND.run(|asked| run(&request::read(asked)?).map(|()| true))
}
