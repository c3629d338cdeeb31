//! [`Shrinkage`]: criteria for every λ from eigenvalues, and from the targets in the eigenvectors.

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1};

use super::error_table::ErrorTable;
use crate::error::{Error, Result, singular};
use crate::numeric::power_of_two_below;

/// The eigenvalues of a Gram matrix, of features or of points, and the targets in its eigenvectors. All results are sums of
/// positive terms, so that the small residuals for a small λ keep their digits.
#[derive(Clone, Debug)]
pub(super) struct Shrinkage {
    /// s, ascending. An indefinite estimate of a kernel has some below 0, and its λ are above −2 s.
    pub values: Array1<f64>,
    /// p² for each eigenvector and each target: the part of Σ w y² in that direction. The residuals for λ are (λ/(s + λ))² p².
    pub shares: Array2<f64>,
    /// The part of Σ w y² that is orthogonal to all eigenvectors, for each target.
    pub rest: Vec<f64>,
    /// N = Σ a p, with the weight a of a row, which says how often it counts, and its precision p.
    pub weight: f64,
    /// n = Σ a, which is N unless precisions are given.
    pub count: f64,
    /// L = Σ a ln p.
    pub log_precisions: f64,
    pub intercept: bool,
    /// The largest number of eigenvalues that so many rows can have above 0; all others are 0 up to rounding.
    pub rank: usize,
    /// The rounding error of eigenvalues.
    pub resolution: f64,
    /// The least λ for which criteria are not dominated by rounding errors; 0 where shares are not divided by eigenvalues.
    pub least: f64,
    /// The error for criteria, if features, weights or a target are out of range.
    pub out_of_range: Option<Error>,
}

/// The number of λ in a decade of the default grid.
const PER_DECADE: f64 = 2.0;
/// The number of decades of the default grid.
const DECADES: f64 = 15.0;
/// The largest share of an error that the bound of its rounding error may be. Bounds are about ten times too large.
const SHARE: f64 = 0.5;
/// The maximum number of steps of Newton's method. It needs a few, and at most one for each power of two between eigenvalues.
const NEWTON_STEPS: usize = 100;

impl Shrinkage {
    /// A λ so large that predictions are the mean of the targets: 10³⁰ times the largest eigenvalue. Targets in any unit are
    /// divided by it without underflow.
    pub fn lambda_of_mean(&self) -> f64 {
        let largest = self.values.iter().fold(0.0, |a: f64, s| a.max(*s));
        if largest > 0.0 { (1e30 * largest).min(1e300) } else { 1.0 }
    }

    /// Shrinkage with p² = c²/s, from c for each eigenvector of features and each target, and from Σ w y² for each target.
    pub fn of_features(
        values: Array1<f64>,
        rotated: &Array2<f64>,
        sums: &[f64],
        (weight, [count, log_precisions], intercept, rank): (f64, [f64; 2], bool, usize),
        [resolution, least]: [f64; 2],
    ) -> Self {
        // Numbers are in units of a power of two, so that no square overflows or underflows.
        let largest = |column: ArrayView1<'_, f64>| column.iter().fold(0.0, |a: f64, c| a.max(c.abs()));
        let units: Vec<f64> =
            rotated.columns().into_iter().map(|column| power_of_two_below(largest(column))).collect();
        let mut shares = Array2::from_shape_fn(rotated.dim(), |(k, j)| {
            let (c, s, unit) = (rotated[[k, j]] / units[j], values[k], units[j]);
            if s > resolution { c * c / s * unit * unit } else { 0.0 }
        });
        for (shares, sum) in shares.columns_mut().into_iter().zip(sums) {
            lower(shares, &values, *sum);
        }
        let rest =
            sums.iter().zip(shares.columns()).map(|(sum, shares)| (sum - shares.sum()).max(0.0)).collect();
        Shrinkage {
            values,
            shares,
            rest,
            weight,
            count,
            log_precisions,
            intercept,
            rank,
            resolution,
            least,
            out_of_range: None,
        }
    }

