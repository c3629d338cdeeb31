//! The recipe that is chosen from a sample.

use std::collections::BTreeSet;

use ndarray::{Array2, s};
use random_features::apply::{Criterion, RidgeSearch, Standardisation};
use random_features::data::{Reservoir, lengthscale};
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Lengthscale};
use random_features::map::Recipe;
use random_features::recipe::{Draw, PlainRecipe};
use random_features::{Targets, Trigonometric};
use random_features_distributed::columns::Scalar;
use random_features_distributed::division::Division;
use random_features_distributed::fit::{Task, column};
use random_features_distributed::map::MapSpec;

use crate::arguments::Choice;
use crate::asked::Asked;
use crate::division::Divided;
use crate::say::note;
use crate::stop;

/// Rows of the sample.
const SAMPLE: u64 = 4096;
/// The features of the search are no more: it finds the lengthscale.
const SEARCHED: usize = 256;
/// The square of a group's rows, summed over groups, is about so large at most in a search.
const SQUARES: usize = 1 << 17;
/// Points of which the median distance is taken.
const POINTS: usize = 2000;

/// What columns are, beside the points.
#[derive(Clone, Copy, Default)]
pub struct Roles<'a> {
    /// The target, if it is a number.
    pub target: Option<&'a str>,
    /// How often each row counts.
    pub weights: Option<&'a str>,
    /// By what rows λ and the lengthscale are chosen.
    pub divided: Option<&'a Divided>,
}

/// Points of a sample, with their target if it is a number, and the statistics of all rows.
pub struct Sampled {
    pub reservoir: Reservoir,
    pub dim: usize,
    /// Whether sums over the points and the target are of `f64`.
    double: bool,
}

impl Sampled {
    /// A pass over the points and, if they can be sampled with them, a target of numbers, weights and groups.
    pub async fn of(asked: &Asked, columns: &[String], roles: &Roles<'_>) -> Result<Self, String> {
        let task = Self::task(asked, columns, roles);
        let state = asked.pass("sampling", &task).await?;
        let reservoir = state.sample().map_err(|error| error.to_string())?;
        let dim = reservoir.dim() - (task.columns.len() - columns.len()) - task.computed.len();
        Ok(Sampled { reservoir, dim, double: asked.is_double(columns, roles.target) })
    }

    /// The pass that samples: behind the coordinates come the target, the weight and the group, those that there are.
    pub fn task(asked: &Asked, columns: &[String], roles: &Roles<'_>) -> Task {
        let points = columns.iter().map(String::as_str);
        match sampled(asked, columns, roles.target) {
            None => weighted(Task::sample(SAMPLE, 0, points), roles),
            Some(target) => {
                let group = roles.divided.and_then(|divided| divided.division.group());
                let all = points.chain([target]).chain(roles.weights);
                weighted(Task::sample(SAMPLE, 0, all).with_computed(Vec::from_iter(group)), roles)
            }
        }
    }

    /// The centring and scaling by all rows.
    pub fn standardisation(&self) -> Result<Standardisation, String> {
        let all =
            Standardisation::of_statistics(self.reservoir.statistics()).map_err(|error| error.to_string())?;
        all.select(&Vec::from_iter(0..self.dim)).map_err(|error| error.to_string())
    }

    /// Standardised points.
    pub fn points(&self) -> Result<Array2<f64>, String> {
        let points = self.reservoir.points();
        let x = points.slice(s![.., ..self.dim]).to_owned();
        self.standardisation()?.apply(&x).map_err(|error| error.to_string())
    }

    /// Trigonometric features of a Gaussian kernel: with the lengthscale of the least error, if there is a target, and the median distance
    /// otherwise.
    pub fn choose(&self, columns: &[String], choice: &Choice, roles: &Roles<'_>) -> Result<MapSpec, String> {
        if choice.features() < 2 {
            return Err("--features is at least 2".into());
        }
        let x = self.points()?;
        let searched = match (self.reservoir.dim() > self.dim, self.double) {
            (false, _) => None,
            (true, true) => Some(self.best::<f64>(&x, choice, roles)),
            (true, false) => Some(self.best::<f32>(&x, choice, roles)),
        };
        let ell = match searched {
            Some(Ok(ell)) => ell,
            Some(Err(why)) => {
                stop::check()?;
                note(&format!("the sample tells no lengthscale, and the median distance is taken: {why}\n"));
                median(&x, choice.seed())?
            }
            None => median(&x, choice.seed())?,
        };
        stop::check()?;
        let draw = Draw::new(self.dim, choice.features() / 2, Orthogonal);
        let kernel = Gaussian::new(ell).map_err(|error| error.to_string())?;
        let recipe = Recipe::Plain(PlainRecipe::new(Trigonometric, draw, kernel));
        let map = MapSpec::new(recipe, choice.seed()).with_standardisation(self.standardisation()?);
        Ok(map.of_columns(columns))
    }

    /// The lengthscale of the least error of a regression in the scalar of the sums, whose sums resolve no λ that is too small.
    fn best<T: Scalar>(
        &self,
        x: &Array2<f64>,
        choice: &Choice,
        roles: &Roles<'_>,
    ) -> Result<Lengthscale, String> {
        let said = |error: random_features::Error| error.to_string();
        let rows = self.reservoir.points();
        let y = rows.column(self.dim);
        let y = (&y - y.mean().unwrap_or(0.0)).mapv(T::narrow);
        let weights = roles.weights.map(|_| rows.column(self.dim + 1).to_owned());
        let targets = match &weights {
            None => Targets::from(&y),
            Some(weights) => Targets::from(&y).with_weights(weights).map_err(said)?,
        };
        let place = self.dim + 1 + usize::from(weights.is_some());
        let groups: Vec<usize> = match place < rows.ncols() {
            true => rows.column(place).iter().map(|group| *group as usize).collect(),
            false => Vec::new(),
        };
        let criterion = match roles.divided {
            Some(Divided { division: Division::Blocks(blocks), gap }) => {
                Criterion::Forward { blocks: usize::try_from(*blocks).unwrap_or(usize::MAX), gap: *gap }
            }
            _ if groups.is_empty() => Criterion::LeaveOneOut,
            _ => Criterion::LeaveGroupsOut(&groups),
        };
        let frequencies = choice.features().min(SEARCHED) / 2;
        let omega = Orthogonal.draw(x.ncols(), frequencies, choice.seed()).map_err(said)?;
        let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell));
        let mut search = search.without_standardisation().with_criterion(criterion);
        if !groups.is_empty() {
            search = search.with_rows(rows_of(&groups));
        }
        let fit = search.fit(&x.mapv(T::narrow), targets).map_err(said)?;
        fit.best().lengthscale.clone().ok_or_else(|| "the search gave no lengthscale".into())
    }
}

/// The rows that a search reads, of groups of these numbers: leaving a group out takes the square of its rows, and few groups are
/// large.
fn rows_of(groups: &[usize]) -> usize {
    let count = BTreeSet::from_iter(groups).len();
    ((count * SQUARES) as f64).sqrt() as usize
}

/// A task with the weights of the rows, if they have any.
fn weighted(task: Task, roles: &Roles<'_>) -> Task {
    match roles.weights {
        None => task,
        Some(weights) => task.with_weight(column(weights)),
    }
}

/// The median distance of points.
fn median(x: &Array2<f64>, seed: u64) -> Result<Lengthscale, String> {
    lengthscale::median_of_subsample(x, POINTS, seed)
        .map(Lengthscale::Isotropic)
        .map_err(|error| error.to_string())
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
