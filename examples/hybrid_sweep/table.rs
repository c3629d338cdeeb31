//! The table: relative errors over the angle, a block for each cost and norm, and the surface of the MSE.

use crate::methods::{Cost, SIGMA, SIZED_FOR};
use crate::simulation::{ANGLES, Block, Panel, Point, Setup, TESTED, VAGUE};
use crate::surface::{self, SURFACES, Surface};

/// Samples further than this from their closed form, in standard errors, are failures.
/// With some 150 of them, many on the same frequencies, a false alarm in fewer than 1 of 10 000 runs at the default
/// size if they are normal. With few draws they are not: at 200, no alarm in 300 seeds but a |z|
/// of 4.95, so fewer than 1 in 100.
const LIMIT: f64 = 5.0;

/// Closed forms of `theory` and of the maps differ by no more, relative to the error.
const ROUNDING: f64 = 1e-9;

/// The table, and whether samples and both closed forms agree. `disagreement` is the largest difference between the
/// closed forms.
pub fn write(setup: &Setup, blocks: &[Block], disagreement: f64) -> (String, bool) {
    let mut text = heading(setup);
    for block in blocks {
        text += &sizes(setup, block);
        block.panels.iter().for_each(|panel| text += &rows(block, panel));
    }
    text += &notes();
    SURFACES.iter().for_each(|surface| text += &mse(surface));
    text += "−∞: 0 but for rounding\n\n";
    let points = || blocks.iter().flat_map(|b| &b.panels).flat_map(|p| &p.columns).flatten();
    // A z that is not a number is no agreement either.
    let sampled = points().filter_map(|point| point.z).all(|z| z.abs() <= LIMIT);
    let verdict = if sampled { "all samples agree with" } else { "SOME SAMPLES DISAGREE WITH" };
    text += &format!("{verdict} the closed forms to {LIMIT} standard errors\n");
    let closed = disagreement <= ROUNDING;
    let verdict = if closed { "agree" } else { "DISAGREE" };
    text += &format!("closed forms and the variances that maps state {verdict}: {disagreement:.0e} apart\n");
    (text, sampled && closed)
}

fn heading(setup: &Setup) -> String {
    let Setup { d, features, draws, seed } = setup;
    format!(
        "Relative error √MSE/K of estimates of K = exp(x·y) for ‖x‖ = ‖y‖ = r at an angle θ\n\
         d = {d}, {draws} draws of independent frequencies, seed {seed}\n\
         Equal cost is that of {features} positive features; both bases of a hybrid share their frequencies;\n\
         n has the smallest largest error over θ at r = {SIZED_FOR}; Gaussian coefficients have σ = {SIGMA}\n\n"
    )
}

/// What is equal, and the sizes of all methods.
fn sizes(setup: &Setup, block: &Block) -> String {
    let meaning = match block.cost {
        Cost::Features => "D, the number of real features",
        Cost::Work => {
            "(m + n)d + D: a multiplication for each coordinate and frequency, one for each feature"
        }
    };
    let mut text = format!("{}: {meaning}\n", block.cost.name());
    text += &format!("  {:<16}{:>6}{:>6}{:>8}{:>10}\n", "", "m", "n", "D", "cost");
    for (method, size) in &block.sizes {
        let n = if size.n == 0 { "–".into() } else { size.n.to_string() };
        let (features, cost) = (method.features(*size), block.cost.of(*method, *size, setup.d));
        text += &format!("  {:<16}{:>6}{n:>6}{features:>8}{cost:>10}\n", method.name(), size.m);
    }
    text + "\n"
}

/// The rows of a norm: closed forms, and samples beside them.
fn rows(block: &Block, panel: &Panel) -> String {
    let mut text = format!("{}, r = {}: closed form, sample\n  {:>6}", block.cost.name(), panel.r, "θ");
    block.sizes.iter().for_each(|(method, _)| text += &format!("{:>19}", method.name()));
    text.push('\n');
    for (row, degrees) in ANGLES.iter().enumerate() {
        text += &format!("  {:>6}", format!("{degrees}°"));
        panel.columns.iter().for_each(|column| text += &cell(&column[row]));
        text.push('\n');
    }
    let mut last = |name: &str, value: &dyn Fn(&[Point]) -> String| {
        let cells: String = panel.columns.iter().map(|column| format!("{:>19}", value(column))).collect();
        text += &format!("  {name:>6}{cells}\n");
    };
    last("max", &|column| {
        let max = column.iter().map(|point| point.closed).fold(0.0, f64::max);
        format!("{max:.3}        ")
    });
    last("|z|", &|column| {
        let z = column.iter().filter_map(|point| point.z).map(f64::abs).reduce(f64::max);
        z.map_or("– ".into(), |z| format!("{z:.2} "))
    });
    last("s.e. %", &|column| {
        let errors = column.iter().filter(|point| point.z.is_some()).map(|point| 100.0 * point.error);
        errors.reduce(f64::max).map_or("– ".into(), |error| format!("{error:.1} "))
    });
    text + "\n"
}

/// The closed form, the sample and its mark.
fn cell(point: &Point) -> String {
    let mark = if point.z.is_none() && !point.exact() { '~' } else { ' ' };
    format!("{:>10.3}{:>8.3}{mark}", point.closed, point.sampled)
}

/// What rows and marks mean.
fn notes() -> String {
    format!(
        "~            not compared: hyperbolic and positive features, alone or in a hybrid, where ‖x+y‖² > {TESTED}, since\n\
         {0}samples tend to miss the rare large errors; or the standard error exceeds {1:.0} %\n\
         max          the largest closed form over these angles\n\
         |z|, s.e. %  of what is compared: the largest distance of a sampled MSE from its closed form, in standard\n\
         {0}errors, and the largest standard error, relative to the MSE\n\n",
        " ".repeat(13),
        100.0 * VAGUE
    )
}

/// The surface of the MSE of a method.
fn mse(surface: &Surface) -> String {
    let Surface { method, size } = surface;
    let n = if size.n == 0 { String::new() } else { format!(", n = {}", size.n) };
    let mut text = format!("log₁₀ MSE, {}, m = {}{n}\n  {:>6}", method.name(), size.m, "θ");
    let angles = || ANGLES.iter().step_by(2);
    angles().for_each(|degrees| text += &format!("{:>8}", format!("{degrees}°")));
    text.push('\n');
    for r in 1..=surface::LONGEST as u32 {
        text += &format!("  {:>6}", format!("r = {r}"));
        for degrees in angles() {
            text += &format!("{:>8}", decimal(surface.log_mse(degrees.to_radians(), f64::from(r))));
        }
        text.push('\n');
    }
    text + "\n"
}

/// One decimal with a true minus sign, no negative zero, and −∞ for what rounding leaves of 0.
fn decimal(log: f64) -> String {
    if log < surface::ROUNDING {
        return "−∞".into();
    }
    // Adding 0 makes −0 positive.
    format!("{:.1}", (10.0 * log).round() / 10.0 + 0.0).replace('-', "−")
}
