//! [`ErrorReport`]: what error linear attention will have, before it is used.

mod closed;
mod covariances;
mod display;
mod errors;
mod expected;
mod methods;
mod sample;
mod shrink;
mod simulated;
mod tokens;

use std::cmp::Ordering;

pub(crate) use self::closed::closed_errors;
use self::errors::{ErrorPart, Errors};
pub(crate) use self::simulated::{Redraws, simulated_errors};
pub use self::tokens::TokenSample;
use crate::map::Mechanism;
use crate::theory::Basis;

/// The largest relative variance of normalisers for which first-order errors are an expectation.
const RELIABLE: f64 = 0.1;

/// The largest one for which they are a rough number.
const ROUGH: f64 = 1.0;

/// The errors that linear attention is expected to have on a [sample](TokenSample) of tokens, before it is used: to first order, over
/// draws of m frequencies. [`Attention::error_report`](super::super::Attention::error_report) makes it, and its
/// [`Display`](std::fmt::Display) says it in a few sentences.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{Attention, TokenSample};
/// let mut rng = random_features::rng(1);
/// let shape = (90, 8);
/// let x = Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
/// let sample = TokenSample::new(&x, &x);
/// let report = Attention::favor_plus(8, 256, 7)?.error_report(&sample)?;
/// println!("{report}");
/// assert!(report.weight_error().is_some_and(|error| error < 0.1));
/// // The number of frequencies for an error of 1 %.
/// assert!(report.frequencies_for(0.01) > 256.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Let pⱼ be the weights of a query, o = Σ pⱼ vⱼ its output and C the relative covariances of the estimates
/// ([`theory::covariance`](crate::theory::covariance)). To first order E‖ô − o‖² = Σⱼₖ pⱼ pₖ Cⱼₖ (vⱼ − o)·(vₖ − o), and the normaliser has
/// the relative variance Σⱼₖ pⱼ pₖ Cⱼₖ.
///
/// If the relative variance of a normaliser is 0.1 or more, the first order does not describe ratios of estimates well:
/// the report calls the map [hopeless](ErrorReport::is_hopeless) and states no error. Up to a variance of 1 it gives a
/// [rough number](ErrorReport::rough_output_error) for the error, beyond 1 none.
///
/// C is computed for independent frequencies by a closed form, or estimated from redraws ([`Basis`]). Where features
/// are of another kernel than the softmax kernel (regularised and truncated ones), errors are differences from
/// attention with the softmax kernel. They then consist of a bias, which does not depend on m, and of the variance
/// about the features' own kernel.
///
/// # Accuracy
/// **For variances below 0.1 but near it, the errors of positive, hyperbolic and generalised features are
/// overestimated.** For 64 queries and 500 keys of standard deviation 0.5 at d = 64, positive features were expected to
/// err by 0.64 at a variance of 0.09 and erred by 0.48. At 0.02 they were expected to err by 0.32 and erred by 0.27 (40
/// draws). Trigonometric features erred as expected. The largest overestimate that was seen is a factor of 1.7, for
/// hyperbolic features in one dimension at a variance of 0.06.
///
/// Closed forms take the correlation within antithetic pairs into account. For features that are even in ω (hyperbolic
/// and trigonometric ones) both frequencies of a pair give the same estimate, so that m antithetic frequencies have the
/// variance of m/2 independent ones. No closed form is known for the covariances of orthogonal and simplex frequencies.
/// They are accepted, and count as independent. Their errors are smaller than those of independent ones, by a little in
/// many dimensions. In five dimensions hyperbolic features on orthogonal ones err by a quarter less, trigonometric ones
/// by almost a half.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorReport {
    /// Where the covariances come from: a closed form, for independent frequencies or antithetic pairs of them, or redraws.
    pub basis: Basis,
    /// The number m of frequencies in use.
    pub m: usize,
    /// The largest relative variance of a query's normaliser in the sample.
    pub normaliser_variance: f64,
    /// The error of the output if all weights were equal, so that every query got the mean of the values that it sees, relative to the
    /// exact output. Without values it is the error of equal weights. An expected error that is not smaller is
    /// [worse than uniform](ErrorReport::is_worse_than_uniform).
    pub mean_error: f64,
    /// The factor by which queries and keys must be multiplied for the relative variance of normalisers to be below 0.1
    /// with m frequencies. Real coefficients of generalised and dense features are fitted again to the smaller points.
    /// It is 1 if the variance is below 0.1 already, and NaN with redraws.
    pub shrink: f64,
    /// Other maps and the relative variance of their normalisers for as many frequencies, the least first.
    pub alternatives: Vec<(Mechanism, f64)>,
    /// Whether the sample has values, of which outputs are made.
    has_values: bool,
    /// Squared and relative.
    weights: ErrorPart,
    output: ErrorPart,
}

