//! Means with standard errors.

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub value: f64,
    pub error: f64,
}

impl Mean {
    /// The mean of repetitions that are independent; the error of one is not known.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
        Mean { value, error: (variance / n).sqrt() }
    }

    /// The mean of a share of so many draws.
    pub fn share(value: f64, draws: u64) -> Self {
        Mean { value, error: (value * (1.0 - value) / draws as f64).sqrt() }
    }

    /// The mean of a − b in repetitions that both share.
    pub fn of_differences(a: &[f64], b: &[f64]) -> Self {
        Mean::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>())
    }

    /// The mean of ln(a/b) in repetitions that both share: below 0 where a is the less by geometric means.
    pub fn of_log_ratios(a: &[f64], b: &[f64]) -> Self {
        let ln = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
        Mean::of_differences(&ln(a), &ln(b))
    }

    /// A number without error.
    pub fn exact(value: f64) -> Self {
        Mean { value, error: 0.0 }
    }

    /// How many standard errors of the difference this is below `other`; not a number if neither has one.
    pub fn below(self, other: Mean) -> f64 {
        (other.value - self.value) / self.error.hypot(other.error)
    }

    pub fn times(self, factor: f64) -> Self {
        Mean { value: self.value * factor, error: self.error * factor.abs() }
    }

    /// This over an independent mean, to first order in both errors.
    pub fn over(self, other: Mean) -> Self {
        let value = self.value / other.value;
        Mean { value, error: value.abs() * (self.error / self.value).hypot(other.error / other.value) }
    }
}
