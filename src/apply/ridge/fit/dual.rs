//! Regressions of rows in memory, from the products of rows where there are fewer of them than features.

use ndarray::{Array1, Array2, ArrayRef1, ArrayViewMut2, Axis};

use super::error_table::ErrorTable;
use super::kernel_ridge::CentredTargets;
use super::normal::Normal;
use super::rotation::plain;
use super::row_space::RowSpace;
use super::shrinkage::{Shrinkage, or_infinite};
use super::training::{RowPlaces, Training};
use super::{
    FeatureBuffers, FeatureSource, RidgeRows, RidgeSpectrum, RidgeWarning, Standardisation, too_large,
};
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::linalg::{Backend, product_of_rows, transposed_product};
use crate::map::Map;
use crate::memory::check_memory;
use crate::reduce::GramIntake;
use crate::threads::Pool;
use crate::{Real, progress};

/// The number of rows whose features are made at a time.
const ROWS: usize = 48;
/// The largest product of two rows.
const LARGEST: f64 = 1e288;

/// The training rows of a regression that was solved from their products.
#[derive(Clone, Debug)]
pub(super) struct Dual {
    /// The eigenvectors of the products of centred features z̃ = √w (φ − φ̄), and the targets √w (y − ȳ).
    space: RowSpace,
    places: RowPlaces,
}

/// Centred features of rows.
pub(in crate::apply) struct CentredRows {
    /// √w (φ − φ̄), n × D.
    pub features: Array2<f64>,
    /// φ̄; 0 if features are not centred.
    pub mean: Array1<f64>,
    /// √w for each row, divided by √Σ w: the direction that is orthogonal to centred features.
    pub direction: Array1<f64>,
    /// Σ w.
    pub weight: f64,
}

impl CentredRows {
    /// The features of points, which are finite, with a weight for each.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric, [`NoData`](Error::NoData) without a row of positive weight,
    /// [`NotFinite`](Error::NotFinite) if a row has no finite features, [`Memory`](Error::Memory).
    pub fn new<T: Real>(
        map: &Map<T>,
        inputs: Option<&Standardisation>,
        points: PointsView<'_, T>,
        weights: Option<&ArrayRef1<f64>>,
        centred: bool,
    ) -> Result<Self> {
        GramIntake::check_symmetric(map)?;
        let (n, width) = (points.nrows(), map.feature_dim());
        let weights = Array1::from_shape_fn(n, |i| weights.map_or(1.0, |weights| weights[i]));
        let weight = weights.sum();
        if !(weight > 0.0) {
            return Err(Error::NoData { what: "a regression of rows in memory" });
        }
        check_memory("rows of features", n, width.saturating_mul(2 * size_of::<f64>()))?;
        let mut features = Array2::zeros((n, width));
        let source = FeatureSource::standardised(map.program(), inputs);
        let write = |buffers: &mut FeatureBuffers<T>, (run, mut out): (usize, ArrayViewMut2<'_, f64>)| {
            if progress::check().is_ok() {
                source.fill(points.run(run, ROWS), buffers);
                let rows = out.rows_mut().into_iter().enumerate();
                rows.for_each(|(i, mut out)| {
                    plain(
                        map.program().blocks(),
                        buffers.batch.row(i),
                        crate::numeric::slice_of_mut(&mut out),
                    )
                });
            }
        };
        Pool::default().for_each(features.axis_chunks_iter_mut(Axis(0), ROWS).enumerate(), write);
        progress::check()?;
        if let Some(row) = features.rows().into_iter().position(|row| !row.iter().all(|v| v.is_finite())) {
            return Err(Error::NotFinite { what: "the features of x", row });
        }
        let shares = &weights / weight;
        let mean = if centred { shares.dot(&features) } else { Array1::zeros(width) };
        for (mut row, weight) in features.rows_mut().into_iter().zip(&weights) {
            let root = weight.sqrt();
            row.iter_mut().zip(&mean).for_each(|(v, mean)| *v = (*v - mean) * root);
        }
        Ok(CentredRows { features, mean, direction: shares.mapv(f64::sqrt), weight })
    }

