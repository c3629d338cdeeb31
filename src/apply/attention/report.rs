//! [`ErrorReport`]: what error linear attention will have, before it is used.

use std::fmt;

use ndarray::{Array2, ArrayRef2, ArrayView2, Axis};

use super::{Attention, check_shape};
use crate::Real;
use crate::error::{Error, Result, check_positive};
use crate::map::{Gerf, Map, Mechanism, Omega, PlainRecipe, Recipe, Target};
use crate::theory::covariance;
use crate::theory::gerf::GerfSign;

/// The largest relative variance of normalisers for which first-order errors mean anything.
const RELIABLE: f64 = 0.1;

/// The errors of normalised attention that are expected for a sample of queries, keys and values, over draws of m
/// independent frequencies. First-order approximations.
///
/// # Definition
/// With pⱼ the weights of a query, o = Σ pⱼ vⱼ its output and C the relative covariances of the estimates
/// ([`theory::covariance`](crate::theory::covariance)), to first order E‖ô − o‖² = Σⱼₖ pⱼ pₖ Cⱼₖ (vⱼ − o)·(vₖ − o), and the
/// normaliser has the relative variance Σⱼₖ pⱼ pₖ Cⱼₖ. Beyond 0.1 of that, ratios of estimates are no longer near their
/// first order: the report says [hopeless](ErrorReport::is_hopeless) and gives no error. Orthogonal frequencies do a little
/// better than independent ones, for which this is.
///
/// Its [`Display`](fmt::Display) says it in a few sentences.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorReport {
    /// m, the number of frequencies in use.
    pub frequencies: usize,
    /// The largest relative variance of a query's normaliser in the sample.
    pub normaliser_variance: f64,
    /// The error of the output if every query got the mean of the values, relative to the exact output: what is no better
    /// is no attention.
    pub mean_error: f64,
    /// The factor by which queries and keys would have to shrink for normalisers to be reliable with m frequencies, if A of
    /// generalised features shrinks with them; 1 if they are.
    pub shrink: f64,
    /// Other maps and the relative variance of their normalisers for as many frequencies, the least first.
    pub alternatives: Vec<(Mechanism, f64)>,
    /// For one frequency, squared and relative.
    weights: f64,
    output: f64,
}

/// What the sample's errors are for one frequency.
struct Errors {
    normaliser: f64,
    weights: f64,
    output: f64,
    mean: f64,
}

impl ErrorReport {
    /// Whether normalisers vary too much for outputs to mean anything.
    pub fn is_hopeless(&self) -> bool {
        // Also where it is no number.
        self.normaliser_variance.is_nan() || self.normaliser_variance >= RELIABLE
    }

    /// The expected error of the attention weights, relative to their norm (root mean square over the sample); `None` if it
    /// is hopeless.
    pub fn weight_error(&self) -> Option<f64> {
        self.error(self.weights)
    }

    /// The expected error of the output, relative to its norm (root mean square over the sample); `None` if it is hopeless.
    pub fn output_error(&self) -> Option<f64> {
        self.error(self.output)
    }

    /// None, too, where outputs are 0, of which nothing can be a part.
    fn error(&self, of_one: f64) -> Option<f64> {
        Some((of_one / self.frequencies as f64).sqrt()).filter(|error| !self.is_hopeless() && !error.is_nan())
    }

    /// The least m whose expected error of the output is at most `target`, with normalisers that are reliable; infinite if
    /// there is none that fits `f64`.
    pub fn frequencies_for(&self, target: f64) -> f64 {
        let one = self.normaliser_variance * self.frequencies as f64;
        let needed = if target > 0.0 { self.output / (target * target) } else { f64::INFINITY };
        // Where outputs are 0 there is nothing to miss.
        let needed = if needed.is_nan() { 1.0 } else { needed };
        needed.max(one / RELIABLE).ceil().max(1.0)
    }
}

