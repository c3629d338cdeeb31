//! The curves of losses.

use experiments::plot::{Panel, Series};
use experiments::transformer::train::State;

/// Bits of the training text over the steps, and of the held-out text at the end.
pub fn curves(title: &str, runs: &[(State, f64)], levels: &[(String, f64)]) -> Panel {
    let last = runs.iter().map(|(state, _)| state.step).max().unwrap_or_default() as f64;
    let run = |(state, bits): &(State, f64)| Series {
        name: state.plan.method.clone(),
        line: state.curve.iter().map(|(step, bits)| (*step as f64, *bits)).collect(),
        points: vec![(state.step as f64, *bits)],
    };
    let level = |(name, bits): &(String, f64)| Series {
        name: name.clone(),
        line: vec![(0.0, *bits), (last, *bits)],
        points: Vec::new(),
    };
    Panel {
        title: title.into(),
        x_label: "steps".into(),
        y_label: "bits a character: training (line), held out (mark)".into(),
        series: runs.iter().map(run).chain(levels.iter().map(level)).collect(),
    }
}
