//! [`Coefficient`]: the weights λ̂ of a hybrid.

use ndarray::{Array2, ArrayRef1};

use crate::engine::is_of_signs;
use crate::error::{Error, Result, checked_positive};
use crate::kernel::Gaussian;
use crate::map::{CoefficientRecipe, Map, Mechanism, Omega, PlainRecipe, Recipe, Target, Weight, rounding};
use crate::theory::Radius;
use crate::theory::coefficient::{self, Moments};
use crate::{Positive, Real, Sign, Trigonometric};

/// The parameters of the normalised Gaussian coefficient λ = (1 − e^{−σ²‖x−y‖²/2})/ρ with ρ = 1 − e^{−2σ²r²}.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianWeight {
    /// σ, positive and finite: how fast λ grows with ‖x−y‖.
    pub sigma: f64,
    /// r, positive and finite: the norm of the points for which λ = 1 at x = −y.
    pub r: f64,
}

/// A coefficient λ̂ = a + c·Ĉ(x, y), where Ĉ is the estimate of a feature map, which may itself be a hybrid.
///
/// It is independent of the bases that it weights if its frequencies are.
#[derive(Clone, Debug)]
pub struct Coefficient<T: Real> {
    pub(super) constant: f64,
    pub(super) factor: f64,
    pub(super) map: Option<Map<T>>,
}

impl<T: Real> Coefficient<T> {
    /// λ = a for all points.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a is not finite.
    pub fn constant(a: f64) -> Result<Self> {
        Ok(Coefficient { constant: finite("the coefficient a", a)?, factor: 0.0, map: None })
    }

    /// λ̂ = a + c·Ĉ for any map that estimates C.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a or c is not finite.
    pub fn affine(a: f64, c: f64, map: Map<T>) -> Result<Self> {
        let (constant, factor) = (finite("the coefficient a", a)?, finite("the coefficient c", c)?);
        Ok(Coefficient { constant, factor, map: Some(map) })
    }

    /// The angular coefficient λ = θ/π with the angle θ between x and y: λ̂ = ½ − ½ Σ sgn(τ·x) sgn(τ·y)/n.
    ///
    /// Exactly 0 at x = y and 1 at x = −y, also when computed from features. Source: Hybrid Random Features, equation
    /// 19.
    ///
    /// # Errors
    /// As [`PlainRecipe::map`].
    pub fn angular(tau: impl Into<Omega>) -> Result<Self> {
        Self::affine(0.5, -0.5, Sign.map(tau, 1.0)?)
    }

    /// The normalised Gaussian coefficient λ = (1 − e^{−σ²‖x−y‖²/2})/ρ, ρ = 1 − e^{−2σ²r²}, from trigonometric
    /// features: 0 at x = y, 1 at x = −y with norms r. Hybrid Random Features, appendix F.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if σ or r is not positive and finite; as [`PlainRecipe::map`].
    pub fn gaussian(tau: impl Into<Omega>, weight: GaussianWeight) -> Result<Self> {
        let map = Trigonometric.gaussian(tau, checked_positive("σ", weight.sigma)?.recip())?;
        Self::normalised(map, weight)
    }

    /// The normalised Gaussian coefficient from any map that estimates the Gaussian kernel e^{−σ²‖x−y‖²/2}, such as a
    /// hybrid.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if σ or r is not positive and finite.
    pub fn normalised(map: Map<T>, GaussianWeight { sigma, r }: GaussianWeight) -> Result<Self> {
        let rho = -(-2.0 * (checked_positive("σ", sigma)? * checked_positive("r", r)?).powi(2)).exp_m1();
        // If σr is so small that ρ rounds to 0, the coefficient does not exist.
        let inverse = checked_positive("1/(1 − e^{−2σ²r²})", rho.recip())?;
        Self::affine(inverse, -inverse, map)
    }

    /// The general Gaussian coefficient λ = exp(−‖x + My‖²/(2c²)), largest where x = −My, from trigonometric features.
    /// Hybrid Random Features, equation 20.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if c is not positive and finite, [`Shape`](Error::Shape) if M does not fit,
    /// [`NotFinite`](Error::NotFinite) if it holds a number that is not finite; as [`PlainRecipe::map`].
    pub fn gaussian_trigonometric(tau: impl Into<Omega>, m: Array2<f64>, c: f64) -> Result<Self> {
        let kernel = Gaussian::new(checked_positive("c", c)?)?;
        Self::affine(0.0, 1.0, turned(Trigonometric, tau, kernel, -m)?)
    }

