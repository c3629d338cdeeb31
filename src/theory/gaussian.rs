//! Mean squared errors of the maps on Gaussian frequencies, for any known law.
//!
//! An estimate is the mean of m terms f(ωᵢ), so m² MSE is the sum of the m variances and of the covariances of all
//! ordered pairs. The covariance is 0 for independent pairs and the conformity excess for pairs at a fixed angle. The
//! covariance of an antithetic pair is added directly to the variances of its two terms, since they may cancel. All values
//! are logarithms, relative to the squared kernel.

use std::f64::consts::LN_2;
use std::sync::Arc;

use super::conformity::{conformity_excess, even_conformity_excess, signed_trigonometric_excess};
use super::coupled_radii::PairChange;
use super::law::CoupledPairs;
use super::overall::OverallStrata;
use super::{Law, Pair, Radius};
use crate::SignedLog;
use crate::numeric::special::{chi_quantile, expm1, ln_0f1, ln_1m_exp, ln_add_exp, ln_expm1, ln_sinh};

/// The terms of the variance of a mean.
pub(super) struct VarianceTerms<'a> {
    /// The variance of one term.
    pub single: SignedLog,
    /// The mean variance of the two terms of an antithetic pair, plus their covariance.
    pub antithetic: SignedLog,
    /// The covariance of two terms whose frequencies are at the angle with this cosine.
    pub angle: &'a dyn Fn(f64) -> SignedLog,
    /// The change of the covariances of these pairs by coupled radii, if it is known.
    pub coupled: &'a dyn Fn(CoupledPairs) -> Option<SignedLog>,
}

/// The `coupled` of terms without a closed form for coupled radii.
pub(super) fn not_known(_: CoupledPairs) -> Option<SignedLog> {
    None
}

/// The change for positive features, or for hyperbolic ones, which are even, relative to e^{v²}.
fn exponential_change(pair: &Pair, of: CoupledPairs, even: bool) -> Option<SignedLog> {
    match of {
        CoupledPairs::Block(own, size) => {
            Some(PairChange::of(pair.dim, size, own, even)?.exponential(pair.sum))
        }
        CoupledPairs::Across(m) => Some(SignedLog::from(strata(pair.dim, m)?.exponential(pair.sum))),
    }
}

/// The change for trigonometric features.
fn trigonometric_change(pair: &Pair, of: CoupledPairs) -> Option<SignedLog> {
    let change = match of {
        CoupledPairs::Block(own, size) => {
            PairChange::of(pair.dim, size, own, true)?.trigonometric(pair.difference)
        }
        CoupledPairs::Across(m) => {
            strata(pair.dim, m)?.trigonometric(pair.difference, (-0.5 * pair.difference).exp_m1())
        }
    };
    change.map(SignedLog::from)
}

/// The strata of radii χ.
fn strata(d: usize, m: usize) -> Option<Arc<OverallStrata>> {
    OverallStrata::of(&|p| Some(chi_quantile(d as f64, p)), d, m)
}

impl VarianceTerms<'_> {
    /// ln of the variance of the mean under a law whose radii are of the given kind; `None` if the law is not known.
    pub(super) fn ln_variance(&self, law: &Law, radius: Radius) -> Option<f64> {
        let pairs = law.coupled_pairs(radius)?;
        let m = law.len() as f64;
        let opposite = 2.0 * pairs.antithetic;
        let variances = [(m - opposite, self.single), (opposite, self.antithetic)];
        let covariances = pairs.angles.iter().map(|(cos, count)| (*count, (self.angle)(*cos)));
        let of_block = |(of, count): &(CoupledPairs, f64)| Some((*count, (self.coupled)(*of)?));
        let changes = pairs.coupled.iter().map(of_block).collect::<Option<Vec<_>>>()?;
        let terms = variances.into_iter().chain(covariances).chain(changes).filter(|(count, _)| *count > 0.0);
        let terms: Vec<SignedLog> = terms.map(|(count, term)| term.scaled(count.ln())).collect();
        let total = SignedLog::sum(terms.into_iter());
        // A sum that rounding made negative counts as zero.
        Some(if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs - 2.0 * m.ln() })
    }
}

/// ln MSE of the positive estimate of exp(x·y).
///
/// Independent: exp(2x·y)(e^{‖x+y‖²} − 1)/m; each coupled pair adds exp(−‖x‖²−‖y‖²)(ρ − e^{‖x+y‖²})/m²; an antithetic
/// pair is one hyperbolic projection.
///
/// Source: Performers, Lemma 2; Simplex Random Features, Theorem 3.2; antithetic: Hybrid Random Features,
/// equation 3.
pub fn positive(pair: &Pair, law: &Law) -> Option<f64> {
    let terms = VarianceTerms {
        single: SignedLog::positive(ln_expm1(pair.sum)),
        // (e^{v²} − 1)² e^{−v²} = 4 sinh²(v²/2)
        antithetic: SignedLog::positive(2.0 * (LN_2 + ln_sinh(0.5 * pair.sum))),
        angle: &|cos| conformity_excess(pair.dim, pair.sum, cos),
        coupled: &|of| exponential_change(pair, of, false),
    };
    Some(terms.ln_variance(law, Radius::Chi)? + 2.0 * pair.dot)
}

