//! `rf fit`.

use std::path::Path;

use random_features_distributed::division::MOST;
use random_features_distributed::fault::sentence;
use random_features_distributed::fit::{self, Task, column};
use random_features_distributed::map::MapSpec;
use random_features_distributed::sums::State;

use crate::arguments::{Fit, Method, Rows, Source};
use crate::asked::Asked;
use crate::choice::{Roles, Sampled};
use crate::division::Divided;
use crate::output::Output;
use crate::say::say;
use crate::score;
use crate::solved::Sums;

pub async fn run(fit: Fit) -> Result<(), String> {
    check(&fit)?;
    let lambda = lambda(fit.lambda.as_deref().unwrap_or("auto"))?;
    let spec = stored(&fit)?;
    let asked = Asked::open(&fit.input, source(&fit, spec.as_ref())?).await?;
    if !fit.source.explain {
        output(&fit, &asked)?;
    }
    if let Some(target) = &fit.target {
        fit::check_target(&asked.table, target, !fit.classes.is_empty()).map_err(|error| sentence(&error))?;
    }
    if let Some(weights) = &fit.rows.weights {
        fit::check_weight(&asked.table, weights).map_err(|error| sentence(&error))?;
    }
    let columns = asked.columns(&others(&fit))?;
    let divided = Divided::of(&asked, &fit.rows).await?;
    let roles =
        Roles { target: numeric(&fit), weights: fit.rows.weights.as_deref(), divided: divided.as_ref() };
    if fit.source.explain && spec.is_none() {
        return asked.explain(&Sampled::task(&asked, &columns, &roles), None).await;
    }
    let map = match spec {
        Some(spec) => spec,
        None => Sampled::of(&asked, &columns, &roles).await?.choose(&columns, &fit.choice, &roles)?,
    };
    let (task, division) =
        (task(&fit, map.clone(), columns.clone()), divided.as_ref().map(|own| &own.division));
    if fit.source.explain {
        return asked.explain(&task, division).await;
    }
    let states = match division {
        None => vec![asked.pass("fitting", &task).await?],
        Some(division) => asked.pass_divided("fitting", &task, division).await?,
    };
    let sums = Sums { states: &states, map: &map, divided: divided.as_ref() };
    let mut solved = match states.iter().all(State::is_double) {
        true => sums.solved::<f64>(&fit, lambda),
        false => sums.solved::<f32>(&fit, lambda),
    }?;
    solved.model.columns = columns;
    let json = solved.model.to_json().map_err(|error| error.to_string())?;
    output(&fit, &asked)?.write(&json)?;
    say(&solved.said)?;
    match solved.scored {
        true => Ok(()),
        false => say(&score::of_fit(&asked, solved.model, fit.rows.weights.as_deref()).await?),
    }
}

/// Rejects what does not go together.
fn check(fit: &Fit) -> Result<(), String> {
    let Rows { folds, groups, forward, .. } = &fit.rows;
    let divided = folds.is_some() || groups.is_some() || forward.is_some();
    let least = (fit.rows.gap.unwrap_or(0) as u64).saturating_add(2);
    match (fit.method, &fit.target) {
        (Method::Ridge, None) => Err("a ridge regression needs the column that it predicts: --target".into()),
        (Method::Pca, Some(target)) => Err(format!("a PCA predicts no column: leave --target {target} out")),
        (Method::Pca, None) if !fit.classes.is_empty() => Err("a PCA has no classes".into()),
        (Method::Pca, None) if fit.lambda.is_some() => Err("a PCA has no λ: leave --lambda out".into()),
        (Method::Ridge, _) if fit.components.is_some() => {
            Err("a ridge regression has no components: leave --components out".into())
        }
        (Method::Pca, None) if divided => {
            Err("a PCA has no folds: leave --folds, --groups and --forward out".into())
        }
        _ if divided && fit.lambda.as_deref().is_some_and(|lambda| lambda != "auto") => {
            Err("--folds, --groups and --forward choose λ: leave --lambda out".into())
        }
        _ if fit.rows.folds.is_some_and(|folds| !(2..=MOST).contains(&folds)) => {
            Err(format!("--folds is from 2 to {MOST}: each fold has sums of its own"))
        }
        _ if fit.rows.forward.is_some_and(|blocks| !(least..=MOST).contains(&blocks)) => {
            Err(format!("--forward is from {least} to {MOST}, at least 2 more than --gap"))
        }
        _ if fit.recipe != "auto" && fit.choice.features.is_some() => {
            Err(format!("--features is that of the recipe {}: leave it out", fit.recipe))
        }
        _ if fit.rows.gap.is_some() && forward.is_none() => Err("--gap goes with --forward".into()),
        _ if fit.classes.iter().any(String::is_empty) => Err("--classes names a class without a name".into()),
        _ if fit.classes.len() == 1 => Err("--classes names two or more".into()),
        _ => match twice(&fit.classes) {
            Some(name) => Err(format!("--classes names {name} twice")),
            None => Ok(()),
        },
    }
}