    /// The eigenvectors of the products of rows, with targets in them, and the rounding error of eigenvalues.
    pub fn space(&self, targets: &Array2<f64>, centred: bool) -> Result<(RowSpace, f64)> {
        let n = self.features.nrows();
        check_memory("rows of products", n, n.saturating_mul(2 * size_of::<f64>()))?;
        let products = product_of_rows(&self.features);
        progress::check()?;
        if !products.diag().iter().all(|v| *v <= LARGEST) {
            return Err(too_large());
        }
        let trace = products.diag().sum();
        let apart = 4.0 * trace.max(f64::MIN_POSITIVE);
        let mut space = RowSpace::new(products, targets, centred.then_some(&self.direction), apart)?;
        space.values.mapv_inplace(|s| s.max(0.0));
        let largest = space.values.iter().fold(0.0, |a: f64, s| a.max(*s));
        // Where all features are equal, what is left of them is rounding.
        let scale = self.mean.iter().map(|v| v * v).sum::<f64>() * self.weight;
        let rounding = n as f64 * f64::EPSILON * largest.max(4.0 * f64::EPSILON * scale);
        Ok((space, rounding))
    }

    /// The eigenvectors of the features, D × r: Z̃ᵀU s^(−½), and 0 where s is not above `rounding`.
    pub fn axes(&self, space: &RowSpace, rounding: f64) -> Array2<f64> {
        let factor = |s: f64| if s > rounding { s.sqrt().recip() } else { 0.0 };
        transposed_product(&self.features, &(&space.vectors * &space.values.mapv(factor)))
    }
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
}

impl<T: Real> RidgeSpectrum<T> {
    /// Whether training rows, of positive weight, are badly scaled for the map's kernel; never if they are standardised.
    pub(super) fn scale_warning(&self, rows: &RidgeRows<'_, T>) -> Option<RidgeWarning> {
        let as_they_are = self.inputs.is_none();
        as_they_are.then(|| GramIntake::scale_warning_of(&self.map, rows.x.view())).flatten()
    }
}

impl Dual {
    /// The leave-one-out error for each λ, as the mean over some of the rows.
    pub fn errors_left_out<T: Real>(&self, sample: &RidgeRows<'_, T>, lambdas: &[f64]) -> Result<ErrorTable> {
        let (places, total) = (self.places.find(sample)?, sample.total());
        if total <= 0.0 {
            return Err(Error::NoData { what: "a choice of λ" });
        }
        let mut each = Array2::zeros((lambdas.len(), self.space.rotated.ncols()));
        for (lambda, mut each) in lambdas.iter().zip(each.rows_mut()) {
            progress::check()?;
            let residuals = self.space.left_out(*lambda);
            // The residuals are those of √w y, so that their squares are weighted.
            places.iter().for_each(|i| each.zip_mut_with(&residuals.row(*i), |sum, e| *sum += e * e));
            each.mapv_inplace(|sum| or_infinite(sum / total));
        }
        Ok(ErrorTable { sums: each.rows().into_iter().map(|row| row.sum()).collect(), each })
    }

    /// The errors for each λ of some targets at groups of rows, each predicted by the regression on all others.
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
        Ok(ErrorTable { sums: each.rows().into_iter().map(|row| row.sum()).collect(), each })
    }

    /// √w times the residual of each row of a sample, n × t, under the regression without the row's group, and 0 for rows of no group:
    /// G_gg⁻¹ (Gỹ)_g with G = U diag(1/(s + λ)) Uᵀ. `None` if rounding leaves a group without a solution.
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
            let solved = match Backend::default().cholesky(&u.dot(&u.t())) {
                Err(Error::Factorisation { .. } | Error::NotFinite { .. }) => return Ok(None),
                factor => factor?.solve(&all.select(Axis(0), &own))?,
            };
            let rows = group.iter().zip(solved.rows());
            rows.for_each(|(row, solved)| residuals.row_mut(*row).assign(&solved));
        }
        Ok(Some(residuals))
    }
}
