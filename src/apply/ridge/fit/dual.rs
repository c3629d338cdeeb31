//! Regressions of rows in memory by the singular value decomposition of the rows, for fewer rows than features.

use ndarray::{Array1, Array2, Axis, aview1};

use super::centred_rows::{CentredRows, RowAxes};
use super::error_table::ErrorTable;
use super::kernel_ridge::CentredTargets;
use super::normal::Normal;
use super::rotation::{ROWS, RotationBuffers};
use super::row_space::RowSpace;
use super::shrinkage::{Shrinkage, or_infinite};
use super::training::{RowPlaces, Training};
use super::{RidgeRows, RidgeSpectrum, RidgeWarning, Standardisation};
use crate::error::{Error, Result, singular};
use crate::linalg::Backend;
use crate::map::Map;
use crate::reduce::GramIntake;
use crate::{Real, progress};

/// The training rows of a regression that was solved by their singular value decomposition.
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
            values *= &weights.sqrt().insert_axis(Axis(1));
        }
        let squares = values.columns().into_iter().map(|column| column.dot(&column)).collect();
        let RowAxes { space, axes, rounding, mean, weight } = centred.decomposed(&values, intercept)?;
        let shrinkage = Shrinkage {
            shares: &space.rotated * &space.rotated,
            rest: vec![0.0; space.rotated.ncols()],
            weight,
            count,
            log_precisions,
            intercept,
            rank: space.values.len(),
            resolution: rounding,
            least: 0.0,
            out_of_range: targets.out_of_range.clone(),
            values: space.values.clone(),
        };
        let normal = Normal {
            a: Array2::zeros((0, 0)),
            c: Array2::zeros((0, 0)),
            squares,
            mean_features: mean,
            references: targets.references,
            offsets: targets.offsets,
            weight,
            counts: [count, log_precisions],
            rank: space.values.len(),
            noise: rounding,
            total_noise: rounding,
            rounding: f64::EPSILON,
            is_lost: false,
            out_of_range: targets.out_of_range,
        };
        Ok(RidgeSpectrum {
            map,
            inputs,
            training: Training::of(rows),
            few_rows: true,
            normal,
            shrinkage,
            vectors: axes,
            rotated: &space.values.sqrt().insert_axis(Axis(1)) * &space.rotated,
            dual: Some(Dual { space, places: RowPlaces::of(rows) }),
        })
    }

    /// The predictions at rows of a sample, n × t, each by the regression on all rows of other groups.
    ///
    /// # Errors
    /// [`Singular`](Error::Singular) if rounding hides the residuals of a group.
    pub(super) fn dual_predictions(
        &self,
        dual: &Dual,
        sample: &RidgeRows<'_, T>,
        groups: &[Vec<usize>],
        lambda: f64,
    ) -> Result<Array2<f64>> {
        let residuals = dual.residuals(sample, groups, lambda)?;
        let residuals = residuals.ok_or_else(|| singular(lambda, self.normal.least()))?;
        let (normal, places) = (&self.normal, dual.places.find(sample)?);
        let root = |i: usize| sample.weight(i).sqrt();
        let mut out = Array2::from_shape_fn(residuals.dim(), |(i, j)| {
            sample.targets.columns[[i, j]].widen() - residuals[[i, j]] / root(i)
        });
        let rotation = self.rotation(|k, f| self.vectors[[f, k]]);
        let mut buffers = RotationBuffers::default();
        for group in groups {
            let absent: Vec<usize> = group.iter().copied().filter(|row| places[*row].is_none()).collect();
            if absent.is_empty() {
                continue;
            }
            let (rows, own) = present(group, &places);
            let of_group = residuals.select(Axis(0), &rows);
            let weights = dual.weights_without(&own, &of_group, lambda);
            let roots = Array1::from_iter(rows.iter().map(|row| root(*row)));
            let mut means = normal.offsets.clone();
            if self.shrinkage.intercept {
                means -= &(roots.dot(&of_group) / normal.weight);
            }
            for run in absent.chunks(ROWS) {
                progress::check()?;
                let x = sample.x.select(run)?;
                for (row, u) in run.iter().zip(rotation.of(x.view(), &mut buffers)) {
                    let predicted = &normal.references + &(&means + &aview1(u).dot(&weights));
                    out.row_mut(*row).assign(&predicted);
                }
            }
        }
        Ok(out)
    }

    /// Warns if training rows of positive weight are badly scaled for the map's kernel; never if inputs are standardised.
    pub(super) fn scale_warning(&self, rows: &RidgeRows<'_, T>) -> Option<RidgeWarning> {
        GramIntake::scale_warning_of(&self.map, self.inputs.as_ref(), rows.x.view())
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
            let squares = residuals.pow2();
            places.iter().flatten().for_each(|i| each += &squares.row(*i));
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
    /// diag(1/(s + λ)) Uᵀ. It is 0 for rows of no group and of weight 0. `None` if rounding leaves a group without a solution.
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
            let (rows, own) = present(group, &places);
            let u = self.space.vectors.select(Axis(0), &own) / &roots;
            if own.is_empty() {
                continue;
            }
            let Some(factor) = Backend::default().definite_cholesky(&u.dot(&u.t()))? else { return Ok(None) };
            let solved = factor.solve(&all.select(Axis(0), &own))?;
            let rows = rows.iter().zip(solved.rows());
            rows.for_each(|(row, solved)| residuals.row_mut(*row).assign(&solved));
        }
        Ok(Some(residuals))
    }

    /// The components in the eigenvectors of the weights of the regression without a group, r × t. `residuals` are √w times the
    /// residuals of that regression at the rows of the sample. Targets of the group that are predicted without error leave the weights
    /// as they are.
    fn weights_without(&self, own: &[usize], residuals: &Array2<f64>, lambda: f64) -> Array2<f64> {
        let values = &self.space.values;
        let rotated = &self.space.rotated - &self.space.vectors.select(Axis(0), own).t().dot(residuals);
        &values.mapv(|s| s.sqrt() / (s + lambda)).insert_axis(Axis(1)) * &rotated
    }
}

/// The rows of positive weight of a group, and their places among the training rows.
fn present(group: &[usize], places: &[Option<usize>]) -> (Vec<usize>, Vec<usize>) {
    group.iter().filter_map(|row| Some((*row, places[*row]?))).unzip()
}
