//! `rf fit`.

use std::path::Path;

use random_features::apply::{Criterion, RidgeSpectrum};
use random_features_distributed::fault::sentence;
use random_features_distributed::fit::{self, Task};
use random_features_distributed::map::MapSpec;
use random_features_distributed::model::{Model, Modelled};
use random_features_distributed::sums::State;

use crate::arguments::{Fit, Method, Source};
use crate::asked::Asked;
use crate::choice::Sampled;
use crate::output::Output;
use crate::say::say;

/// Principal components unless stated.
const COMPONENTS: usize = 10;
/// What is said of a λ that is the least of those to choose from.
const LEAST: &str = "sums of f32 resolve no smaller λ: cast the columns to f64, or shorten the lengthscale\n";

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
    let columns = asked.columns(fit.target.as_deref())?;
    if fit.source.explain && spec.is_none() {
        return asked.explain(&Sampled::task(&asked, &columns, numeric(&fit))).await;
    }
    let map = match spec {
        Some(spec) => spec,
        None => Sampled::of(&asked, &columns, numeric(&fit)).await?.choose(&columns, &fit.choice)?,
    };
    let task = task(&fit, map.clone(), columns.clone());
    if fit.source.explain {
        return asked.explain(&task).await;
    }
    let state = asked.pass("fitting", &task).await?;
    let (mut model, said) = match state.is_double() {
        true => solved::<f64>(&fit, &state, &map, lambda),
        false => solved::<f32>(&fit, &state, &map, lambda),
    }?;
    model.columns = columns;
    let json = model.to_json().map_err(|error| error.to_string())?;
    output(&fit, &asked)?.write(&json)?;
    say(&said)
}

/// Rejects what does not go together.
fn check(fit: &Fit) -> Result<(), String> {
    match (fit.method, &fit.target) {
        (Method::Ridge, None) => Err("a ridge regression needs the column that it predicts: --target".into()),
        (Method::Pca, Some(target)) => Err(format!("a PCA predicts no column: leave --target {target} out")),
        (Method::Pca, None) if !fit.classes.is_empty() => Err("a PCA has no classes".into()),
        (Method::Pca, None) if fit.lambda.is_some() => Err("a PCA has no λ: leave --lambda out".into()),
        (Method::Ridge, _) if fit.components.is_some() => {
            Err("a ridge regression has no components: leave --components out".into())
        }
        _ if fit.recipe != "auto" && fit.choice.features.is_some() => {
            Err(format!("--features is that of the recipe {}: leave it out", fit.recipe))
        }
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

fn task(fit: &Fit, map: MapSpec, columns: Vec<String>) -> Task {
    match &fit.target {
        None => Task::pca(map, columns),
        Some(target) if fit.classes.is_empty() => Task::ridge(map, target, columns),
        Some(target) => Task::classes(map, fit.classes.clone(), target, columns),
    }
}

/// The model of sums, and what is said of it.
fn solved<T: Modelled>(
    fit: &Fit,
    state: &State,
    map: &MapSpec,
    lambda: Option<f64>,
) -> Result<(Model, String), String> {
    match fit.method {
        Method::Ridge => ridge::<T>(fit, state, map, lambda),
        Method::Pca => pca::<T>(fit, state, map),
    }
}

fn ridge<T: Modelled>(
    fit: &Fit,
    state: &State,
    map: &MapSpec,
    lambda: Option<f64>,
) -> Result<(Model, String), String> {
    let statistics = state.ridge::<T>(map).map_err(|error| sentence(&error))?;
    let features = statistics.map().feature_dim();
    let mut said = String::new();
    let (lambda, ridge) = match lambda {
        Some(lambda) => (lambda, statistics.solve(lambda).map_err(|error| error.to_string())?),
        None => {
            let spectrum = statistics.spectrum().map_err(|error| error.to_string())?;
            let lambdas = spectrum.lambdas();
            let choice = spectrum.choose(&Criterion::GeneralisedCrossValidation, &lambdas);
            let (lambda, error) = choice.map_err(|error| error.to_string())?;
            said += &format!("expected squared error of predictions: {:.4e}\n", error);
            if let Some(share) = explained(&spectrum, error).filter(|_| fit.classes.is_empty()) {
                said += &format!("expected R²: {share:.4}\n");
            }
            if !state.is_double() && lambdas.iter().all(|other| *other >= lambda) {
                said += LEAST;
            }
            (lambda, spectrum.model(lambda).map_err(|error| error.to_string())?)
        }
    };
    let rows = statistics.rows();
    said += &format!("ridge regression of {rows} rows on {features} features, λ = {lambda:.3e}");
    let classes = (!fit.classes.is_empty()).then(|| fit.classes.clone());
    let mut model = Model::new(T::ridge(ridge), Vec::new(), statistics.rows());
    (model.target, model.classes, model.lambda) = (fit.target.clone(), classes, Some(lambda));
    Ok((model, said))
}

/// The share of the target's variance that predictions of this expected error explain, if there is any.
fn explained<T: Modelled>(spectrum: &RidgeSpectrum<T>, error: f64) -> Option<f64> {
    // Under this penalty the mean alone predicts.
    let mean = spectrum.errors(&Criterion::GeneralisedCrossValidation, &[f64::MAX.sqrt()]).ok()?;
    mean.first().filter(|variance| **variance > 0.0).map(|variance| 1.0 - error / variance)
}

fn pca<T: Modelled>(fit: &Fit, state: &State, map: &MapSpec) -> Result<(Model, String), String> {
    let statistics = state.pca::<T>(map).map_err(|error| sentence(&error))?;
    let (count, rows) = (fit.components.unwrap_or(COMPONENTS), statistics.rows());
    let pca = statistics.components(count).map_err(|error| error.to_string())?;
    let shares = pca.explained_variance_ratio();
    let shares: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
    let shares = shares.join(" ");
    let said = format!("{count} principal components of {rows} rows; shares of the variance:\n{shares}");
    Ok((Model::new(T::pca(pca), Vec::new(), rows), said))
}
