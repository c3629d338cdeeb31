//! Mean squared errors of the three Gaussian maps.
//!
//! An estimate is the mean of m terms f(ωᵢ), so m² MSE = m V + 2 p C with V = Var f(ω), p antithetic pairs and
//! C = Cov(f(ω), f(−ω)). Pairs are summed as V + C, since V and C may cancel.

use std::f64::consts::LN_2;

use super::{Law, Pair, ln_1m_exp, ln_add_exp, ln_expm1};

/// ln MSE of m terms of which `pairs` pairs are antithetic, from ln V and ln(V + C).
fn of_terms(law: &Law, single: f64, pair: f64) -> Option<f64> {
    let (m, pairs) = (law.len() as f64, law.antithetic_pairs()? as f64);
    let alone = m - 2.0 * pairs;
    Some(ln_add_exp(alone.ln() + single, (2.0 * pairs).ln() + pair) - 2.0 * m.ln())
}

/// ln MSE of the positive estimate of exp(x·y).
///
/// Independent: exp(2x·y)(e^{‖x+y‖²} − 1)/m. An antithetic pair is one hyperbolic projection.
/// Source: Performers, Lemma 2; antithetic: Hybrid Random Features, equation 3 and Lemma 2.2.
pub fn positive(pair: &Pair, law: &Law) -> Option<f64> {
    of_terms(law, 2.0 * pair.dot + ln_expm1(pair.sum), LN_2 + hyperbolic_projection(pair))
}

/// ln MSE of the hyperbolic estimate of exp(x·y).
///
/// Independent: exp(−‖x‖²−‖y‖²)(e^{‖x+y‖²} − 1)²/(2m). Even in ω: an antithetic pair counts once.
/// Source: Performers, Lemma 2; Hybrid Random Features, Lemma 2.2.
pub fn hyperbolic(pair: &Pair, law: &Law) -> Option<f64> {
    let single = hyperbolic_projection(pair);
    of_terms(law, single, LN_2 + single)
}

/// ln MSE of the trigonometric estimate of exp(x·y).
///
/// Independent: exp(‖x‖²+‖y‖²)(1 − e^{−‖x−y‖²})²/(2m). Even in ω: an antithetic pair counts once.
/// Source: Performers, Lemma 2; Hybrid Random Features, Lemma 2.2.
pub fn trigonometric(pair: &Pair, law: &Law) -> Option<f64> {
    let single = pair.norms + 2.0 * ln_1m_exp(pair.difference) - LN_2;
    of_terms(law, single, LN_2 + single)
}

/// ln Var of one hyperbolic projection.
fn hyperbolic_projection(pair: &Pair) -> f64 {
    -pair.norms + 2.0 * ln_expm1(pair.sum) - LN_2
}
