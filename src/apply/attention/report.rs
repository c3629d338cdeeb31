//! [`ErrorReport`]: what error linear attention will have, before it is used.

use std::fmt;
use std::sync::Arc;

use ndarray::{Array2, ArrayRef2};

use super::sample::{AttentionSample, ErrorPart, Errors};
use super::simulated::simulate;
use super::{Attention, check_shape};
use crate::Real;
use crate::compose::{Composite, Conditioned, Conditioning};
use crate::error::{Error, Result, check_positive, check_size};
use crate::frequency::{Draw, Independent};
use crate::kernel::{Gaussian, Kernel, Lengthscale, Softmax};
use crate::map::{Covariance, Mechanism, Omega, PlainRecipe, Recipe, Target};
use crate::numeric::matrix_of;

/// The largest relative variance of normalisers for which first-order errors mean anything.
const RELIABLE: f64 = 0.1;

/// The errors of normalised attention that are expected for a sample of queries, keys and values, over draws of m
/// frequencies. First-order approximations.
///
/// # Definition
/// With pⱼ the weights of a query, o = Σ pⱼ vⱼ its output and C the relative covariances of the estimates
/// ([`theory::covariance`](crate::theory::covariance)), to first order E‖ô − o‖² = Σⱼₖ pⱼ pₖ Cⱼₖ (vⱼ − o)·(vₖ − o), and the
/// normaliser has the relative variance Σⱼₖ pⱼ pₖ Cⱼₖ. Beyond 0.1 of that, ratios of estimates are no longer near their
/// first order: the report says [hopeless](ErrorReport::is_hopeless) and gives no error. Shortly below they overstate: an error
/// of 0.6 that is expected at a normaliser's variance of 0.1 was 0.5 (d = 64). C is that of independent
/// frequencies, by a closed form or from redraws ([`Basis`]); orthogonal and simplex frequencies, whose covariances have no
/// closed form, do a little better.
///
/// Where features are of another kernel than the softmax kernel (regularised and truncated ones), errors are about attention
/// with the softmax kernel, with a bias for any m beside the variance about the features' own kernel.
///
/// Its [`Display`](fmt::Display) says it in a few sentences.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorReport {
    /// Where the covariances come from.
    pub basis: Basis,
    /// m, the number of frequencies in use.
    pub frequencies: usize,
    /// The largest relative variance of a query's normaliser in the sample.
    pub normaliser_variance: f64,
    /// The error of the output if all weights were equal, so that every query got the mean of the values, relative to the exact
    /// output. An expected error that is not smaller means that uniform weights do as well.
    pub mean_error: f64,
    /// The factor by which queries and keys would have to shrink for normalisers to be reliable with m frequencies, if real
    /// coefficients of generalised and dense features are fitted to them again; 1 if they are, NaN where it was not sought:
    /// with redraws.
    pub shrink: f64,
    /// Other maps and the relative variance of their normalisers for as many frequencies, the least first.
    pub alternatives: Vec<(Mechanism, f64)>,
    /// Squared and relative.
    weights: ErrorPart,
    output: ErrorPart,
}

/// Where the covariances of an [`ErrorReport`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// From a closed form, for independent frequencies.
    ClosedForm,
    /// From so many redraws of all frequencies.
    Redraws(usize),
}

impl ErrorReport {
    /// Without a factor to shrink by, and without alternatives.
    fn new(basis: Basis, frequencies: usize, errors: Errors) -> Self {
        ErrorReport {
            basis,
            frequencies,
            normaliser_variance: errors.normaliser / frequencies as f64,
            mean_error: errors.mean.sqrt(),
            shrink: f64::NAN,
            alternatives: Vec::new(),
            weights: errors.weights,
            output: errors.output,
        }
    }

    /// Whether normalisers vary too much for outputs to mean anything.
    pub fn is_hopeless(&self) -> bool {
        // Also where it is no number.
        self.normaliser_variance.is_nan() || self.normaliser_variance >= RELIABLE
    }

    /// The expected error of the attention weights, relative to their norm (root mean square over the sample); `None` if it
    /// is hopeless.
    pub fn weight_error(&self) -> Option<f64> {
        self.error(self.weights, self.frequencies)
    }

    /// The expected error of the output, relative to its norm (root mean square over the sample); `None` if it is hopeless.
    pub fn output_error(&self) -> Option<f64> {
        self.output_error_with(self.frequencies)
    }

    /// As [`output_error`](ErrorReport::output_error) with so many frequencies instead.
    pub fn output_error_with(&self, frequencies: usize) -> Option<f64> {
        self.error(self.output, frequencies)
    }

