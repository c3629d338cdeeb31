//! The picture: panels of errors and of times.

use crate::crossover;
use crate::trained;
use experiments::plot::{Panel, Series};

fn logarithms(frequencies: &[usize]) -> impl Iterator<Item = f64> + '_ {
    frequencies.iter().map(|m| (*m as f64).log2())
}

/// The error of the mean of the values, for every m.
fn mean(frequencies: &[usize], error: f64) -> Series {
    let line = logarithms(frequencies).map(|x| (x, error)).collect();
    Series { name: "mean of the values".into(), line, points: Vec::new() }
}

/// The first two heads.
pub fn trained(setup: &trained::Setup, heads: &[trained::Head]) -> Vec<Panel> {
    let series = |curve: &trained::Curve| {
        let points = logarithms(&setup.frequencies).zip(curve.measured.iter().map(|(error, _)| *error));
        Series { name: format!("{}, orthogonal", curve.map), line: Vec::new(), points: points.collect() }
    };
    let panel = |(index, head): (usize, &trained::Head)| Panel {
        title: format!("head {index} of a trained transformer"),
        x_label: "log₂ m".into(),
        y_label: "relative error of the output".into(),
        series: std::iter::once(mean(&setup.frequencies, head.mean))
            .chain(head.curves.iter().map(series))
            .collect(),
    };
    heads.iter().take(2).enumerate().map(panel).collect()
}

pub fn crossover(setup: &crossover::Setup, panels: &[crossover::Panel]) -> Vec<Panel> {
    let panel = |panel: &crossover::Panel| {
        let series = |name: String, seconds: &dyn Fn(&crossover::Row) -> f64| {
            let point = |row: &crossover::Row| ((row.length as f64).log2(), seconds(row));
            let points: Vec<_> = panel.rows.iter().map(point).collect();
            Series { name, line: points.clone(), points }
        };
        let linear = setup.frequencies.iter().enumerate();
        Panel {
            title: if panel.causal { "causal attention".into() } else { "bidirectional attention".into() },
            x_label: "log₂ L".into(),
            y_label: "seconds".into(),
            series: std::iter::once(series("exact".into(), &|row| row.exact))
                .chain(linear.map(|(which, m)| series(format!("linear, m = {m}"), &|row| row.linear[which])))
                .collect(),
        }
    };
    panels.iter().map(panel).collect()
}
