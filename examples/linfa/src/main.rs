//! Random features under other people's linear models.
//!
//! A linear classifier on features of a kernel is a kernel classifier. Here logistic regressions of linfa and of smartcore
//! get the columns of a data set as they are, and then features of these columns. The features are trigonometric, on orthogonal
//! frequencies for the Gaussian kernel, with the median distance of training points as its lengthscale. Under the crate's own
//! ridge classifier these features stand beside as many of the Nyström method. The table shows the accuracy on the tenth of
//! the points that is left out, averaged over splits, and how much better each classifier is on features than on columns,
//! split by split. Much is gained where classes are not separated by planes, as in banknote; the classes of
//! wifi nearly are, so that there is little to gain for a logistic regression.
//!
//!     cd examples/linfa && cargo run --release -- [--m 128] [--splits 20]
//!
//! Exit code 0 if all is well, 1 if a classifier is worse on features than on columns by more than 3 standard errors and
//! 2 percent, 2 if the request cannot be understood or fulfilled.

mod bridge;
mod data;
mod request;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use data::{Part, Split};
use linfa::traits::{Fit, Predict};
use linfa_logistic::MultiLogisticRegression;
use ndarray::Array2;
use pico_args::Arguments;
use random_features::apply::{Criterion, RidgeStatistics};
use random_features::data::lengthscale;
use random_features::frequency::Orthogonal;
use random_features::kernel::Gaussian;
use random_features::map::{Nystroem, Side};
use random_features::{Map, Trigonometric};
use request::{HELP, Request};
use smartcore::linear::logistic_regression::{LogisticRegression, LogisticRegressionParameters};

/// The weight of the penalty of logistic regressions.
const PENALTY: f64 = 0.1;
/// The λ of ridge classifiers that cross-validation chooses from.
const LAMBDAS: [f64; 6] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// Standard errors, and at least percent, by which a classifier may be worse on features before something is wrong.
const LIMIT: [f64; 2] = [3.0, 2.0];

type Outcome<A> = Result<A, Box<dyn Error>>;

/// Points to train with and points to test with, in the rows of two matrices.
type Sets = [Array2<f64>; 2];

const METHODS: [&str; 6] = [
    "linfa, columns",
    "linfa, random features",
    "smartcore, columns",
    "smartcore, random features",
    "our ridge, random features",
    "our ridge, Nyström",
];

fn linfa(sets: Sets, train: &Part) -> Outcome<Vec<usize>> {
    let [points, test] = sets.map(bridge::for_linfa);
    let labels = ndarray16::Array1::from(train.labels.clone());
    let model = MultiLogisticRegression::default().alpha(PENALTY).max_iterations(200);
    let fitted = model.fit(&linfa::Dataset::new(points?, labels))?;
    Ok(fitted.predict(&test?).to_vec())
}

fn smartcore(sets: Sets, train: &Part) -> Outcome<Vec<usize>> {
    let [points, test] = sets.map(bridge::for_smartcore);
    let labels: Vec<u32> = train.labels.iter().map(|label| *label as u32).collect();
    let parameters = LogisticRegressionParameters::default().with_alpha(PENALTY);
    let model = LogisticRegression::fit(&points?, &labels, parameters)?;
    Ok(model.predict(&test?)?.into_iter().map(|label| label as usize).collect())
}

fn ridge(map: Map<f64>, split: &Split) -> Outcome<Vec<usize>> {
    let mut statistics = RidgeStatistics::new(map, split.classes)?;
    statistics.update(&split.train.points, &split.train.labels)?;
    let spectrum = statistics.spectrum()?;
    let lambdas: Vec<f64> = LAMBDAS.into_iter().filter(|lambda| *lambda > spectrum.resolution()).collect();
    let (lambda, _) = spectrum.choose(&Criterion::GeneralisedCrossValidation, &lambdas)?;
    Ok(spectrum.model(lambda)?.classify(&split.test.points)?)
}

/// The accuracy of each method on one split.
fn accuracies(split: &Split, m: usize, seed: u64) -> Outcome<[f64; METHODS.len()]> {
    let (train, test) = (&split.train, &split.test);
    let ell = lengthscale::median_of_subsample(&train.points, 1000, seed)?;
    let map = Trigonometric.gaussian::<f64>(Orthogonal.draw(train.points.ncols(), m, seed)?, ell)?;
    let columns = || [train.points.clone(), test.points.clone()];
    let features = || -> Outcome<Sets> {
        let of = |x: &Array2<f64>| map.features(Side::X, x).map(|features| features.into_array());
        Ok([of(&train.points)?, of(&test.points)?])
    };
    // As many features: a cosine and a sine for each frequency.
    let nystrom = Nystroem::fit(Gaussian::new(ell)?, &train.points, 2 * m, seed)?.map()?;
    let classes = [
        linfa(columns(), train)?,
        linfa(features()?, train)?,
        smartcore(columns(), train)?,
        smartcore(features()?, train)?,
        ridge(map.clone(), split)?,
        ridge(nystrom, split)?,
    ];
    let right = |found: &Vec<usize>| found.iter().zip(&test.labels).filter(|(a, b)| a == b).count();
    Ok(classes.each_ref().map(|found| right(found) as f64 / test.labels.len() as f64))
}

/// The mean and its standard error.
fn mean(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// The table of a data set, and whether both logistic regressions are as good on features at least.
fn report(name: &str, data: &Part, m: usize, splits: u64) -> Outcome<(String, bool)> {
    let of_split = |seed| accuracies(&data.split(seed), m, seed);
    let all = (0..splits).map(of_split).collect::<Outcome<Vec<_>>>()?;
    let (n, d) = data.points.dim();
    let mut text = format!("{name}: {n} points, {d} columns, {} features, {splits} splits\n", 2 * m);
    text += &format!("  {:<30}{:>8}{:>18}\n", "classifier", "test %", "gain over columns");
    let mut better = true;
    for (k, name) in METHODS.iter().enumerate() {
        let accuracy = mean(all.iter().map(|row| 100.0 * row[k])).0;
        text += &format!("  {name:<30}{accuracy:>8.2}");
        if k == 1 || k == 3 {
            let (gain, error) = mean(all.iter().map(|row| 100.0 * (row[k] - row[k - 1])));
            text += &format!("{gain:>10.2} ± {error:.2}");
            better &= gain >= -(LIMIT[0] * error).max(LIMIT[1]);
        }
        text += "\n";
    }
    Ok((text + "\n", better))
}

/// The bundled tables.
const TABLES: [(&str, &str); 2] =
    [("banknote", include_str!("../../data/banknote.txt")), ("wifi", include_str!("../../data/wifi.txt"))];

/// Prints the tables, and says whether all is well.
fn run(request: Option<Request>) -> Outcome<bool> {
    let mut out = std::io::stdout();
    let Some(Request { m, splits }) = request else {
        out.write_all(HELP.as_bytes())?;
        return Ok(true);
    };
    let mut well = true;
    for (name, table) in TABLES {
        let (text, better) = report(name, &data::parse(table)?, m, splits)?;
        out.write_all(text.as_bytes())?;
        well &= better;
    }
    Ok(well)
}

fn main() -> ExitCode {
    match Request::read(Arguments::from_env()).map_err(Into::into).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