/// ln MSE of the hyperbolic estimate of exp(x·y).
///
/// Independent: exp(−‖x‖²−‖y‖²)(e^{‖x+y‖²} − 1)²/(2m). Even in ω: an antithetic pair counts once.
///
/// Source: Performers, Lemma 2; Hybrid Random Features, Lemma 2.2; coupled: new.
pub fn hyperbolic(pair: &Pair, law: &Law) -> Option<f64> {
    let single = SignedLog::positive(LN_2 + 2.0 * ln_sinh(0.5 * pair.sum));
    let terms = VarianceTerms {
        single,
        antithetic: single.scaled(LN_2),
        angle: &|cos| even_conformity_excess(pair.dim, pair.sum, cos),
        coupled: &|of| exponential_change(pair, of, true),
    };
    Some(terms.ln_variance(law, Radius::Chi)? + 2.0 * pair.dot)
}

/// ln MSE of the trigonometric estimate of exp(x·y).
///
/// Independent: exp(‖x‖²+‖y‖²)(1 − e^{−‖x−y‖²})²/(2m). Even in ω: an antithetic pair counts once. Orthogonality reduces
/// the error for moderate ‖x−y‖ and may increase it for large ‖x−y‖.
///
/// Source: Performers, Lemma 2; Hybrid Random Features, Lemma 2.2; Simplex Random Features, equation 26; with
/// an angle: new.
pub fn trigonometric(pair: &Pair, law: &Law) -> Option<f64> {
    let single = SignedLog::positive(2.0 * ln_1m_exp(pair.difference) - LN_2);
    let terms = VarianceTerms {
        single,
        antithetic: single.scaled(LN_2),
        angle: &|cos| signed_trigonometric_excess(pair.dim, pair.difference, cos),
        coupled: &|of| trigonometric_change(pair, of),
    };
    Some(terms.ln_variance(law, Radius::Chi)? + pair.norms)
}

/// ln of the variance of the positive estimate with ‖ω‖ = √d, an unbiased estimate of the regularised softmax kernel.
///
/// exp(−‖x‖²−‖y‖²) (q(4d‖x+y‖²) − q(d‖x+y‖²)²)/m with q(t) = ₀F₁(; d/2; t/4), plus (q((2+2cos θ)d‖x+y‖²) − q²)/m² for
/// each coupled pair. The mean squared error for the softmax kernel is larger by the squared difference of the kernels.
///
/// Source: new (the kernel: Performers, Theorem 1).
pub fn regularised_positive(pair: &Pair, law: &Law) -> Option<f64> {
    let q = PairSphereMeans::new(pair);
    let terms = VarianceTerms {
        single: q.excess(Turns::One(1.0)),
        // The mean of the square of a term, q(4·), and of the product of both, q(0).
        antithetic: q.excess(Turns::Both(1.0)).scaled(LN_2),
        angle: &|cos| q.excess(Turns::One(cos)),
        coupled: &not_known,
    };
    Some(terms.ln_variance(law, Radius::RootDim)? + 2.0 * q.ln_mean() - pair.norms)
}

/// ln of the mean squared error of the positive estimate with ‖ω‖ = √d for the softmax kernel: the variance plus the
/// squared difference of the kernels. Source: new.
pub fn regularised_positive_about_softmax(pair: &Pair, law: &Law) -> Option<f64> {
    let variance = regularised_positive(pair, law)?;
    let ratio = PairSphereMeans::new(pair).ln_mean() - 0.5 * pair.sum;
    Some(ln_add_exp(variance, 2.0 * (pair.dot + ln_1m_exp((-ratio).max(0.0)))))
}

/// ln of the variance of the hyperbolic estimate with ‖ω‖ = √d, an unbiased estimate of the regularised softmax kernel.
/// Source: new.
pub fn regularised_hyperbolic(pair: &Pair, law: &Law) -> Option<f64> {
    let q = PairSphereMeans::new(pair);
    let single = q.excess(Turns::Both(1.0));
    let terms = VarianceTerms {
        single,
        antithetic: single.scaled(LN_2),
        angle: &|cos| q.excess(Turns::Both(cos)),
        coupled: &not_known,
    };
    Some(terms.ln_variance(law, Radius::RootDim)? + 2.0 * q.ln_mean() - pair.norms)
}

