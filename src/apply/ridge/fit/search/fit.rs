//! How a search is run on rows, with targets or labels.

use super::super::{RidgeRows, check_classes};
use super::division::labels_of;
use super::errors::LambdaSharing;
use super::options::{Maps, RidgeSearch};
use super::steps::Search;
use super::trial::{RidgeFit, check_grid};
use crate::error::{Error, Result, check_positive};
use crate::once::once;
use crate::{Points, Real, Targets};

impl<T: Real> RidgeSearch<'_, T> {
    /// Searches on points, n × d, with their [targets](Targets), and fits the best map to all of them. Targets are numbers, or
    /// labels of at least two classes. Weights say how often a row counts. Inputs are standardised unless they are sparse, and
    /// the model standardises the points that it predicts in the same way.
    ///
    /// # Errors
    /// Errors of `make` for a map of the grid. Errors of [`RidgeStatistics`](super::super::RidgeStatistics) for the first map if
    /// no map can be fitted, or for the best map on all rows. [`Shape`](Error::Shape) if a size does not fit,
    /// [`NotFinite`](Error::NotFinite) if a number is not finite, [`NoData`](Error::NoData) without rows of positive weight.
    /// [`Parameter`](Error::Parameter) if a grid is empty, a number of frequencies is 0, a λ is negative, a share is outside its
    /// domain, labels have fewer than two classes, or all points are equal and the lengthscale is chosen by default.
    /// [`Singular`](Error::Singular) if rounding hides the errors for every λ. [`Unsupported`](Error::Unsupported) for numbers of
    /// frequencies if maps have frequencies of their own. [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch)
    /// stops the search.
    pub fn fit<'x, 't>(
        &self,
        x: impl Into<Points<'x, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<RidgeFit<T>> {
        self.run(x.into(), targets.into())
    }

    #[inline(never)]
    fn run(&self, x: Points<'_, T>, targets: Targets<'_, T>) -> Result<RidgeFit<T>> {
        let count = targets.ncols();
        check_positive("the number of targets", count)?;
        if targets.are_labels() {
            check_classes(count)?;
        }
        let d = match &self.maps {
            Maps::On(omega, _) => omega.dim(),
            Maps::Recipe(recipe) => recipe.dim(),
            Maps::Of(_) => x.ncols(),
        };
        let all = RidgeRows { x: (&x).into(), targets: targets.rows(count)? };
        all.check(d, count)?;
        check_grid(self.lambdas.as_deref())?;
        let share = if targets.are_labels() { LambdaSharing::Common } else { LambdaSharing::PerTarget };
        let weights = all.targets.weights();
        if weights.map_or(x.nrows() == 0, |weights| weights.iter().all(|weight| *weight == 0.0)) {
            return Err(Error::NoData { what: "a search for a ridge regression" });
        }
        let labels = labels_of(&self.criterion, x.nrows())?;
        match weights {
            Some(weights) if weights.iter().any(|weight| *weight == 0.0) => {
                let present = (0..x.nrows()).filter(|i| weights[*i] > 0.0).collect::<Vec<_>>();
                let rows = all.select(&present)?;
                let labels = labels.map(|labels| present.iter().map(|row| labels[*row]).collect());
                Search::new(self, rows.borrowed(), (labels, share))?.run()
            }
            _ => Search::new(self, all, (labels.map(<[usize]>::to_vec), share))?.run(),
        }
    }
}

once!(RidgeSearch::<T>::run);