impl ErrorReport {
    /// Without a factor to shrink by, and without alternatives.
    fn new(basis: Basis, m: usize, has_values: bool, errors: Errors) -> Self {
        ErrorReport {
            basis,
            m,
            normaliser_variance: errors.normaliser / m as f64,
            mean_error: if has_values { errors.mean } else { errors.equal }.sqrt(),
            shrink: f64::NAN,
            alternatives: Vec::new(),
            has_values,
            weights: errors.weights,
            output: errors.output,
        }
    }

    /// Whether the relative variance of the normalisers is 0.1 or more, or is not known. No error is expected then, and up to 1 there is
    /// a [rough number](ErrorReport::rough_output_error).
    pub fn is_hopeless(&self) -> bool {
        // Also where it is no number.
        self.normaliser_variance.is_nan() || self.normaliser_variance >= RELIABLE
    }

    /// The expected error of the attention weights, relative to their norm (root mean square over the sample). `None` if it is
    /// [hopeless](ErrorReport::is_hopeless).
    pub fn weight_error(&self) -> Option<f64> {
        self.error(self.weights, self.m)
    }

    /// The expected error of the output, relative to its norm (root mean square over the sample). `None` if it is
    /// [hopeless](ErrorReport::is_hopeless) or the sample has no values.
    pub fn output_error(&self) -> Option<f64> {
        self.output_error_with(self.m)
    }

    /// The expected [error of the output](ErrorReport::output_error) with so many frequencies instead of m.
    pub fn output_error_with(&self, m: usize) -> Option<f64> {
        if self.has_values { self.error(self.output, m) } else { None }
    }

    /// A rough number for the error of the attention weights, relative to their norm (root mean square over the sample): the first-order
    /// error, also where that is [hopeless](ErrorReport::is_hopeless).
    ///
    /// If the report is not hopeless, it is the [expected](ErrorReport::weight_error) error. For relative variances of
    /// normalisers from 0.1 to 1 it is mostly too large for features that are never negative, by up to a factor of
    /// about 3. For other features it may be far too small, since outputs may have any size if a normaliser is near 0.
    /// It is `None` beyond 1, or where it is not finite.
    pub fn rough_weight_error(&self) -> Option<f64> {
        self.rough(self.weights)
    }

    /// A rough number for the error of the output, relative to its norm: the first-order error, also where it is hopeless.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// let mut rng = random_features::rng(1);
    /// let x = Array2::from_shape_simple_fn((40, 8), || 2.0 * rng.random::<f64>());
    /// let sample = TokenSample::new(&x, &x).with_values(&x);
    /// let report = Attention::favor_plus(8, 256, 7)?.error_report(&sample)?;
    /// // An order of magnitude, whether the report is hopeless or not.
    /// println!("{:?}", report.rough_output_error());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// It is `None` if the relative variance of normalisers is above 1, outputs are 0 or the sample has no values.
    pub fn rough_output_error(&self) -> Option<f64> {
        if self.has_values { self.rough(self.output) } else { None }
    }

    fn rough(&self, part: ErrorPart) -> Option<f64> {
        let error = (part.variance / self.m as f64 + part.bias).sqrt();
        Some(error).filter(|error| self.normaliser_variance <= ROUGH && error.is_finite())
    }

    /// The errors of outputs, or of weights if the sample has no values.
    fn main(&self) -> ErrorPart {
        if self.has_values { self.output } else { self.weights }
    }

    /// The expected error of outputs, or of weights if the sample has no values, with so many frequencies.
    pub(super) fn main_error_with(&self, m: usize) -> Option<f64> {
        self.error(self.main(), m)
    }

