//! Nyström features of given landmarks, and landmarks of given points.

use ndarray::{Array2, Axis};
use random_features::extend::Radius;
use random_features::frequency::Frequencies;
use random_features::kernel::Gaussian;
use random_features::map::{AnyKernel, Nystroem};
use random_features::theory::Law;
use random_features::{Map, Side, Trigonometric};

use super::Outcome;
use super::case::{Case, Found, number, parts};

pub fn nystroem(case: &Case) -> Result<Outcome, String> {
    let found = match case.formula {
        "nystrom.estimate.gaussian" => estimate(case)?,
        "nystrom.gradient.gaussian" => gradient(case)?,
        "nystrom.greedy.gaussian" => greedy(case)?,
        "nystrom.residual_estimate.trig.gaussian" => residual_estimate(case)?,
        "nystrom.leverage.gaussian" => leverage(case)?,
        _ => None,
    };
    found.map(Outcome::Computed).ok_or(super::unknown(case.formula))
}

fn kernel(case: &Case) -> Result<AnyKernel, String> {
    Ok(Gaussian::new(case.number("lengthscale")?).map_err(|e| e.to_string())?.into())
}

fn map(case: &Case) -> Result<Map<f64>, String> {
    let features = Nystroem::new(kernel(case)?, &case.matrix("landmarks")?);
    features.and_then(|features| features.map()).map_err(|e| e.to_string())
}

fn estimate(case: &Case) -> Found {
    let (x, y) = case.points()?;
    number(map(case)?.log_estimate(&x, &y).map_err(|e| e.to_string())?)
}

/// An estimate made unbiased by cosines and sines of given frequencies.
fn residual_estimate(case: &Case) -> Found {
    let (kernel, w, landmarks) = (kernel(case)?, case.matrix("W")?, case.matrix("landmarks")?);
    let (x, y) = case.points()?;
    let estimate = || {
        let m = w.nrows();
        let law = Law::independent(m).with_radius(Radius::Chi);
        let random: Map<f64> = Trigonometric.build(Frequencies::from_parts(w, law)?, kernel.clone())?;
        Nystroem::new(kernel, &landmarks)?.unbiased(random)?.log_estimate(&x, &y)
    };
    number(estimate().map_err(|e: random_features::Error| e.to_string())?)
}

/// The gradient of φ(x)·φ(y) with respect to x.
fn gradient(case: &Case) -> Found {
    let (map, (x, y)) = (map(case)?, case.points()?);
    let [x, y] = [x, y].map(|x| x.insert_axis(Axis(0)));
    let pulled = || {
        let scale = map.features(Side::X, &x)?.log_scales()[[0, 0]];
        map.pull_back(Side::X, &x, &(map.transform(&y)? * scale.exp()))
    };
    let gradient: Array2<f64> = pulled().map_err(|e: random_features::Error| e.to_string())?;
    parts(vec![("gradient", gradient.into_iter().collect())])
}

fn leverage(case: &Case) -> Found {
    let scores = Nystroem::leverage_scores(kernel(case)?, &case.matrix("points")?, case.number("lambda")?);
    parts(vec![("scores", scores.map_err(|e| e.to_string())?.to_vec())])
}

/// The landmarks in their order, and what is left of the trace after each.
fn greedy(case: &Case) -> Found {
    let (x, kernel) = (case.matrix("points")?, kernel(case)?);
    let (mut pivots, mut traces) = (Vec::new(), Vec::new());
    for m in 1..=case.count("n")? {
        let features = Nystroem::greedy(kernel.clone(), &x, m).map_err(|e| e.to_string())?;
        let last = features.landmarks().row(m - 1);
        let pivot = x.rows().into_iter().position(|x| x == last).ok_or("a landmark is no point")?;
        pivots.push(pivot as f64);
        // K(x, x) = 1.
        traces.push(features.trace_error(&x).map_err(|e| e.to_string())? * x.nrows() as f64);
    }
    parts(vec![("pivots", pivots), ("residual_traces", traces)])
}
