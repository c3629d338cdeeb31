//! [`CentredRows`]: the centred features of rows in memory, and the eigenvectors of their products.

use ndarray::{Array1, Array2, ArrayRef1, ArrayViewMut2, Axis};

use super::rotation::{ROWS, plain};
use super::row_space::RowSpace;
use super::{FeatureBuffers, FeatureSource, Standardisation, too_large};
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::linalg::{product_of_rows, transposed_product};
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::slice_of_mut;
use crate::reduce::GramIntake;
use crate::threads::Pool;
use crate::{Real, progress};

/// The largest product of two rows, and the largest sum of weights.
const LARGEST: f64 = 1e288;

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
        if weight > LARGEST {
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

    /// The eigenvectors of the products of rows, the targets in these eigenvectors, and the rounding error of eigenvalues.
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
        // If all features are equal, centred features are rounding errors.
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
