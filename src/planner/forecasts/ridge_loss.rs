//! The excess risk of ridge regression, from a pilot.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;

use super::expected::{Expected, or_infinite};
use crate::apply::{Criterion, KernelRidge, least};
use crate::error::{Error, Result};
use crate::map::{AnyKernel, Recipe};
use crate::planner::question::PlannedPoints;
use crate::progress;
use crate::theory::Basis;

/// Points of the pilot: two of three train.
const POINTS: usize = 750;

/// A regression with the exact kernel, and what maps are compared on.
pub(crate) struct RidgeLoss {
    train: Array2<f64>,
    train_targets: Array2<f64>,
    test: Array2<f64>,
    test_targets: Array2<f64>,
    lambda: f64,
    /// Mean squared errors at held-out points, summed over targets: of the exact kernel, and of the mean of the training targets.
    exact: f64,
    mean: f64,
    /// The variance of the targets at held-out points.
    variance: f64,
}

impl RidgeLoss {
    pub fn new(data: &PlannedPoints, target: &AnyKernel, targets: &Array2<f64>, seed: u64) -> Result<Self> {
        let points = &data.sides[0].points;
        // Rows that are kept are in the order of the data, which may be sorted or have a period.
        let mut train: Vec<usize> = (0..points.nrows()).collect();
        train.shuffle(&mut crate::rng(seed));
        train.truncate(POINTS);
        let test = train.split_off(train.len() - train.len() / 3);
        let of = |array: &Array2<f64>, rows: &[usize]| array.select(Axis(0), rows);
        let kernel =
            target.kernel::<f64>().ok_or(Error::Unsupported { what: "regression without a named kernel" })?;
        let (train, train_targets) = (of(points, &train), of(targets, &train));
        let (test, test_targets) = (of(points, &test), of(targets, &test));
        let spectrum = KernelRidge::spectrum(&kernel.gram(&train, &train)?, &train_targets)?;
        // A criterion of the training points alone may choose a λ that is far too small beyond them: by chance, or where a point lies
        // beyond all others. Held-out points alone are few.
        let (cross, lambdas) = (kernel.gram(&test, &train)?, spectrum.lambdas());
        let held_out = |lambda: f64| -> Result<f64> {
            progress::check()?;
            Ok(mean_square(&spectrum.model(lambda)?.predict_from_gram(&cross)?, &test_targets))
        };
        let left_out = spectrum.errors(&Criterion::LeaveOneOut, &lambdas)?;
        let (rows, others) = (train.nrows() as f64, test.nrows() as f64);
        let of_all = |(lambda, left): (&f64, f64)| Ok(rows * left + others * held_out(*lambda)?);
        let errors = lambdas.iter().zip(left_out).map(of_all).collect::<Result<Vec<f64>>>()?;
        let (lambda, _) = least(&lambdas, &errors)?;
        let exact = held_out(lambda)?;
        let variance = test_targets.var_axis(Axis(0), 0.0).sum();
        let largest = test_targets.iter().fold(0.0, |top: f64, y| top.max(y.abs()));
        // What is constant has a variance of rounding errors.
        if variance <= (4.0 * f64::EPSILON * largest).powi(2) {
            let (name, domain) =
                ("the variance of the targets", "positive: constant targets need no features");
            return Err(Error::Parameter { name, value: 0.0, domain });
        }
        let means = train_targets.mean_axis(Axis(0)).ok_or(Error::NoData { what: "a pilot" })?;
        let mean = mean_square(&(Array2::zeros(test_targets.raw_dim()) + means), &test_targets);
        Ok(RidgeLoss { train, train_targets, test, test_targets, lambda, exact, mean, variance })
    }

    /// The points that the regression is fitted to.
    pub fn training_points(&self) -> &Array2<f64> {
        &self.train
    }

    /// Whether the exact kernel predicts no better than the mean of the targets.
    pub fn is_hopeless(&self) -> bool {
        self.exact.is_nan() || self.exact >= self.mean
    }

    /// The error that excess risks are relative to.
    fn reference(&self) -> f64 {
        self.exact.min(self.mean)
    }

    /// The mean over draws of the excess risk, relative to the variance of the targets. Draws whose regression is singular count as
    /// infinite.
    pub fn excess(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<Expected> {
        let mut all = Vec::with_capacity(draws);
        for seed in (0..draws as u64).map(|k| first.wrapping_add(k)) {
            progress::check()?;
            let map = recipe.draw::<f64>(seed)?;
            let model =
                KernelRidge::fit(&map.gram(&self.train, &self.train)?, &self.train_targets, self.lambda);
            all.push(match model {
                Ok(model) => {
                    let predicted = model.predict_from_gram(&map.gram(&self.test, &self.train)?)?;
                    (mean_square(&predicted, &self.test_targets) - self.reference()) / self.variance
                }
                Err(Error::Singular { .. } | Error::NotFinite { .. } | Error::Factorisation { .. }) => {
                    f64::INFINITY
                }
                Err(error) => return Err(error),
            });
        }
        let (count, basis) = (draws as f64, Basis::Simulation(draws));
        let value = or_infinite(all.iter().sum::<f64>() / count);
        let spread = all.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let standard_error = (spread / count).sqrt();
        Ok(Expected { value, standard_error: or_infinite(standard_error), basis })
    }
}

fn mean_square(predicted: &Array2<f64>, targets: &Array2<f64>) -> f64 {
    (predicted - targets).pow2().sum() / targets.nrows() as f64
}
