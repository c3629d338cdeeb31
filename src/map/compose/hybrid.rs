//! [`Hybrid`]: hybrid maps from coefficients and bases.

use ndarray::ArrayRef1;

use super::part::{BaseCovariance, common_kernel, shared};
use super::{Coefficient, Known, Part, Size};
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::engine::{MapPlan, Sum, Term, TermFactor};
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::{Map, Mechanism};
use crate::numeric::special::ln_add_exp;
use crate::theory::{self, Pair};

/// A hybrid map Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q of any maps and coefficients.
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::frequency::{Independent, Orthogonal};
/// use random_features::compose::{Coefficient, Hybrid};
/// use random_features::{Map, Positive, Trigonometric};
/// let positive: Map<f64> = Positive.softmax(Orthogonal.draw(2, 32, 1)?)?;
/// let trigonometric = Trigonometric.softmax(Orthogonal.draw(2, 32, 2)?)?;
/// let lambda = Coefficient::angular(Independent.draw(2, 8, 3)?)?;
/// let map = Hybrid::sum(vec![(lambda, positive)], trigonometric)?;
/// // Two values of 8 signs times 32 + 64 features. Half of them are absent from a
/// // point.
/// assert_eq!(map.feature_dim(), 1536);
/// let x = arr1(&[0.3, 1.2]);
/// assert!((map.estimate(&x, &x)? / x.dot(&x).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With λ̂ₖ = aₖ + cₖ Ĉₖ the estimate is the sum of aₖ Pₖ, cₖ Ĉₖ Pₖ, (1 − Σ aₖ) Q and −cₖ Ĉₖ Q. Each term is a block of
/// features; products are tensor products of features, and signs of weights are applied on side Y. Pₖ, Q and Ĉₖ may be
/// any maps, including hybrids.
///
/// # Variance
/// Estimates are unbiased for the kernel of the bases if coefficients are independent of the bases. If the parts have closed
/// forms, independent parts have the variance Σ E λ̂ₖ² Var Pₖ + E (1 − Σ λ̂ₖ)² Var Q
/// ([`theory::hybrid`](crate::theory::hybrid)). Bipolar hybrids with shared frequencies have a closed form too
/// ([`angular`](Hybrid::angular), [`gaussian`](Hybrid::gaussian)).
///
/// # Exact where
/// An exact base has all of the weight. With Gaussian coefficients this holds only for pairwise estimates: products of
/// features are exact up to rounding of the estimates of the other bases.
///
/// # Cost
/// The cost of all parts, and writing the features: Dᵢ(1 + n) for a base with Dᵢ features and a coefficient with n
/// features, Dᵢn for a coefficient with n signs (memory for 2Dᵢn); O(nd + md + mn) per point. Equal projections are
/// computed once, also in nested hybrids. A pair of points in a Gram matrix costs Σ Dᵢ + n.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equations 8–11; signs instead of imaginary factors: new.
#[doc(alias = "HRF")]
#[doc(alias = "hybrid random features")]
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hybrid<M> {
    /// The coefficients λ̂ₖ with the bases Pₖ.
    pub terms: Vec<(Coefficient<M>, M)>,
    /// The base Q, which has the remaining weight.
    pub rest: M,
}

impl<M: Part> Hybrid<M> {
    /// The hybrid of terms (λ̂ₖ, Pₖ) and Q = `rest`, which has the remaining weight.
    ///
    /// All bases should estimate one kernel. Coefficients and bases should have different draws: parts with equal draws
    /// are dependent, and the variance then has a closed form only for bipolar hybrids. A user-defined
    /// [`FeatureMap`](crate::extend::FeatureMap) counts as independent of every map but itself, and your own copies of drawn frequencies
    /// count as independent of these.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) without terms or if a number or Σ aₖ is not finite; [`Shape`](Error::Shape) if the maps
    /// are for points of different dimensions.
    pub fn sum(terms: Vec<(Coefficient<M>, M)>, rest: M) -> Result<M> {
        M::of_composite(Hybrid { terms, rest }.into())
    }

    pub(super) fn dim(&self) -> usize {
        self.rest.dim()
    }

    pub(super) fn check(&self) -> Result<()> {
        check_positive("the number of terms of a hybrid", self.terms.len())?;
        self.coefficients().try_for_each(Coefficient::check)?;
        let left =
            |weight: fn(&Coefficient<M>) -> f64| self.coefficients().fold(1.0, |left, c| left - weight(c));
        let weights = [left(|coefficient| coefficient.constant), left(Coefficient::certain)];
        if let Some(value) = weights.into_iter().find(|left| !left.is_finite()) {
            let (name, domain) = ("the sum of the coefficients' constants", "finite");
            return Err(Error::Parameter { name, value, domain });
        }
        let dim = |map: &M| check_size("the dimension of a part of the hybrid", self.dim(), map.dim());
        self.children().into_iter().try_for_each(dim)
    }

