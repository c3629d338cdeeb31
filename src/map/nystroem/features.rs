//! [`Projected`]: the features A k(x) of points.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};

use super::values::Landmarks;
use crate::Real;
use crate::engine::{Facts, FeatureMap, Form, Side, Tile};
use crate::error::Result;
use crate::map::AnyKernel;
use crate::numeric::{self, Isa, Packed, add_scaled, max_abs, product, slice_of};

/// The number of points whose kernel values are computed together.
const RUN: usize = 96;

/// The features φ(x) = A k(x) with k(x) = (K(x, zⱼ))ⱼ, computed in `f64` for points of any scalar.
#[derive(Debug)]
pub(in crate::map) struct Projected {
    landmarks: Landmarks,
    /// A, D × M.
    factor: Array2<f64>,
    packed: Packed<f64>,
}

/// Features of some points.
#[derive(Default)]
pub(super) struct ScaledFeatures {
    /// e^(−t) K(x, zⱼ), n × M.
    kernels: Vec<f64>,
    /// The features divided by the largest of a point, n × D.
    pub values: Vec<f64>,
    /// t of each point.
    tops: Vec<f64>,
    /// The largest A e^(−t) k(x) in magnitude of each point.
    largest: Vec<f64>,
    /// ln of the divisors of the features; NaN for a point that is not finite.
    pub log_scales: Vec<f64>,
}

impl Projected {
    /// The features of a factor for the landmarks in rows, both in standard layout.
    pub(super) fn new(kernel: &AnyKernel, landmarks: Array2<f64>, factor: Array2<f64>) -> Result<Self> {
        let landmarks = Landmarks::new(kernel, landmarks)?;
        let (features, m) = factor.dim();
        let packed = Packed::of_rows(features, m, |f| &slice_of(&factor)[f * m..][..m]);
        Ok(Projected { landmarks, factor, packed })
    }

    pub fn dim(&self) -> usize {
        self.landmarks.dim()
    }

    pub fn feature_dim(&self) -> usize {
        self.factor.nrows()
    }

    /// The features of points, one after the other.
    pub(super) fn features(&self, x: &[f64]) -> ScaledFeatures {
        let (n, m, isa) = (x.len() / self.dim(), self.landmarks.len(), Isa::best());
        let mut all = ScaledFeatures {
            kernels: vec![0.0; n * m],
            values: vec![0.0; n * self.feature_dim()],
            tops: vec![0.0; n],
            largest: vec![0.0; n],
            log_scales: vec![0.0; n],
        };
        self.landmarks.values(x, &mut all.kernels, &mut all.tops);
        all.log_scales.copy_from_slice(&all.tops);
        product(isa, &all.kernels, m, self.packed.all(), &mut all.values, self.feature_dim());
        let rows = all.values.chunks_exact_mut(self.feature_dim()).zip(&mut all.largest);
        for ((values, largest), scale) in rows.zip(&mut all.log_scales) {
            *largest = max_abs(isa, values);
            if *largest > 0.0 {
                values.iter_mut().for_each(|v| *v /= *largest);
                *scale += largest.ln();
            }
        }
        all
    }

    /// ln of φ(x)·φ(y), with its sign.
    pub(super) fn log_product(&self, x: &[f64], y: &[f64]) -> crate::SignedLog {
        let [x, y] = [x, y].map(|x| self.features(x));
        let product = numeric::dot(Isa::best(), &x.values, &y.values);
        crate::SignedLog::from(product).scaled(x.log_scales[0] + y.log_scales[0])
    }

    /// Writes the gradient of Σ c_f φ_f(x)/e^s with the scale s of the features held fixed, and returns s.
    pub(super) fn pull_back_row(&self, x: &[f64], cotangents: &[f64], out: &mut [f64]) -> f64 {
        let ScaledFeatures { mut kernels, tops, largest, log_scales, .. } = self.features(x);
        let mut weights = vec![0.0; kernels.len()];
        for (row, cotangent) in self.factor.rows().into_iter().zip(cotangents) {
            add_scaled(Isa::best(), &mut weights, *cotangent, slice_of(&row));
        }
        // Features that are all 0 have the scale of the kernel values.
        let divisor = if largest[0] > 0.0 { largest[0] } else { 1.0 };
        match self.landmarks.is_gaussian() {
            true => {
                kernels.iter_mut().for_each(|kernel| *kernel /= divisor);
                self.landmarks.pull_back_gaussian(x, &weights, &kernels, out);
            }
            false => self.landmarks.pull_back(x, &weights, [tops[0], divisor.ln()], out),
        }
        if log_scales[0].is_nan() {
            out.fill(f64::NAN);
        }
        log_scales[0]
    }

    /// Whether the kernel has gradients, and the features by it.
    pub(super) fn has_gradients(&self) -> bool {
        self.landmarks.has_gradients()
    }
}

/// The coordinates of points, one after the other.
fn wide<T: Real>(x: ArrayView2<'_, T>) -> Vec<f64> {
    x.iter().map(|v| v.widen()).collect()
}

impl<T: Real> FeatureMap<T> for Projected {
    fn facts(&self) -> Facts {
        Facts::new(self.dim(), vec![self.feature_dim()]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (first, x) in (0..).step_by(RUN).zip(x.axis_chunks_iter(Axis(0), RUN)) {
            let ScaledFeatures { values, log_scales, .. } = self.features(&wide(x));
            let rows = values.chunks_exact(self.feature_dim()).zip(&log_scales);
            for (i, (values, scale)) in (first..).zip(rows) {
                let row = tile.row(i);
                row.values.iter_mut().zip(values).for_each(|(out, value)| *out = T::narrow(*value));
                row.log_scales[0] = *scale;
                if scale.is_nan() {
                    tile.poison(i);
                }
            }
        }
    }

    fn pull_back(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        if !self.has_gradients() {
            return false;
        }
        let mut gradient = vec![0.0; self.dim()];
        let rows = x.axis_chunks_iter(Axis(0), 1).zip(cotangents.axis_chunks_iter(Axis(0), 1));
        for ((x, cotangents), mut out) in rows.zip(out.rows_mut()) {
            self.pull_back_row(&wide(x), &wide(cotangents), &mut gradient);
            out.iter_mut().zip(&gradient).for_each(|(out, v)| *out = T::narrow(*v));
        }
        true
    }
}
