//! How a search is run on rows, with targets or labels.

use ndarray::ArrayRef1;

use super::super::{RidgeRows, check_classes, check_training, check_weights, one_hot};
use super::options::{Maps, RidgeSearch};
use super::steps::Search;
use super::trial::{RidgeFit, check_grid};
use crate::error::{Error, Result, check_positive};
use crate::once::once;
use crate::{Points, Real, Targets};

impl<T: Real> RidgeSearch<'_, T> {
    /// Searches on points, n × d, with their targets, n × t or n, and fits the best map to all of them. Inputs are standardised unless
    /// they are sparse; the model does so by itself when it predicts.
    ///
    /// # Errors
    /// Errors of `make` for a map of the grid, errors of [`RidgeStatistics`](super::super::RidgeStatistics) for the first map if
    /// none can be fitted, or for the best map on all rows. [`Shape`](Error::Shape) if a size does not fit,
    /// [`NotFinite`](Error::NotFinite) if a number is not finite, [`NoData`](Error::NoData) without rows.
    /// [`Parameter`](Error::Parameter) if a grid is empty, a number of frequencies is 0, a λ is negative, a share is outside its
    /// domain, or all points of the default lengthscale are equal. [`Singular`](Error::Singular) if every λ is lost to rounding,
    /// [`Unsupported`](Error::Unsupported) for numbers of frequencies if maps have frequencies of their own,
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops the search.
    pub fn fit<'x, 't>(
        &self,
        x: impl Into<Points<'x, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<RidgeFit<T>> {
        self.run(x.into(), targets.into(), None)
    }

    /// Searches on points and targets with a weight for each row: how often the row counts.
    ///
    /// # Errors
    /// The errors of [`fit`](RidgeSearch::fit); [`Entry`](Error::Entry) if a weight is negative or not finite.
    pub fn fit_weighted<'x, 't>(
        &self,
        x: impl Into<Points<'x, T>>,
        targets: impl Into<Targets<'t, T>>,
        weights: &ArrayRef1<f64>,
    ) -> Result<RidgeFit<T>> {
        self.run(x.into(), targets.into(), Some(weights))
    }

    /// Searches on points with labels below the number of classes: each class has a target that is 1 for its points and 0 for
    /// others.
    ///
    /// # Errors
    /// The errors of [`fit`](RidgeSearch::fit); [`Entry`](Error::Entry) if a label is too large, [`Parameter`](Error::Parameter) if there
    /// are fewer than two classes.
    pub fn fit_labels<'x>(
        &self,
        x: impl Into<Points<'x, T>>,
        labels: &[usize],
        classes: usize,
    ) -> Result<RidgeFit<T>> {
        check_classes(classes)?;
        let x = x.into();
        let targets = one_hot(x.nrows(), labels, classes)?;
        self.run(x, (&targets).into(), None)
    }

    #[inline(never)]
    fn run(
        &self,
        x: Points<'_, T>,
        targets: Targets<'_, T>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<RidgeFit<T>> {
        check_positive("the number of targets", targets.ncols())?;
        let d = match &self.maps {
            Maps::On(omega, _) => omega.dim(),
            Maps::Of(_) => x.ncols(),
        };
        check_training(x.view(), d, &targets.view(), targets.ncols())?;
        check_weights(weights, x.nrows())?;
        check_grid(self.lambdas.as_deref())?;
        if weights.map_or(x.nrows() == 0, |weights| weights.iter().all(|weight| *weight == 0.0)) {
            return Err(Error::NoData { what: "a search for a ridge regression" });
        }
        let all = RidgeRows { x: (&x).into(), targets: (&targets).into(), weights };
        match weights {
            Some(weights) if weights.iter().any(|weight| *weight == 0.0) => {
                let present = (0..x.nrows()).filter(|i| weights[*i] > 0.0).collect::<Vec<_>>();
                Search::new(self, all.select(&present)?.rows())?.run()
            }
            _ => Search::new(self, all)?.run(),
        }
    }
}

once!(RidgeSearch::<T>::run);
