//! The picture: relative variances over norms, a panel for each regime.

use std::path::Path;

use crate::landscape::{Block, NORMS, Statistic};
use crate::mechanisms::{Coupling, Mechanism};
use crate::plot::{self, Panel, Series};
use crate::regimes::Regime;

/// Larger relative variances are cut off: such estimates are worse than the estimate 0, whose square error
/// is K².
const CEILING: f64 = 3.0;

/// What is drawn: all of them would hide each other. For the rest see the table.
const DRAWN: [(&str, Coupling); 12] = [
    ("trigonometric", Coupling::Independent),
    ("trigonometric", Coupling::Orthogonal),
    ("positive", Coupling::Independent),
    ("positive", Coupling::Simplex),
    ("hyperbolic", Coupling::Orthogonal),
    ("regularised", Coupling::Simplex),
    ("OPRF", Coupling::Independent),
    ("OPRF", Coupling::Simplex),
    ("complex exp.", Coupling::Independent),
    ("Poisson λₗ", Coupling::Independent),
    ("Poisson+ λₗ", Coupling::Independent),
    ("geometric+", Coupling::Independent),
];

pub fn draw(
    blocks: &[(Regime, Block)],
    mechanisms: &[Mechanism],
    features: usize,
    statistic: Statistic,
    path: &Path,
) -> Result<(), String> {
    let y_label = match statistic {
        Statistic::Mean => "geometric mean of Var/K²".into(),
        Statistic::Quantile(percent) => format!("{percent} % quantile of Var/K²"),
    };
    let panel = |(regime, block): &(Regime, Block)| Panel {
        title: format!("{}, d = {}, D = {features}", regime.name, regime.dim()),
        x_label: "root mean square norm".into(),
        y_label: y_label.clone(),
        series: all_series(mechanisms, block),
    };
    plot::write(&blocks.iter().map(panel).collect::<Vec<_>>(), path)
}

fn all_series(mechanisms: &[Mechanism], block: &Block) -> Vec<Series> {
    let rows = || mechanisms.iter().zip(&block.cells);
    let series = |(name, coupling): &(&str, Coupling)| {
        let (mechanism, cells) = rows().find(|(m, _)| m.name == *name && m.coupling == *coupling)?;
        let points: Vec<_> = NORMS.into_iter().zip(cells.iter().map(|cell| cell.value)).collect();
        let shown = points.iter().take_while(|(_, ln)| *ln <= CEILING.ln());
        Some(Series {
            name: label(mechanism),
            line: cut(&points).into_iter().map(|(norm, ln)| (norm, ln.exp())).collect(),
            points: shown.map(|(norm, ln)| (*norm, ln.exp())).collect(),
        })
    };
    DRAWN.iter().filter_map(series).collect()
}

/// The name, and the coupling if there is one.
fn label(mechanism: &Mechanism) -> String {
    match mechanism.coupling {
        Coupling::Independent => mechanism.name.into(),
        coupling => format!("{}, {}", mechanism.name, coupling.name()),
    }
}

/// A line up to the place where it crosses the ceiling.
fn cut(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ceiling = CEILING.ln();
    let below = points.iter().take_while(|(_, ln)| *ln <= ceiling).count();
    let mut line = points[..below].to_vec();
    if let (Some((x0, y0)), Some((x1, y1))) = (line.last().copied(), points.get(below)) {
        line.push((x0 + (x1 - x0) * (ceiling - y0) / (y1 - y0), ceiling));
    }
    line
}