    /// None, too, where outputs are 0, of which nothing can be a part.
    fn error(&self, part: ErrorPart, m: usize) -> Option<f64> {
        let (own, m) = (self.m as f64, m as f64);
        // Also where it is no number. From redraws that are hopeless nothing follows for more frequencies.
        let reliable = self.normaliser_variance * own / m < RELIABLE && !self.knows_nothing();
        Some((part.variance / m + part.bias).sqrt()).filter(|error| reliable && error.is_finite())
    }

    /// Whether the expected error is at least that of uniform weights, which give every query the [mean of the
    /// values](ErrorReport::mean_error).
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// let mut rng = random_features::rng(1);
    /// let x = Array2::from_shape_simple_fn((40, 8), || rng.random::<f64>() - 0.5);
    /// let sample = TokenSample::new(&x, &x).with_values(&x);
    /// // Weights that are nearly equal take many features to be told
    /// // from equal ones.
    /// let report = Attention::favor_plus(8, 8, 7)?.error_report(&sample)?;
    /// assert_eq!(report.is_worse_than_uniform(), Some(true));
    /// let report = Attention::favor_plus(8, 8192, 7)?.error_report(&sample)?;
    /// assert_eq!(report.is_worse_than_uniform(), Some(false));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Without values the question is whether equal weights are no further from the exact ones. An error of 0, as where all pairs are
    /// exact, is never worse. `None` where no error is expected, since it is hopeless or outputs are 0.
    pub fn is_worse_than_uniform(&self) -> Option<bool> {
        // Also where the mean's error is no number.
        self.main_error_with(self.m)
            .map(|error| error > 0.0 && !matches!(error.partial_cmp(&self.mean_error), Some(Ordering::Less)))
    }

    /// The share α of the mean of the values with which [shrunk](super::super::Attention::with_shrinkage) outputs, or weights if the sample
    /// has no values, are expected to err least.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// let mut rng = random_features::rng(1);
    /// let x = Array2::from_shape_simple_fn((40, 8), || rng.random::<f64>() - 0.5);
    /// let sample = TokenSample::new(&x, &x).with_values(&x);
    /// let attention = Attention::favor_plus(8, 64, 7)?;
    /// let report = attention.error_report(&sample)?;
    /// let shrunk = attention.with_shrinkage(&[report.shrinkage()])?;
    /// let after = shrunk.error_report(&sample)?;
    /// assert!(after.output_error() < report.output_error());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// It is e²/(e² + μ²) with the first-order error e of outputs, also where that is hopeless, and the error μ of
    /// their [mean](ErrorReport::mean_error); 1 where e is not finite. The output is then expected to err by e μ/√(e² +
    /// μ²), to first order and if the biases of features and of the mean are uncorrelated. The report must be that of
    /// attention without a share.
    pub fn shrinkage(&self) -> f64 {
        let part = self.main();
        let square = part.variance / self.m as f64 + part.bias;
        let share = square / (square + self.mean_error.powi(2));
        match share.is_nan() {
            // Neither errs, or features err beyond all bounds.
            true if square == 0.0 => 0.0,
            true => 1.0,
            false => share,
        }
    }

    fn knows_nothing(&self) -> bool {
        self.is_hopeless() && matches!(self.basis, Basis::Simulation(_))
    }

    /// The least m for which the expected error is at most `error` and the relative variance of normalisers is at most
    /// 0.1. The error is that of the output, or of the weights if the sample has no values.
    ///
    /// It is infinite if no such m fits `f64`, as for errors below the bias. It is NaN for a hopeless report from
    /// redraws, which miss the rare draws that make most of a variance.
    pub fn frequencies_for(&self, error: f64) -> f64 {
        if self.knows_nothing() {
            return f64::NAN;
        }
        let one = self.normaliser_variance * self.m as f64;
        let part = self.main();
        let rest = error * error - part.bias;
        let below = rest < 0.0;
        let needed = if error > 0.0 && !below { part.variance / rest } else { f64::INFINITY };
        // Where outputs are 0 there is nothing to miss.
        let needed = if needed.is_nan() { 1.0 } else { needed };
        needed.max(one / RELIABLE).ceil().max(1.0)
    }
}
