//! How far are estimates of a Gaussian kernel from it? The relative Frobenius error of the Gram matrix of bundled data, for random
//! features, coupled radii and Nyström features with as many features each, beside the least errors that any can have.
//!
//!     cargo run --release --example gram_errors -- [--data NAME] [--scale S] [--features D] [--draws DRAWS] [--seed SEED]
//!
//! `benches/compare.py --errors` runs it beside the samplers of scikit-learn. It prints one line of JSON. Exit code 2 if the request
//! cannot be understood or fulfilled.

use std::process::ExitCode;

use experiments::command::{Command, Request, print};
use experiments::dataset::Dataset;
use ndarray::{Array2, Axis, s};
use random_features::data::{GramSpectrum, lengthscale};
use random_features::frequency::{Frequencies, Independent, Orthogonal, RadiusCoupling};
use random_features::kernel::{Gaussian, Kernel};
use random_features::map::Nystroem;
use random_features::{Error, Map, Result, Trigonometric};
use serde_json::{Map as Object, Value, json};

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--data", "--scale", "--features", "--draws", "--seed"],
    ..Command::new("gram_errors [--data NAME] [--scale S] [--features D] [--draws DRAWS] [--seed SEED]")
};

/// The images of digits that are taken.
const IMAGES: usize = 1000;
/// The most points between which the median distance is taken.
const MOST: usize = 8192;

/// Points with the kernel between them.
struct Problem {
    x: Array2<f64>,
    lengthscale: f64,
    kernel: Gaussian,
    gram: Array2<f64>,
    /// D.
    features: usize,
}

/// A way to make features from a seed.
type Way = fn(&Problem, u64) -> Result<Map<f64>>;

const WAYS: [(&str, Way); 6] = [
    ("independent", |problem, seed| {
        problem.map(Independent.draw(problem.d(), problem.features / 2, seed)?)
    }),
    ("orthogonal", |problem, seed| problem.map(Orthogonal.draw(problem.d(), problem.features / 2, seed)?)),
    ("paired radii", |problem, seed| {
        let coupling = Orthogonal.with_coupled_radii(RadiusCoupling::Paired);
        problem.map(coupling.draw(problem.d(), problem.features / 2, seed)?)
    }),
    ("uniform landmarks", |problem, seed| {
        Nystroem::uniform(problem.kernel.clone(), &problem.x, problem.features, seed)?.map()
    }),
    ("Nyström, fitted", |problem, seed| {
        Nystroem::fit(problem.kernel.clone(), &problem.x, problem.features, seed)?.map()
    }),
    ("Nyström, unbiased", |problem, seed| {
        Nystroem::fit_unbiased(problem.kernel.clone(), &problem.x, problem.features, seed)?.draw(seed)
    }),
];

impl Problem {
    fn new(data: &str, scale: f64, features: usize) -> std::result::Result<Self, String> {
        let x = points(data)?;
        let of = |x: Array2<f64>| -> Result<Self> {
            let lengthscale = scale * lengthscale::median_of_subsample(&x, MOST, 1)?;
            let kernel = Gaussian::new(lengthscale)?;
            Ok(Problem { gram: kernel.gram(&x, &x)?, x, lengthscale, kernel, features })
        };
        of(x).map_err(|error| error.to_string())
    }

    fn d(&self) -> usize {
        self.x.ncols()
    }

    fn map(&self, omega: Frequencies) -> Result<Map<f64>> {
        Trigonometric.build(omega, self.kernel.clone())
    }

    /// ‖K̂ − K‖/‖K‖ over draws of these seeds, the root mean square; `None` where D features need more points than there are.
    fn error(&self, way: Way, seeds: impl Iterator<Item = u64>) -> Result<Option<f64>> {
        let whole = self.gram.pow2().sum();
        let (mut sum, mut count) = (0.0, 0);
        for seed in seeds {
            let map = match way(self, seed) {
                Err(Error::Parameter { .. }) if self.features > self.x.nrows() => return Ok(None),
                map => map?,
            };
            sum += (map.gram(&self.x, &self.x)? - &self.gram).pow2().sum() / whole;
            count += 1;
        }
        Ok(Some((sum / f64::from(count)).sqrt()))
    }
}

/// Bundled points: digits over 16, other columns standardised.
fn points(data: &str) -> std::result::Result<Array2<f64>, String> {
    let x = Dataset::bundled(data)?.points;
    if data == "digits" {
        return Ok(x.slice(s![..IMAGES.min(x.nrows()), ..]).mapv(|v| v / 16.0));
    }
    let (mean, deviation) = (x.mean_axis(Axis(0)).unwrap_or_default(), x.std_axis(Axis(0), 0.0));
    Ok((x - &mean) / deviation)
}

fn run(request: &Request) -> std::result::Result<bool, String> {
    let data = request.text("--data").unwrap_or("digits".into());
    let scale = request.number("--scale", 1.0, (1e-3, 1e3))?;
    let features = request.count("--features", 64, (2, 4096))?;
    if !features.is_multiple_of(2) {
        return Err(format!("--features is the number of cosines and sines: even, not {features}"));
    }
    let draws = request.whole("--draws", 12, (1, 1000))?;
    let seed = request.whole("--seed", 1, (0, 1 << 40))?;
    let problem = Problem::new(&data, scale, features)?;
    let mut errors = Object::new();
    for (name, way) in WAYS {
        let error = problem.error(way, seed..seed + draws).map_err(|error| format!("{name}: {error}"))?;
        errors.insert(name.into(), error.map_or(Value::Null, Into::into));
    }
    let spectrum = GramSpectrum::of_gram(&problem.gram).map_err(|error| error.to_string())?;
    errors.insert("unbiased limit".into(), spectrum.unbiased_error(features).into());
    errors.insert("least".into(), spectrum.least_error(features).into());
    let line = json!({
        "data": data, "n": problem.x.nrows(), "d": problem.d(), "features": features, "draws": draws,
        "lengthscale": problem.lengthscale, "errors": errors,
    });
    print(&format!("{line}\n")).map(|()| true)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
