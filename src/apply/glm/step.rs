//! [`Step`]: weights and intercepts, a change of them, or a gradient.

use ndarray::{Array1, Array2};

/// Weights, k × D, and intercepts, k numbers; or a change of them; or a gradient with respect to them.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub weights: Array2<f64>,
    pub intercepts: Array1<f64>,
}

impl Step {
    pub fn zeros(values: usize, width: usize) -> Self {
        Step { weights: Array2::zeros((values, width)), intercepts: Array1::zeros(values) }
    }

    /// The weights and the intercept of each decision value, one after the other. Each has `entries` entries: D, or D + 1 with
    /// the intercept last.
    pub fn flat(&self, entries: usize) -> Array1<f64> {
        let (values, width) = self.weights.dim();
        let entry = |place: usize| match (place / entries, place % entries) {
            (k, f) if f < width => self.weights[[k, f]],
            (k, _) => self.intercepts[k],
        };
        Array1::from_shape_fn(values * entries, entry)
    }

    /// The weights of `width` features, and the intercepts, from a [flat](Step::flat) vector.
    pub fn of_flat(flat: &Array1<f64>, entries: usize, width: usize) -> Self {
        let mut step = Step::zeros(flat.len() / entries, width);
        for (place, value) in flat.iter().enumerate() {
            match (place / entries, place % entries) {
                (k, f) if f < width => step.weights[[k, f]] = *value,
                (k, _) => step.intercepts[k] = *value,
            }
        }
        step
    }

    /// The sum of products of all entries.
    pub fn dot(&self, other: &Self) -> f64 {
        let weights: f64 = self.weights.iter().zip(&other.weights).map(|(a, b)| a * b).sum();
        weights + self.intercepts.dot(&other.intercepts)
    }

    /// Adds a multiple of another one.
    pub fn add(&mut self, factor: f64, other: &Self) {
        self.weights.scaled_add(factor, &other.weights);
        self.intercepts.scaled_add(factor, &other.intercepts);
    }

    /// The step times a factor.
    pub fn times(mut self, factor: f64) -> Self {
        self.weights *= factor;
        self.intercepts *= factor;
        self
    }

    /// Subtracts the mean of the intercepts of several classes, which changes no probability.
    pub fn centre(&mut self) {
        if self.intercepts.len() > 1 {
            let mean = self.intercepts.sum() / self.intercepts.len() as f64;
            self.intercepts -= mean;
        }
    }
}
