//! [`Hybrid`]: hybrid maps from coefficients and bases.

use std::collections::HashSet;
use std::sync::Arc;

use ndarray::ArrayRef1;

use super::Coefficient;
use crate::engine::{Factor, FeatureMap, Plan, Sum, Term, is_of_signs};
use crate::error::{Error, Result, check_positive, check_size};
use crate::frequency::Frequencies;
use crate::kernel::Kernel;
use crate::map::{HybridRecipe, Map, Mechanism, Mixture, Origin, Recipe, Target};
use crate::theory::{self, Pair};
use crate::{Real, SignedLog};

/// A hybrid map Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q of any maps and coefficients.
///
/// # Definition
/// With λ̂ₖ = aₖ + cₖ Ĉₖ the estimate is the sum of aₖ Pₖ, cₖ Ĉₖ Pₖ, (1 − Σ aₖ) Q and −cₖ Ĉₖ Q. Each term is a block of
/// features; products are tensor products of features, and signs of weights are applied on side Y. Pₖ, Q and Ĉₖ may be
/// any maps, including hybrids.
///
/// # Variance
/// Unbiased for the kernel of the bases if coefficients are independent of the bases. A closed form exists where the
/// parts have one: Σ E λ̂ₖ² Var Pₖ + E (1 − Σ λ̂ₖ)² Var Q for independent parts
/// ([`theory::hybrid`](crate::theory::hybrid)), and for the bipolar hybrids with shared frequencies
/// ([`angular`](Hybrid::angular), [`gaussian`](Hybrid::gaussian)).
///
/// # Exact where
/// Where an exact base has all of the weight. With Gaussian coefficients this holds only for pairwise estimates:
/// products of features are exact up to rounding of the estimates of the other bases.
///
/// # Cost
/// That of all parts plus writing the features: Dᵢ(1 + n) for a base with Dᵢ features and a coefficient with n
/// features, Dᵢn for a coefficient with n signs (memory for 2Dᵢn); O(nd + md + mn) per point. Equal projections are
/// computed once, also in nested hybrids. A pair of points in a Gram matrix costs Σ Dᵢ + n.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Independent, Orthogonal, draw};
/// use random_features::compose::{Coefficient, Hybrid};
/// use random_features::{Positive, Trigonometric, rng};
/// let mut rng = rng(1);
/// let mut omega = || draw(2, 32, &Orthogonal, &mut rng);
/// let (positive, trigonometric) = (Positive.softmax(omega()?)?, Trigonometric.softmax(omega()?)?);
/// let lambda = Coefficient::<f64>::angular(draw(2, 8, &Independent, &mut rng)?)?;
/// let map = Hybrid::sum(vec![(lambda, positive)], trigonometric)?;
/// // Two values of 8 signs times 32 + 64 features; half of them are absent from a point.
/// assert_eq!(map.feature_dim(), 1536);
/// let x = arr1(&[0.3, 1.2]);
/// assert!((map.estimate(&x, &x)? / x.dot(&x).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equations 8–11; signs instead of imaginary factors: new.
#[derive(Clone, Copy, Debug)]
pub struct Hybrid;

impl Hybrid {
    /// The hybrid of terms (λ̂ₖ, Pₖ) and Q = `rest`, which has the remaining weight.
    ///
    /// All bases should estimate the same kernel. Coefficients and bases should have different, independent
    /// frequencies; shared frequencies are detected, and the variance then has no closed form. A user-defined
    /// [`FeatureMap`](crate::FeatureMap) counts as independent of every map but itself.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) without terms or if Σ aₖ overflows; [`Shape`](Error::Shape) if the maps are for
    /// points of different dimensions.
    pub fn sum<T: Real>(terms: Vec<(Coefficient<T>, Map<T>)>, rest: Map<T>) -> Result<Map<T>> {
        check_positive("the number of terms of a hybrid", terms.len())?;
        let (coefficients, mut bases): (Vec<_>, Vec<_>) = terms.into_iter().unzip();
        bases.push(rest);
        let maps = || bases.iter().chain(coefficients.iter().filter_map(|c| c.map.as_ref()));
        for map in maps() {
            check_size("the dimension of a part of the hybrid", bases[0].input_dim(), map.input_dim())?;
        }
        let weighed = weighed_parts(&coefficients)?;
        let plans = maps().map(|map| map.program().plan().clone()).collect();
        let parts: Vec<Map<T>> = maps().cloned().collect();
        let shared = shared(&parts);
        let covariance = Covariance::of(&bases, &shared);
        // A coefficient that depends on a base makes the hybrid biased.
        let depends = shared.iter().any(|(i, j)| (*i < bases.len()) != (*j < bases.len()));
        let unbiased = !depends && super::agree(&bases);
        let plan = Plan::Sum(Sum::new(plans, &weighed));
        Map::of_plan(plan, Composition { coefficients, bases, covariance, unbiased })
    }
}

