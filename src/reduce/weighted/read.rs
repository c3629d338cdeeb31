//! Sums over a run of points that is read from features in any form.

use std::ops::Range;

use ndarray::ArrayView2;

use super::WeightedSums;
use super::relative::relative_to_columns;
use crate::Real;
use crate::engine::{Batch, Form};
use crate::numeric::{self, Isa, Packed, power_of_two_below};

/// Buffers that a thread reuses from run to run.
#[derive(Default)]
pub(crate) struct RunBuffers<T> {
    /// (targets + 1) × n: the targets of a run, and ones.
    targets: Vec<T>,
    tops: Vec<T>,
    products: Vec<T>,
    packed: Packed<T>,
}

impl<T: Real> WeightedSums<T> {
    /// Replaces these sums, in rows, by the sums over a run of points, from their features, which are overwritten, and their
    /// targets, n × t.
    ///
    /// Features as logarithms have a reference each, the largest of the run, so that no sum underflows whatever the norms. Features
    /// as values share a reference in each block.
    pub fn replace(
        &mut self,
        batch: &mut Batch<T>,
        form: Form,
        blocks: &[Range<usize>],
        targets: ArrayView2<'_, T>,
        buffers: &mut RunBuffers<T>,
    ) {
        let (n, width) = (batch.rows(), self.features());
        relative_to_columns(batch, form, blocks, &mut self.reference, &mut buffers.tops);
        self.one_reference = self.reference.iter().all(|r| *r == self.reference[0]);
        self.seen = n > 0;
        // Targets are divided by powers of two, so that no sum overflows T.
        let units: Vec<f64> = targets.columns().into_iter().map(|column| unit(column.iter())).collect();
        let stride = numeric::spread::<T>(n);
        buffers.targets.clear();
        for (column, unit) in targets.columns().into_iter().zip(&units) {
            buffers.targets.extend(column.iter().map(|y| T::narrow(y.widen() / unit)));
            buffers.targets.resize(buffers.targets.len() + stride - n, T::zero());
        }
        buffers.targets.resize((targets.ncols() + 1) * stride, T::one());
        buffers.products.resize((targets.ncols() + 1) * width, T::zero());
        buffers.packed.refill_columns(batch.values(), n, width);
        numeric::product(
            Isa::best(),
            &buffers.targets,
            stride,
            buffers.packed.all(),
            &mut buffers.products,
            width,
        );
        let sums = self.sums.chunks_exact_mut(width.max(1)).chain([&mut self.weights[..]]);
        let products = buffers.products.chunks_exact(width.max(1));
        for ((sums, products), unit) in sums.zip(products).zip(units.iter().chain([&1.0])) {
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum = product.widen() * unit);
        }
    }
}

/// A power of two near the largest magnitude of numbers.
pub(super) fn unit<'a, T: Real>(numbers: impl Iterator<Item = &'a T>) -> f64 {
    power_of_two_below(numbers.fold(0.0, |largest: f64, y| largest.max(y.widen().abs())))
}