/// ln of the exact reduction in mean squared error from `m` orthogonal positive features, in blocks of d, over
/// independent ones: (P/m)e^{−‖x‖²−‖y‖²}(e^{v²} − ρ) with P the mean number of other rows in a row's block.
///
/// Source: Simplex Random Features, equation 25; m > d: new.
pub fn ln_positive_orthogonality_gap(pair: &Pair, m: usize) -> Option<f64> {
    let gap = conformity_excess(pair.dim, pair.sum, 0.0);
    Some(gap.ln_abs + ln_pair_factor(pair.dim, m)? + 2.0 * pair.dot)
}

/// The exact reduction in mean squared error from `m` orthogonal trigonometric features, in blocks of d, over
/// independent ones; negative where they are worse.
///
/// For ‖x−y‖² > 40 and even d up to 2²¹ the relative error is of the order of rounding, except near zeros. Otherwise the
/// absolute error is about 1e-15 e^{‖x‖²+‖y‖²}/m, so smaller gaps are not resolved for odd d.
///
/// Source: Simplex Random Features, equation 26; m > d: new.
pub fn trigonometric_orthogonality_gap(pair: &Pair, m: usize) -> Option<SignedLog> {
    let excess = signed_trigonometric_excess(pair.dim, pair.difference, 0.0);
    let gap = SignedLog { sign: -excess.sign, ..excess };
    Some(gap.scaled(ln_pair_factor(pair.dim, m)? + pair.norms))
}

/// ln of the number of ordered pairs in blocks of `d` among `m` rows, over m².
fn ln_pair_factor(d: usize, m: usize) -> Option<f64> {
    let pairs = Law::orthogonal(d, m).pairs(Radius::Chi)?;
    Some(pairs.angles.iter().map(|(_, count)| count).sum::<f64>().ln() - 2.0 * (m as f64).ln())
}

/// Means of exponentials over the sphere of radius √d.
struct PairSphereMeans {
    half_dim: f64,
    /// d‖x+y‖².
    argument: f64,
}

impl PairSphereMeans {
    fn new(pair: &Pair) -> Self {
        PairSphereMeans { half_dim: 0.5 * pair.dim as f64, argument: pair.dim as f64 * pair.sum }
    }

    /// ln q(d‖x+y‖²).
    fn ln_mean(&self) -> f64 {
        ln_0f1(self.half_dim, 0.25 * self.argument)
    }

    /// The mean of q((2+2cos θ)d‖x+y‖²) over the angles, relative to q(d‖x+y‖²)², minus 1.
    fn excess(&self, turns: Turns) -> SignedLog {
        if self.argument <= 2.0 * self.half_dim {
            return SignedLog::from(self.excess_series(turns)).scaled(-2.0 * self.ln_mean());
        }
        let relative =
            |cos: f64| expm1(ln_0f1(self.half_dim, 0.5 * (1.0 + cos) * self.argument) - 2.0 * self.ln_mean());
        match turns {
            Turns::One(cos) => relative(cos),
            Turns::Both(cos) => SignedLog::sum([relative(cos), relative(-cos)].into_iter()).scaled(-LN_2),
        }
    }

    /// The mean of q((2+2cos θ)·) minus q(·)² for ‖x+y‖ ≤ 1, from the difference of their power series: common parts
    /// are removed from each coefficient.
    fn excess_series(&self, turns: Turns) -> f64 {
        const TERMS: usize = 40;
        // Coefficients of (d‖x+y‖²/4)ᵏ in q, and of its square.
        let mut of_mean = [1.0; TERMS];
        for k in 1..TERMS {
            let n = k as f64;
            of_mean[k] = of_mean[k - 1] / ((self.half_dim + n - 1.0) * n);
        }
        let power = 0.25 * self.argument;
        let term = |k: usize| {
            let square: f64 = (1..k).map(|j| of_mean[j] * of_mean[k - j]).sum();
            let n = k as i32;
            // The part 2 aₖ of the square's coefficient is subtracted from the growth; exactly 0 for k = 1.
            let growth = match turns {
                Turns::One(cos) => (2.0 + 2.0 * cos).powi(n) - 2.0,
                Turns::Both(_) if k == 1 => 0.0,
                Turns::Both(cos) => 0.5 * ((2.0 + 2.0 * cos).powi(n) + (2.0 - 2.0 * cos).powi(n)) - 2.0,
            };
            power.powi(n) * (of_mean[k] * growth - square)
        };
        (1..TERMS).map(term).sum()
    }
}

/// The angles that a mean of products is taken over.
#[derive(Clone, Copy)]
enum Turns {
    /// One angle, with this cosine.
    One(f64),
    /// The angle and its supplement π − θ.
    Both(f64),
}
