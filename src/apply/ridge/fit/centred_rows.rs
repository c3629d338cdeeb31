//! [`CentredRows`]: the centred features of rows in memory, and their singular value decomposition.
//!
//! Products of rows have the squares of the singular values as eigenvalues. Eigenvectors of small eigenvalues would have lost half of
//! their digits, and so would the weights that they give. The decomposition of the rows themselves keeps them.

use ndarray::{Array1, Array2, ArrayRef1, ArrayViewMut2, Axis, s};

use super::rotation::{ROWS, plain};
use super::row_space::RowSpace;
use super::{FeatureBuffers, FeatureSource, Standardisation, too_large};
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::linalg::{Backend, Svd};
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::slice_of_mut;
use crate::reduce::{GramIntake, LARGEST_SUMMAND};
use crate::threads::Pool;
use crate::{Real, progress};

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
        if weight <= 0.0 {
            return Err(Error::NoData { what: "a regression of rows in memory" });
        }
        if weight > LARGEST_SUMMAND {
            return Err(too_large());
        }
        check_memory("rows of features", n, width.saturating_mul(2 * size_of::<f64>()))?;
        let mut features = Array2::zeros((n, width));
        let source = FeatureSource::standardised(map.program(), inputs);
        let write = |buffers: &mut FeatureBuffers<T>, (run, mut out): (usize, ArrayViewMut2<'_, f64>)| {
            if progress::check().is_ok() {
                source.fill(points.run(run, ROWS), buffers);
                let rows = out.rows_mut().into_iter().enumerate();
                rows.for_each(|(i, mut out)| {
                    plain(map.program().blocks(), buffers.batch.row(i), slice_of_mut(&mut out))
                });
            }
        };
        Pool::default().for_each(features.axis_chunks_iter_mut(Axis(0), ROWS).enumerate(), write);
        progress::check()?;
        if let Some(row) = features.rows().into_iter().position(|row| !row.iter().all(|v| v.is_finite())) {
            return Err(Error::NotFinite { what: "the features of x", row, column: None });
        }
        let shares = &weights / weight;
        let mean = if centred { shares.dot(&features) } else { Array1::zeros(width) };
        for (mut row, weight) in features.rows_mut().into_iter().zip(&weights) {
            let root = weight.sqrt();
            row.iter_mut().zip(&mean).for_each(|(v, mean)| *v = (*v - mean) * root);
        }
        Ok(CentredRows { features, mean, direction: shares.sqrt(), weight })
    }

    /// The singular value decomposition of the rows, with the targets, n × t, in it.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if squares of features are out of range, [`Factorisation`](Error::Factorisation) if the
    /// iteration does not converge, [`Memory`](Error::Memory).
    pub fn decomposed(self, targets: &Array2<f64>, centred: bool) -> Result<RowAxes> {
        let CentredRows { mut features, mean, direction, weight } = self;
        let n = features.nrows();
        if !features.rows().into_iter().all(|row| row.dot(&row) <= LARGEST_SUMMAND) {
            return Err(too_large());
        }
        let reflection = centred.then(|| Reflection::new(direction));
        if let Some(reflection) = &reflection {
            features = reflection.without_mean(features);
        }
        progress::check()?;
        let Svd { left, values, right, .. } = if features.is_empty() {
            let (rows, width) = features.dim();
            Svd { left: Array2::zeros((rows, 0)), values: Array1::zeros(0), right: Array2::zeros((width, 0)) }
        } else {
            Backend::default().svd(&features)?
        };
        progress::check()?;
        // The singular values ascend, as eigenvalues do.
        let [mut left, axes] = [left, right].map(|vectors| {
            let ascending = vectors.slice_move(s![.., ..;-1]);
            ascending.as_standard_layout().into_owned()
        });
        if let Some(reflection) = &reflection {
            left = reflection.with_mean(&left);
        }
        let largest = values.first().map_or(0.0, |v: &f64| v * v);
        // If all features are equal, centred features are rounding errors.
        let scale = 4.0 * mean.iter().map(|v| v * v).sum::<f64>() * weight;
        let unit = n as f64 * f64::EPSILON;
        let least = unit * (unit * largest).max(f64::EPSILON * scale);
        let values: Array1<f64> =
            values.iter().rev().map(|v| if v * v > least { v * v } else { 0.0 }).collect();
        let rotated = left.t().dot(targets);
        Ok(RowAxes {
            space: RowSpace { values, vectors: left, rotated },
            axes,
            rounding: unit * largest.max(f64::EPSILON * scale),
            mean,
            weight,
        })
    }
}

/// The singular value decomposition of centred rows, √w (φ − φ̄) = U diag(s^½) Vᵀ.
pub(in crate::apply) struct RowAxes {
    /// s, U and the targets in U. s is 0 where s^½ is a rounding error.
    pub space: RowSpace,
    /// V, D × r, with orthonormal columns.
    pub axes: Array2<f64>,
    /// The rounding error of an eigenvalue of the products of rows or of features.
    pub rounding: f64,
    /// φ̄; 0 if features are not centred.
    pub mean: Array1<f64>,
    /// Σ w.
    pub weight: f64,
}

/// The reflection I − v vᵀ/(1 + o₁) with v = o + e₁, which takes a unit vector o with o₁ ≥ 0 to −e₁.
struct Reflection {
    v: Array1<f64>,
    factor: f64,
}

impl Reflection {
    fn new(mut direction: Array1<f64>) -> Self {
        direction[0] += 1.0;
        Reflection { factor: direction[0].recip(), v: direction }
    }

    /// The reflected matrix without its first row, which is rounding for columns that are orthogonal to o.
    fn without_mean(&self, mut matrix: Array2<f64>) -> Array2<f64> {
        let shift = self.v.dot(&matrix) * self.factor;
        for (mut row, v) in matrix.rows_mut().into_iter().zip(&self.v) {
            row.scaled_add(-v, &shift);
        }
        matrix.slice_move(s![1.., ..])
    }

    /// The reflected matrix with a row of zeros before its first: columns that are orthogonal to o.
    fn with_mean(&self, matrix: &Array2<f64>) -> Array2<f64> {
        let shift = self.v.slice(s![1..]).dot(matrix) * self.factor;
        let mut out = Array2::zeros((matrix.nrows() + 1, matrix.ncols()));
        out.slice_mut(s![1.., ..]).assign(matrix);
        for (mut row, v) in out.rows_mut().into_iter().zip(&self.v) {
            row.scaled_add(-v, &shift);
        }
        out
    }
}
