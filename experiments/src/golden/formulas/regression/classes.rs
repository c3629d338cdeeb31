//! Labels: logistic regression and its kin, calibration, balanced weights.

use ndarray::{Array2, Axis};
use random_features::Targets;
use random_features::apply::{Criterion, Glm, GlmFit, RidgeClassifier, RidgeStatistics};

use super::{Regression, arrays, identity, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "classify.logistic" => logistic(case),
        "classify.poisson" => counts(case),
        "classify.squared_hinge" => fitted(case, Glm::squared_hinge(map(case)?).map_err(text)?),
        "classify.multinomial" => multinomial(case),
        "classify.calibration" => calibration(case),
        "weights.balanced" => balanced(case),
        _ => Ok(Outcome::Later),
    }
}

fn map(case: &Regression<'_>) -> Result<random_features::Map<f64>, String> {
    identity(case.matrix("phi")?.ncols())
}

/// The fit of labels for the case's λ, with the curvature where it is asked for.
fn fit(case: &Regression<'_>, model: &Glm<f64>, has_posterior: bool) -> Result<GlmFit<f64>, String> {
    let (x, weights, lambda) = (case.matrix("phi")?, case.numbers("weights")?, case.number("lambda")?);
    let labels = case.counts("labels")?;
    let targets = || Targets::from(&labels).with_weights(&weights).map_err(text);
    let fit = model.fit(&x, targets()?, lambda).map_err(text)?;
    if has_posterior { fit.with_posterior(&x, targets()?).map_err(text) } else { Ok(fit) }
}

fn model_arrays(fit: &GlmFit<f64>) -> Vec<Scaled> {
    let model = fit.model();
    vec![
        Scaled::new("beta", model.weights().iter().copied()),
        Scaled::new("intercept", model.intercepts().iter().copied()),
        Scaled::new("loss", [fit.loss()]),
    ]
}

fn logistic(case: &Regression<'_>) -> Result<Outcome, String> {
    let fit = fit(case, &Glm::logistic(map(case)?, 2).map_err(text)?, true)?;
    let query = case.matrix("query")?;
    let eta = fit.model().scores(&query).map_err(text)?;
    let variances = fit.variances(&query).map_err(text)?;
    let second = |p: Array2<f64>| p.index_axis_move(Axis(1), 1);
    let probabilities = second(fit.model().probabilities(&query).map_err(text)?);
    let means = second(fit.mean_probabilities(&query).map_err(text)?);
    let mut all = model_arrays(&fit);
    all.push(Scaled::new("log_evidence", [fit.log_evidence().map_err(text)?]));
    all.push(Scaled::new("eta", eta.iter().copied()));
    all.push(Scaled::new("variance", variances));
    all.push(Scaled::new("probability", probabilities));
    all.push(Scaled::new("probability_by_integral", means));
    arrays(all)
}

fn counts(case: &Regression<'_>) -> Result<Outcome, String> {
    let (x, weights, lambda) = (case.matrix("phi")?, case.numbers("weights")?, case.number("lambda")?);
    let y = case.numbers("counts")?;
    let targets = Targets::from(&y).with_weights(&weights).map_err(text)?;
    let fit = Glm::poisson(map(case)?).and_then(|model| model.fit(&x, targets, lambda)).map_err(text)?;
    arrays(model_arrays(&fit))
}

fn fitted(case: &Regression<'_>, model: Glm<f64>) -> Result<Outcome, String> {
    arrays(model_arrays(&fit(case, &model, false)?))
}

fn multinomial(case: &Regression<'_>) -> Result<Outcome, String> {
    let classes = case.counts("labels")?.into_iter().max().map_or(0, |most| most + 1);
    fitted(case, Glm::logistic(map(case)?, classes).map_err(text)?)
}

