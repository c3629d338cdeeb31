//! Which keys of attention weigh most: one rule for shapes and for attention with exact keys.
//!
//! Some evenly spaced queries give their softmax weights ([`finite_softmax`]). The keys with the largest sums of these weights are the
//! heaviest ([`heaviest`]).

use ndarray::ArrayViewMut1;

use crate::numeric;

/// Replaces a query's logits by its weights; a logit that is not finite has none.
pub(in super::super) fn finite_softmax(mut logits: ArrayViewMut1<'_, f64>) {
    logits.mapv_inplace(|logit| if logit.is_finite() { logit } else { f64::NEG_INFINITY });
    if logits.iter().any(|logit| *logit > f64::NEG_INFINITY) {
        numeric::softmax(logits);
    } else {
        logits.fill(0.0);
    }
}

/// The indices of the `count` largest sums of weights, ascending: of equal ones the first, and none that is 0.
pub(in super::super) fn heaviest(totals: &[f64], count: usize) -> Vec<usize> {
    let mut keys = numeric::descending(totals);
    keys.retain(|j| totals[*j] > 0.0);
    keys.truncate(count);
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_taken_in_order_and_those_without_weight_never() {
        assert_eq!(heaviest(&[0.5, 2.0, 0.0, 0.5, 1.0], 3), [0, 1, 4]);
        assert_eq!(heaviest(&[0.0, 0.0, 1e-300], 3), [2]);
        assert!(heaviest(&[], 2).is_empty() && heaviest(&[1.0], 0).is_empty());
    }

    #[test]
    fn weights_are_of_finite_logits() {
        let mut logits = ndarray::arr1(&[1.0, f64::NAN, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
        finite_softmax(logits.view_mut());
        assert_eq!(logits.to_vec(), [0.5, 0.0, 0.5, 0.0, 0.0]);
        let mut none = ndarray::arr1(&[f64::NAN; 2]);
        finite_softmax(none.view_mut());
        assert_eq!(none.to_vec(), [0.0, 0.0]);
    }
}
