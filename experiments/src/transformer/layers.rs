//! What a transformer is made of beside attention, forward and backward: layer norm, the function of the hidden layer, and
//! cross-entropy. Rows are tokens.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, Zip};
use random_features::Real;

/// What layer norm keeps for the way back.
pub struct Normed<T> {
    /// Rows of mean 0 and variance 1.
    unit: Array2<T>,
    /// The inverse standard deviation of each row.
    inverse: Array1<T>,
    pub output: Array2<T>,
}

impl<T: Real> Normed<T> {
    pub fn new(x: &Array2<T>, [gain, shift]: [ArrayView2<'_, T>; 2]) -> Self {
        let width = T::narrow(x.ncols() as f64);
        let mut unit = x.clone();
        let inverse = unit.rows_mut().into_iter().map(|mut row| {
            let mean = row.sum() / width;
            row -= mean;
            let inverse = (row.dot(&row) / width + T::narrow(1e-5)).sqrt().recip();
            row *= inverse;
            inverse
        });
        let inverse = inverse.collect();
        let output = &unit * &gain.row(0) + shift.row(0);
        Normed { unit, inverse, output }
    }

    /// The gradient with respect to x; those of gain and shift are added to theirs.
    pub fn backward(
        &self,
        upstream: &Array2<T>,
        gain: ArrayView2<'_, T>,
        [mut of_gain, mut of_shift]: [ArrayViewMut2<'_, T>; 2],
    ) -> Array2<T> {
        of_gain.row_mut(0).scaled_add(T::one(), &(upstream * &self.unit).sum_axis(Axis(0)));
        of_shift.row_mut(0).scaled_add(T::one(), &upstream.sum_axis(Axis(0)));
        let mut gradient = upstream * &gain.row(0);
        let width = T::narrow(upstream.ncols() as f64);
        let rows = Zip::from(gradient.rows_mut()).and(self.unit.rows()).and(&self.inverse);
        rows.for_each(|mut row, unit, inverse| {
            let (mean, along) = (row.sum() / width, row.dot(&unit) / width);
            row.zip_mut_with(&unit, |g, u| *g = (*g - mean - along * *u) * *inverse);
        });
        gradient
    }
}

/// The slope of the logistic function that stands for Φ in the GELU.
const SLOPE: f64 = 1.702;

/// σ(1.702 u): the GELU u Φ(u) is u times this, to a hundredth.
pub fn gate<T: Real>(u: &Array2<T>) -> Array2<T> {
    let slope = T::narrow(-SLOPE);
    u.mapv(|u| (T::one() + (slope * u).exp()).recip())
}

/// Turns gradients with respect to u times its gate into those with respect to u.
pub fn gelu_backward<T: Real>(upstream: &mut Array2<T>, u: &Array2<T>, gate: &Array2<T>) {
    let slope = T::narrow(SLOPE);
    let own = |g: &mut T, u: &T, s: &T| *g *= *s * (T::one() + slope * *u * (T::one() - *s));
    Zip::from(upstream).and(u).and(gate).for_each(own);
}

/// What is foretold of a row of logits.
pub struct Foretold {
    /// −ln of the target's probability.
    pub loss: f64,
    /// Whether no other character is as probable.
    pub right: bool,
}

/// Turns a row of logits into probabilities.
pub fn softmax<T: Real>(mut row: ndarray::ArrayViewMut1<'_, T>) {
    let most = row.fold(T::neg_infinity(), |most, logit| most.max(*logit));
    row.mapv_inplace(|logit| (logit - most).exp());
    let sum = row.sum();
    row /= sum;
}

/// The loss of a row of probabilities, which become its gradient with respect to the logits.
pub fn cross_entropy<T: Real>(mut row: ndarray::ArrayViewMut1<'_, T>, target: usize) -> Foretold {
    let own = row[target];
    let right = row.iter().enumerate().all(|(c, p)| c == target || *p < own);
    row[target] -= T::one();
    Foretold { loss: -own.max(T::min_positive_value()).widen().ln(), right }
}
