//! [`Closed`]: reports by closed forms.

use std::sync::Arc;

use ndarray::Array2;

use super::covariances::PointProducts;
use super::expected::SamplePairs;
use super::sample::AttentionSample;
use super::shrink::{fitted, mean_squares, shrink};
use super::tokens::Mask;
use super::{ErrorReport, RELIABLE};
use crate::error::{Error, Result};
use crate::frequency::{Draw, Independent};
use crate::kernel::{Gaussian, Kernel, Softmax};
use crate::map::compose::{Composite, Conditioned, Conditioning};
use crate::map::{AnyKernel, Covariance, Mechanism, PlainRecipe, Recipe};
use crate::memory::check_memory;
use crate::theory::Basis;

/// The errors that closed forms expect for tokens, as points and values, of which some pairs may not be estimated.
pub(super) fn expected_errors(
    recipe: Option<&Recipe>,
    tokens: [Array2<f64>; 3],
    mask: Mask,
) -> Result<ErrorReport> {
    recipe.map_or(Ok(()), Recipe::check)?;
    Closed::of(recipe)?.report(tokens, mask)
}

/// A report of errors alone, for a map that is drawn.
pub(super) fn own_errors(
    recipe: Option<&Recipe>,
    tokens: [Array2<f64>; 3],
    mask: Mask,
) -> Result<ErrorReport> {
    Closed::of(recipe)?.errors(tokens, mask)
}

/// The errors that closed forms expect, without what else a report says; `None` where there are none.
pub(crate) fn closed_errors(recipe: &Recipe, tokens: [Array2<f64>; 3]) -> Result<Option<ErrorReport>> {
    Closed::new(recipe).map(|closed| closed.errors(tokens, Mask::default())).transpose()
}

/// A map that has closed forms.
struct Closed {
    plain: PlainRecipe,
    conditioning: Option<Conditioning>,
    covariance: Covariance,
    /// The kernel of the features.
    kernel: Arc<dyn Kernel<f64>>,
}

/// Tokens with what a map makes of them.
struct MappedTokens {
    /// The tokens themselves, with the exact kernel.
    itself: AttentionSample,
    /// The tokens with the kernel of the features.
    sample: AttentionSample,
    /// The points after conditioning.
    images: [Array2<f64>; 2],
    products: PointProducts,
}

impl Closed {
    /// The closed forms of a recipe that must have them.
    fn of(recipe: Option<&Recipe>) -> Result<Self> {
        let what =
            "a closed form for the errors of attention with this map: take Attention::simulated_report";
        recipe.and_then(Closed::new).ok_or(Error::Unsupported { what })
    }

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

    /// The report for tokens, as points and values.
    fn report(&self, tokens: [Array2<f64>; 3], mask: Mask) -> Result<ErrorReport> {
        let MappedTokens { itself, sample, images, products } = self.seen(tokens, mask)?;
        let mut report =
            self.of_pairs(SamplePairs { sample: &sample, images: &images, products: &products })?;
        // Others are for the points themselves and the kernel itself.
        let own = self.conditioning.is_some().then(|| PointProducts::new(&itself.points));
        let products = own.as_ref().unwrap_or(&products);
        report.alternatives =
            self.alternatives(SamplePairs { sample: &itself, images: &itself.points, products })?;
        Ok(report)
    }

    /// Errors alone.
    fn errors(&self, tokens: [Array2<f64>; 3], mask: Mask) -> Result<ErrorReport> {
        let MappedTokens { sample, images, products, .. } = self.seen(tokens, mask)?;
        let pairs = SamplePairs { sample: &sample, images: &images, products: &products };
        let errors = pairs.errors(&self.covariance)?;
        Ok(ErrorReport::new(Basis::ClosedForm, self.plain.omega.m(), sample.has_values(), errors))
    }

    /// Tokens as the map sees them.
    fn seen(&self, [x, y, values]: [Array2<f64>; 3], mask: Mask) -> Result<MappedTokens> {
        let (queries, keys, float) = (x.nrows(), y.nrows(), size_of::<f64>());
        check_memory("covariances of pairs of keys", keys.saturating_mul(keys), 4 * float)?;
        // Logits, kernels and products.
        check_memory("pairs of queries and keys", queries.saturating_mul(keys), 8 * float)?;
        let ln_kernel =
            if self.kernel.exponential().is_none() { Some(self.kernel.log_gram(&x, &y)?) } else { None };
        let points = [x, y].map(|x| self.plain.kernel.lengthscale().divide_rows(x));
        let images = match &self.conditioning {
            None => points.clone(),
            Some(conditioning) => [0, 1].map(|side| conditioning.images(side, &points[side])),
        };
        let itself = AttentionSample::new(points, values, self.plain.kernel.is_shift_invariant());
        let itself = itself.with_mask(mask);
        // ln of the features' kernel less that of the softmax or the Gaussian kernel.
        let log_ratio = ln_kernel.map(|ln_kernel| ln_kernel - itself.ln_kernel());
        let (sample, products) = (itself.clone().with_ratio(log_ratio), PointProducts::new(&images));
        Ok(MappedTokens { itself, sample, images, products })
    }

    /// The report without alternatives.
    fn of_pairs(&self, pairs: SamplePairs<'_>) -> Result<ErrorReport> {
        let frequencies = self.plain.omega.m();
        let (errors, most) = (pairs.errors(&self.covariance)?, frequencies as f64 * RELIABLE);
        let mut report = ErrorReport::new(Basis::ClosedForm, frequencies, pairs.sample.has_values(), errors);
        let reliable = errors.normaliser < most;
        report.shrink = if reliable { 1.0 } else { shrink(pairs, &self.plain, &self.covariance, most)? };
        Ok(report)
    }

    /// Other mechanisms with the relative variance of their normalisers, the least first.
    fn alternatives(&self, pairs: SamplePairs<'_>) -> Result<Vec<(Mechanism, f64)>> {
        let frequencies = self.plain.omega.m() as f64;
        let same = self.conditioning.is_none() && !self.covariance.spherical;
        let mechanisms = [
            Mechanism::Positive(crate::Positive),
            Mechanism::Hyperbolic(crate::Hyperbolic),
            Mechanism::Trigonometric(crate::Trigonometric),
            fitted(&mean_squares(pairs.images))?,
        ];
        let queries: Vec<usize> = (0..pairs.sample.queries()).collect();
        let mut alternatives = Vec::new();
        for other in mechanisms.into_iter().filter(|other| !(same && *other == self.plain.mechanism)) {
            if let Some(covariance) = self.other(other.clone()).covariance() {
                let variance = pairs.worst(&covariance, 1.0, &queries)?.variance / frequencies;
                alternatives.push((other, variance));
            }
        }
        alternatives.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(alternatives)
    }

    /// Another mechanism for the kernel that the features are meant for, on as many independent frequencies.
    fn other(&self, mechanism: Mechanism) -> PlainRecipe {
        let (d, m) = (self.plain.omega.dim(), self.plain.omega.m());
        let target: AnyKernel = match self.plain.kernel.is_shift_invariant() {
            true => Gaussian::default().into(),
            false => Softmax::default().into(),
        };
        PlainRecipe::new(mechanism, Draw::new(d, m, Independent), target)
    }
}