impl<T: Real> Attention<T> {
    /// The errors that are expected with the map of key head `head` for a sample of its queries, n × d, keys, l × d, and
    /// values, l × d_v. Some 64 queries and 500 keys do. Of the features alone: keys that are taken
    /// [exactly](Attention::exact_keys) are not counted as such. Cost O(n l² + l² d).
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for maps without a closed form: all but trigonometric, positive, hyperbolic and
    /// positive generalised ones for the softmax or the Gaussian kernel. [`Shape`](Error::Shape) if sizes do not fit,
    /// [`NotFinite`](Error::NotFinite) if a number is not finite, [`Parameter`](Error::Parameter) for an empty sample.
    pub fn error_report(
        &self,
        head: usize,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        let map = &self.maps[head % self.maps.len()];
        let d = map.input_dim();
        check_positive("the number of queries", queries.nrows())?;
        check_positive("the number of keys", keys.nrows())?;
        check_shape(["the number of queries", "their dimension"], queries.shape(), [queries.nrows(), d])?;
        check_shape(["the number of keys", "their dimension"], keys.shape(), [keys.nrows(), d])?;
        check_shape(["the number of values"], &values.shape()[..1], [keys.nrows()])?;
        let plain = plain(map)?;
        let scaled = |what, x: &ArrayRef2<T>| -> Result<Array2<f64>> {
            super::super::check_finite(what, x)?;
            let mut points = Vec::new();
            self.reading.points::<T, T>(x.view(), &mut points);
            let points = points.into_iter().map(|v| v.widen());
            let points = points.enumerate().map(|(i, v)| v / plain.target.lengthscale().at(i % d));
            Ok(Array2::from_shape_vec(x.dim(), points.collect()).unwrap_or_default())
        };
        let (x, y) = (scaled("the queries", queries)?, scaled("the keys", keys)?);
        super::super::check_finite("the values", values)?;
        let sample =
            Sample { x, y, v: values.mapv(|v| v.widen()), gaussian: plain.target.is_shift_invariant() };
        sample.report(plain)
    }
}

/// The recipe of a map that has closed forms.
fn plain<T: Real>(map: &Map<T>) -> Result<PlainRecipe> {
    match map.recipe() {
        Some(Recipe::Plain(plain))
            if covers(&plain.mechanism)
                && plain.matrix.is_none()
                && matches!(plain.target, Target::Softmax(_) | Target::Gaussian(_)) =>
        {
            Ok(plain)
        }
        _ => Err(Error::Unsupported { what: "an error report" }),
    }
}

fn covers(mechanism: &Mechanism) -> bool {
    match mechanism {
        Mechanism::Positive(_) | Mechanism::Hyperbolic(_) | Mechanism::Trigonometric(_) => true,
        Mechanism::Gerf(gerf) => gerf.sign() == GerfSign::Plus && gerf.a().im == 0.0,
        _ => false,
    }
}

/// Points and values of some tokens.
struct Sample {
    x: Array2<f64>,
    y: Array2<f64>,
    v: Array2<f64>,
    gaussian: bool,
}

impl Sample {
    fn report(&self, plain: PlainRecipe) -> Result<ErrorReport> {
        let frequencies = match &plain.omega {
            Omega::Frequencies(omega) => omega.count(),
            _ => return Err(Error::Unsupported { what: "an error report" }),
        };
        let m = frequencies as f64;
        let own = self.errors(&plain.mechanism, 1.0);
        let mut alternatives = Vec::new();
        for mechanism in self.alternatives()? {
            if mechanism != plain.mechanism {
                let variance = self.errors(&mechanism, 1.0).normaliser / m;
                alternatives.push((mechanism, variance));
            }
        }
        alternatives.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(ErrorReport {
            frequencies,
            normaliser_variance: own.normaliser / m,
            mean_error: own.mean.sqrt(),
            shrink: self.shrink(&plain.mechanism, m * RELIABLE),
            alternatives,
            weights: own.weights,
            output: own.output,
        })
    }

    /// What else there is for the same kernel.
    fn alternatives(&self) -> Result<Vec<Mechanism>> {
        Ok(vec![
            Mechanism::Positive(crate::Positive),
            Mechanism::Hyperbolic(crate::Hyperbolic),
            Mechanism::Trigonometric(crate::Trigonometric),
            self.fitted(1.0)?,
        ])
    }

    /// OPRF with the best A for tokens times `factor`.
    fn fitted(&self, factor: f64) -> Result<Mechanism> {
        let mean = |x: &Array2<f64>| x.mean_axis(Axis(0)).unwrap_or_default();
        let square = |x: &Array2<f64>| x.iter().map(|v| v * v).sum::<f64>() / x.nrows() as f64;
        let sum = square(&self.x) + square(&self.y) + 2.0 * mean(&self.x).dot(&mean(&self.y));
        Ok(Mechanism::Gerf(Gerf::optimal(self.x.ncols(), factor * factor * sum.max(0.0))?))
    }