    pub fn degrees_of_freedom(&self, lambda: f64) -> f64 {
        self.values.iter().map(|s| s / (s + lambda)).sum::<f64>() + f64::from(u8::from(self.intercept))
    }

    /// n less the [degrees of freedom](Shrinkage::degrees_of_freedom), or 0 if these are more than n; `None` where rounding may
    /// change the difference by more than a quarter.
    fn left_freedom(&self, lambda: f64) -> Option<f64> {
        let shares: f64 = self.made_by_rows().map(|s| lambda / (s + lambda)).sum();
        let left = (self.freedom() - self.rank as f64 + shares).max(0.0);
        // An eigenvalue changes by at most the spectral norm of the error, and λ/(s + λ) by that change times λ/(s + λ)².
        let slope: f64 =
            self.made_by_rows().map(|s| self.least / (s + lambda) * (lambda / (s + lambda))).sum();
        let lost = slope + f64::EPSILON * self.rank as f64;
        let known = self.least == 0.0 || (lambda >= self.least && 2.0 * lost <= SHARE * left);
        known.then_some(left)
    }

    /// The `rank` largest eigenvalues; the others are 0 up to rounding.
    fn made_by_rows(&self) -> impl Iterator<Item = f64> {
        self.values.iter().rev().take(self.rank).copied()
    }

    /// Whether a target varies, so that its error depends on λ.
    fn varies(&self, target: usize) -> bool {
        self.rest[target] > 0.0 || self.shares.column(target).iter().any(|share| *share > 0.0)
    }

    /// The variance of a target, (Σ w y²)/n.
    pub fn variance(&self, target: usize) -> f64 {
        self.left(target, |_| 1.0) / self.weight
    }

    /// Refuses criteria where features, weights or squares of a target are out of range.
    pub fn check_range(&self) -> Result<()> {
        self.out_of_range.clone().map_or(Ok(()), Err)
    }

    /// The targets that vary, so that their errors depend on λ.
    pub fn varying(&self) -> Vec<usize> {
        (0..self.rest.len()).filter(|target| self.varies(*target)).collect()
    }

    /// Whether no target varies, so that no error depends on λ.
    pub fn is_constant(&self) -> bool {
        self.varying().is_empty()
    }

    /// Generalised cross-validation for each λ; infinite where rounding errors may dominate it.
    pub fn generalised_errors(&self, lambdas: &[f64]) -> Result<ErrorTable> {
        if self.freedom() < 0.0 {
            return Err(self.too_light());
        }
        let (targets, mut sums) = (self.varying(), Vec::new());
        let mut each = Array2::zeros((lambdas.len(), self.rest.len()));
        for (lambda, mut each) in lambdas.iter().zip(each.rows_mut()) {
            let freedom = self.left_freedom(*lambda);
            let [mut residuals, mut lost] = [0.0; 2];
            for target in &targets {
                let own = [self.residuals(*target, *lambda), self.lost_of(*target, *lambda)];
                each[*target] = self.of_residuals(own, freedom);
                residuals += own[0];
                lost += own[1];
            }
            sums.push(self.of_residuals([residuals, lost], freedom));
        }
        Ok(ErrorTable { sums, each })
    }

    /// Minus the log evidence for each λ, with the given noise of each target or the most likely noise; infinite where rounding
    /// errors may dominate it.
    pub fn evidence_errors(&self, lambdas: &[f64], noise: Option<&[f64]>) -> Result<ErrorTable> {
        let (targets, mut sums) = (self.varying(), Vec::new());
        let mut each = Array2::zeros((lambdas.len(), self.rest.len()));
        for (lambda, mut each) in lambdas.iter().zip(each.rows_mut()) {
            let evidence = match self.log_evidences(*lambda, noise, &targets) {
                Err(Error::Singular { .. }) => vec![f64::NEG_INFINITY; targets.len()],
                evidence => evidence?,
            };
            targets.iter().zip(&evidence).for_each(|(target, evidence)| each[*target] = -evidence);
            sums.push(-evidence.iter().sum::<f64>());
        }
        Ok(ErrorTable { sums, each })
    }

