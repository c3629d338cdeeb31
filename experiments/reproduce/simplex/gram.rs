//! Figure 7: estimated Gram matrices.

use experiments::plot::{Panel, Series};
use random_features::apply::Standardisation;
use random_features::apply::metrics::frobenius_error;
use random_features::data::{PairStatistics, Statistics, lengthscale};
use random_features::extend::Coupling;
use random_features::frequency::{Frequencies, Independent, Orthogonal, Simplex, SimplexPlus};
use random_features::kernel::{Gaussian, Kernel};
use random_features::ndarray::{Array2, s};
use random_features::theory::gerf::GerfSign;
use random_features::{Gerf, Map, Positive, Trigonometric, rng_of_step};
use rayon::prelude::*;

use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-figure-7",
    paper: Paper::Simplex,
    place: "Figure 7",
    claim: "Gram matrices from positive features are better with simplex frequencies than with orthogonal ones, better with these than with \
            independent ones, and better with more of them.",
    setting: "‖K̂ − K‖/‖K‖ (Frobenius) of the Gaussian kernel, a mean over draws of the frequencies. The numbers of points and dimensions, their \
              law and σ are lost in the text: here 64 points ~ N(0, I) in ℝ⁶⁴, drawn once, and σ = 0.1, a lengthscale of 10; m = 16 … 512 \
              features. The paper's simplex takes its first rows where m < d. A second set, beyond the paper: 100 points of wifi, \
              standardised, the median distance as lengthscale.",
    rule: "Random points: simplex < orthogonal < independent at every m, and for each coupling less error at each m than at m/2, by 3 standard \
           errors: 27 comparisons. wifi: mean squares of trigonometric features, which are bounded, are within 5 standard errors of their \
           closed forms. If all of it is true, something is called wrong in fewer than 1 of 20 runs, and most likely in far fewer.",
    minutes: 1.0,
    data: &["wifi"],
    run,
};

/// Random points: how many, in how many dimensions, and σ.
const RANDOM: (usize, usize, f64) = (64, 64, 0.1);
const FEATURES: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// Points of wifi, and m in units of d.
const WIFI: usize = 100;
const BLOCKS: [usize; 5] = [1, 2, 4, 8, 16];
/// Standard errors by which a mean square may be off.
const LIMIT: f64 = 5.0;

/// Points and their exact Gram matrix.
struct Points {
    name: &'static str,
    x: Array2<f64>,
    lengthscale: f64,
    exact: Array2<f64>,
}

impl Points {
    fn new(name: &'static str, x: Array2<f64>, lengthscale: f64) -> Result<Self, Stop> {
        let exact = Gaussian::new(lengthscale)?.gram(&x, &x)?;
        Ok(Points { name, x, lengthscale, exact })
    }

    fn random(seed: u64) -> Result<Self, Stop> {
        let (n, d, sigma) = RANDOM;
        // Independent frequencies are what they are: rows ~ N(0, I).
        let x = Independent.draw(d, n, rng_of_step(seed, u64::MAX).next_u64())?.rows().into_owned();
        Points::new("random points", x, 1.0 / sigma)
    }

    /// Points of the set, evenly spaced, standardised.
    fn wifi(run: &mut Run<'_>) -> Result<Self, Stop> {
        let all = run.data("wifi")?.points;
        let all = Standardisation::of(&all)?.apply(&all)?;
        let x = all.slice(s![..; all.nrows() / WIFI, ..]).slice(s![..WIFI, ..]).to_owned();
        let lengthscale = lengthscale::median_of_subsample(&x, WIFI, run.seed())?;
        Points::new("wifi", x, lengthscale)
    }
}

/// What features are made of frequencies.
#[derive(Clone, Copy, PartialEq)]
enum Features {
    Positive,
    /// Optimal positive features for the mean of ‖x+y‖².
    Optimal,
    Trigonometric,
}

impl Features {
    /// Features of a frequency.
    fn each(self) -> usize {
        if self == Features::Trigonometric { 2 } else { 1 }
    }