/// The slope and the offsets, from probabilities at points whose predictions are known.
fn calibration(case: &Regression<'_>) -> Result<Outcome, String> {
    let (scores, weights, labels) =
        (case.matrix("scores")?, case.numbers("weights")?, case.counts("labels")?);
    let classes = scores.ncols();
    // A regression of indicators on the indicators themselves.
    let corners = Array2::<f64>::eye(classes);
    let mut statistics = RidgeStatistics::new(identity(classes)?, classes).map_err(text)?.without_intercept();
    statistics.update(&corners, &corners).map_err(text)?;
    let classifier = RidgeClassifier::new(statistics.solve(0.0).map_err(text)?)
        .and_then(|model| {
            model.with_score_calibration(&scores, Targets::from(&labels).with_weights(&weights)?)
        })
        .map_err(text)?;
    let logarithms = |x: &Array2<f64>| -> Result<Array2<f64>, String> {
        Ok(classifier.probabilities(x).map_err(text)?.mapv(f64::ln))
    };
    let zero = logarithms(&Array2::zeros((1, classes)))?.row(0).to_owned();
    let one = logarithms(&corners.select(Axis(0), &[0]))?.row(0).to_owned();
    let slope = (one[0] - one[1]) - (zero[0] - zero[1]);
    // The loss of the same model, by its definition.
    let mut totals = vec![0.0; classes];
    labels.iter().zip(&weights).for_each(|(label, weight)| totals[*label] += weight);
    let p = logarithms(&scores)?;
    let cross_entropy = |(i, label): (usize, &usize)| {
        let aim = |class: usize| {
            let count = if class == *label { totals[*label] + 1.0 } else { 1.0 };
            count / (totals[*label] + classes as f64)
        };
        -weights[i] * (0..classes).map(|class| aim(class) * p[[i, class]]).sum::<f64>()
    };
    let loss: f64 = labels.iter().enumerate().map(cross_entropy).sum();
    arrays(vec![
        Scaled::new("slope", [slope]),
        Scaled::new("offset_differences", (1..classes).map(|class| zero[class] - zero[0])),
        Scaled::new("loss", [loss]),
    ])
}

fn balanced(case: &Regression<'_>) -> Result<Outcome, String> {
    let (x, labels, lambdas) =
        (case.matrix("phi")?, case.counts("labels")?, case.numbers("lambdas")?.to_vec());
    let classes = case.number("classes")? as usize;
    let targets = || Targets::of_labels(&labels, classes).and_then(Targets::balanced).map_err(text);
    let occurring = [0, 1];
    let spectrum = statistics(&x, targets()?, classes)?.spectrum().map_err(text)?;
    let (mut beta, mut intercept) = (Vec::new(), Vec::new());
    for lambda in &lambdas {
        let model = spectrum.model(*lambda).map_err(text)?;
        beta.extend(model.weights().select(Axis(0), &occurring));
        intercept.extend(model.intercepts().select(Axis(0), &occurring));
    }
    let left_out = spectrum.errors(&Criterion::leave_one_out(&x, targets()?), &lambdas).map_err(text)?;
    let scores = scores_left_out(&x, &labels, classes, lambdas[0])?;
    let model =
        statistics(&x, Targets::of_labels(&labels, classes).map_err(text)?, classes)?.solve(lambdas[0]);
    let labels_of = || Targets::of_labels(&labels, classes);
    let classifier = RidgeClassifier::new(model.map_err(text)?)
        .and_then(|classifier| classifier.with_threshold(&scores, labels_of()?))
        .map_err(text)?;
    let threshold = classifier.threshold().ok_or("no threshold")?;
    let share = |class: usize| {
        let rows = || (0..labels.len()).filter(|i| labels[*i] == class);
        let right = rows().filter(|i| (scores[[*i, 1]] > threshold) == (class == 1)).count();
        right as f64 / rows().count() as f64
    };
    arrays(vec![
        Scaled::new("beta", beta),
        Scaled::new("intercept", intercept),
        Scaled::new("leave_one_out", left_out),
        Scaled::new("scores_left_out", scores.column(1).iter().copied()),
        Scaled::new("threshold", [threshold]),
        Scaled::new("balanced_accuracy", [0.5 * (share(0) + share(1))]),
    ])
}

fn statistics(
    x: &Array2<f64>,
    targets: Targets<'_, f64>,
    classes: usize,
) -> Result<RidgeStatistics<f64>, String> {
    let mut statistics = RidgeStatistics::new(identity(x.ncols())?, classes).map_err(text)?;
    statistics.update(x, targets).map_err(text)?;
    Ok(statistics)
}

/// The predictions of each row by the regression of all others, without weights.
fn scores_left_out(
    x: &Array2<f64>,
    labels: &[usize],
    classes: usize,
    lambda: f64,
) -> Result<Array2<f64>, String> {
    let mut scores = Array2::zeros((labels.len(), classes));
    for i in 0..labels.len() {
        let others: Vec<usize> = (0..labels.len()).filter(|j| *j != i).collect();
        let own: Vec<usize> = others.iter().map(|j| labels[*j]).collect();
        let targets = Targets::of_labels(&own, classes).map_err(text)?;
        let model = statistics(&x.select(Axis(0), &others), targets, classes)?.solve(lambda).map_err(text)?;
        let score = model.predict(&x.select(Axis(0), &[i])).map_err(text)?;
        scores.row_mut(i).assign(&score.row(0));
    }
    Ok(scores)
}
