//! Figures 2 and 5: estimates over the angle, at equal cost.

use experiments::plot::{Panel, Series};
use ndarray::{Array1, Array2, Axis};
use random_features::frequency::Orthogonal;
use random_features::{Map, rng, rng_of_step};
use rayon::prelude::*;

use super::methods::{Cost, METHODS, Method, SIGMA, SIZED_FOR, Size, ln_optimal_error};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "hybrid-figure-2",
    paper: Paper::Hybrid,
    place: "Figures 2 and 5",
    claim: "At an equal number of operations the angular hybrid estimates exp(x·y) at all angles more evenly than trigonometric and positive \
            features; the Gaussian hybrid likewise.",
    setting: "d = 64, ‖x‖ = ‖y‖ = r of 1, 1.25 and 1.5, 10,000 draws of independent frequencies; the cost is that of 128 positive features, by \
              features or by multiplications for making them. Both bases of a hybrid share their frequencies; n has the smallest largest error at r = \
              1.25, Gaussian coefficients have σ = 1. The paper gives neither (m, n) nor how operations are counted.",
    rule: "At equal work (multiplications) and each r the largest √MSE/K over all angles, by closed form, is smaller for the angular hybrid than for \
           trigonometric, positive and hyperbolic features; and likewise for the Gaussian one. Sampled errors agree with closed forms to 5 standard \
           errors, where ‖x+y‖² ≤ 1 or features are trigonometric: a false alarm in fewer than 1 of 10,000 runs.",
    minutes: 1.5,
    data: &[],
    run,
};

const BEYOND: &str = "Beyond the paper: optimal positive features on simplices, with A for the mean of ‖x+y‖² over all angles, have smaller largest \
                      errors than the regular maps at equal features, and larger ones than the angular hybrid, though at r = 1.5 not by much; from \
                      r = 2 on they have smaller ones (hybrid-figure-1). What the planner chooses for points near both ends stands with \
                      hybrid-appendix-l.";

/// The dimension, and the positive features whose cost all methods have.
const D: usize = 64;
const FEATURES: usize = 128;
const NORMS: [f64; 3] = [1.0, 1.25, 1.5];
/// The angles between the points, in degrees.
const ANGLES: [f64; 13] = [0.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0, 135.0, 150.0, 165.0, 180.0];

/// Positive and hyperbolic estimates are sums of exponentials: their squared errors have moments that grow like exp(‖x+y‖²) to a high
/// power, and soon rare large errors, which a sample may not hold, decide its mean. Up to this ‖x+y‖² samples are compared with closed
/// forms; trigonometric ones are bounded, and always compared.
const TESTED: f64 = 1.0;
/// Samples with larger relative standard errors are not compared.
const VAGUE: f64 = 0.2;
/// Below this the relative error is 0 but for rounding.
const EXACT: f64 = 1e-6;
/// Standard errors between a sample and its closed form that are no accident.
const LIMIT: f64 = 5.0;
/// Smaller relative errors are not in the picture: where estimates become exact there is no end to them.
const FLOOR: f64 = 3e-3;

/// What is known of the estimates of a method at a norm and an angle, relative to the kernel.
#[derive(Clone, Copy)]
struct Point {
    /// √MSE by the closed form.
    closed: f64,
    /// The MSE of the sample, and its standard error relative to it.
    mse: f64,
    error: f64,
    /// The 5 % and the 95 % quantile of estimates.
    quantiles: [f64; 2],
}

/// A method at a cost: its size, and points for each norm and angle.
struct Column {
    method: Method,
    size: Size,
    points: Vec<Vec<Point>>,
}

/// x and, in rows, y at all angles from it.
type Points = (Array2<f64>, Array2<f64>);

