//! Gradients through the mean of the values, towards which outputs are drawn.

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use super::super::linear::Shrinking;
use crate::Real;

/// The gradients of the outputs before they are shrunk: (1 − α) g.
pub(super) fn before_shrinking<T: Real>(share: f64, upstream: &[ArrayView2<'_, T>]) -> Vec<Array2<T>> {
    let rest = T::narrow(1.0 - share);
    upstream.iter().map(|gradients| gradients.mapv(|g| g * rest)).collect()
}

/// Adds to the gradients of values those through the mean: Σᵢ αᵢ gᵢ/nᵢ over the queries i that see a key, with the number nᵢ of keys that
/// query i sees, and αᵢ = 1 for queries without an output of their own.
pub(super) fn through_mean<T: Real>(
    Shrinking { share, keys, causal, .. }: &Shrinking<'_, T>,
    upstream: &[ArrayView2<'_, T>],
    has_output: impl Fn(usize, usize) -> bool,
    mut of_values: ArrayViewMut2<'_, T>,
) {
    let queries = upstream.first().map_or(0, |gradients| gradients.nrows());
    let mut total = MeanGradient { share: *share, upstream, has_output, sums: vec![0.0; of_values.ncols()] };
    let mut count = (0..keys.len()).filter(|j| keys.sees(*j)).count();
    if !*causal {
        (0..queries).for_each(|i| total.add(i, count));
    }
    for j in (0..keys.len()).rev() {
        if *causal {
            total.add(j, count);
        }
        if keys.sees(j) {
            count -= 1;
            let pairs = of_values.row_mut(j).into_iter().zip(&total.sums);
            pairs.for_each(|(own, sum)| *own = T::narrow(own.widen() + sum));
        }
    }
}

/// The gradient of the mean over the queries so far.
struct MeanGradient<'a, 'g, T, F> {
    share: f64,
    upstream: &'a [ArrayView2<'g, T>],
    has_output: F,
    sums: Vec<f64>,
}

impl<T: Real, F: Fn(usize, usize) -> bool> MeanGradient<'_, '_, T, F> {
    /// Adds a query of each head, which sees so many keys.
    fn add(&mut self, query: usize, count: usize) {
        for (head, gradients) in self.upstream.iter().enumerate().filter(|_| count > 0) {
            let share = if (self.has_output)(head, query) { self.share } else { 1.0 } / count as f64;
            let pairs = self.sums.iter_mut().zip(gradients.row(query));
            pairs.for_each(|(sum, g)| *sum += share * g.widen());
        }
    }
}
