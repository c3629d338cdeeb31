//! The picture: costs and losses.

use crate::cost::Row;
use experiments::plot::{Panel, Series};
use experiments::sampling::training::Curve;

fn series(name: &str, line: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), points: line.clone(), line }
}

pub fn cost(rows: &[Row]) -> Panel {
    let line = |value: fn(&Row) -> f64| {
        rows.iter().map(|row| ((row.classes as f64).log10(), value(row))).collect::<Vec<_>>()
    };
    Panel {
        title: "cost of a draw, of 64 for each h".into(),
        x_label: "log₁₀ C".into(),
        y_label: "seconds".into(),
        series: vec![
            series("draw from the tree", line(|row| row.tree)),
            series("draw from the softmax", line(|row| row.exact)),
            series("replace a class", line(|row| row.replace)),
        ],
    }
}

pub fn training(curves: &[Curve]) -> Panel {
    let line = |curve: &Curve| curve.losses.iter().map(|(step, mean)| (*step as f64, mean.0)).collect();
    Panel {
        title: "training with 40 draws a point".into(),
        x_label: "step".into(),
        y_label: "test loss over all classes, nats".into(),
        series: curves.iter().map(|curve| series(curve.name, line(curve))).collect(),
    }
}
