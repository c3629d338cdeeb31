//! The picture: closed forms as lines, mean errors as points, and the paper's ranges.

use std::path::Path;

use crate::experiment::{Curve, FEATURES, Set};
use crate::plot::{self, Panel, Series};

pub fn draw(sets: &[Set], path: &Path) -> Result<(), String> {
    let panel = |set: &Set| Panel {
        title: set.published.name.into(),
        x_label: "real features for a pair of points".into(),
        y_label: "MSE, softmax kernel (points: sampled; lines: closed form)".into(),
        series: set
            .curves
            .iter()
            .map(own)
            .chain(set.curves.iter().filter_map(|curve| published(set, curve)))
            .collect(),
    };
    plot::write(&sets.iter().map(panel).collect::<Vec<_>>(), path)
}

fn own(curve: &Curve) -> Series {
    let over =
        |values: &mut dyn Iterator<Item = f64>| FEATURES.map(|m| m as f64).into_iter().zip(values).collect();
    Series {
        name: curve.method.name.into(),
        line: over(&mut curve.closed.iter().copied()),
        points: over(&mut curve.errors.iter().map(|errors| errors[0])),
    }
}

/// The least and the largest error that the paper prints, as points.
fn published(set: &Set, curve: &Curve) -> Option<Series> {
    let column = curve.method.published?;
    let both = FEATURES.into_iter().zip(&set.published.ranges).flat_map(|(features, ranges)| {
        let (least, most) = ranges[column];
        [(features as f64, least), (features as f64, most)]
    });
    let name = format!("{}: published", curve.method.name);
    Some(Series { name, line: Vec::new(), points: both.collect() })
}