    /// The sizes of the features, from the sizes of the parts: a product of maps has the product of their numbers.
    pub(super) fn size(&self) -> Size {
        let coefficients: Vec<_> = self.coefficients().collect();
        let sizes: Vec<Size> = self.parts().map(M::size).collect();
        let of_term = |term: &Term| match term.factor {
            TermFactor::One => sizes[term.right],
            // Each sign has a block for + and one for −.
            TermFactor::Equal(left) | TermFactor::Unequal(left) => {
                let blocks = sizes[left].features.saturating_mul(2);
                Size { features: blocks, blocks }.times(sizes[term.right])
            }
            TermFactor::Estimate(left) => sizes[left].times(sizes[term.right]),
        };
        // Terms without a weight have no features.
        weighed_parts(&coefficients).iter().filter(|term| term.weight != 0.0).map(of_term).sum()
    }

    pub(super) fn known(&self) -> Known<M::Scalar> {
        let parts: Vec<&M> = self.parts().collect();
        let shared = shared(&parts);
        let bases = self.terms.len() + 1;
        // A coefficient that depends on a base makes the hybrid biased.
        let depends = shared.iter().any(|(i, j)| (*i < bases) != (*j < bases));
        let kernel = if depends { None } else { common_kernel(self.bases()) };
        Known { kernel, covariance: covariance(&parts[..bases], &shared) }
    }

    pub(super) fn ln_variance(
        &self,
        known: &Known<M::Scalar>,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        let mut terms = Vec::new();
        let (mut mean, mut variance, mut complement_square, mut product) = (0.0, 0.0, 1.0, 0.0);
        // A weight that is only rounding error counts as 0.
        let weight = |square: f64, rounding: f64| if square.sqrt() > rounding { square } else { 0.0 };
        let mut rounding = 0.0f64;
        for (coefficient, base) in &self.terms {
            let moments = coefficient.moments_of_checked(x, y)?;
            rounding = rounding.max(coefficient.rounding());
            let square = weight(moments.square, coefficient.rounding());
            terms.push(weighed(square, base.ln_variance(x, y)?));
            mean += moments.mean;
            variance += moments.square - moments.mean * moments.mean;
            (complement_square, product) = (moments.complement_square, moments.product);
        }
        if self.terms.len() > 1 {
            complement_square = (1.0 - mean) * (1.0 - mean) + variance;
        }
        let rest = weighed(weight(complement_square, rounding), self.rest.ln_variance(x, y)?);
        let independent = terms.into_iter().fold(rest, ln_add_exp);
        match &known.covariance {
            BaseCovariance::Zero => Some(independent),
            BaseCovariance::Bipolar(kernel, m) => {
                let lengthscale = kernel.lengthscale();
                let pair = Pair::new(lengthscale.divide(x).zip(lengthscale.divide(y)));
                let scale = kernel.ln_squared_scale(&pair);
                Some(theory::hybrid::ln_with_bipolar_covariance(independent, product, &pair, scale, *m))
            }
            BaseCovariance::Unknown => None,
        }
    }
}

impl<M> Hybrid<M> {
    /// The bases P₁, …, Q.
    fn bases(&self) -> impl Iterator<Item = &M> {
        self.terms.iter().map(|(_, base)| base).chain([&self.rest])
    }

    fn coefficients(&self) -> impl Iterator<Item = &Coefficient<M>> {
        self.terms.iter().map(|(coefficient, _)| coefficient)
    }

    /// The bases, then the maps of the coefficients.
    fn parts(&self) -> impl Iterator<Item = &M> {
        self.bases().chain(self.coefficients().filter_map(|coefficient| coefficient.map.as_ref()))
    }

    pub(in crate::map) fn children(&self) -> Vec<&M> {
        let terms = self.terms.iter().flat_map(|(coefficient, base)| coefficient.map.iter().chain([base]));
        terms.chain([&self.rest]).collect()
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut M> {
        let terms = self.terms.iter_mut();
        let terms = terms.flat_map(|(coefficient, base)| coefficient.map.iter_mut().chain([base]));
        terms.chain([&mut self.rest]).collect()
    }

    /// The hybrid of the maps that `each` makes of its maps.
    pub(in crate::map) fn try_map<N, E>(
        &self,
        mut each: impl FnMut(&M) -> Result<N, E>,
    ) -> Result<Hybrid<N>, E> {
        let term =
            |(coefficient, base): &(Coefficient<M>, M)| Ok((coefficient.try_map(&mut each)?, each(base)?));
        Ok(Hybrid { terms: self.terms.iter().map(term).collect::<Result<_, E>>()?, rest: each(&self.rest)? })
    }
}

impl<T: Real> Hybrid<Map<T>> {
    /// A weighted sum of products of the bases and the coefficients' maps.
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        let coefficients: Vec<_> = self.coefficients().collect();
        let plans = self.parts().map(|map| map.program().plan().clone()).collect();
        Ok(MapPlan::Sum(Sum::new(plans, &weighed_parts(&coefficients))))
    }
}

