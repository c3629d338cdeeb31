//! The picture: errors over the number of features, a panel for each fit.

use crate::maps::KINDS;
use crate::splits::FITS;
use crate::trained::Results;
use experiments::plot::{Panel, Series};

pub fn panels(results: &Results) -> Vec<Panel> {
    let panel = |fit: &'static str| {
        let series = |map: &'static str| {
            let own = results.outcomes.iter().filter(|o| o.map == map && o.fit == fit);
            let points: Vec<(f64, f64)> = own.map(|o| ((o.m as f64).log2(), o.error)).collect();
            Series { name: map.into(), line: points.clone(), points }
        };
        Panel {
            title: format!("chosen on: {fit}"),
            x_label: "log₂ m".into(),
            y_label: "relative error of the output".into(),
            series: KINDS.iter().map(|(map, _)| series(map)).collect(),
        }
    };
    FITS.iter().map(|(fit, _)| panel(fit)).collect()
}
