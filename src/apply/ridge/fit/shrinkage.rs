//! [`Shrinkage`]: what eigenvalues, and targets in the eigenvectors, say about every λ.

use ndarray::{Array1, Array2, ArrayView1};

use crate::error::{Error, Result};

/// The eigenvalues of a Gram matrix, of features or of points, and the targets in its eigenvectors: what each λ leaves of
/// them.
#[derive(Clone, Debug)]
pub(super) struct Shrinkage {
    /// s, ascending and not negative.
    pub values: Array1<f64>,
    /// c² for each eigenvector and each target: λ explains c² / (s + λ) of Σ w y².
    pub explained: Array2<f64>,
    /// Σ w y² for each target, centred if there is an intercept.
    pub squares: Vec<f64>,
    /// n = Σ w.
    pub weight: f64,
    pub intercept: bool,
    /// The rounding error of eigenvalues.
    pub resolution: f64,
}

/// λ of a decade of the default grid.
const PER_DECADE: f64 = 2.0;
/// Decades of the default grid.
const DECADES: f64 = 15.0;

impl Shrinkage {
    pub fn degrees_of_freedom(&self, lambda: f64) -> f64 {
        self.values.iter().map(|s| s / (s + lambda)).sum::<f64>() + f64::from(u8::from(self.intercept))
    }

    /// Generalised cross-validation, summed over the targets.
    pub fn generalised(&self, lambda: f64) -> f64 {
        let residual = |j: usize| self.left(j, |s| (s + 2.0 * lambda) / (s + lambda).powi(2));
        let residuals: f64 = (0..self.squares.len()).map(residual).sum();
        let left = (1.0 - self.degrees_of_freedom(lambda) / self.weight).max(0.0);
        // 0/0: where as many degrees of freedom as rows fit the targets exactly, nothing is known about other points.
        let error = residuals / self.weight / (left * left);
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// ν, the number of rows less the intercept: what noise is averaged over.
    pub fn freedom(&self) -> f64 {
        self.weight - f64::from(u8::from(self.intercept))
    }

    /// The variance of the noise for which a target is most likely under λ.
    pub fn noise(&self, lambda: f64, target: usize) -> f64 {
        self.left(target, |s| (s + lambda).recip()) / self.freedom()
    }

    /// The log evidence, summed over the targets, each with the noise that is most likely.
    pub fn log_evidence(&self, lambda: f64) -> Result<f64> {
        if lambda <= 0.0 {
            return Err(Error::Parameter { name: "λ of an evidence", value: lambda, domain: "positive" });
        }
        if self.freedom() <= 0.0 {
            let domain = "above 1 where there is an intercept, else positive";
            return Err(Error::Parameter { name: "the sum of the weights", value: self.weight, domain });
        }
        let volume: f64 = self.values.iter().map(|s| (s / lambda).ln_1p()).sum();
        let of_target = |j: usize| {
            let noise = self.noise(lambda, j);
            -0.5 * (self.freedom() * ((std::f64::consts::TAU * noise).ln() + 1.0) + volume)
        };
        Ok((0..self.squares.len()).map(of_target).sum())
    }

    /// λ to choose from, falling; see [`RidgeSpectrum::lambdas`](super::RidgeSpectrum::lambdas).
    pub fn lambdas(&self) -> Vec<f64> {
        let largest = self.values.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return vec![1.0];
        }
        let steps = 0..=(PER_DECADE * DECADES) as u32;
        let below = steps.map(|k| largest * 10f64.powf(-f64::from(k) / PER_DECADE));
        let lambdas: Vec<f64> = below.take_while(|lambda| *lambda > self.resolution).collect();
        if lambdas.is_empty() { vec![largest.max(self.resolution)] } else { lambdas }
    }

    /// What is left of Σ w y² without the explained parts times a factor of each eigenvalue.
    fn left(&self, target: usize, factor: impl Fn(f64) -> f64) -> f64 {
        let explained: ArrayView1<'_, f64> = self.explained.column(target);
        let parts = explained.iter().zip(&self.values).map(|(c, s)| c * factor(*s));
        (self.squares[target] - parts.sum::<f64>()).max(0.0)
    }
}