    /// The largest factor, at most 1, of queries and keys for which the normaliser's variance is at most `most`.
    fn shrink(&self, mechanism: &Mechanism, most: f64) -> f64 {
        let reliable = |factor: f64| {
            let fitted = if let Mechanism::Gerf(_) = mechanism { self.fitted(factor).ok() } else { None };
            self.errors(fitted.as_ref().unwrap_or(mechanism), factor).normaliser < most
        };
        if self.errors(mechanism, 1.0).normaliser < most {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if reliable(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// Errors for one frequency and tokens times `factor`.
    fn errors(&self, mechanism: &Mechanism, factor: f64) -> Errors {
        let square = factor * factor;
        let (mixed, among) = (self.x.dot(&self.y.t()) * square, self.y.dot(&self.y.t()) * square);
        let mean = self.v.mean_axis(Axis(0)).unwrap_or_default();
        let (mut normalisers, mut weights, mut sizes) = (Vec::new(), 0.0, 0.0);
        let (mut output, mut outputs, mut from_mean) = (0.0, 0.0, 0.0);
        let sign = if matches!(mechanism, Mechanism::Trigonometric(_)) { -1.0 } else { 1.0 };
        for (x, mixed) in self.x.rows().into_iter().zip(mixed.rows()) {
            let norm = x.dot(&x) * square;
            let logit = |j: usize| if self.gaussian { mixed[j] - 0.5 * among[[j, j]] } else { mixed[j] };
            let p = softmax((0..mixed.len()).map(logit));
            let o = p.dot(&self.v);
            let v = &self.v - &o;
            // (x ± y)·(x ± y′).
            let dot = |j: usize, k: usize| norm + sign * (mixed[j] + mixed[k]) + among[[j, k]];
            let covariance =
                |j, k| relative_covariance(mechanism, x.len(), dot(j, k), (dot(j, j), dot(k, k)));
            // What has no weight has no share, be its variance infinite.
            let part = |j: usize, k: usize| if p[j] * p[k] == 0.0 { 0.0 } else { covariance(j, k) };
            let c = Array2::from_shape_fn(among.dim(), |(j, k)| part(j, k));
            let cp = c.dot(&p);
            let normaliser = p.dot(&cp);
            // Where variances are beyond the range, so is their sum.
            let normaliser = if normaliser.is_nan() { f64::INFINITY } else { normaliser };
            normalisers.push(normaliser);
            weights +=
                p.indexed_iter().map(|(j, p)| p * p * (c[[j, j]] - 2.0 * cp[j] + normaliser)).sum::<f64>();
            sizes += p.dot(&p);
            output += weighted(&p, &c, v.view());
            outputs += o.dot(&o);
            from_mean += (&o - &mean).mapv(|v| v * v).sum();
        }
        let normaliser = normalisers.into_iter().fold(0.0, f64::max);
        Errors { normaliser, weights: weights / sizes, output: output / outputs, mean: from_mean / outputs }
    }
}

/// Σⱼₖ pⱼ pₖ Cⱼₖ vⱼ·vₖ.
fn weighted(p: &ndarray::Array1<f64>, c: &Array2<f64>, v: ArrayView2<'_, f64>) -> f64 {
    let weighted = &v * &p.view().insert_axis(Axis(1));
    (&c.dot(&weighted) * &weighted).sum()
}

fn softmax(logits: impl Iterator<Item = f64> + Clone) -> ndarray::Array1<f64> {
    let top = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    let weights: ndarray::Array1<f64> = logits.map(|logit| (logit - top).exp()).collect();
    let total = weights.sum();
    weights / total
}

fn relative_covariance(mechanism: &Mechanism, dim: usize, dot: f64, squares: (f64, f64)) -> f64 {
    match mechanism {
        Mechanism::Positive(_) => covariance::positive(dot),
        Mechanism::Hyperbolic(_) => covariance::hyperbolic(dot),
        Mechanism::Trigonometric(_) => covariance::trigonometric(dot),
        Mechanism::Gerf(gerf) => covariance::gerf(gerf.a().re, dim, dot, squares),
        _ => f64::NAN,
    }
}

impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, mean) = (self.frequencies, self.mean_error);
        if let (Some(weights), Some(output)) = (self.weight_error(), self.output_error()) {
            return write!(
                f,
                "m = {m}: expected relative error of the weights {weights:.2}, of the output {output:.2} (the mean of \
                 the values: {mean:.2})"
            );
        }
        write!(
            f,
            "hopeless with m = {m}: the normaliser's relative variance is {:.2e}, beyond {RELIABLE}; it would take {:.1e} \
             frequencies, or queries and keys shrunk to {:.2} of their size.",
            self.normaliser_variance,
            self.normaliser_variance * m as f64 / RELIABLE,
            self.shrink
        )?;
        match self.alternatives.first().filter(|(_, variance)| *variance < RELIABLE) {
            Some((mechanism, variance)) => write!(f, " With {mechanism:?} it is {variance:.2e}."),
            None => write!(
                f,
                " No other map of the softmax kernel does better than that bound: use exact attention."
            ),
        }
    }
}