    /// None, too, where outputs are 0, of which nothing can be a part.
    fn error(&self, part: ErrorPart, frequencies: usize) -> Option<f64> {
        let (own, m) = (self.frequencies as f64, frequencies as f64);
        // Also where it is no number. From redraws that are hopeless nothing follows for more frequencies.
        let reliable = self.normaliser_variance * own / m < RELIABLE && !self.knows_nothing();
        Some((part.variance / m + part.bias).sqrt()).filter(|error| reliable && !error.is_nan())
    }

    fn knows_nothing(&self) -> bool {
        self.is_hopeless() && matches!(self.basis, Basis::Redraws(_))
    }

    /// The least m whose expected error of the output is at most `target`, with normalisers that are reliable; infinite if
    /// there is none that fits `f64`, as for targets below the bias; NaN from redraws that are hopeless, which have not met
    /// the rare draws that make most of a variance.
    pub fn frequencies_for(&self, target: f64) -> f64 {
        if self.knows_nothing() {
            return f64::NAN;
        }
        let one = self.normaliser_variance * self.frequencies as f64;
        let rest = target * target - self.output.bias;
        let below = rest < 0.0;
        let needed = if target > 0.0 && !below { self.output.variance / rest } else { f64::INFINITY };
        // Where outputs are 0 there is nothing to miss.
        let needed = if needed.is_nan() { 1.0 } else { needed };
        needed.max(one / RELIABLE).ceil().max(1.0)
    }
}

impl<T: Real> Attention<T> {
    /// The errors that are expected with the map of key head `head` for a sample of its queries, n × d, keys, l × d, and
    /// values, l × d_v, by closed forms, in bidirectional attention over these keys: a causal output sees fewer of them. Some 64
    /// queries and 500 keys do if the values have the mean 0; if they have another, errors fall with the number of keys. Of the
    /// features alone: keys that are taken [exactly](Attention::with_keys_exact) are not counted as such. Cost O(n l² + l² d),
    /// with a larger factor if it is hopeless.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for maps without a closed form, for which there is
    /// [`simulated_report`](Attention::simulated_report): all but trigonometric, positive, hyperbolic, generalised and dense
    /// exponential ones for the softmax or the Gaussian kernel, positive and hyperbolic ones for the regularised softmax
    /// kernel, and any of these conditioned, truncated or not. [`Shape`](Error::Shape) if sizes do not fit,
    /// [`NotFinite`](Error::NotFinite) if a number is not finite, [`Parameter`](Error::Parameter) for an empty sample or a head
    /// without a map.
    pub fn error_report(
        &self,
        head: usize,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        let map = match &self.maps[..] {
            [one] => one,
            maps => maps.get(head).ok_or(Error::Parameter {
                name: "the head",
                value: head as f64,
                domain: "less than the number of maps",
            })?,
        };
        let tokens = self.scaled_tokens([queries, keys, values])?;
        expected_errors(map.recipe().as_ref(), tokens)
    }

    /// As [`error_report`](Attention::error_report) with the map of a recipe, drawn or still to be drawn, in place of this one:
    /// what is expected follows from the laws of the frequencies.
    ///
    /// # Errors
    /// As [`error_report`](Attention::error_report).
    pub fn expected_report(
        &self,
        recipe: &Recipe,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        check_size("the dimension of the recipe", self.maps[0].input_dim(), recipe.dim())?;
        expected_errors(Some(recipe), self.scaled_tokens([queries, keys, values])?)
    }

