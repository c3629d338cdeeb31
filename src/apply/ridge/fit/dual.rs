//! Regressions of rows in memory by the products of rows, for fewer rows than features.

use ndarray::{Array2, Axis};

use super::centred_rows::CentredRows;
use super::error_table::ErrorTable;
use super::kernel_ridge::CentredTargets;
use super::normal::Normal;
use super::row_space::RowSpace;
use super::shrinkage::{Shrinkage, or_infinite};
use super::training::{RowPlaces, Training};
use super::without::factor;
use super::{RidgeRows, RidgeSpectrum, RidgeWarning, Standardisation};
use crate::error::{Error, Result};
use crate::map::Map;
use crate::reduce::GramIntake;
use crate::{Real, progress};

/// The training rows of a regression that was solved from the products of these rows.
#[derive(Clone, Debug)]
pub(super) struct Dual {
    /// The eigenvectors of the products of centred features z̃ = √w (φ − φ̄), and the targets √w (y − ȳ).
    space: RowSpace,
    places: RowPlaces,
}

impl<T: Real> RidgeSpectrum<T> {
    /// The regressions of rows whose numbers are finite, of which there should be fewer than features. Cost O(n² D + n³).
    pub(super) fn of_few_rows(
        map: Map<T>,
        inputs: Option<Standardisation>,
        intercept: bool,
        rows: &RidgeRows<'_, T>,
    ) -> Result<Self> {
        progress::check()?;
        let weights = rows.targets.products();
        let weights = weights.as_deref();
        let targets = CentredTargets::of(&rows.targets.columns, weights, intercept)?;
        let centred = CentredRows::new(&map, inputs.as_ref(), rows.x.view(), weights, intercept)?;
        let mut values = targets.values;
        let [count, log_precisions] = rows.targets.counts();
        if let Some(weights) = weights {
            values *= &weights.mapv(f64::sqrt).insert_axis(Axis(1));
        }
        let squares = values.columns().into_iter().map(|column| column.dot(&column)).collect();
        let (space, rounding) = centred.space(&values, intercept)?;
        let vectors = centred.axes(&space, rounding);
        let significant = space.values.mapv(|s| if s > rounding { s } else { 0.0 });
        let shrinkage = Shrinkage {
            shares: &space.rotated * &space.rotated,
            rest: vec![0.0; space.rotated.ncols()],
            weight: centred.weight,
            count,
            log_precisions,
            intercept,
            rank: space.values.len(),
            resolution: rounding,
            least: 0.0,
            out_of_range: targets.out_of_range,
            values: space.values.clone(),
        };
        let normal = Normal {
            a: Array2::zeros((0, 0)),
            c: Array2::zeros((0, 0)),
            squares,
            mean_features: centred.mean,
            references: targets.references,
            offsets: targets.offsets,
            weight: centred.weight,
            counts: [count, log_precisions],
            rank: space.values.len(),
            noise: rounding,
            total_noise: rounding,
            rounding: f64::EPSILON,
            out_of_range: targets.out_of_range,
        };
        Ok(RidgeSpectrum {
            map,
            inputs,
            training: Training::of(rows),
            few_rows: true,
            normal,
            shrinkage,
            vectors,
            rotated: &significant.mapv(f64::sqrt).insert_axis(Axis(1)) * &space.rotated,
            dual: Some(Dual { space, places: RowPlaces::of(rows) }),
        })
    }

    /// Warns if training rows of positive weight are badly scaled for the map's kernel; never if inputs are standardised.
    pub(super) fn scale_warning(&self, rows: &RidgeRows<'_, T>) -> Option<RidgeWarning> {
        let as_they_are = self.inputs.is_none();
        as_they_are.then(|| GramIntake::scale_warning_of(&self.map, rows.x.view())).flatten()
    }
}

impl Dual {
    /// The leave-one-out error for each λ: its mean over the rows of `sample`, which are training rows.
    pub fn errors_left_out<T: Real>(&self, sample: &RidgeRows<'_, T>, lambdas: &[f64]) -> Result<ErrorTable> {
        let (places, total) = (self.places.find(sample)?, sample.total());
        if total <= 0.0 {
            return Err(Error::NoData { what: "a choice of λ" });
        }
        let mut each = Array2::zeros((lambdas.len(), self.space.rotated.ncols()));
        for (lambda, mut each) in lambdas.iter().zip(each.rows_mut()) {
            progress::check()?;
            let residuals = self.space.left_out(*lambda);
            // The residuals are of √w y, so that their squares are weighted.
            places.iter().for_each(|i| each.zip_mut_with(&residuals.row(*i), |sum, e| *sum += e * e));
            each.mapv_inplace(|sum| or_infinite(sum / total));
        }
        Ok(ErrorTable::of_targets(each))
    }

    /// The errors of some targets for each λ at groups of rows, where each group is predicted by the regression on all other
    /// rows.
    pub fn errors_of_groups<T: Real>(
        &self,
        sample: &RidgeRows<'_, T>,
        groups: &[Vec<usize>],
        targets: &[usize],
        lambdas: &[f64],
    ) -> Result<ErrorTable> {
        let total: f64 = groups.iter().flatten().map(|row| sample.weight(*row)).sum();
        let mut each = Array2::zeros((lambdas.len(), self.space.rotated.ncols()));
        for (lambda, mut each) in lambdas.iter().zip(each.rows_mut()) {
            let residuals = self.residuals(sample, groups, *lambda)?;
            for j in targets {
                let of = |all: &Array2<f64>| all.column(*j).iter().map(|r| r * r).sum::<f64>();
                each[*j] = or_infinite(residuals.as_ref().map_or(f64::INFINITY, of) / total);
            }
        }
        Ok(ErrorTable::of_targets(each))
    }

    /// √w times the residual of each row of a sample, n × t, in the regression without the row's group: G_gg⁻¹ (Gỹ)_g with G = U
    /// diag(1/(s + λ)) Uᵀ. It is 0 for rows of no group. `None` if rounding leaves a group without a solution.
    pub fn residuals<T: Real>(
        &self,
        sample: &RidgeRows<'_, T>,
        groups: &[Vec<usize>],
        lambda: f64,
    ) -> Result<Option<Array2<f64>>> {
        let (places, all) = (self.places.find(sample)?, self.space.solved(lambda));
        let roots = self.space.values.mapv(|s| (s + lambda).sqrt());
        let mut residuals = Array2::zeros((places.len(), all.ncols()));
        for group in groups {
            progress::check()?;
            let own: Vec<usize> = group.iter().map(|row| places[*row]).collect();
            let u = self.space.vectors.select(Axis(0), &own) / &roots;
            let Some(factor) = factor(&u.dot(&u.t()))? else { return Ok(None) };
            let solved = factor.solve(&all.select(Axis(0), &own))?;
            let rows = group.iter().zip(solved.rows());
            rows.for_each(|(row, solved)| residuals.row_mut(*row).assign(&solved));
        }
        Ok(Some(residuals))
    }
}
