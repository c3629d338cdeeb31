//! The table: mean squared errors relative to independent frequencies.

use crate::simulation::{Curve, Panel, Point, Setup, VAGUE};

/// Samples further than this from their closed form, in standard errors, are failures: with some 70 of them a
/// false alarm in fewer than 1 of 10 000 runs at the default size. With few draws samples are far from normal:
/// at 200, no alarm in 1500 seeds, so fewer than 1 in 500.
const LIMIT: f64 = 5.0;

/// The table, and whether all samples agree with their closed forms.
pub fn write(setup: &Setup, panels: &[Panel]) -> (String, bool) {
    let Setup { d, m, draws, seed } = setup;
    let mut text = format!("Gaussian kernel, d = {d}, m = {m}, {draws} draws, seed {seed}\n");
    text += "x ⟂ y with ‖x‖ = ‖y‖ and ‖x+y‖ = ‖x−y‖ = v; uniform directions, new in each draw\n\n";
    panels.iter().for_each(|panel| text += &block(panel));
    text += &notes(setup, panels);
    // A z that is not a number is no agreement either.
    let well = points(panels).filter_map(|point| point.z).all(|z| z.abs() <= LIMIT);
    let verdict = if well { "all samples agree with" } else { "SOME SAMPLES DISAGREE WITH" };
    (text + &format!("{verdict} the closed forms to {LIMIT} standard errors\n"), well)
}

fn points(panels: &[Panel]) -> impl Iterator<Item = &Point> {
    panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points)
}

/// What the columns and marks mean.
fn notes(setup: &Setup, panels: &[Panel]) -> String {
    let mut text = String::from(
        "s.e. %   the largest standard error in the row, relative to the MSE\n\
         max |z|  the largest distance from the sampler's own closed form, in standard errors; – if it has none\n",
    );
    for panel in panels.iter().filter(|panel| panel.tested.is_finite()) {
        let Panel { map, tested, .. } = panel;
        text += &format!(
            "         {map}: up to v = {tested}; beyond, samples tend to miss the rare large errors\n"
        );
    }
    if points(panels).any(Point::vague) {
        text += &format!(
            "~        the standard error exceeds {:.0} %: not compared, not in the picture\n",
            100.0 * VAGUE
        );
    }
    if setup.m.is_multiple_of(setup.d) {
        text += "fitted and truncated simplexes are the same here: d divides m, so no block is partial\n";
    }
    text
}

/// The rows for one map.
fn block(panel: &Panel) -> String {
    let mut text =
        format!("{}: sample MSE, relative to the closed form for independent frequencies\n", panel.map);
    let cells = |cell: &dyn Fn(&(f64, f64)) -> String| panel.baseline.iter().map(cell).collect::<String>();
    text += &format!("  {:<19}{}", "v", cells(&|(v, _)| format!("{v:>8}")));
    text += &format!("{:>9}{:>9}\n", "s.e. %", "max |z|");
    for curve in &panel.curves {
        text += &row(panel, curve);
    }
    text += &format!("  {:<19}{}\n", "1 in this table is", cells(&|(_, mse)| format!("{mse:>8.5}")));
    text + "\n"
}

fn row(panel: &Panel, curve: &Curve) -> String {
    let mut text = format!("  {:<19}", curve.sampler);
    for (point, (_, independent)) in curve.points.iter().zip(&panel.baseline) {
        let mark = if point.vague() { "~" } else { "" };
        text += &format!("{:>8}", format!("{mark}{:.3}", point.mse / independent));
    }
    let error = curve.points.iter().map(|point| point.error).fold(0.0, f64::max);
    let z = curve.points.iter().filter_map(|point| point.z).map(f64::abs).reduce(f64::max);
    let z = z.map_or("–".into(), |z| format!("{z:.2}"));
    text + &format!("{:>9.1}{z:>9}\n", 100.0 * error)
}