/// Points of each norm, in the plane of two orthogonal directions: which, is the same to independent
/// frequencies.
fn pairs(seed: u64) -> Result<Vec<Points>, Stop> {
    let directions = Orthogonal.draw(D, 2, rng(seed).next_u64())?;
    let unit = |side: usize| -> Array1<f64> {
        let direction = directions.rows().row(side).to_owned();
        let norm = direction.dot(&direction).sqrt();
        direction / norm
    };
    let (u, v) = (unit(0), unit(1));
    let of_norm = |r: f64| {
        let mut y = Array2::zeros((ANGLES.len(), D));
        for (mut y, degrees) in y.rows_mut().into_iter().zip(ANGLES) {
            let (sin, cos) = degrees.to_radians().sin_cos();
            y.assign(&(&u * (r * cos) + &v * (r * sin)));
        }
        ((&u * r).insert_axis(Axis(0)), y)
    };
    Ok(NORMS.map(of_norm).to_vec())
}

/// For each norm and angle: the mean of (K̂/K − 1)², its relative standard error, and two quantiles of K̂/K.
fn sample(method: Method, size: Size, seed: u64, draws: u64) -> Result<Vec<f64>, Stop> {
    let pairs = pairs(seed)?;
    let of_draw = |number: u64| -> Result<Vec<f64>, Stop> {
        let maps: Vec<Map<f64>> = method.draw(D, &NORMS, size, &mut rng_of_step(seed, number))?;
        let mut ratios = Vec::with_capacity(NORMS.len() * ANGLES.len());
        for (map, (x, y)) in maps.iter().zip(&pairs) {
            let kernel = y.dot(&x.row(0)).mapv(f64::exp);
            ratios.extend(map.gram(x, y)?.iter().zip(&kernel).map(|(estimate, kernel)| estimate / kernel));
        }
        Ok(ratios)
    };
    let all = (0..draws).into_par_iter().map(of_draw).collect::<Result<Vec<_>, Stop>>()?;
    let n = draws as f64;
    let of_point = |k: usize| {
        let mut ratios: Vec<f64> = all.iter().map(|ratios| ratios[k]).collect();
        let squares = || ratios.iter().map(|ratio| (ratio - 1.0).powi(2));
        let mean = squares().sum::<f64>() / n;
        let variance = squares().map(|square| (square - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt() / mean;
        ratios.sort_by(f64::total_cmp);
        let quantile = |share: f64| ratios[(share * (n - 1.0)).round() as usize];
        [mean, error, quantile(0.05), quantile(0.95)]
    };
    Ok((0..NORMS.len() * ANGLES.len()).flat_map(of_point).collect())
}

impl Point {
    /// How far the sample is from the closed form in standard errors, where the two are compared.
    fn z(&self, method: Method, r: f64, degrees: f64) -> Option<f64> {
        let sum = (2.0 * r * (0.5 * degrees.to_radians()).cos()).powi(2);
        // The angles are such that the sum is at the bound, but for rounding.
        let within = method == Method::Trigonometric || sum <= TESTED + 1e-9;
        let compared = within && self.closed >= EXACT && self.error <= VAGUE;
        // Relative on both sides: a sample that misses the rare large errors has too small a mean and too small a standard error, and their
        // quotient hides that least.
        compared.then(|| (self.mse / self.closed.powi(2) - 1.0) / self.error)
    }
}

impl Column {
    fn sampled(run: &mut Run<'_>, cost: Cost, method: Method) -> Result<Option<Self>, Stop> {
        let Some(size) = cost.size(method, D, FEATURES, SIZED_FOR) else { return Ok(None) };
        let (seed, draws) = (run.seed(), run.full_or_quick(10_000, 200));
        let name = format!("{}, m = {}, n = {}", method.name(), size.m, size.n);
        let numbers = run.cell(&name, || sample(method, size, seed, draws))?;
        let point = |r: f64, k: usize, degrees: f64| {
            let closed = method.ln_relative_error(degrees.to_radians(), r, size).exp();
            let own = &numbers[4 * k..4 * k + 4];
            Point { closed, mse: own[0], error: own[1], quantiles: [own[2], own[3]] }
        };
        let of_norm = |(p, r): (usize, &f64)| {
            let angles = ANGLES.iter().enumerate();
            angles.map(|(k, degrees)| point(*r, p * ANGLES.len() + k, *degrees)).collect()
        };
        let points = NORMS.iter().enumerate().map(of_norm).collect();
        Ok(Some(Column { method, size, points }))
    }

    /// The largest √MSE/K over all angles, by closed form.
    fn worst(&self, r: f64) -> f64 {
        let of = |k: u32| self.method.ln_relative_error(f64::from(k).to_radians(), r, self.size);
        (0..=180).map(of).fold(f64::NEG_INFINITY, f64::max).exp()
    }
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    run.expect(2 * METHODS.len());
    let (mut claim, mut tables, mut panels) = (Claim::default(), Vec::new(), Vec::new());
    let (mut gains, mut largest) = (Vec::new(), 0.0f64);
    for cost in [Cost::Features, Cost::Work] {
        let mut columns = Vec::new();
        for method in METHODS {
            columns.extend(Column::sampled(run, cost, method)?);
        }
        let worst = |method: Method, r: f64| {
            columns.iter().find(|column| column.method == method).map_or(f64::NAN, |column| column.worst(r))
        };
        for r in NORMS {
            for hybrid in [Method::Angular, Method::Gaussian].into_iter().filter(|_| cost == Cost::Work) {
                for plain in [Method::Trigonometric, Method::Positive, Method::Hyperbolic] {
                    let statement = format!("{} against {}, r = {r}", hybrid.name(), plain.name());
                    claim.is(statement, worst(hybrid, r) < worst(plain, r));
                }
            }
            let gain =
                worst(Method::Trigonometric, r).min(worst(Method::Positive, r)) / worst(Method::Angular, r);
            gains.push((cost, r, gain));
        }
        for column in &columns {
            for (r, points) in NORMS.iter().zip(&column.points) {
                let z = points
                    .iter()
                    .zip(ANGLES)
                    .filter_map(|(point, degrees)| point.z(column.method, *r, degrees));
                largest =
                    z.map(f64::abs).fold(largest, |a, b| if b.is_nan() { f64::INFINITY } else { a.max(b) });
            }
        }
        tables.push(sizes(cost, &columns));
        for (p, r) in NORMS.iter().enumerate() {
            tables.push(table(cost, *r, p, &columns));
            panels.push(panel(cost, *r, p, &columns));
            panels.push(estimates(cost, *r, p, &columns));
        }
    }
    claim.is(format!("samples agree with closed forms to {LIMIT} standard errors"), largest <= LIMIT);
    let of = |gain: &&(Cost, f64, f64)| gain.0 == Cost::Work;
    let shown: Vec<String> =
        gains.iter().filter(of).map(|(_, r, gain)| format!("{} at r = {r}", number(*gain))).collect();
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "at equal work the largest relative error is smaller by factors of {}",
            shown.join(", ")
        ),
        theirs: "pictures".into(),
        tables,
        panels,
        notes: vec![
            BEYOND.into(),
            format!(
                "The largest distance of a sample from its closed form is {} standard errors. n has the smallest largest error over θ at r = \
             {SIZED_FOR}; Gaussian coefficients have σ = {SIGMA}.",
                number(largest)
            ),
        ],
        ..Outcome::default()
    })
}

