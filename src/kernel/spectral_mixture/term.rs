//! [`Term`]: a weighted product of factors.

use std::fmt::{Display, Formatter};

use super::factor::{Factor, Sampler};
use crate::SignedLog;
use crate::error::{Error, Result};
use crate::kernel::Lengthscale;

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
    pub fn check(&self) -> Result<()> {
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(Error::Parameter {
                name: "a weight",
                value: self.weight,
                domain: "positive and finite",
            });
        }
        self.factors.iter().try_for_each(|factor| factor.clone().checked().map(drop))
    }

    /// The product of the factors at a difference.
    pub fn at(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> SignedLog {
        self.factors.iter().map(|factor| factor.at(d, delta)).fold(SignedLog::from(1.0), SignedLog::times)
    }

    /// 1 minus the product of the factors, without cancellation.
    pub fn deficit(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> f64 {
        self.factors.iter().map(|factor| factor.deficit(d, delta)).fold(0.0, |a, b| a + b - a * b)
    }

    /// Draws the frequencies of the factors.
    pub fn sampler(&self, d: usize) -> Result<Vec<Sampler<'_>>> {
        self.factors.iter().map(|factor| factor.sampler(d)).collect()
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let factors: Vec<String> = self.factors.iter().map(ToString::to_string).collect();
        write!(f, "{} × {}", self.weight, factors.join(" × "))
    }
}
