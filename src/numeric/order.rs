//! The order of numbers.

/// The indices of the values, from the largest value to the least; those of equal values ascend. NaN is at an end.
pub(crate) fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, k| values[*k].total_cmp(&values[*i]));
    order
}
