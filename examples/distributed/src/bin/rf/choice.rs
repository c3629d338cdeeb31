//! The recipe that is chosen from a sample.

use ndarray::{Array2, Axis, s};
use random_features::Trigonometric;
use random_features::apply::{RidgeSearch, Standardisation};
use random_features::data::{Reservoir, lengthscale};
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Lengthscale};
use random_features::map::Recipe;
use random_features::recipe::{Draw, PlainRecipe};
use random_features_distributed::columns::Scalar;
use random_features_distributed::fit::Task;
use random_features_distributed::map::MapSpec;

use crate::arguments::Choice;
use crate::asked::Asked;
use crate::stop;

/// Rows of the sample.
const SAMPLE: u64 = 4096;
/// The features of the search are no more: it finds the lengthscale.
const SEARCHED: usize = 256;
/// Points of which the median distance is taken.
const POINTS: usize = 2000;

/// Points of a sample, with their target if it is a number, and the statistics of all rows.
pub struct Sampled {
    pub reservoir: Reservoir,
    pub dim: usize,
    /// Whether sums over the points and the target are of `f64`.
    double: bool,
}

impl Sampled {
    /// A pass over the points and a target of numbers, if that can be sampled with them.
    pub async fn of(asked: &Asked, columns: &[String], target: Option<&str>) -> Result<Self, String> {
        let task = Self::task(asked, columns, target);
        let state = asked.pass("sampling", &task).await?;
        let reservoir = state.sample().map_err(|error| error.to_string())?;
        // Behind the coordinates stands the target, if it was sampled.
        let dim = reservoir.dim() - (task.columns.len() - columns.len());
        Ok(Sampled { reservoir, dim, double: asked.is_double(columns, target) })
    }

    /// The pass that samples.
    pub fn task(asked: &Asked, columns: &[String], target: Option<&str>) -> Task {
        let all = columns.iter().map(String::as_str).chain(sampled(asked, columns, target));
        Task::sample(SAMPLE, 0, all)
    }

    /// The centring and scaling by all rows.
    pub fn standardisation(&self) -> Result<Standardisation, String> {
        let all =
            Standardisation::of_statistics(self.reservoir.statistics()).map_err(|error| error.to_string())?;
        let (centre, scale) = (all.centre()[..self.dim].to_vec(), all.scales()[..self.dim].to_vec());
        let constant = all.constant_columns().iter().copied().filter(|k| *k < self.dim).collect();
        Standardisation::new(centre, scale)
            .and_then(|inputs| inputs.with_constant_columns(constant))
            .map_err(|error| error.to_string())
    }

    /// Standardised points.
    pub fn points(&self) -> Result<Array2<f64>, String> {
        let points = self.reservoir.points();
        let x = points.slice(s![.., ..self.dim]).to_owned();
        self.standardisation()?.apply(&x).map_err(|error| error.to_string())
    }

    /// Trigonometric features of a Gaussian kernel: with the lengthscale of the least error, if there is a target, and the median distance
    /// otherwise.
    pub fn choose(&self, columns: &[String], choice: &Choice) -> Result<MapSpec, String> {
        if choice.features() < 2 {
            return Err("--features is at least 2".into());
        }
        let x = self.points()?;
        let target = centred(self.reservoir.points().slice(s![.., self.dim..]).to_owned());
        let ell = match target.ncols() {
            0 => median(&x, choice.seed()),
            _ if self.double => best::<f64>(&x, &target, choice).or_else(|_| median(&x, choice.seed())),
            _ => best::<f32>(&x, &target, choice).or_else(|_| median(&x, choice.seed())),
        }?;
        stop::check()?;
        let draw = Draw::new(self.dim, choice.features() / 2, Orthogonal);
        let kernel = Gaussian::new(ell).map_err(|error| error.to_string())?;
        let recipe = Recipe::Plain(PlainRecipe::new(Trigonometric, draw, kernel));
        let map = MapSpec::new(recipe, choice.seed()).with_standardisation(self.standardisation()?);
        Ok(map.of_columns(columns))
    }
}

/// Columns less their means.
fn centred(values: Array2<f64>) -> Array2<f64> {
    match values.mean_axis(Axis(0)) {
        Some(means) => values - means,
        None => values,
    }
}

/// The median distance of points.
fn median(x: &Array2<f64>, seed: u64) -> Result<Lengthscale, String> {
    lengthscale::median(x, POINTS, seed).map(Lengthscale::Isotropic).map_err(|error| error.to_string())
}

/// The lengthscale of the least error of a regression in the scalar of the sums, whose sums resolve no λ that is too small.
fn best<T: Scalar>(x: &Array2<f64>, target: &Array2<f64>, choice: &Choice) -> Result<Lengthscale, String> {
    let frequencies = choice.features().min(SEARCHED) / 2;
    let omega = Orthogonal.draw(x.ncols(), frequencies, choice.seed()).map_err(|error| error.to_string())?;
    let [x, target] = [x, target].map(|values| values.mapv(T::narrow));
    let search =
        RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell)).without_standardisation();
    let fit = search.fit(&x, &target).map_err(|error| error.to_string())?;
    fit.best().lengthscale.clone().ok_or_else(|| "the search gave no lengthscale".into())
}

/// The target, if it can be sampled with the points: a number, beside points that are not one list.
fn sampled<'a>(asked: &Asked, columns: &[String], target: Option<&'a str>) -> Option<&'a str> {
    let kind = |name: &str| {
        let field = asked.table.file_schema().field_with_name(name).ok()?;
        Some(field.data_type().clone())
    };
    let is_list = columns.first().and_then(|name| kind(name)).is_some_and(|kind| kind.is_nested());
    target.filter(|name| !is_list && kind(name).is_none_or(|kind| kind.is_numeric()))
}
