//! `rf score`, and the score of a fit.

use random_features_distributed::fault::sentence;
use random_features_distributed::fit::column;
use random_features_distributed::model::Model;
use random_features_distributed::score::{ClassScore, NumberScore, Score, Scoring};

use crate::arguments;
use crate::asked::{Asked, explain};
use crate::predict::{check_travels, read};
use crate::say::say;

/// Classes of which each has a line.
const CLASSES: usize = 50;

pub async fn run(score: arguments::Score) -> Result<(), String> {
    let (model, json) = read(&score.model)?;
    check_travels(&score.model.display().to_string(), json.len(), &score.source)?;
    let mut source = score.source.clone();
    if !source.columns.is_empty() && source.columns != model.columns {
        let (own, asked) = (model.columns.join(","), source.columns.join(","));
        return Err(format!("the model is for the columns {own}, in this order, not for {asked}"));
    }
    source.columns = model.columns.clone();
    let asked = Asked::open(&score.input, source).await?;
    let mut scoring = Scoring::new(model).map_err(|error| sentence(&error))?;
    if let Some(target) = score.target {
        scoring = scoring.with_target(target);
    }
    if let Some(weights) = &score.weights {
        scoring = scoring.with_weight(column(weights));
    }
    if asked.source.explain {
        let frame = scoring.frame(&asked.context, &asked.table);
        return explain(frame.map_err(|error| sentence(&error))?).await;
    }
    let said = passed(&asked, &scoring).await?;
    say(&format!("{} rows\n{said}", asked.table.files().rows()))
}

/// What is said of the score on all rows.
async fn passed(asked: &Asked, scoring: &Scoring) -> Result<String, String> {
    let score = asked.passed("scoring", scoring.run(&asked.context, &asked.table)).await?;
    Ok(match score {
        Score::Numbers(score) => numbers(scoring.target(), &score),
        Score::Classes(score) => classes(&score),
    })
}

/// What is said of the score of a fit on its own rows.
pub async fn of_fit(asked: &Asked, model: Model, weights: Option<&str>) -> Result<String, String> {
    let mut scoring = Scoring::new(model).map_err(|error| sentence(&error))?;
    if let Err(why) = check_travels("the model", scoring.bytes(), &asked.source) {
        return Ok(format!("no score: {why}"));
    }
    if let Some(weights) = weights {
        scoring = scoring.with_weight(column(weights));
    }
    Ok(format!("on the rows of the fit:\n{}", passed(asked, &scoring).await?))
}

fn numbers(target: &str, score: &NumberScore) -> String {
    let NumberScore { mean, variance, squared_error, absolute_error } = score;
    let explained = match score.explained() {
        Some(share) => format!("R²: {share:.4}"),
        None => format!("no R²: {target} is constant"),
    };
    format!(
        "{target}: mean {mean:.6e}, deviation {:.4e}\nroot of the mean squared error: {:.4e}\n\
         mean absolute error: {absolute_error:.4e}\n{explained}",
        variance.sqrt(),
        squared_error.sqrt()
    )
}

fn classes(score: &ClassScore) -> String {
    let (accuracy, balanced) = (score.accuracy(), score.balanced_accuracy());
    let mut said = format!("accuracy: {accuracy:.4}, balanced accuracy: {balanced:.4}");
    if score.classes.len() > CLASSES {
        return said;
    }
    let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.4}"));
    let counts =
        |count: f64| if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.3}") };
    said += &format!("\n{:>16} {:>14} {:>10} {:>10}", "class", "count", "recall", "precision");
    let (recalls, precisions) = (score.recalls(), score.precisions());
    for (k, class) in score.classes.iter().enumerate() {
        let count = counts(score.counts.row(k).sum());
        said += &format!("\n{class:>16} {count:>14} {:>10} {:>10}", share(recalls[k]), share(precisions[k]));
    }
    said
}
