//! [`Term`]: a weighted product of factors.

use std::fmt::{Display, Formatter};

use super::factor::{Factor, Moments, Sampler};
use crate::SignedLog;
use crate::error::{Error, Result, check_positive};
use crate::kernel::Lengthscale;
use crate::kernel::gradient::ScaledSum;

/// A weighted product of factors.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Term {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub weight: f64,
    pub factors: Vec<Factor>,
}

impl Term {
    /// The product of no factors.
    pub fn one() -> Self {
        Term { weight: 1.0, factors: Vec::new() }
    }

    pub fn of(factor: Factor) -> Self {
        Term { weight: 1.0, factors: vec![factor] }
    }

    pub fn times(&self, other: &Self) -> Self {
        let factors = self.factors.iter().chain(&other.factors).cloned().collect();
        Term { weight: self.weight * other.weight, factors }
    }

    /// The term of points divided by ℓ.
    pub fn stretched(&self, ell: &Lengthscale) -> Result<Self> {
        let factors = self.factors.iter().map(|factor| factor.stretched(ell)).collect::<Result<_>>()?;
        Ok(Term { weight: self.weight, factors })
    }

    /// Rejects weights and parameters outside their domain.
    pub fn checked(self) -> Result<Self> {
        check_weight(self.weight)?;
        check_positive("the number of factors", self.factors.len())?;
        let factors = self.factors.into_iter().map(Factor::checked).collect::<Result<_>>()?;
        Ok(Term { weight: self.weight, factors })
    }

    /// The product of the factors at a difference.
    pub fn at(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> SignedLog {
        self.factors.iter().map(|factor| factor.at(d, delta)).fold(SignedLog::from(1.0), SignedLog::times)
    }

    /// Adds the gradient at a difference without NaN, by the product rule.
    pub fn add_gradient(&self, delta: &[f64], sum: &mut ScaledSum) {
        let at = |l: usize| delta[l];
        let values: Vec<SignedLog> = self.factors.iter().map(|factor| factor.at(delta.len(), &at)).collect();
        for (j, factor) in self.factors.iter().enumerate() {
            let others = values.iter().enumerate().filter(|(i, _)| *i != j).map(|(_, value)| *value);
            let others = others.fold(SignedLog::from(self.weight), SignedLog::times);
            factor.add_gradient(values[j], delta, others, sum);
        }
    }

    /// The moments of cos(ω·δ).
    pub fn moments(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> Moments {
        let one = Moments { deficit: 0.0, variance: 0.0 };
        self.factors.iter().map(|factor| factor.moments(d, delta)).fold(one, Moments::times)
    }

    /// Draws the frequencies of the factors.
    pub fn sampler(&self, d: usize) -> Result<Vec<Sampler<'_>>> {
        self.factors.iter().map(|factor| factor.sampler(d)).collect()
    }
}

pub(super) fn check_weight(weight: f64) -> Result<()> {
    if weight > 0.0 && weight.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter { name: "a weight", value: weight, domain: "positive and finite" })
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let factors: Vec<String> = self.factors.iter().map(ToString::to_string).collect();
        write!(f, "{} × {}", self.weight, factors.join(" × "))
    }
}