    /// As [`error_report`](Attention::error_report) for any map, from redraws: the frequencies of `recipe`, that of a map, are
    /// drawn from each of the seeds 0 … `draws` − 1. To first order too. Where a normaliser's relative variance is large,
    /// rare draws make most of it, which few redraws may not meet; 100 show what is below 0.1 to some 15 %. Exact are the
    /// weights of the recipe's kernel, if it is the softmax or the Gaussian one with one lengthscale, else those of the
    /// softmax kernel. Cost O(n l D) a draw.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// use random_features::apply::attention::{Attention, Basis};
    /// use random_features::frequency::{Draw, Simplex};
    /// use random_features::kernel::Softmax;
    /// use random_features::Positive;
    /// # let token = |(i, k): (usize, usize)| ((3 * i + 5 * k) % 7) as f64 / 7.0;
    /// # let (q, k) = (Array2::from_shape_fn((10, 8), token), Array2::from_shape_fn((20, 8), token));
    /// // Simplex frequencies have no closed form for covariances.
    /// let recipe = Positive.recipe(Draw::new(8, 256, Simplex::default()), Softmax::default());
    /// let attention = Attention::new(recipe.draw::<f64>(7)?)?;
    /// let report = attention.simulated_report(&recipe, 100, &q, &k, &k)?;
    /// assert_eq!(report.basis, Basis::Redraws(100));
    /// // Independent ones have one.
    /// let independent = attention.error_report(0, &q, &k, &k)?;
    /// assert!((report.mean_error / independent.mean_error - 1.0).abs() < 1e-12);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) for fewer than 2 draws, [`Unsupported`](Error::Unsupported) if frequencies of the recipe
    /// are drawn already; those of the draws and of the map; else as [`error_report`](Attention::error_report).
    pub fn simulated_report(
        &self,
        recipe: &Recipe,
        draws: usize,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        if draws < 2 {
            let (name, domain) = ("the number of redraws", "at least 2");
            return Err(Error::Parameter { name, value: draws as f64, domain });
        }
        check_size("the dimension of the recipe", self.maps[0].input_dim(), recipe.dim())?;
        let draws_of = recipe.draws();
        let frequencies = draws_of.iter().map(|omega| omega.count()).fold(1, usize::max);
        if draws_of.iter().any(|omega| matches!(omega, Omega::Frequencies(_) | Omega::Counts(_))) {
            return Err(Error::Unsupported { what: "redraws of frequencies that are drawn already" });
        }
        let errors = simulate(recipe, draws, self.scaled_tokens([queries, keys, values])?, frequencies)?;
        Ok(ErrorReport::new(Basis::Redraws(draws), frequencies, errors))
    }

    /// Tokens as points and values, checked.
    fn scaled_tokens(&self, [queries, keys, values]: [&ArrayRef2<T>; 3]) -> Result<[Array2<f64>; 3]> {
        let d = self.maps[0].input_dim();
        check_positive("the number of queries", queries.nrows())?;
        check_positive("the number of keys", keys.nrows())?;
        check_shape(["the number of queries", "their dimension"], queries.shape(), [queries.nrows(), d])?;
        check_shape(["the number of keys", "their dimension"], keys.shape(), [keys.nrows(), d])?;
        check_shape(["the number of values"], &values.shape()[..1], [keys.nrows()])?;
        let scaled = |what, x: &ArrayRef2<T>| -> Result<Array2<f64>> {
            super::super::check_finite(what, x)?;
            let mut points = Vec::new();
            self.reading.points::<T, T>(x.view(), &mut points);
            let points = points.into_iter().map(|v| v.widen()).collect();
            Ok(matrix_of(x.nrows(), x.ncols(), points))
        };
        let (x, y) = (scaled("the queries", queries)?, scaled("the keys", keys)?);
        super::super::check_finite("the values", values)?;
        Ok([x, y, values.mapv(|v| v.widen())])
    }
}

/// The errors that closed forms expect for tokens, as points and values.
fn expected_errors(recipe: Option<&Recipe>, tokens: [Array2<f64>; 3]) -> Result<ErrorReport> {
    recipe.map_or(Ok(()), Recipe::check)?;
    let what = "error report by closed forms: take Attention::simulated_report";
    let closed = recipe.and_then(Closed::new).ok_or(Error::Unsupported { what })?;
    closed.report(closed.sample(tokens)?)
}

/// A map that has closed forms.
struct Closed {
    plain: PlainRecipe,
    conditioning: Option<Conditioning>,
    covariance: Covariance,
    /// The kernel of the features.
    kernel: Arc<dyn Kernel<f64>>,
}

impl Closed {
    fn new(recipe: &Recipe) -> Option<Self> {
        let (plain, conditioning) = match recipe {
            Recipe::Plain(plain) => (plain, None),
            Recipe::Composite(composite) => match &**composite {
                Composite::Conditioned(Conditioned { conditioning, base: Recipe::Plain(plain), .. }) => {
                    (plain, Some(conditioning.clone()))
                }
                _ => return None,
            },
        };
        let (covariance, kernel) = (plain.covariance()?, recipe.kernel()?);
        Some(Closed { plain: plain.clone(), conditioning, covariance, kernel })
    }

    fn sample(&self, [x, y, values]: [Array2<f64>; 3]) -> Result<AttentionSample> {
        let other = self.kernel.exponential().is_none();
        let ln_kernel = if other { Some(self.kernel.log_gram(&x, &y)?) } else { None };
        let points = [x, y].map(|x| divided(x, self.plain.target.lengthscale()));
        let images = match &self.conditioning {
            None => points.clone(),
            Some(conditioning) => [0, 1].map(|side| conditioning.images(side, &points[side])),
        };
        let gaussian = self.plain.target.is_shift_invariant();
        let sample = AttentionSample { points, images, values, gaussian, log_ratio: None };
        // ln of the features' kernel less that of the softmax or the Gaussian kernel.
        let log_ratio = ln_kernel.map(|ln_kernel| ln_kernel - sample.ln_kernel());
        Ok(AttentionSample { log_ratio, ..sample })
    }

