//! [`Rotation`]: the centred features of points, times a matrix.

use std::ops::Range;

use ndarray::Array1;
#[cfg(feature = "serde")]
use ndarray::Array2;

use super::{FeatureBuffers, FeatureSource, Standardisation};
use crate::Real;
use crate::engine::{FeatureRow, PointsView};
use crate::map::Map;
use crate::numeric::{self, Isa, Packed};

/// The number of rows that are multiplied at a time.
pub(in crate::apply) const ROWS: usize = 48;

/// u = M (φ(x) − φ̄) in `f64`, for a matrix M of D × D.
#[derive(Debug)]
pub(in crate::apply) struct Rotation<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    mean: Array1<f64>,
    matrix: Packed<f64>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Default)]
pub(in crate::apply) struct RotationBuffers<T> {
    features: FeatureBuffers<T>,
    centred: Vec<f64>,
    rotated: Vec<f64>,
}

impl<T: Real> Rotation<T> {
    /// The rotation by the matrix whose element (k, f) is `element(k, f)`.
    pub fn new(
        map: &Map<T>,
        inputs: Option<&Standardisation>,
        mean: &Array1<f64>,
        element: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let d = map.feature_dim();
        let matrix = Packed::new(d, d, element);
        Rotation { map: map.clone(), inputs: inputs.cloned(), mean: mean.clone(), matrix }
    }

    /// M, D × D.
    #[cfg(feature = "serde")]
    pub fn matrix(&self) -> Array2<f64> {
        let d = self.map.feature_dim();
        let rows = (0..d).flat_map(|k| self.matrix.row(k));
        numeric::matrix_of(d, d, rows.collect())
    }

    /// φ̄.
    #[cfg(feature = "serde")]
    pub fn mean(&self) -> &Array1<f64> {
        &self.mean
    }

    /// The vector u for each of some points.
    pub fn of<'a>(
        &self,
        x: PointsView<'_, T>,
        buffers: &'a mut RotationBuffers<T>,
    ) -> impl ExactSizeIterator<Item = &'a [f64]> {
        let (program, d) = (self.map.program(), self.map.feature_dim());
        FeatureSource::standardised(program, self.inputs.as_ref()).fill(x, &mut buffers.features);
        let stride = numeric::spread::<f64>(d);
        buffers.centred.resize(x.nrows() * stride, 0.0);
        buffers.rotated.resize(x.nrows() * d, 0.0);
        for (i, out) in buffers.centred.chunks_exact_mut(stride).enumerate() {
            let out = &mut out[..d];
            plain(program.blocks(), buffers.features.batch.row(i), out);
            out.iter_mut().zip(&self.mean).for_each(|(v, mean)| *v -= mean);
        }
        numeric::product(Isa::best(), &buffers.centred, stride, self.matrix.all(), &mut buffers.rotated, d);
        buffers.rotated.chunks_exact(d)
    }
}

/// Writes features as plain values, e^(log scale) · value.
pub(in crate::apply) fn plain<T: Real>(blocks: &[Range<usize>], row: FeatureRow<'_, T>, out: &mut [f64]) {
    for (columns, scale) in blocks.iter().zip(row.log_scales) {
        let out = &mut out[columns.clone()];
        if *scale == f64::NEG_INFINITY {
            out.fill(0.0);
            continue;
        }
        let factor = scale.exp();
        out.iter_mut().zip(&row.values[columns.clone()]).for_each(|(out, v)| *out = v.widen() * factor);
    }
}
