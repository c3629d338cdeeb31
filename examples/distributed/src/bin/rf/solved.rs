//! Models of sums, and what is said of them.

use random_features::apply::{Criterion, RidgeSpectrum, RidgeStatistics};
use random_features_distributed::fault::sentence;
use random_features_distributed::map::MapSpec;
use random_features_distributed::model::{Model, Modelled};
use random_features_distributed::sums::State;

use crate::arguments::{Fit, Method};
use crate::division::Divided;

/// Principal components unless stated.
const COMPONENTS: usize = 10;
/// What is said of a λ below which the criterion is not resolved.
const LEAST: &str = "sums of f32 resolve no smaller λ: cast the columns to f64, or shorten the lengthscale\n";

/// A model, and what is said of it.
pub struct Solved {
    pub model: Model,
    pub said: String,
    /// Whether the share of the target's variance that is explained has been said.
    pub scored: bool,
}

/// The sums of a pass, in one state or in one for each part.
pub struct Sums<'a> {
    pub states: &'a [State],
    pub map: &'a MapSpec,
    pub divided: Option<&'a Divided>,
}

impl Sums<'_> {
    /// The model of the sums, with this λ or the best.
    pub fn solved<T: Modelled>(&self, fit: &Fit, lambda: Option<f64>) -> Result<Solved, String> {
        match fit.method {
            Method::Ridge => self.ridge::<T>(fit, lambda),
            Method::Pca => self.pca::<T>(fit),
        }
    }

    /// The statistics of each part.
    fn parts<T: Modelled>(&self) -> Result<Vec<RidgeStatistics<T>>, String> {
        let parts = self.states.iter().map(|state| state.ridge::<T>(self.map));
        parts.collect::<Result<_, _>>().map_err(|error| sentence(&error))
    }

    fn ridge<T: Modelled>(&self, fit: &Fit, lambda: Option<f64>) -> Result<Solved, String> {
        let mut parts = self.parts::<T>()?;
        let first = if self.divided.is_none() { parts.pop() } else { parts.first().cloned() };
        let mut statistics = first.ok_or("there are no sums")?;
        let mut others = parts.iter().skip(1);
        others.try_for_each(|part| statistics.merge(part)).map_err(|error| error.to_string())?;
        // A part whose rows all have weight 0 is absent.
        parts.retain(|part| part.mean_targets().is_ok());
        let mut said = target(fit, &statistics)?;
        let (lambda, ridge, scored) = match lambda {
            Some(lambda) => (lambda, statistics.solve(lambda).map_err(|error| error.to_string())?, false),
            None => {
                let spectrum = statistics.spectrum().map_err(|error| error.to_string())?;
                let (lambda, words, scored) = self.chosen(fit, &spectrum, &parts)?;
                said += &words;
                (lambda, spectrum.model(lambda).map_err(|error| error.to_string())?, scored)
            }
        };
        let (rows, features) = (statistics.rows(), statistics.map().feature_dim());
        said += &format!("ridge regression of {rows} rows on {features} features, λ = {lambda:.3e}");
        let classes = (!fit.classes.is_empty()).then(|| fit.classes.clone());
        let mut model = Model::new(T::ridge(ridge), Vec::new(), rows);
        (model.target, model.classes, model.lambda) = (fit.target.clone(), classes, Some(lambda));
        Ok(Solved { model, said, scored })
    }

    /// The criterion by which λ is chosen, its name, and with what R² compares.
    fn criterion<'p, T: Modelled>(
        &self,
        parts: &'p [RidgeStatistics<T>],
    ) -> (Criterion<'p, T>, String, &'static str) {
        match self.divided {
            None => {
                let name = "generalised cross-validation".into();
                (Criterion::GeneralisedCrossValidation, name, "the mean")
            }
            Some(divided) => (divided.criterion(parts), divided.name(parts.len()), divided.baseline()),
        }
    }

    /// λ of the least error, what is said of it, and whether the share explained is.
    fn chosen<T: Modelled>(
        &self,
        fit: &Fit,
        spectrum: &RidgeSpectrum<T>,
        parts: &[RidgeStatistics<T>],
    ) -> Result<(f64, String, bool), String> {
        let (criterion, name, baseline) = self.criterion(parts);
        let lambdas = spectrum.lambdas();
        let (lambda, error) = spectrum.choose(&criterion, &lambdas).map_err(|error| error.to_string())?;
        if !error.is_finite() {
            return Err(format!(
                "no λ has a finite error by {name}: there are too few rows for the features, or weights so small that they count as \
                 few. Scale the weights to add up to the number of rows, take fewer --features, or give --lambda"
            ));
        }
        let mut said = format!("expected squared error of predictions: {error:.4e} ({name})\n");
        let share = explained(spectrum, &criterion, error).filter(|_| fit.classes.is_empty());
        if let Some(share) = share {
            said += &format!("expected R²: {share:.4} (against {baseline})\n");
        }
        let smaller = lambdas.iter().copied().filter(|other| *other < lambda).reduce(f64::max);
        let next = smaller.map(|smaller| spectrum.errors(&criterion, &[smaller]));
        let infinite = |errors: Vec<f64>| errors.iter().all(|error| error.is_infinite());
        let is_least = next.is_none_or(|errors| errors.is_ok_and(infinite));
        if size_of::<T>() < size_of::<f64>() && is_least {
            said += LEAST;
        }
        Ok((lambda, said, share.is_some()))
    }

    fn pca<T: Modelled>(&self, fit: &Fit) -> Result<Solved, String> {
        let [state] = self.states else { return Err("a PCA is of the sums of all rows".into()) };
        let statistics = state.pca::<T>(self.map).map_err(|error| sentence(&error))?;
        let (count, rows) = (fit.components.unwrap_or(COMPONENTS), statistics.rows());
        let pca = statistics.components(count).map_err(|error| error.to_string())?;
        let shares = pca.explained_variance_ratio();
        let shares: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
        let shares = shares.join(" ");
        let said = format!("{count} principal components of {rows} rows; shares of the variance:\n{shares}");
        Ok(Solved { model: Model::new(T::pca(pca), Vec::new(), rows), said, scored: true })
    }
}

/// What is said of the target: mean and deviation of a number, shares of classes.
fn target<T: Modelled>(fit: &Fit, statistics: &RidgeStatistics<T>) -> Result<String, String> {
    let means = statistics.mean_targets().map_err(|error| match &fit.rows.weights {
        Some(weights) => format!("column {weights}: {error}"),
        None => error.to_string(),
    })?;
    let name = fit.target.as_deref().unwrap_or_default();
    if !fit.classes.is_empty() {
        let shares =
            fit.classes.iter().zip(&means).map(|(class, share)| format!("{class} {:.2} %", 100.0 * share));
        return Ok(format!("{name}: {}\n", shares.collect::<Vec<_>>().join(", ")));
    }
    let variances = statistics.target_variances().map_err(|error| error.to_string())?;
    let all = means.iter().zip(&variances);
    let said =
        all.map(|(mean, variance)| format!("{name}: mean {mean:.6e}, deviation {:.4e}\n", variance.sqrt()));
    Ok(said.collect())
}

/// The share of the target's variance that predictions of this expected error explain, if there is any.
fn explained<T: Modelled>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    error: f64,
) -> Option<f64> {
    // Under this penalty the mean alone predicts.
    let mean = spectrum.errors(criterion, &[f64::MAX.sqrt()]).ok()?;
    mean.first().filter(|variance| **variance > 0.0).map(|variance| 1.0 - error / variance)
}