    /// Another mechanism for the kernel that the features are meant for, on as many independent frequencies.
    fn other(&self, mechanism: Mechanism) -> PlainRecipe {
        let (d, m) = (self.plain.omega.dim(), self.plain.omega.count());
        let target: Target = match self.plain.target.is_shift_invariant() {
            true => Gaussian::default().into(),
            false => Softmax::default().into(),
        };
        PlainRecipe::new(mechanism, Draw::new(d, m, Independent), target)
    }

    fn report(&self, sample: AttentionSample) -> Result<ErrorReport> {
        let (frequencies, mechanism) = (self.plain.omega.count(), &self.plain.mechanism);
        let (errors, most) = (sample.errors(&self.covariance), frequencies as f64 * RELIABLE);
        let mut report = ErrorReport::new(Basis::ClosedForm, frequencies, errors);
        let reliable = errors.normaliser < most;
        report.shrink = if reliable { 1.0 } else { sample.shrink(&self.plain, &self.covariance, most) };
        // Others are for the points themselves and the kernel itself.
        let plain = AttentionSample { images: sample.points.clone(), log_ratio: None, ..sample };
        let same = self.conditioning.is_none() && !self.covariance.spherical;
        let others = [
            Mechanism::Positive(crate::Positive),
            Mechanism::Hyperbolic(crate::Hyperbolic),
            Mechanism::Trigonometric(crate::Trigonometric),
            plain.fitted()?,
        ];
        for other in others.into_iter().filter(|other| !(same && other == mechanism)) {
            if let Some(covariance) = self.other(other.clone()).covariance() {
                let variance = plain.worst(&covariance, &plain.queries()).1 / frequencies as f64;
                report.alternatives.push((other, variance));
            }
        }
        report.alternatives.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(report)
    }
}

/// Points divided by the lengthscale.
pub(super) fn divided(mut x: Array2<f64>, lengthscale: &Lengthscale) -> Array2<f64> {
    x.indexed_iter_mut().for_each(|((_, k), v)| *v /= lengthscale.at(k));
    x
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::ClosedForm => f.write_str("closed forms for independent frequencies"),
            Basis::Redraws(count) => write!(f, "{count} redraws"),
        }
    }
}

impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, mean) = (self.frequencies, self.mean_error);
        if let (Some(weights), Some(output)) = (self.weight_error(), self.output_error()) {
            let verdict = if output < mean {
                ""
            } else {
                ": no better than that mean, use exact attention or more frequencies"
            };
            let [weights, output, mean] = [weights, output, mean].map(two_digits);
            return write!(
                f,
                "m = {m}: expected relative error of the weights {weights}, of the output {output} (of the mean of the \
                 values: {mean}), by {}{verdict}",
                self.basis
            );
        }
        let variance = self.normaliser_variance;
        if !self.is_hopeless() {
            return write!(
                f,
                "m = {m}: outputs are 0, so there is no relative error; the normaliser's relative variance is \
                 {variance:.2e}, by {}",
                self.basis
            );
        }
        write!(f, "hopeless with m = {m}: the normaliser's relative variance is {variance:.2e}")?;
        if let Basis::Redraws(count) = self.basis {
            return write!(f, " or more, beyond {RELIABLE}, by {count} redraws.");
        }
        let (enough, shrink) = (variance * m as f64 / RELIABLE, self.shrink);
        write!(f, ", beyond {RELIABLE}; it would take {enough:.1e} frequencies")?;
        write!(f, ", or queries and keys shrunk to {shrink:.2} of their size.")?;
        match self.alternatives.first().filter(|(_, variance)| *variance < RELIABLE) {
            Some((mechanism, variance)) => {
                let signed = matches!(mechanism, Mechanism::Trigonometric(_));
                let how = if signed { ", through Attention::signed," } else { "" };
                write!(f, " With {} features{how} it is {variance:.2e}.", mechanism.tag())
            }
            None => write!(
                f,
                " No other map of the softmax kernel does better than that bound: use exact attention."
            ),
        }
    }
}

/// A positive number with two significant digits.
fn two_digits(value: f64) -> String {
    let decimals = 1.0 - value.log10().floor();
    if (0.0..=5.0).contains(&decimals) {
        format!("{value:.*}", decimals as usize)
    } else {
        format!("{value:.1e}")
    }
}
