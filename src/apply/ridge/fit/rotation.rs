//! [`FeatureRotation`]: the centred features of points, times a matrix.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, aview1};

use super::{FeatureBuffers, FeatureSource, Standardisation};
use crate::Real;
use crate::engine::{FeatureRow, PointsView};
use crate::map::Map;
use crate::numeric::{self, Isa, Packed, matrix_view};

/// The number of rows that are multiplied at a time.
pub(in crate::apply) const ROWS: usize = 48;

/// Computes u = M z in `f64` for the centred features z = φ(x) − φ̄ and a matrix M, r × D.
#[derive(Debug)]
pub(in crate::apply) struct FeatureRotation<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    mean: Array1<f64>,
    matrix: Packed<f64>,
    /// A copy of M if its r < D rows are orthonormal, for the part of z outside of them.
    axes: Option<Array2<f64>>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Default)]
pub(in crate::apply) struct RotationBuffers<T> {
    features: FeatureBuffers<T>,
    centred: Vec<f64>,
    rotated: Vec<f64>,
}

impl<T: Real> FeatureRotation<T> {
    /// The rotation by the matrix with `rows` rows whose element (k, f) is `element(k, f)`.
    pub fn new(
        map: &Map<T>,
        inputs: Option<&Standardisation>,
        mean: &Array1<f64>,
        rows: usize,
        element: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let matrix = Packed::new(rows, map.feature_dim(), element);
        FeatureRotation { map: map.clone(), inputs: inputs.cloned(), mean: mean.clone(), matrix, axes: None }
    }

    /// Keeps what [`rests`](FeatureRotation::rests) needs, if M has fewer rows than columns.
    pub fn with_axes(self) -> Self {
        let axes = (self.rows() < self.map.feature_dim()).then(|| self.matrix());
        FeatureRotation { axes, ..self }
    }

    /// r, the number of rows of M.
    fn rows(&self) -> usize {
        self.matrix.all().rows()
    }

    /// M, r × D.
    pub fn matrix(&self) -> Array2<f64> {
        let (rows, d) = (self.rows(), self.map.feature_dim());
        numeric::matrix_of(rows, d, (0..rows).flat_map(|k| self.matrix.row(k)).collect())
    }

    /// φ̄.
    #[cfg(feature = "serde")]
    pub fn mean(&self) -> &Array1<f64> {
        &self.mean
    }

    /// M φ̄, and ‖φ̄ − MᵀMφ̄‖², the part of φ̄ outside of the axes.
    pub fn parts_of_mean(&self) -> (Vec<f64>, f64) {
        let entry = |k: usize| self.matrix.row(k).zip(&self.mean).map(|(m, mean)| m * mean).sum();
        let within: Vec<f64> = (0..self.rows()).map(entry).collect();
        let Some(axes) = &self.axes else { return (within, 0.0) };
        let outside = &self.mean - &axes.t().dot(&aview1(&within));
        (within, outside.dot(&outside))
    }

    /// The vector u for each of some points.
    pub fn of<'a>(
        &self,
        x: PointsView<'_, T>,
        buffers: &'a mut RotationBuffers<T>,
    ) -> impl ExactSizeIterator<Item = &'a [f64]> {
        let (count, rows) = (x.nrows(), self.rows());
        let all = self.all_of(x, buffers);
        (0..count).map(move |i| &all[i * rows..(i + 1) * rows])
    }

    /// The vectors u of some points, one after another.
    pub fn all_of<'a>(&self, x: PointsView<'_, T>, buffers: &'a mut RotationBuffers<T>) -> &'a [f64] {
        let (program, d, rows) = (self.map.program(), self.map.feature_dim(), self.rows());
        FeatureSource::standardised(program, self.inputs.as_ref()).fill(x, &mut buffers.features);
        let stride = numeric::spread::<f64>(d);
        buffers.centred.resize(x.nrows() * stride, 0.0);
        buffers.rotated.resize(x.nrows() * rows, 0.0);
        for (i, out) in buffers.centred.chunks_exact_mut(stride).enumerate() {
            let out = &mut out[..d];
            plain(program.blocks(), buffers.features.batch.row(i), out);
            out.iter_mut().zip(&self.mean).for_each(|(v, mean)| *v -= mean);
        }
        numeric::product(
            Isa::best(),
            &buffers.centred,
            stride,
            self.matrix.all(),
            &mut buffers.rotated,
            rows,
        );
        &buffers.rotated
    }

    /// ‖z − Mᵀu‖² for each point that [`of`](FeatureRotation::of) has just put into the buffers: the part of z outside of the axes. It
    /// is computed from the difference of the vectors, since a difference of their norms would cancel. It is 0 where M is square.
    pub fn rests(&self, rows: usize, buffers: &mut RotationBuffers<T>) -> Vec<f64> {
        let Some(axes) = &self.axes else { return vec![0.0; rows] };
        let (d, stride) = (axes.ncols(), buffers.centred.len() / rows.max(1));
        let rotated = matrix_view(rows, axes.nrows(), &buffers.rotated[..rows * axes.nrows()]);
        let within = rotated.dot(axes);
        let rest = |(z, within): (&[f64], ArrayView1<'_, f64>)| {
            z[..d].iter().zip(within).map(|(z, within)| (z - within).powi(2)).sum()
        };
        buffers.centred.chunks_exact(stride).zip(within.rows()).map(rest).collect()
    }
}

/// Writes plain features, e^(log scale) · mantissa.
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
