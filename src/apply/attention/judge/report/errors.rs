//! [`Errors`]: the errors of a sample, and how those of its queries add up.

/// The squared relative errors of a sample: variances for m = 1, and biases, which stay as m → ∞.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Errors {
    /// The largest relative variance of a query's normaliser.
    pub normaliser: f64,
    pub weights: ErrorPart,
    pub output: ErrorPart,
    /// The error of the mean of the values, for any number of frequencies.
    pub mean: f64,
    /// The error of equal weights, for any number of frequencies.
    pub equal: f64,
}

/// The part of an error that falls with the number of frequencies, for one of them, and that which stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorPart {
    pub variance: f64,
    pub bias: f64,
}

/// The squared errors of one query, and the sizes that they are relative to.
pub(super) struct QueryErrors {
    /// The relative variance of the normaliser.
    pub normaliser: f64,
    pub weights: ErrorPart,
    pub output: ErrorPart,
    pub sizes: Sizes,
}

/// The squared norms of a query's weights, of their distance from equal ones, of its output and of its distance from the mean of the
/// values.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    pub weights: f64,
    pub from_equal: f64,
    pub output: f64,
    pub from_mean: f64,
}

impl FromIterator<QueryErrors> for Errors {
    fn from_iter<I: IntoIterator<Item = QueryErrors>>(queries: I) -> Self {
        let (mut normaliser, mut sizes) = (0.0f64, Sizes::default());
        let (mut weights, mut output) = (ErrorPart::default(), ErrorPart::default());
        for query in queries {
            normaliser = normaliser.max(known(query.normaliser));
            weights.add(query.weights);
            output.add(query.output);
            sizes.weights += query.sizes.weights;
            sizes.from_equal += query.sizes.from_equal;
            sizes.output += query.sizes.output;
            sizes.from_mean += query.sizes.from_mean;
        }
        Errors {
            normaliser,
            weights: weights.relative_to(sizes.weights),
            output: output.relative_to(sizes.output),
            mean: sizes.from_mean / sizes.output,
            equal: sizes.from_equal / sizes.weights,
        }
    }
}

impl ErrorPart {
    fn add(&mut self, other: ErrorPart) {
        self.variance += other.variance;
        self.bias += other.bias;
    }

    fn relative_to(self, size: f64) -> Self {
        // Rounding makes less than nothing of what varies with nothing, as where all keys are equal.
        let variance = if self.variance < 0.0 { 0.0 } else { self.variance };
        ErrorPart { variance: variance / size, bias: self.bias / size }
    }
}

/// A variance: where it is beyond the range, so is that of a sum.
pub(super) fn known(variance: f64) -> f64 {
    if variance.is_nan() { f64::INFINITY } else { variance }
}