    /// As [`gaussian_trigonometric`](Coefficient::gaussian_trigonometric), from positive features, so that λ̂ > 0.
    ///
    /// # Errors
    /// As [`gaussian_trigonometric`](Coefficient::gaussian_trigonometric).
    pub fn gaussian_positive(tau: impl Into<Omega>, m: Array2<f64>, c: f64) -> Result<Self> {
        let kernel = Gaussian::new(checked_positive("c", c)?)?;
        Self::affine(0.0, 1.0, turned(Positive, tau, kernel, -m)?)
    }

    /// a.
    pub fn constant_part(&self) -> f64 {
        self.constant
    }

    /// c.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// The map that estimates C; `None` for a constant.
    pub fn map(&self) -> Option<&Map<T>> {
        self.map.as_ref()
    }

    /// The coefficient as plain data; `None` if it contains a user-defined [`FeatureMap`](crate::FeatureMap).
    pub fn recipe(&self) -> Option<CoefficientRecipe> {
        let map = match &self.map {
            None => None,
            Some(map) => Some(Box::new(map.recipe()?)),
        };
        Some(CoefficientRecipe { constant: self.constant, factor: self.factor, map })
    }

    pub(super) fn weight(&self) -> Weight<'_, T> {
        Weight { constant: self.constant, factor: self.factor, map: self.map.as_ref() }
    }

    /// The bound below which λ̂ or 1 − λ̂ is rounding error and counts as 0. Shares of signs are exact.
    pub(super) fn rounding(&self) -> f64 {
        let random = self.map.as_ref().filter(|map| !is_of_signs(map.program().plan()));
        let size = self.constant.abs().max(self.factor.abs());
        random.map_or(0.0, |map| rounding::<T>(map.feature_dim()) * size)
    }

    /// Whether λ = θ/π, from independent signs.
    fn is_angular(&self) -> bool {
        let signs = |recipe: &Recipe| match recipe {
            Recipe::Plain(PlainRecipe { mechanism: Mechanism::Sign(_), omega, target, .. }) => {
                let spherical = *target.lengthscale() == 1.0.into();
                let law = omega.frequencies("sign").map(|omega| omega.law().clone());
                spherical && law.is_ok_and(|law| law.with_radius(Radius::Chi).is_independent())
            }
            _ => false,
        };
        self.constant == 0.5
            && self.factor == -0.5
            && self.map.as_ref().and_then(Map::recipe).is_some_and(|recipe| signs(&recipe))
    }

    /// The moments of λ̂, if they have a closed form.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a point has another dimension than the map's.
    pub fn moments(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<Moments>> {
        let Some(map) = &self.map else {
            return Ok(Some(Moments::new(self.constant, 1.0 - self.constant, 0.0)));
        };
        let Some(variance) = map.log_variance(x, y)? else { return Ok(None) };
        let Some(kernel) = map.kernel() else { return Ok(None) };
        if self.is_angular() {
            // From π − θ rather than 1 − λ, so that both ends are exact.
            let angle = crate::kernel::angle(x.iter().map(|v| v.widen()).zip(y.iter().map(|v| v.widen())));
            return Ok(Some(coefficient::angular(angle, map.feature_dim())));
        }
        let term = self.factor * kernel.log_value(x, y)?.value();
        let square = (variance + 2.0 * self.factor.abs().ln()).exp();
        Ok(Some(Moments::new(self.constant + term, 1.0 - self.constant - term, square)))
    }
}

/// The map for K(x, My).
pub(super) fn turned<T: Real>(
    mechanism: impl Into<Mechanism>,
    omega: impl Into<Omega>,
    target: impl Into<Target>,
    m: Array2<f64>,
) -> Result<Map<T>> {
    let (mechanism, omega, target) = (mechanism.into(), omega.into(), target.into());
    PlainRecipe { mechanism, omega, target, matrix: Some(m) }.map()
}

fn finite(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::Parameter { name, value, domain: "finite" }) }
}
