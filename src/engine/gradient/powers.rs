//! Gradients of products of powers of coordinates.

use ndarray::{Array2, ArrayView1, Axis};

use super::{PulledRows, features};
use crate::Real;
use crate::engine::batch::Batch;
use crate::engine::leaf::Leaf;
use crate::engine::logarithms::Logarithms;
use crate::engine::{Projection, Scratch, Side};

pub(super) fn gradient<T: Real>(
    leaf: &Leaf<T>,
    logarithms: &Logarithms,
    projection: &Projection<T>,
    rows: PulledRows<'_, T>,
    batch: &Batch<T>,
    scratch: &mut Scratch<T>,
) -> Array2<f64> {
    let PulledRows { side, x, cotangents } = rows;
    let weigh = |(i, f)| cotangents[[i, f]] * batch.row(i).values[f];
    let weights = Array2::from_shape_fn(cotangents.dim(), weigh);
    let sums = projection.times_frequencies(weights.view());
    let mut out = Array2::zeros(x.dim());
    for (i, mut out) in out.rows_mut().into_iter().enumerate() {
        let (x, sum) = (x.row(i), weights.row(i).iter().map(|v| v.widen()).sum::<f64>());
        for l in 0..x.len() {
            let scaled = logarithms.scaled(l, x[l]);
            let u = logarithms.moved(l, scaled);
            let moved = if logarithms.clamps(l, scaled) {
                0.0
            } else if u == 0.0 {
                let at_zero = AtZero { leaf, logarithms, projection, side };
                at_zero.power(x, l, cotangents.row(i), batch.row(i).log_scales[0], scratch)
            } else {
                sums[[i, l]].widen() / u - u * sum
            };
            let gradient = 2.0 * logarithms.norm_coefficient * scaled * sum + moved;
            out[l] = gradient / logarithms.scales[l];
        }
    }
    out
}

/// Arguments and buffers of the derivative at a coordinate that is 0.
struct AtZero<'a, T: Real> {
    leaf: &'a Leaf<T>,
    logarithms: &'a Logarithms,
    projection: &'a Projection<T>,
    side: Side,
}

impl<T: Real> AtZero<'_, T> {
    /// The derivative where uₗ = 0: only features with the first power of uₗ contribute, each by the product of its other factors.
    fn power(
        &self,
        x: ArrayView1<'_, T>,
        l: usize,
        c: ArrayView1<'_, T>,
        scale: f64,
        scratch: &mut Scratch<T>,
    ) -> f64 {
        let Logarithms { divisors, scales, norm_coefficient, .. } = self.logarithms;
        let divisor = divisors[l];
        let mut point = x.to_owned().insert_axis(Axis(0));
        // The point with uₗ = rₗ, where the first power is 1.
        point[[0, l]] = T::narrow(divisor * scales[l]);
        let batch = features(self.leaf, self.side, point.view(), scratch);
        let row = batch.row(0);
        let factor = (norm_coefficient - 0.5) * divisor * divisor;
        let counts = self.projection.frequencies().rows();
        let first = (0..c.len()).filter(|j| counts[[*j, l]] == 1.0);
        let sum: f64 = first.map(|j| c[j].widen() * row.values[j].widen()).sum();
        sum * (row.log_scales[0] - scale - factor).exp() / divisor
    }
}