impl<M: Identify> Identify for Hybrid<M> {
    fn identify(&self, digest: &mut Digest) {
        self.terms.identify(digest);
        self.rest.identify(digest);
    }
}

impl<M: std::fmt::Display> std::fmt::Display for Hybrid<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (coefficient, base) in &self.terms {
            write!(f, "({coefficient}) × [{base}] + ")?;
        }
        write!(f, "the rest × [{}]", self.rest)
    }
}

/// The terms of aₖ Pₖ + cₖ Ĉₖ Pₖ and of (1 − Σ aₖ) Q − Σ cₖ Ĉₖ Q, over P₁, …, Q and then the maps Ĉ.
///
/// Let e and u = 1 − e be the shares of signs that are equal and unequal for x and y, so that Ĉ = e − u. Writing λ̂ =
/// (a + c)e + (a − c)u avoids cancellation where one share is 0. The remaining weight is split by the shares of the
/// first signs.
fn weighed_parts<M: Part>(coefficients: &[&Coefficient<M>]) -> Vec<Term> {
    let rest = coefficients.len();
    let (mut next, mut divided) = (rest + 1, None);
    let (mut terms, mut of_rest, mut left) = (Vec::new(), Vec::new(), 1.0);
    for (base, coefficient) in coefficients.iter().enumerate() {
        let (a, c) = (coefficient.constant, coefficient.factor);
        left -= coefficient.certain();
        let Some(map) = &coefficient.map else {
            terms.push(Term { weight: a, factor: TermFactor::One, right: base });
            continue;
        };
        if map.is_of_signs() {
            let (equal, unequal) = (TermFactor::Equal(next), TermFactor::Unequal(next));
            terms.push(Term { weight: a + c, factor: equal, right: base });
            terms.push(Term { weight: a - c, factor: unequal, right: base });
            match divided {
                None => divided = Some((equal, unequal, 2.0 * c)),
                Some(_) => of_rest.push(Term { weight: 2.0 * c, factor: unequal, right: rest }),
            }
        } else {
            terms.push(Term { weight: a, factor: TermFactor::One, right: base });
            terms.push(Term { weight: c, factor: TermFactor::Estimate(next), right: base });
            of_rest.push(Term { weight: -c, factor: TermFactor::Estimate(next), right: rest });
        }
        next += 1;
    }
    match divided {
        None => terms.push(Term { weight: left, factor: TermFactor::One, right: rest }),
        Some((equal, unequal, more)) => {
            terms.push(Term { weight: left, factor: equal, right: rest });
            terms.push(Term { weight: left + more, factor: unequal, right: rest });
        }
    }
    terms.extend(of_rest);
    terms
}

/// The covariance of the bases, from the pairs of dependent parts.
fn covariance<M: Part>(bases: &[&M], shared: &[(usize, usize)]) -> BaseCovariance {
    match (shared, bases) {
        ([], _) => BaseCovariance::Zero,
        ([(0, 1)], [first, second]) => bipolar(*first, *second).unwrap_or(BaseCovariance::Unknown),
        _ => BaseCovariance::Unknown,
    }
}

/// The covariance of hyperbolic and trigonometric features for one kernel on shared frequencies, independent or in antithetic
/// pairs: both bases are even in ω, so a pair counts once.
fn bipolar<M: Part>(first: &M, second: &M) -> Option<BaseCovariance> {
    let (first, second) = (first.plain()?, second.plain()?);
    let kinds = matches!(
        (&first.mechanism, &second.mechanism),
        (Mechanism::Hyperbolic(_), Mechanism::Trigonometric(_))
    );
    let plain = first.matrix.is_none() && second.matrix.is_none() && first.kernel == second.kernel;
    let count = first.omega.law()?.effective_count()?;
    (kinds && plain).then(|| BaseCovariance::Bipolar(first.kernel.clone(), count))
}

/// ln of a squared weight times a variance; −∞ for weight 0, even if the variance is infinite.
fn weighed(square: f64, log_variance: f64) -> f64 {
    if square == 0.0 { f64::NEG_INFINITY } else { square.ln() + log_variance }
}
