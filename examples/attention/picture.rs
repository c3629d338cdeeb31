//! The picture: panels of errors, of times and of memory.

use crate::accuracy::{self, D};
use crate::cost::{self, Cost, WORKS};
use crate::crossover;
use crate::plot::{Panel, Series};
use crate::trained;

fn logarithms(frequencies: &[usize]) -> impl Iterator<Item = f64> + '_ {
    frequencies.iter().map(|m| (*m as f64).log2())
}

/// The error of the mean of the values, for every m.
fn mean(frequencies: &[usize], error: f64) -> Series {
    let line = logarithms(frequencies).map(|x| (x, error)).collect();
    Series { name: "mean of the values".into(), line, points: Vec::new() }
}

pub fn accuracy(setup: &accuracy::Setup, panels: &[accuracy::Panel]) -> Vec<Panel> {
    let series = |curve: &accuracy::Curve| {
        let predicted = curve.predicted.iter().flatten().map(|value| value.unwrap_or(f64::NAN));
        Series {
            name: format!("{}, {}", curve.map, curve.coupling),
            line: logarithms(&setup.frequencies).zip(predicted).collect(),
            points: logarithms(&setup.frequencies).zip(curve.measured.iter().map(|(mse, _)| *mse)).collect(),
        }
    };
    let panel = |panel: &accuracy::Panel| Panel {
        title: format!("q, k ~ N(0, {}²), L = {}, d = {D}", panel.size, setup.length),
        x_label: "log₂ m".into(),
        y_label: "MSE of the output (points: measured; lines: predicted)".into(),
        series: std::iter::once(mean(&setup.frequencies, panel.mean))
            .chain(panel.curves.iter().map(series))
            .collect(),
    };
    panels.iter().map(panel).collect()
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

pub fn cost(rows: &[cost::Row]) -> Vec<Panel> {
    let panel = |title: &str, label: &str, value: &dyn Fn(&Cost) -> Option<f64>| {
        let series = |(work, (_, name)): (usize, &(&str, &str))| {
            let points = rows.iter().filter_map(|row| {
                Some(((row.length as f64).log2(), row.costs[work].as_ref().and_then(value)?))
            });
            let points: Vec<_> = points.collect();
            Series { name: (*name).into(), line: points.clone(), points }
        };
        Panel {
            title: title.into(),
            x_label: "log₂ L".into(),
            y_label: label.into(),
            series: WORKS.iter().enumerate().map(series).collect(),
        }
    };
    let memory =
        panel("memory", "peak of resident memory, MiB", &|cost| cost.bytes.map(|b| b / f64::from(1 << 20)));
    let known = rows.iter().flat_map(|row| &row.costs).flatten().any(|cost| cost.bytes.is_some());
    let mut panels = vec![panel("time", "seconds", &|cost| Some(cost.seconds))];
    panels.extend(known.then_some(memory));
    panels
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