fn sizes(cost: Cost, columns: &[Column]) -> Table {
    let heads = ["method", "m", "n", "D", "cost"].map(str::to_owned).into_iter();
    let heads = heads.chain(NORMS.map(|r| format!("largest √MSE/K, r = {r}")));
    let mut table = Table::new(format!("Sizes at {}", cost.name()), heads);
    for column in columns {
        let (method, size) = (column.method, column.size);
        let n = if size.n == 0 { Cell::Empty } else { size.n.to_string().into() };
        let counts = [size.m.to_string().into(), n, method.features(size).to_string().into()];
        let cost = cost.of(method, size, D).to_string();
        let worst = NORMS.map(|r| Cell::Number(column.worst(r)));
        table.row(method.name(), counts.into_iter().chain([cost.into()]).chain(worst));
    }
    // As many as there are positive features, at the same cost.
    let optimal = |r: f64, degrees: u32| ln_optimal_error(f64::from(degrees).to_radians(), r, FEATURES, D);
    let worst = |r: f64| (0..=180).map(|k| optimal(r, k)).fold(f64::NEG_INFINITY, f64::max).exp();
    let count = Cell::from(FEATURES.to_string());
    let cost = Cell::from(cost.of(Method::Positive, Size { m: FEATURES, n: 0 }, D).to_string());
    let cells = [count.clone(), Cell::Empty, count, cost];
    table.row("beyond: OPRF, simplex", cells.into_iter().chain(NORMS.map(|r| Cell::Number(worst(r)))));
    table
}

