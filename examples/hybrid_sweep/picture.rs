//! The picture: closed forms as lines through the sampled errors, over the angle.

use std::path::Path;

use crate::methods::{Method, Size};
use crate::plot::{self, Panel, Series};
use crate::simulation::{self, Block, Point};

/// Smaller relative errors are cut off: where estimates become exact there is no end to them.
const FLOOR: f64 = 3e-3;

pub fn draw(blocks: &[Block], path: &Path) -> Result<(), String> {
    let panels = blocks.iter().flat_map(|block| block.panels.iter().map(move |panel| chart(block, panel)));
    plot::write(&panels.collect::<Vec<_>>(), path)
}

fn chart(block: &Block, panel: &simulation::Panel) -> Panel {
    let columns = block.sizes.iter().zip(&panel.columns);
    Panel {
        title: format!("r = {}, {}", panel.r, block.cost.name()),
        x_label: "θ in degrees".into(),
        y_label: "√MSE/K (points: sampled; lines: closed form)".into(),
        series: columns.map(|((method, size), points)| series(*method, *size, panel.r, points)).collect(),
    }
}

fn series(method: Method, size: Size, r: f64, points: &[Point]) -> Series {
    let closed = |degrees: f64| (degrees, method.ln_relative_error(degrees.to_radians(), r, size).exp());
    let line = (0..=360).map(|k| closed(0.5 * f64::from(k)));
    let samples = points.iter().filter(|point| point.shown).map(|point| (point.degrees, point.sampled));
    let shown = |(_, error): &(f64, f64)| *error >= FLOOR;
    Series {
        name: method.name().into(),
        line: line.filter(shown).collect(),
        points: samples.filter(shown).collect(),
    }
}