    fn map(self, omega: Frequencies, points: &Points) -> Result<Map<f64>, Stop> {
        let ell = points.lengthscale;
        Ok(match self {
            Features::Positive => Positive.gaussian(omega, ell)?,
            Features::Trigonometric => Trigonometric.gaussian(omega, ell)?,
            Features::Optimal => {
                let statistics = Statistics::of(&(&points.x / ell))?;
                let pairs = PairStatistics::new(&statistics, &statistics)?;
                Gerf::optimal(points.x.ncols(), pairs.mean_squared_sum(GerfSign::Plus))?
                    .gaussian(omega, ell)?
            }
        })
    }
}

/// A row of the table.
struct Method {
    name: &'static str,
    features: Features,
    coupling: Box<dyn Coupling>,
}

fn methods() -> Vec<Method> {
    use Features::{Optimal, Positive, Trigonometric};
    let simplex = || Box::new(Simplex::default());
    let method = |name, features, coupling| Method { name, features, coupling };
    vec![
        method("independent", Positive, Box::new(Independent)),
        method("orthogonal", Positive, Box::new(Orthogonal)),
        method("simplex", Positive, Box::new(Simplex::default().with_truncated_blocks())),
        method("beyond: simplex, fitted", Positive, simplex()),
        method("beyond: SimRF+", Positive, Box::<SimplexPlus>::default()),
        method("beyond: OPRF, simplex, fitted", Optimal, simplex()),
        method("beyond: trigonometric, independent", Trigonometric, Box::new(Independent)),
        method("beyond: trigonometric, orthogonal", Trigonometric, Box::new(Orthogonal)),
    ]
}

/// Errors over draws.
struct Errors {
    /// The mean of ‖K̂ − K‖/‖K‖, and that of its square.
    mean: Mean,
    square: Mean,
    /// The mean square by the closed forms of the variances.
    closed: Option<f64>,
}

impl Errors {
    fn of(
        method: &Method,
        points: &Points,
        features: usize,
        seed: u64,
        draws: u64,
    ) -> Result<Vec<f64>, Stop> {
        let (d, m) = (points.x.ncols(), features / method.features.each());
        let map = |step| {
            method.features.map(method.coupling.draw(d, m, rng_of_step(seed, step).next_u64())?, points)
        };
        let error = |step| Ok(frobenius_error(&map(step)?.gram(&points.x, &points.x)?, &points.exact)?);
        let errors: Vec<f64> = (0..draws).into_par_iter().map(error).collect::<Result<_, Stop>>()?;
        let (mean, square) = (Mean::of(&errors), Mean::of(&errors.iter().map(|e| e * e).collect::<Vec<_>>()));
        let size: f64 = points.exact.iter().map(|k| k * k).sum();
        let map = map(0)?;
        let rows = (0..points.x.nrows()).into_par_iter().map(|i| {
            let variances = points.x.rows().into_iter().map(|y| map.log_variance(&points.x.row(i), &y));
            let sum: random_features::Result<Option<f64>> = variances.map(|ln| Ok(ln?.map(f64::exp))).sum();
            Ok(sum?)
        });
        let rows: Vec<Option<f64>> = rows.collect::<Result<_, Stop>>()?;
        let closed = rows.into_iter().sum::<Option<f64>>().map(|sum| sum / size);
        Ok([mean.value, mean.error, square.value, square.error].into_iter().chain(closed).collect())
    }

    fn read(numbers: &[f64]) -> Self {
        let mean = |k: usize| Mean { value: numbers[k], error: numbers[k + 1] };
        Errors { mean: mean(0), square: mean(2), closed: numbers.get(4).copied() }
    }
}

/// The errors of each method at each number of features.
fn errors(
    run: &mut Run<'_>,
    points: &Points,
    features: &[usize],
    draws: u64,
) -> Result<Vec<Vec<Errors>>, Stop> {
    let seed = run.seed();
    let of_method = |method: &Method| {
        let of = |features: &usize| {
            let name = format!("{}, {}, {features} features, {draws} draws", points.name, method.name);
            let numbers = run.cell(&name, || Errors::of(method, points, *features, seed, draws))?;
            Ok(Errors::read(&numbers))
        };
        features.iter().map(of).collect()
    };
    methods().iter().map(of_method).collect()
}