fn table(cost: Cost, r: f64, p: usize, columns: &[Column]) -> Table {
    let title = format!(
        "{}, r = {r}: √MSE/K by closed form, as sampled, and the 5 and 95 % quantiles of K̂/K",
        cost.name()
    );
    let heads = std::iter::once("θ").chain(columns.iter().map(|column| column.method.name()));
    let mut table = Table::new(title, heads);
    for (k, degrees) in ANGLES.iter().enumerate() {
        let cell = |column: &Column| {
            let Point { closed, mse, quantiles: [low, high], .. } = column.points[p][k];
            let shown = format!("{closed:.3} {:.3} [{low:.2}, {high:.2}]", mse.sqrt()).replace('-', "−");
            let parts = [("closed form", closed), ("sampled", mse.sqrt()), ("5 %", low), ("95 %", high)];
            Cell::Parts(shown, parts.to_vec())
        };
        table.row(format!("{degrees}°"), columns.iter().map(cell));
    }
    table
}

/// The truth, and between which quantiles estimates are: the outline of each method.
fn estimates(cost: Cost, r: f64, p: usize, columns: &[Column]) -> Panel {
    let outline = |column: &Column| -> Vec<(f64, f64)> {
        let points = || ANGLES.into_iter().zip(&column.points[p]);
        let low = points().map(|(degrees, point)| (degrees, point.quantiles[0]));
        let high = points().rev().map(|(degrees, point)| (degrees, point.quantiles[1]));
        let outline: Vec<(f64, f64)> = low.chain(high).collect();
        outline.iter().copied().chain(outline.first().copied()).collect()
    };
    let series = |column: &Column| Series {
        name: column.method.name().into(),
        line: outline(column),
        points: Vec::new(),
    };
    let truth = Series { name: "truth".into(), line: vec![(0.0, 1.0), (180.0, 1.0)], points: Vec::new() };
    Panel {
        title: format!("Estimates, r = {r}, {}", cost.name()),
        x_label: "θ in degrees".into(),
        y_label: "5 and 95 % quantiles of K̂/K".into(),
        series: std::iter::once(truth).chain(columns.iter().map(series)).collect(),
    }
}

fn panel(cost: Cost, r: f64, p: usize, columns: &[Column]) -> Panel {
    let series = |column: &Column| {
        let closed = |degrees: f64| {
            (degrees, column.method.ln_relative_error(degrees.to_radians(), r, column.size).exp())
        };
        let samples = column.points[p]
            .iter()
            .zip(ANGLES)
            .filter(|(point, degrees)| point.z(column.method, r, *degrees).is_some());
        let shown = |(_, error): &(f64, f64)| *error >= FLOOR;
        Series {
            name: column.method.name().into(),
            line: (0..=180).map(|k| closed(f64::from(k))).filter(shown).collect(),
            points: samples.map(|(point, degrees)| (degrees, point.mse.sqrt())).filter(shown).collect(),
        }
    };
    Panel {
        title: format!("r = {r}, {}", cost.name()),
        x_label: "θ in degrees".into(),
        y_label: "√MSE/K (points: sampled; lines: closed form)".into(),
        series: columns.iter().map(series).collect(),
    }
}
