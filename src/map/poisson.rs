//! Poisson random features.

use super::counting;
use super::definition::{Definition, NormalForm, Setting};
use super::omega::count_law;
use crate::Real;
use crate::digest::identified;
use crate::engine::{Lift, Shift};
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Rates};
use crate::kernel::Kernel;
use crate::theory::Pair;
use crate::theory::counts::ln_poisson_variance_per_dimension;

/// Poisson features: products of powers of coordinates, with Poisson counts as exponents, for the softmax and the Gaussian kernel.
///
/// ```
/// use random_features::Poisson;
/// use random_features::data::{PairStatistics, Statistics};
/// use random_features::frequency::Counts;
/// use random_features::ndarray::{arr1, arr2};
/// let (queries, keys) =
///     (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (Statistics::of(&queries)?, Statistics::of(&keys)?);
/// let rates = PairStatistics::new(&x, &y)?.poisson_per_dimension();
/// let omega = Counts::poisson(2, 512, rates, 1)?;
/// let map = Poisson::default().softmax(omega)?;
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} e^{Σ λₗ/2} Πₗ (xₗ/√λₗ)^{ωⱼₗ}, m features, for the softmax kernel, with 0⁰ = 1; for the Gaussian
/// kernel times e^{−½‖x‖²}. Estimates are unbiased if the ωⱼₗ are independent Poisson counts of rates λₗ > 0, one for all
/// coordinates or one for each. Features and estimates may be negative, but are positive with a [`Shift`](super::Shift).
///
/// # Variance
/// e^{2x·y} (exp(Σ (λₗ − xₗyₗ)²/λₗ) − 1)/m: smallest on average if λₗ is the root mean square of xₗyₗ over the pairs of
/// data ([`PairStatistics::poisson_per_dimension`](crate::data::PairStatistics::poisson_per_dimension), and
/// [`PairStatistics::poisson`](crate::data::PairStatistics::poisson) for one λ). It is very large where |xₗyₗ| is much
/// larger than λₗ. Closed form: [`theory::counts`](crate::theory::counts).
///
/// # Exact where
/// xₗyₗ = λₗ for every l, for any draw; with tiny λ, where x or y is 0.
///
/// # Cost
/// O(md) per point, with one logarithm for each coordinate and one exponential for each feature.
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, Theorem 3.4. A rate for each coordinate: new.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Poisson {
    rates: Option<Rates>,
    shift: Option<Shift>,
}

impl Poisson {
    /// Makes the map with rates λ, for counts of any law. Unless they are Poisson with these λ, the estimated kernel is not known.
    /// The [default](Poisson::default) takes λ from the law of the counts.
    pub fn with_rates(rates: impl Into<Rates>) -> Self {
        Poisson { rates: Some(rates.into()), shift: None }
    }

    /// Shifts points, so that all features are positive.
    #[must_use]
    pub fn shifted(self, shift: Shift) -> Self {
        Poisson { shift: Some(shift), ..self }
    }

    /// The stated λ; `None` for the rates of the counts.
    pub fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// The shift of the points.
    pub fn shift(&self) -> Option<&Shift> {
        self.shift.as_ref()
    }

    /// λ of each of d coordinates.
    fn each<'a>(&'a self, setting: Setting<'a>) -> Result<Vec<f64>> {
        let rates = match (&self.rates, count_law(setting.omega)) {
            (Some(rates), _) | (None, CountLaw::Poisson(rates)) => rates,
            (None, law) => return Err(Error::Law { expected: self.name(), found: law.name() }),
        };
        rates.check(setting.omega.dim())?;
        Ok(rates.each(setting.omega.dim()).collect())
    }
}

identified! { Poisson { rates, shift } }

impl Definition for Poisson {
    fn name(&self) -> &'static str {
        "Poisson"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        counting::check(self.name(), setting, self.shift.as_ref())?;
        self.each(setting).map(drop)
    }

    fn takes_matrix(&self) -> bool {
        false
    }

    fn is_for_all_points(&self) -> bool {
        self.shift.is_none()
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Exp)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let rates = self.each(setting)?;
        let (constant, divisors) =
            (0.5 * rates.iter().sum::<f64>(), rates.into_iter().map(f64::sqrt).collect());
        counting::form(self.name(), setting, self.shift.clone(), divisors, |_| 0.0, constant)
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        if self.fits(setting) { setting.kernel.kernel() } else { None }
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        if !self.fits(setting) {
            return None;
        }
        let (rates, m) = (self.each(setting).ok()?, setting.omega.m());
        let gaussian = |u: &[f64], v: &[f64]| ln_poisson_variance_per_dimension(u, v, &rates, m);
        Some(counting::log_variance(setting, self.shift.as_ref(), u, v, pair, gaussian))
    }
}

impl Poisson {
    /// Whether the counts have the rates of the map.
    fn fits(&self, setting: Setting<'_>) -> bool {
        let d = setting.omega.dim();
        match count_law(setting.omega) {
            CountLaw::Poisson(rates) => self.each(setting).is_ok_and(|own| rates.each(d).eq(own)),
            _ => false,
        }
    }
}