/// Means, with the root of the closed form of the mean square in a row below.
fn table(points: &Points, features: &[usize], errors: &[Vec<Errors>]) -> Table {
    let (n, d) = points.x.dim();
    let heads = features.iter().map(|m| format!("{m} features"));
    let mut table = Table::new(
        format!(
            "‖K̂ − K‖/‖K‖: {}, {n} in {d} dimensions, lengthscale {:.2}; below, the root mean square by closed forms",
            points.name, points.lengthscale
        ),
        [String::new()].into_iter().chain(heads),
    );
    for (method, errors) in methods().iter().zip(errors) {
        table.row(method.name, errors.iter().map(|errors| errors.mean));
        if errors.iter().any(|errors| errors.closed.is_some()) {
            let root = |errors: &Errors| Cell::from(errors.closed.map(f64::sqrt));
            table.row("  closed form", errors.iter().map(root));
        }
    }
    table
}

fn panel(title: &str, features: &[usize], errors: &[Vec<Errors>]) -> Panel {
    let series = |(method, errors): (&Method, &Vec<Errors>)| {
        let line: Vec<(f64, f64)> =
            features.iter().zip(errors).map(|(m, errors)| ((*m as f64).log2(), errors.mean.value)).collect();
        Series { name: method.name.into(), line: line.clone(), points: line }
    };
    Panel {
        title: title.into(),
        x_label: "log₂ features".into(),
        y_label: "‖K̂ − K‖/‖K‖".into(),
        series: methods().iter().zip(errors).map(series).collect(),
    }
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let (random, wifi) = (Points::random(run.seed())?, Points::wifi(run)?);
    let of_wifi = BLOCKS.map(|blocks| 2 * blocks * wifi.x.ncols());
    run.expect(methods().len() * (FEATURES.len() + BLOCKS.len()));
    let own = errors(run, &random, &FEATURES, run.full_or_quick(1000, 10))?;
    let real = errors(run, &wifi, &of_wifi, run.full_or_quick(1000, 20))?;
    let mut claim = Claim::default();
    for (k, m) in FEATURES.iter().enumerate() {
        claim.less(format!("simplex below orthogonal at m = {m}"), own[2][k].mean, own[1][k].mean);
        claim.less(format!("orthogonal below independent at m = {m}"), own[1][k].mean, own[0][k].mean);
    }
    for (method, errors) in methods().iter().zip(&own).take(3) {
        for (pair, m) in errors.windows(2).zip(FEATURES) {
            let statement = format!("{} is better at {} than at {m} features", method.name, 2 * m);
            claim.less(statement, pair[1].mean, pair[0].mean);
        }
    }
    let mut furthest = 0.0f64;
    for (method, errors) in methods().iter().zip(&real) {
        for Errors { square, closed, .. } in errors {
            let Some(closed) = closed.filter(|_| method.features == Features::Trigonometric) else {
                continue;
            };
            furthest = furthest.max(((square.value - closed) / square.error).abs());
        }
    }
    claim.is("trigonometric mean squares agree with closed forms", furthest <= LIMIT);
    let at = |k: usize| own[k][2].mean;
    let ours = format!(
        "at m = d = 64: simplex {:.4}, orthogonal {:.4}, independent {:.4}",
        at(2).value,
        at(1).value,
        at(0).value
    );
    let best = |errors: &[Vec<Errors>]| {
        let last = |k: &usize| errors[*k].last().map_or(f64::NAN, |errors| errors.mean.value);
        let best = (0..errors.len()).min_by(|a, b| last(a).total_cmp(&last(b))).unwrap_or(0);
        methods()[best].name.trim_start_matches("beyond: ")
    };
    let beyond = format!(
        "Beyond the paper: least error at the largest number of features, random points: {}; wifi: {}.",
        best(&own),
        best(&real)
    );
    let about_wifi = format!(
        "Mean squares of trigonometric features on wifi are at most {furthest:.1} standard errors from their closed forms. Those of positive \
         features are made by a few draws in many where ‖x+y‖ is large, as on wifi: a sample of them mostly lies below its closed form, and \
         sometimes far above."
    );
    Ok(Outcome {
        verdict: claim.verdict(),
        ours,
        theirs: "a picture".into(),
        tables: vec![table(&random, &FEATURES, &own), table(&wifi, &of_wifi, &real)],
        panels: vec![panel("random points", &FEATURES, &own), panel("wifi", &of_wifi, &real)],
        notes: vec![beyond, about_wifi],
        ..Outcome::default()
    })
}