/// The terms of aₖ Pₖ + cₖ Ĉₖ Pₖ and of (1 − Σ aₖ) Q − Σ cₖ Ĉₖ Q, over P₁, …, Q and then the maps Ĉ.
///
/// Let e and u = 1 − e be the shares of signs that are equal and unequal for x and y, so that Ĉ = e − u. Writing λ̂ =
/// (a + c)e + (a − c)u avoids cancellation where one share is 0. The remaining weight is split by the shares of the
/// first signs.
fn weighed_parts<T: Real>(coefficients: &[Coefficient<T>]) -> Result<Vec<Term>> {
    let rest = coefficients.len();
    let (mut next, mut divided) = (rest + 1, None);
    let (mut terms, mut of_rest, mut left) = (Vec::new(), Vec::new(), 1.0);
    for (base, coefficient) in coefficients.iter().enumerate() {
        let (a, c) = (coefficient.constant, coefficient.factor);
        let Some(map) = &coefficient.map else {
            terms.push(Term { weight: a, factor: Factor::One, right: base });
            left -= a;
            continue;
        };
        if is_of_signs(map.program().plan()) {
            let (equal, unequal) = (Factor::Equal(next), Factor::Unequal(next));
            terms.push(Term { weight: a + c, factor: equal, right: base });
            terms.push(Term { weight: a - c, factor: unequal, right: base });
            left -= a + c;
            match divided {
                None => divided = Some((equal, unequal, 2.0 * c)),
                Some(_) => of_rest.push(Term { weight: 2.0 * c, factor: unequal, right: rest }),
            }
        } else {
            terms.push(Term { weight: a, factor: Factor::One, right: base });
            terms.push(Term { weight: c, factor: Factor::Estimate(next), right: base });
            of_rest.push(Term { weight: -c, factor: Factor::Estimate(next), right: rest });
            left -= a;
        }
        next += 1;
    }
    if !left.is_finite() {
        let (name, domain) = ("the sum of the coefficients' constants", "finite");
        return Err(Error::Parameter { name, value: left, domain });
    }
    match divided {
        None => terms.push(Term { weight: left, factor: Factor::One, right: rest }),
        Some((equal, unequal, more)) => {
            terms.push(Term { weight: left, factor: equal, right: rest });
            terms.push(Term { weight: left + more, factor: unequal, right: rest });
        }
    }
    terms.extend(of_rest);
    Ok(terms)
}

/// What is known about the covariance of different bases.
#[derive(Clone, Debug)]
enum Covariance {
    /// 0: the bases are independent.
    Zero,
    /// Hyperbolic and trigonometric features share frequencies that are worth m independent ones, for this target.
    Bipolar(Target, f64),
    /// Bases share frequencies in another way.
    Unknown,
}

impl Covariance {
    /// The covariance, from the bases and the pairs of dependent parts.
    fn of<T: Real>(bases: &[Map<T>], shared: &[(usize, usize)]) -> Self {
        match (shared, bases) {
            ([], _) => Covariance::Zero,
            ([(0, 1)], [first, second]) => bipolar(first, second).unwrap_or(Covariance::Unknown),
            _ => Covariance::Unknown,
        }
    }
}

/// The pairs of maps that share frequencies and are therefore dependent.
fn shared<T: Real>(parts: &[Map<T>]) -> Vec<(usize, usize)> {
    let random: Vec<Randomness<'_, T>> = parts.iter().map(Randomness::of).collect();
    let pairs = (0..parts.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    pairs.filter(|(i, j)| random[*i].meets(&random[*j])).collect()
}

/// Hyperbolic and trigonometric features for one target on the same frequencies, independent or in antithetic pairs: both
/// bases are even in ω, so a pair counts once.
fn bipolar<T: Real>(first: &Map<T>, second: &Map<T>) -> Option<Covariance> {
    let (Recipe::Plain(first), Recipe::Plain(second)) = (first.recipe()?, second.recipe()?) else {
        return None;
    };
    let kinds = matches!(
        (&first.mechanism, &second.mechanism),
        (Mechanism::Hyperbolic(_), Mechanism::Trigonometric(_))
    );
    let omega = first.omega.frequencies(first.mechanism.name()).ok()?;
    let plain = first.matrix.is_none() && second.matrix.is_none() && first.target == second.target;
    let count = omega.law().effective_count()?;
    (kinds && plain).then(|| Covariance::Bipolar(first.target.clone(), count))
}

/// The random parts of a map.
struct Randomness<'a, T: Real> {
    frequencies: Vec<Arc<Frequencies>>,
    foreign: Vec<&'a Arc<dyn FeatureMap<T>>>,
}

impl<'a, T: Real> Randomness<'a, T> {
    fn of(map: &'a Map<T>) -> Self {
        let mut own = Randomness { frequencies: Vec::new(), foreign: Vec::new() };
        map.program().plan().each_leaf(&mut |leaf| match leaf {
            Plan::Leaf(leaf) => own.frequencies.extend(leaf.source.iter().cloned()),
            Plan::Foreign(map, _) => own.foreign.push(map),
            _ => {}
        });
        own
    }

