//! The picture: closed forms as lines through the sampled errors.

use std::path::Path;

use crate::plot::{self, Panel, Series};
use crate::simulation::{self, Setup};

pub fn draw(setup: &Setup, panels: &[simulation::Panel], path: &Path) -> Result<(), String> {
    let panel = |panel: &simulation::Panel| Panel {
        title: format!("{} features, d = {}, m = {}", panel.map, setup.d, setup.m),
        x_label: "‖x+y‖ = ‖x−y‖".into(),
        y_label: "MSE, Gaussian kernel (points: sampled; lines: closed form)".into(),
        series: panel.curves.iter().map(series).collect(),
    };
    let panels: Vec<Panel> = panels.iter().map(panel).collect();
    plot::write(&panels, path)
}

fn series(curve: &simulation::Curve) -> Series {
    let points = curve.points.iter().filter(|point| !point.vague()).map(|point| (point.v, point.mse));
    Series { name: curve.sampler.into(), line: curve.line.clone(), points: points.collect() }
}