    /// The error for a Σ w that is less than the degree of freedom of the intercept.
    fn too_light(&self) -> Error {
        let domain = "above 1 where there is an intercept, else positive";
        Error::Parameter { name: "the sum of the weights", value: self.count, domain }
    }

    /// Generalised cross-validation of one target; infinite where rounding errors may dominate it.
    pub fn generalised_of(&self, target: usize, lambda: f64) -> f64 {
        let residuals = [self.residuals(target, lambda), self.lost_of(target, lambda)];
        self.of_residuals(residuals, self.left_freedom(lambda))
    }

    /// The sum of the squared residuals of a target.
    fn residuals(&self, target: usize, lambda: f64) -> f64 {
        self.left(target, |s| (lambda / (s + lambda)).powi(2))
    }

    /// Generalised cross-validation from squared residuals R and the bound `lost` of their rounding error. It is infinite where
    /// rounding may change it by more than half: R by the share `lost`/R, and the square of the remaining degrees of freedom by
    /// twice their own share.
    fn of_residuals(&self, [residuals, lost]: [f64; 2], freedom: Option<f64>) -> f64 {
        match freedom {
            Some(left) if self.least == 0.0 || lost <= SHARE * residuals => {
                let left = left / self.count;
                or_infinite(residuals / self.weight / (left * left))
            }
            _ => f64::INFINITY,
        }
    }

    /// The bound of the rounding error of a target's squared residuals. Eigenvalues add about 3 ‖β‖² times their error, and Σ w
    /// y² and the shares about √D ε Σ w y².
    fn lost_of(&self, target: usize, lambda: f64) -> f64 {
        if self.least == 0.0 {
            return 0.0;
        }
        let of_values =
            4.0 * self.resolution * (self.left(target, |s| s / (s + lambda).powi(2)) - self.rest[target]);
        let products = f64::EPSILON * (self.values.len() as f64).sqrt();
        of_values + products * self.left(target, |_| 1.0)
    }

    /// ν, the number of rows over which the noise is averaged: n, less 1 if there is an intercept.
    pub fn freedom(&self) -> f64 {
        self.count - f64::from(u8::from(self.intercept))
    }

    /// The most likely variance of a target's noise for this λ.
    pub fn noise(&self, lambda: f64, target: usize) -> f64 {
        self.left(target, |s| lambda / (s + lambda)) / self.freedom()
    }

    /// The log evidence, summed over the targets that vary, each with the given noise or the most likely one.
    pub fn log_evidence(&self, lambda: f64, noise: Option<&[f64]>) -> Result<f64> {
        Ok(self.log_evidences(lambda, noise, &self.varying())?.iter().sum())
    }

    /// The log evidence of each of some targets that vary.
    fn log_evidences(&self, lambda: f64, noise: Option<&[f64]>, targets: &[usize]) -> Result<Vec<f64>> {
        self.check_range()?;
        let wrong = |variance: &f64| !(variance.is_finite() && *variance > 0.0);
        if let Some((row, value)) = noise.and_then(|noise| noise.iter().enumerate().find(|(_, v)| wrong(v))) {
            let (what, domain) = ("the variances of noise", "positive and finite");
            return Err(Error::Entry { what, row, value: *value, domain });
        }
        if lambda <= 0.0 {
            return Err(Error::Parameter { name: "λ of an evidence", value: lambda, domain: "positive" });
        }
        if self.freedom() <= 0.0 {
            return Err(self.too_light());
        }
        if lambda < self.least {
            return Err(singular(lambda, self.least));
        }
        let (volume, scale) = (self.volume(lambda), self.log_precisions - self.log_mean_precision());
        let of_target = |j: usize| {
            let likely = self.noise(lambda, j);
            let (noise, ratio) = noise.map_or((likely, 1.0), |noise| (noise[j], likely / noise[j]));
            -0.5 * (self.freedom() * ((std::f64::consts::TAU * noise).ln() + ratio) + volume - scale)
        };
        Ok(targets.iter().map(|target| of_target(*target)).collect())
    }

