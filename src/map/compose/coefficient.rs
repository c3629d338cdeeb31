//! [`Coefficient`]: the weights λ̂ of a hybrid.

use ndarray::{Array2, ArrayRef1};

use super::{Part, rounding};
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_size, checked_positive};
use crate::kernel::{Gaussian, Lengthscale};
use crate::map::{AnyKernel, Mechanism, Omega, PlainRecipe};
use crate::theory::Radius;
use crate::theory::coefficient::{self, CoefficientMoments};
use crate::{Positive, Sign, Trigonometric};

/// A coefficient λ̂ = a + c·Ĉ(x, y), where Ĉ is the estimate of a feature map, which may itself be a hybrid.
///
/// It is independent of the bases that it weights if its frequencies are.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coefficient<M> {
    /// The constant a.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub constant: f64,
    /// The factor c of Ĉ; 0 for a constant.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub factor: f64,
    /// The map that estimates C; `None` for a constant.
    pub map: Option<M>,
}

impl<M: Identify> Identify for Coefficient<M> {
    fn identify(&self, digest: &mut Digest) {
        [self.constant, self.factor].identify(digest);
        self.map.identify(digest);
    }
}

impl<M> Coefficient<M> {
    /// The coefficient with the map that `each` makes of its map.
    pub(super) fn try_map<N, E>(
        &self,
        each: &mut impl FnMut(&M) -> Result<N, E>,
    ) -> Result<Coefficient<N>, E> {
        let map = self.map.as_ref().map(each).transpose()?;
        Ok(Coefficient { constant: self.constant, factor: self.factor, map })
    }
}

impl<M: Part> Coefficient<M> {
    /// The coefficient λ = a for all points.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a is not finite.
    pub fn constant(a: f64) -> Result<Self> {
        Ok(Coefficient { constant: finite("the coefficient a", a)?, factor: 0.0, map: None })
    }

    /// The coefficient λ̂ = a + c·Ĉ with any map that estimates C.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a or c is not finite.
    pub fn affine(a: f64, c: f64, map: M) -> Result<Self> {
        let (constant, factor) = (finite("the coefficient a", a)?, finite("the coefficient c", c)?);
        Ok(Coefficient { constant, factor, map: Some(map) })
    }

    /// The angular coefficient λ = θ/π with the angle θ between x and y: λ̂ = ½ − ½ Σ sgn(τ·x) sgn(τ·y)/n.
    ///
    /// It is exactly 0 at x = y and 1 at x = −y, also when computed from features. Source: Hybrid Random Features, section
    /// 2.4, equation 19.
    ///
    /// # Errors
    /// The errors of [`PlainRecipe::build`].
    pub fn angular(tau: impl Into<Omega>) -> Result<Self> {
        Self::affine(0.5, -0.5, M::of_plain(PlainRecipe::new(Sign, tau, AnyKernel::implied(1.0)))?)
    }

    /// The normalised Gaussian coefficient λ = (1 − e^{−σ²‖x−y‖²/2})/ρ, ρ = 1 − e^{−2σ²r²}, from trigonometric
    /// features: 0 at x = y, 1 at x = −y with norms r. σ says how fast it grows with ‖x−y‖. Hybrid Random Features, appendix F.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if σ or r is not positive and finite; the errors of [`PlainRecipe::build`].
    pub fn gaussian(tau: impl Into<Omega>, (sigma, r): (f64, f64)) -> Result<Self> {
        let kernel = Gaussian::new(checked_positive("σ", sigma)?.recip())?;
        Self::normalised(M::of_plain(PlainRecipe::new(Trigonometric, tau, kernel))?, (sigma, r))
    }

