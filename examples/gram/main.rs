//! How far is an estimated Gram matrix from the kernel's? The relative Frobenius error against m.
//!
//! Points of the bundled wifi set, standardised, and the Gaussian kernel with their median distance as the lengthscale. For
//! each number m of frequencies and each coupling, Gram matrices K̂ are estimated from many draws; the table shows the
//! root mean square of ‖K̂ − K‖ over draws, over ‖K‖ (the picture of Figure 7 of *Simplex Random Features*), and in
//! brackets what the closed forms of the variances predict, where there are some. Errors of positive features have heavy
//! tails: a few draws in many make their mean square, so that it lies below its closed form unless draws are very many.
//!
//!     cargo run --release --example gram -- [--points 100] [--draws 200] [--seed 1]
//!
//! Exit code 0 if all is well, 1 if a mean square of trigonometric features, which are bounded, is more than 5 standard
//! errors from its closed form, 2 if the request cannot be understood or fulfilled.

#[path = "../common/command.rs"]
mod command;

use std::error::Error;
use std::process::ExitCode;

use command::{Command, Request};
use ndarray::{Array2, s};
use random_features::apply::Standardisation;
use random_features::apply::metrics::frobenius_error;
use random_features::data::lengthscale;
use random_features::frequency::{Coupling, Independent, Orthogonal, Simplex, SimplexPlus, draw};
use random_features::kernel::{Gaussian, Kernel};
use random_features::{Map, Positive, Trigonometric, rng, rng_of_step};

const COMMAND: Command = Command {
    options: &["--points", "--draws", "--seed"],
    ..Command::new("gram [--points N] [--draws R] [--seed S]")
};
/// m in units of d.
const BLOCKS: [usize; 5] = [1, 2, 4, 8, 16];
/// Standard errors by which a mean square may be off.
const LIMIT: f64 = 5.0;

/// How much is estimated.
struct Size {
    points: usize,
    draws: u64,
    seed: u64,
}

impl Size {
    fn read(asked: &Request) -> Result<Self, String> {
        Ok(Size {
            points: asked.count("--points", 100, (2, 2000))?,
            draws: asked.whole("--draws", 200, (2, 1_000_000))?,
            seed: asked.whole("--seed", 1, (0, u64::MAX))?,
        })
    }
}

/// n points of the set, evenly spaced, standardised.
fn points(n: usize) -> Result<Array2<f64>, Box<dyn Error>> {
    let text = include_str!("../data/wifi.txt");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split_whitespace().map(str::parse).collect::<Result<_, _>>())
        .collect::<Result<_, _>>()?;
    // The last column is the label.
    let d = rows[0].len() - 1;
    let all = Array2::from_shape_fn((rows.len(), d), |(i, k)| rows[i][k]);
    let all = Standardisation::of(&all)?.apply(&all)?;
    Ok(all.slice(s![..; all.nrows() / n, ..]).slice(s![..n, ..]).to_owned())
}

type Maker = fn(random_features::frequency::Frequencies, f64) -> random_features::Result<Map<f64>>;

/// Squared relative errors over draws.
struct Errors {
    mean: f64,
    standard_error: f64,
    /// The mean square that the closed forms give.
    predicted: Option<f64>,
}

fn errors(
    (x, exact, ell): (&Array2<f64>, &Array2<f64>, f64),
    (make, coupling, m): (Maker, &dyn Coupling, usize),
    request: &Size,
) -> Result<Errors, Box<dyn Error>> {
    let map = |step| make(draw(x.ncols(), m, coupling, &mut rng_of_step(request.seed, step))?, ell);
    let square = |step| -> Result<f64, Box<dyn Error>> {
        Ok(frobenius_error(&map(step)?.gram(x, x)?, exact)?.powi(2))
    };
    let squares = (0..request.draws).map(square).collect::<Result<Vec<f64>, _>>()?;
    let n = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / n;
    let spread: f64 = squares.iter().map(|s| (s - mean).powi(2)).sum();
    let (map, mut predicted) = (map(0)?, Some(0.0));
    for (x, y) in x.rows().into_iter().flat_map(|a| x.rows().into_iter().map(move |b| (a, b))) {
        let variance = map.log_variance(&x, &y)?.map(f64::exp);
        predicted = predicted.zip(variance).map(|(sum, variance)| sum + variance);
    }
    let size: f64 = exact.iter().map(|k| k * k).sum();
    let predicted = predicted.map(|sum| sum / size);
    Ok(Errors { mean, standard_error: (spread / (n - 1.0) / n).sqrt(), predicted })
}

/// The tables; whether all means agree with their closed forms.
fn run(request: &Size) -> Result<bool, Box<dyn Error>> {
    let x = points(request.points)?;
    let (n, d) = x.dim();
    let ell = lengthscale::median(&x, n, &mut rng(request.seed))?;
    let exact = Gaussian::new(ell)?.gram(&x, &x)?;
    command::print(&format!(
        "‖K̂ − K‖/‖K‖ for {n} points in {d} dimensions, lengthscale {ell:.2}, {} draws\n",
        request.draws
    ))?;
    let couplings: [(&str, &dyn Coupling); 4] = [
        ("independent", &Independent),
        ("orthogonal", &Orthogonal),
        ("simplex", &Simplex::default()),
        ("simplex+", &SimplexPlus::default()),
    ];
    let maps: [(&str, Maker); 2] = [
        ("positive", |omega, ell| Positive.gaussian(omega, ell)),
        ("trigonometric", |omega, ell| Trigonometric.gaussian(omega, ell)),
    ];
    let mut agree = true;
    for (name, make) in maps {
        let heads: String = couplings.iter().map(|(name, _)| format!("{name:>18}")).collect();
        command::print(&format!("\n{name}\n{:>6}{heads}\n", "m"))?;
        for m in BLOCKS.map(|blocks| blocks * d) {
            let mut line = format!("{m:>6}");
            for (_, coupling) in couplings {
                let errors = errors((&x, &exact, ell), (make, coupling, m), request)?;
                let predicted = errors.predicted.map_or("–".into(), |p| format!("{:.4}", p.sqrt()));
                line += &format!("{:>10.4} ({predicted:^6})", errors.mean.sqrt());
                let off = errors.predicted.map_or(0.0, |p| (errors.mean - p).abs());
                agree &= name != "trigonometric" || off <= LIMIT * errors.standard_error;
            }
            command::print(&format!("{line}\n"))?;
        }
    }
    Ok(agree)
}

fn main() -> ExitCode {
    COMMAND.run(|asked| {
        let agree = run(&Size::read(asked)?).map_err(|error| error.to_string())?;
        if !agree {
            eprintln!(
                "a mean square of trigonometric features is more than {LIMIT} standard errors from its closed form"
            );
        }
        Ok(agree)
    })
}
