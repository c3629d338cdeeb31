//! [`WeightedSum`]: the sum of the kernels of several maps.

use std::sync::Arc;

use ndarray::ArrayRef1;

use super::part::shared;
use super::{Known, Part, Size};
use crate::digest::{Digest, Identify, Identity};
use crate::engine::{MapPlan, Sum, Term, TermFactor};
use crate::error::{Result, check_positive, check_size, checked_positive};
use crate::kernel::{Kernel, gradient::ScaledSum};
use crate::map::Map;
use crate::numeric::special::ln_sum_exp;
use crate::{Real, SignedLog};

/// A weighted sum Σ wₖ Pₖ of maps, which estimates the sum Σ wₖ Kₖ of their kernels.
///
/// ```
/// use random_features::compose::WeightedSum;
/// use random_features::kernel::{Angular, Gaussian, Kernel};
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Recipe};
/// let near = Recipe::for_kernel(Gaussian::new(0.5)?, 2, 64)?;
/// let angle = Recipe::for_kernel(Angular, 2, 32)?;
/// let both: Recipe = WeightedSum::of(vec![(0.7, near), (0.3, angle)])?;
/// let map: Map<f64> = both.draw(7)?;
/// let (x, y) = (arr1(&[1.0, 0.2]), arr1(&[0.8, 0.6]));
/// let exact = 0.7 * Gaussian::new(0.5)?.value(&x, &y)?
///     + 0.3 * Angular.value(&x, &y)?;
/// assert!((map.estimate(&x, &y)? - exact).abs() < 0.2);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// The features are the features of each map times √wₖ, one map after another. Maps may estimate different kernels. The
/// kernel of the sum is known if the kernels of all maps are.
///
/// # Variance
/// Σ wₖ² Var Pₖ if all parts have closed forms and draws of their own. Recipes of equal draws share their frequencies, and there is no
/// closed form: give them different m or other [streams](crate::recipe::Draw::with_stream).
///
/// # Exact where
/// Where all parts are exact.
///
/// # Cost
/// The cost of all parts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WeightedSum<M> {
    /// The weights wₖ, positive and finite, one for each map.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub weights: Vec<f64>,
    /// The maps Pₖ, one for each weight.
    pub maps: Vec<M>,
}

impl<M: Part> WeightedSum<M> {
    /// Makes the sum Σ wₖ Pₖ from pairs (wₖ, Pₖ).
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) without maps, or unless all weights are positive and finite;
    /// [`Shape`](crate::Error::Shape) if the maps are for points of different dimensions.
    pub fn of(terms: Vec<(f64, M)>) -> Result<M> {
        let (weights, maps) = terms.into_iter().unzip();
        M::of_composite(WeightedSum { weights, maps }.into())
    }

    pub(super) fn dim(&self) -> usize {
        self.maps.first().map_or(0, M::dim)
    }

    pub(super) fn check(&self) -> Result<()> {
        check_positive("the number of maps of a sum", self.maps.len())?;
        check_size("the number of weights of a sum", self.maps.len(), self.weights.len())?;
        self.weights
            .iter()
            .try_for_each(|weight| checked_positive("the weight of a map", *weight).map(drop))?;
        let dim = |map: &M| check_size("the dimension of a map of a sum", self.dim(), map.dim());
        self.maps.iter().try_for_each(dim)
    }

    pub(super) fn size(&self) -> Size {
        self.maps.iter().map(M::size).sum()
    }

    pub(super) fn known(&self) -> Known<M::Scalar> {
        let kernels: Option<Vec<_>> = self.maps.iter().map(|map| map.known().kernel.clone()).collect();
        let sum = |kernels| Arc::new(KernelSum { weights: self.weights.clone(), kernels });
        Known::of_kernel(kernels.map(|kernels| sum(kernels) as Arc<dyn Kernel<M::Scalar>>))
    }

    pub(super) fn ln_variance(
        &self,
        _: &Known<M::Scalar>,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        if !shared(&self.children()).is_empty() {
            return None;
        }
        let of = |(weight, map): (&f64, &M)| Some(2.0 * weight.ln() + map.ln_variance(x, y)?);
        let terms: Option<Vec<f64>> = self.weights.iter().zip(&self.maps).map(of).collect();
        terms.map(|terms| ln_sum_exp(&terms))
    }
}

impl<M> WeightedSum<M> {
    pub(super) fn children(&self) -> Vec<&M> {
        self.maps.iter().collect()
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut M> {
        self.maps.iter_mut().collect()
    }

    pub(super) fn try_map<N, E>(&self, each: impl FnMut(&M) -> Result<N, E>) -> Result<WeightedSum<N>, E> {
        let maps = self.maps.iter().map(each).collect::<Result<_, E>>()?;
        Ok(WeightedSum { weights: self.weights.clone(), maps })
    }
}

impl<T: Real> WeightedSum<Map<T>> {
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        let plans = self.maps.iter().map(|map| map.program().plan().clone()).collect();
        let term = |(right, weight): (usize, &f64)| Term { weight: *weight, factor: TermFactor::One, right };
        let terms: Vec<Term> = self.weights.iter().enumerate().map(term).collect();
        Ok(MapPlan::Sum(Sum::new(plans, &terms)))
    }
}

impl<M: Identify> Identify for WeightedSum<M> {
    fn identify(&self, digest: &mut Digest) {
        (&self.weights, &self.maps).identify(digest);
    }
}

impl<M: std::fmt::Display> std::fmt::Display for WeightedSum<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (k, (weight, map)) in self.weights.iter().zip(&self.maps).enumerate() {
            write!(f, "{}{weight} × [{map}]", if k == 0 { "" } else { " + " })?;
        }
        Ok(())
    }
}

/// The kernel Σ wₖ Kₖ.
#[derive(Debug)]
struct KernelSum<S> {
    weights: Vec<f64>,
    kernels: Vec<Arc<dyn Kernel<S>>>,
}

impl<S: Real> KernelSum<S> {
    fn terms(&self) -> impl Iterator<Item = (f64, &dyn Kernel<S>)> {
        self.weights.iter().map(|weight| weight.ln()).zip(self.kernels.iter().map(|kernel| &**kernel))
    }
}

impl<S: Real> Kernel<S> for KernelSum<S> {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.kernels.iter().try_for_each(|kernel| kernel.check_dim(d))
    }

    fn log_of_slices(&self, x: &[S], y: &[S]) -> SignedLog {
        let terms: Vec<SignedLog> =
            self.terms().map(|(ln_weight, kernel)| kernel.log_of_slices(x, y).scaled(ln_weight)).collect();
        SignedLog::sum(terms.into_iter())
    }

    fn gradient_of_slices(&self, x: &[S], y: &[S], out: &mut [f64]) -> Option<f64> {
        let mut sum = ScaledSum::new(out.len());
        for (ln_weight, kernel) in self.terms() {
            let ln_scale = kernel.gradient_of_slices(x, y, out)?;
            if ln_scale.is_nan() || ln_scale == f64::INFINITY {
                // Beside it the others are nothing.
                return Some(ln_scale);
            }
            sum.add(out, SignedLog::positive(ln_weight + ln_scale));
        }
        out.copy_from_slice(&sum.numbers);
        Some(sum.ln_scale)
    }

    fn identity(&self) -> Option<Identity> {
        let each: Option<Vec<Identity>> = self.kernels.iter().map(|kernel| kernel.identity()).collect();
        each.map(|each| Identity::of(&("weighted sum", (&self.weights, each))))
    }
}
