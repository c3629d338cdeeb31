//! Errors and predictions at groups of rows that are left out together.

use std::collections::HashMap;

use ndarray::Array2;

use super::error_table::ErrorTable;
use super::points::PointErrors;
use super::rotation::{ROWS, RotationBuffers};
use super::without::Without;
use super::{Criterion, RidgeRows, RidgeSpectrum};
use crate::error::{Error, Result, check_size};
use crate::threads::Pool;
use crate::{Real, progress};

/// The error for a criterion that leaves out no rows of the training data.
const OTHER: Error = Error::Unsupported {
    what: "predictions by a criterion that leaves out no rows: Criterion::leave_one_out(&x, &y), or Criterion::leave_groups_out",
};

/// The rows of each group, in the order of their first rows.
pub(super) fn rows_of_groups(
    groups: &[usize],
    rows: usize,
    counts: impl Fn(usize) -> bool,
) -> Result<Vec<Vec<usize>>> {
    check_size("the number of groups' labels", rows, groups.len())?;
    let mut places = HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (row, label) in groups.iter().enumerate().filter(|(row, _)| counts(*row)) {
        let place = *places.entry(*label).or_insert(members.len());
        if place == members.len() {
            members.push(Vec::new());
        }
        members[place].push(row);
    }
    if members.len() >= 2 {
        return Ok(members);
    }
    let (name, domain) = ("the number of groups of rows of positive weight", "at least 2");
    Err(Error::Parameter { name, value: members.len() as f64, domain })
}

impl<T: Real> RidgeSpectrum<T> {
    /// The errors for each λ at some groups of training rows, where each group is predicted by the regression on all other rows.
    pub(super) fn errors_of_groups(
        &self,
        sample: &RidgeRows<'_, T>,
        groups: &[usize],
        lambdas: &[f64],
    ) -> Result<ErrorTable> {
        let groups = rows_of_groups(groups, sample.x.nrows(), |row| sample.weight(row) > 0.0)?;
        self.shrinkage.check_range()?;
        let targets = self.shrinkage.varying();
        if let Some(dual) = &self.dual {
            return dual.errors_of_groups(sample, &groups, &targets, lambdas);
        }
        let all = Without::new(self, sample, lambdas);
        let parts = Pool::default().map(batches(&groups), |buffers: &mut RotationBuffers<T>, batch| {
            let mut sums = vec![PointErrors::default(); lambdas.len() * (targets.len() + 1)];
            for group in batch {
                progress::check()?;
                all.add_errors(group, &mut sums, buffers)?;
            }
            Ok::<_, Error>(sums)
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        progress::check()?;
        let total: f64 = groups.iter().flatten().map(|row| sample.weight(*row)).sum();
        Ok(PointErrors::table(&parts, (&targets, self.rotated.ncols()), total))
    }

    /// The predictions of [`left_out`](RidgeSpectrum::left_out) in `f64`.
    pub(super) fn scores_left_out(&self, criterion: &Criterion<'_, T>, lambda: f64) -> Result<Array2<f64>> {
        self.check(lambda)?;
        let Some(rows) = criterion.rows(self.rotated.ncols())? else { return Err(OTHER) };
        rows.check(self.map.dim(), self.rotated.ncols())?;
        self.training.check(&rows)?;
        match criterion {
            Criterion::LeaveGroupsOutOf { groups, .. } => {
                self.predictions_without_groups(&rows, groups, lambda)
            }
            Criterion::LeaveOneOutOf { .. } => {
                let each: Vec<usize> = (0..rows.x.nrows()).collect();
                self.predictions_without_groups(&rows, &each, lambda)
            }
            _ => Err(OTHER),
        }
    }

    /// The predictions at training rows for one λ, n × t, each by the regression on all rows of other groups.
    pub(super) fn predictions_without_groups(
        &self,
        sample: &RidgeRows<'_, T>,
        groups: &[usize],
        lambda: f64,
    ) -> Result<Array2<f64>> {
        rows_of_groups(groups, sample.x.nrows(), |row| sample.weight(row) > 0.0)?;
        let groups = rows_of_groups(groups, sample.x.nrows(), |_| true)?;
        if let Some(dual) = &self.dual {
            return self.dual_predictions(dual, sample, &groups, lambda);
        }
        let all = Without::new(self, sample, &[lambda]);
        let parts = Pool::default().map(batches(&groups), |buffers: &mut RotationBuffers<T>, batch| {
            let mut found = Vec::new();
            for group in batch {
                progress::check()?;
                let left = all.residuals(group, buffers, &mut |_, row, j, r| found.push((row, j, r)))?;
                all.check(&left)?;
            }
            Ok::<_, Error>(found)
        });
        let mut out = Array2::from_elem((sample.x.nrows(), self.rotated.ncols()), f64::NAN);
        for part in parts {
            for (row, j, residual) in part? {
                out[[row, j]] = sample.targets.columns[[row, j]].widen() - residual;
            }
        }
        progress::check()?;
        Ok(out)
    }
}

/// Consecutive groups that have about [`ROWS`] rows together.
fn batches(groups: &[Vec<usize>]) -> Vec<&[Vec<usize>]> {
    let (mut batches, mut start, mut rows) = (Vec::new(), 0, 0);
    for (k, group) in groups.iter().enumerate() {
        rows += group.len();
        if rows >= ROWS || k + 1 == groups.len() {
            batches.push(&groups[start..=k]);
            (start, rows) = (k + 1, 0);
        }
    }
    batches
}