    /// ln(N/n), which the flat prior of an intercept adds; 0 without one.
    fn log_mean_precision(&self) -> f64 {
        if self.intercept { (self.weight / self.count).ln() } else { 0.0 }
    }

    /// The log evidence of a target less the log evidence of a constant with noise, in nats. Weights are scaled so that Σ w is
    /// `rows`. Minus infinity where rounding errors may dominate it.
    pub fn nats(&self, target: usize, lambda: f64, rows: f64) -> f64 {
        if lambda <= 0.0 || lambda < self.least {
            return f64::NEG_INFINITY;
        }
        let freedom = rows - f64::from(u8::from(self.intercept));
        let left = self.left(target, |s| lambda / (s + lambda)) / self.left(target, |_| 1.0);
        -0.5 * (freedom * left.ln() + self.volume(lambda))
    }

    /// Σ ln(1 + s/λ) over the `rank` largest eigenvalues.
    fn volume(&self, lambda: f64) -> f64 {
        self.made_by_rows().map(|s| (s / lambda).ln_1p()).sum()
    }

    /// The default grid of λ, falling: [`RidgeSpectrum::lambdas`](super::RidgeSpectrum::lambdas).
    pub fn lambdas(&self) -> Vec<f64> {
        let largest = self.values.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return vec![1.0];
        }
        let steps = 0..=(PER_DECADE * DECADES) as u32;
        let below = steps.map(|k| largest * 10f64.powf(-f64::from(k) / PER_DECADE));
        let lambdas: Vec<f64> = below.take_while(|lambda| *lambda > self.bound()).collect();
        if lambdas.is_empty() { vec![2.0 * self.bound()] } else { lambdas }
    }

    /// The bound above which λ are tried. No model, evidence or posterior refuses such a λ.
    pub fn bound(&self) -> f64 {
        self.resolution.max(self.least)
    }

    /// The sum of a target's `rest` and of `factor(s)` times its share for each eigenvalue s.
    fn left(&self, target: usize, factor: impl Fn(f64) -> f64) -> f64 {
        let parts = self.shares.column(target).into_iter().zip(&self.values);
        self.rest[target] + parts.map(|(share, s)| share * factor(*s)).sum::<f64>()
    }
}

/// Lowers shares c²/s whose sum is above Σ w y² to c²/(s + t), with the t for which both are equal. Rounding errors of small
/// eigenvalues make shares too large, and large λ would not reduce these.
fn lower(mut shares: ArrayViewMut1<'_, f64>, values: &Array1<f64>, sum: f64) {
    // Newton's method from t = 0 does not pass the root, since the function falls and is convex.
    let mut t = 0.0;
    for _ in 0..NEWTON_STEPS {
        let (mut excess, mut slope) = (-sum, 0.0);
        for (share, s) in shares.iter().zip(values).filter(|(share, _)| **share > 0.0) {
            let lowered = share * (s / (s + t));
            excess += lowered;
            slope += lowered / (s + t);
        }
        let next = t + excess / slope;
        if excess <= 0.0 || !next.is_finite() || next <= t {
            break;
        }
        t = next;
    }
    if t > 0.0 {
        shares.iter_mut().zip(values).for_each(|(share, s)| *share *= s / (s + t));
    }
}

/// A mean squared error, or infinity for 0/0. If as many degrees of freedom as rows fit the targets exactly, errors at other
/// points are unknown.
pub(super) fn or_infinite(error: f64) -> f64 {
    if error.is_nan() { f64::INFINITY } else { error }
}