    /// The normalised Gaussian coefficient from any map that estimates the Gaussian kernel e^{−σ²‖x−y‖²/2}, such as a
    /// hybrid.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if σ or r is not positive and finite.
    pub fn normalised(map: M, (sigma, r): (f64, f64)) -> Result<Self> {
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
    /// [`NotFinite`](Error::NotFinite) if M holds a number that is not finite; the errors of [`PlainRecipe::build`].
    pub fn gaussian_trigonometric(tau: impl Into<Omega>, m: Array2<f64>, c: f64) -> Result<Self> {
        let kernel = Gaussian::new(checked_positive("c", c)?)?;
        Self::affine(0.0, 1.0, turned(Trigonometric, tau, kernel, -m)?)
    }

    /// The general Gaussian coefficient λ = exp(−‖x + My‖²/(2c²)) from positive features, so that λ̂ > 0.
    ///
    /// # Errors
    /// The errors of [`gaussian_trigonometric`](Coefficient::gaussian_trigonometric).
    pub fn gaussian_positive(tau: impl Into<Omega>, m: Array2<f64>, c: f64) -> Result<Self> {
        let kernel = Gaussian::new(checked_positive("c", c)?)?;
        Self::affine(0.0, 1.0, turned(Positive, tau, kernel, -m)?)
    }

    /// Rejects numbers that are not finite, and a factor without a map.
    pub(super) fn check(&self) -> Result<()> {
        finite("the coefficient a", self.constant)?;
        let c = finite("the coefficient c", self.factor)?;
        if self.map.is_none() && c != 0.0 {
            let name = "the factor of a coefficient without a map";
            return Err(Error::Parameter { name, value: c, domain: "0" });
        }
        Ok(())
    }

    /// The bound below which λ̂ or 1 − λ̂ is rounding error and counts as 0; 0 for shares of signs, which are exact.
    pub(super) fn rounding(&self) -> f64 {
        let random = self.map.as_ref().filter(|map| !map.is_of_signs());
        let size = self.constant.abs().max(self.factor.abs());
        random.map_or(0.0, |map| rounding::<M::Scalar>(map.terms()) * size)
    }

    /// Whether λ = θ/π, from independent signs.
    fn is_angular(&self) -> bool {
        let signs = |plain: &PlainRecipe| {
            let independent = |law: crate::theory::Law| law.with_radius(Radius::Chi).is_independent();
            matches!(plain.mechanism, Mechanism::Sign(_))
                && plain.matrix.is_none()
                && *plain.kernel.lengthscale() == Lengthscale::default()
                && plain.omega.law().is_some_and(independent)
        };
        self.constant == 0.5 && self.factor == -0.5 && self.map.as_ref().and_then(M::plain).is_some_and(signs)
    }

    /// The moments of λ̂, if they have a closed form.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a point does not have the map's dimension; errors of making the map of a recipe.
    pub fn moments(
        &self,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Result<Option<CoefficientMoments>> {
        if let Some(map) = &self.map {
            check_size("the dimension of x", map.dim(), x.len())?;
            check_size("the dimension of y", map.dim(), y.len())?;
            map.check()?;
        }
        Ok(self.moments_of_checked(x, y))
    }

    /// The moments of λ̂, if they have a closed form, for a map and points that have been checked.
    pub(super) fn moments_of_checked(
        &self,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<CoefficientMoments> {
        let Some(map) = &self.map else {
            return Some(CoefficientMoments::new(self.constant, 1.0 - self.constant, 0.0));
        };
        let (variance, known) = (map.ln_variance(x, y)?, map.known());
        let kernel = known.kernel.as_ref()?;
        if self.is_angular() {
            // π − θ is used instead of 1 − λ, so that both ends are exact.
            let angle = crate::kernel::angle(x.iter().map(|v| v.widen()).zip(y.iter().map(|v| v.widen())));
            return Some(coefficient::angular(angle, map.terms()));
        }
        let term = self.factor * kernel.log_value(x, y).ok()?.value();
        let square = (variance + 2.0 * self.factor.abs().ln()).exp();
        Some(CoefficientMoments::new(self.constant + term, 1.0 - self.constant - term, square))
    }

    /// The weight of the base that does not depend on an estimate: a, and a + c where all signs agree.
    pub(super) fn certain(&self) -> f64 {
        let signs = self.map.as_ref().is_some_and(M::is_of_signs);
        if signs { self.constant + self.factor } else { self.constant }
    }
}

impl<M: std::fmt::Display> std::fmt::Display for Coefficient<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.map {
            None => write!(f, "{}", self.constant),
            Some(map) => write!(f, "{} + {} × [{map}]", self.constant, self.factor),
        }
    }
}

/// The map for K(x, My).
pub(super) fn turned<M: Part>(
    mechanism: impl Into<Mechanism>,
    omega: impl Into<Omega>,
    kernel: impl Into<AnyKernel>,
    m: Array2<f64>,
) -> Result<M> {
    M::of_plain(PlainRecipe { matrix: Some(m), ..PlainRecipe::new(mechanism, omega, kernel) })
}

fn finite(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::Parameter { name, value, domain: "finite" }) }
}