/// A name that stands in a list twice.
fn twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(k, name)| names[..*k].contains(name)).map(|(_, name)| name)
}

/// λ, or `None` to choose it.
fn lambda(text: &str) -> Result<Option<f64>, String> {
    if text == "auto" {
        return Ok(None);
    }
    match text.parse() {
        Ok(lambda) if lambda >= 0.0 && f64::is_finite(lambda) => Ok(Some(lambda)),
        _ => Err(format!("--lambda takes auto or a number from 0 on, not {text}")),
    }
}

/// Begins the file of the model, which is not that of the recipe.
fn output(fit: &Fit, asked: &Asked) -> Result<Output, String> {
    asked.output(&fit.out, Some(Path::new(&fit.recipe)))
}

/// The recipe that is asked for; `None` if a sample is to propose one.
fn stored(fit: &Fit) -> Result<Option<MapSpec>, String> {
    if fit.recipe == "auto" {
        return Ok(None);
    }
    let json = std::fs::read_to_string(&fit.recipe);
    let json = json.map_err(|error| format!("{} cannot be read: {error}", fit.recipe))?;
    let spec = MapSpec::read(&json).map_err(|error| format!("{}: {}", fit.recipe, sentence(&error)))?;
    Ok(Some(MapSpec { seed: fit.choice.seed.unwrap_or(spec.seed), ..spec }))
}

/// What is read: the columns of the recipe, if it names them.
fn source(fit: &Fit, spec: Option<&MapSpec>) -> Result<Source, String> {
    let (mut source, named) = (fit.source.clone(), spec.map_or(&[][..], |spec| &spec.columns));
    if !named.is_empty() && !source.columns.is_empty() && source.columns != named {
        let (named, asked) = (named.join(","), source.columns.join(","));
        return Err(format!("{} is for the columns {named}, in this order, not for {asked}", fit.recipe));
    }
    if !named.is_empty() {
        source.columns = named.to_vec();
    }
    Ok(source)
}

/// The target, if it is a number.
fn numeric(fit: &Fit) -> Option<&str> {
    fit.target.as_deref().filter(|_| fit.classes.is_empty())
}

/// The columns that are named for something else than points.
fn others(fit: &Fit) -> Vec<&str> {
    [&fit.target, &fit.rows.weights, &fit.rows.groups].into_iter().flatten().map(String::as_str).collect()
}

fn task(fit: &Fit, map: MapSpec, columns: Vec<String>) -> Task {
    let task = match &fit.target {
        None => Task::pca(map, columns),
        Some(target) if fit.classes.is_empty() => Task::ridge(map, target, columns),
        Some(target) => Task::classes(map, fit.classes.clone(), target, columns),
    };
    match &fit.rows.weights {
        None => task,
        Some(weights) => task.with_weight(column(weights)),
    }
}