    fn meets(&self, other: &Self) -> bool {
        self.frequencies.iter().any(|a| other.frequencies.iter().any(|b| share_rows(a, b)))
            || self.foreign.iter().any(|a| other.foreign.iter().any(|b| Arc::ptr_eq(a, b)))
    }
}

/// Whether two draws share rows. In one dimension, and for counts, single rows may be equal by chance, so only complete
/// draws are compared.
fn share_rows(a: &Arc<Frequencies>, b: &Arc<Frequencies>) -> bool {
    if Arc::ptr_eq(a, b) || a.structured().is_some() && a.structured() == b.structured() {
        return true;
    }
    if a.structured().is_some() || b.structured().is_some() || a.dim() != b.dim() {
        return false;
    }
    let (a, b) = (a.rows(), b.rows());
    let whole = |v: &f64| v.fract() == 0.0;
    if a.ncols() == 1 || a.iter().all(whole) {
        return a == b;
    }
    let bits = |row: ndarray::ArrayView1<'_, f64>| row.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let known: HashSet<Vec<u64>> = a.rows().into_iter().map(bits).collect();
    b.rows().into_iter().any(|row| row.iter().any(|v| *v != 0.0) && known.contains(&bits(row)))
}

/// The origin of a hybrid.
#[derive(Debug)]
struct Composition<T: Real> {
    coefficients: Vec<Coefficient<T>>,
    /// P₁, …, Q.
    bases: Vec<Map<T>>,
    covariance: Covariance,
    /// Whether the hybrid estimates the kernel of the bases.
    unbiased: bool,
}

impl<T: Real> Origin<T> for Composition<T> {
    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.bases.last().filter(|_| self.unbiased).and_then(|rest| rest.kernel())
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        let mut terms = Vec::new();
        let (mut mean, mut variance, mut complement_square, mut product) = (0.0, 0.0, 1.0, 0.0);
        // A weight that is only rounding error counts as 0.
        let weight = |square: f64, rounding: f64| if square.sqrt() > rounding { square } else { 0.0 };
        let mut rounding = 0.0f64;
        for (coefficient, base) in self.coefficients.iter().zip(&self.bases) {
            let moments = coefficient.moments(x, y).ok()??;
            rounding = rounding.max(coefficient.rounding());
            let square = weight(moments.square, coefficient.rounding());
            terms.push(weighed(square, base.log_variance(x, y).ok()??));
            mean += moments.mean;
            variance += moments.square - moments.mean * moments.mean;
            (complement_square, product) = (moments.complement_square, moments.product);
        }
        if self.coefficients.len() > 1 {
            complement_square = (1.0 - mean) * (1.0 - mean) + variance;
        }
        let rest = self.bases.last()?.log_variance(x, y).ok()??;
        let rest = weighed(weight(complement_square, rounding), rest);
        let independent = terms.into_iter().fold(rest, theory::ln_add_exp);
        match &self.covariance {
            Covariance::Zero => Some(independent),
            Covariance::Bipolar(target, m) => Some(shared_variance(independent, product, (target, *m), x, y)),
            Covariance::Unknown => None,
        }
    }

    fn mixture(&self) -> Option<Mixture<'_, T>> {
        let rest = self.bases.last()?;
        let terms = self.coefficients.iter().map(Coefficient::weight).zip(&self.bases).collect();
        Some(Mixture { terms, rest })
    }

    fn recipe(&self) -> Option<Recipe> {
        let rest = Box::new(self.bases.last()?.recipe()?);
        let pairs = self.coefficients.iter().zip(&self.bases);
        let terms = pairs.map(|(coefficient, base)| Some((coefficient.recipe()?, base.recipe()?)));
        Some(Recipe::Hybrid(HybridRecipe { terms: terms.collect::<Option<Vec<_>>>()?, rest }))
    }
}

/// ln of a squared weight times a variance; −∞ for weight 0, even if the variance is infinite.
fn weighed(square: f64, log_variance: f64) -> f64 {
    if square == 0.0 { f64::NEG_INFINITY } else { square.ln() + log_variance }
}

/// The variance with the covariance of hyperbolic and trigonometric features on frequencies that are worth m independent ones.
fn shared_variance<T: Real>(
    independent: f64,
    product: f64,
    (target, m): (&Target, f64),
    x: &ArrayRef1<T>,
    y: &ArrayRef1<T>,
) -> f64 {
    let lengthscale = target.lengthscale();
    let pair = Pair::new(lengthscale.divide(x).zip(lengthscale.divide(y)));
    let turn = (0.5 * pair.norm_difference).sin().powi(2);
    let scale = target.ln_squared_scale(&pair) - m.ln();
    let shared = SignedLog::from(-4.0 * turn * product).scaled(scale);
    let total = SignedLog::sum([SignedLog::positive(independent), shared].into_iter());
    if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs }
}
