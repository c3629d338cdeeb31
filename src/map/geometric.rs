//! Geometric random features.

use ndarray::ArrayView1;

use super::counting;
use super::definition::{Definition, NormalForm, Setting};
use super::omega::count_law;
use crate::Real;
use crate::digest::identified;
use crate::engine::{Lift, Shift};
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, check_probability};
use crate::kernel::Kernel;
use crate::numeric::special::ln_gamma;
use crate::theory::Pair;
use crate::theory::counts::ln_geometric_variance;

/// Geometric features: products of powers of coordinates, with geometric counts as exponents, for the softmax and the Gaussian
/// kernel.
///
/// ```
/// use random_features::Geometric;
/// use random_features::data::{PairStatistics, Statistics};
/// use random_features::frequency::Counts;
/// use random_features::ndarray::{arr1, arr2};
/// let (queries, keys) =
///     (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (Statistics::of(&queries)?, Statistics::of(&keys)?);
/// let p = PairStatistics::new(&x, &y)?.geometric();
/// let omega = Counts::geometric(2, 512, p, 1)?;
/// let map = Geometric::default().softmax(omega)?;
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} p^{−d/2} Πₗ (xₗ/√(1−p))^{ωⱼₗ}/√(ωⱼₗ!), m features, for the softmax kernel, with 0⁰ = 1; for the
/// Gaussian kernel times e^{−½‖x‖²}. Estimates are unbiased if the ωⱼₗ are independent geometric counts, P(ω = k) =
/// p(1−p)ᵏ from k = 0 on. Features and estimates may be negative, but are positive with a [`Shift`](super::Shift).
///
/// # Variance
/// (p^{−d} Πₗ I₀(2|xₗyₗ|(1−p)^{−½}) − e^{2x·y})/m: least for the p of
/// [`PairStatistics::geometric`](crate::data::PairStatistics::geometric). Apart from the kernel it does not depend on
/// the signs of coordinates. Closed form: [`theory::counts`](crate::theory::counts).
///
/// # Exact where
/// Nowhere; nearly exact for p near 1 where x or y is 0.
///
/// # Cost
/// O(md) per point, with one logarithm for each coordinate and one exponential for each feature.
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, Theorem 3.5.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Geometric {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    p: Option<f64>,
    shift: Option<Shift>,
}

impl Geometric {
    /// Makes the map with success probability p, for counts of any law. Unless they are geometric with this p, the estimated kernel is not known.
    /// The [default](Geometric::default) takes p from the law of the counts.
    pub fn with_p(p: f64) -> Self {
        Geometric { p: Some(p), shift: None }
    }

    /// Shifts points, so that all features are positive.
    #[must_use]
    pub fn shifted(self, shift: Shift) -> Self {
        Geometric { shift: Some(shift), ..self }
    }

    /// The stated p; `None` for the p of the counts.
    pub fn p(&self) -> Option<f64> {
        self.p
    }

    /// The shift of the points.
    pub fn shift(&self) -> Option<&Shift> {
        self.shift.as_ref()
    }

    fn probability(&self, setting: Setting<'_>) -> Result<f64> {
        let p = match (self.p, count_law(setting.omega)) {
            (Some(p), _) => p,
            (None, CountLaw::Geometric(p)) => *p,
            (None, law) => return Err(Error::Law { expected: self.name(), found: law.name() }),
        };
        check_probability(p)?;
        Ok(p)
    }

    /// Whether the counts have the p of the map.
    fn fits(&self, setting: Setting<'_>) -> bool {
        let law = count_law(setting.omega);
        matches!(law, CountLaw::Geometric(p) if self.probability(setting).is_ok_and(|own| own == *p))
    }
}

identified! { Geometric { p, shift } }

impl Definition for Geometric {
    fn name(&self) -> &'static str {
        "geometric"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        counting::check(self.name(), setting, self.shift.as_ref())?;
        self.probability(setting).map(drop)
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
        let (p, d) = (self.probability(setting)?, setting.omega.dim());
        // ω! = Γ(ω+1), exact up to rounding.
        let bias = |omega: ArrayView1<'_, u64>| {
            -0.5 * omega.iter().map(|count| ln_gamma(*count as f64 + 1.0)).sum::<f64>()
        };
        let constant = -0.5 * d as f64 * p.ln();
        counting::form(self.name(), setting, self.shift.clone(), vec![(1.0 - p).sqrt(); d], bias, constant)
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        if self.fits(setting) { setting.kernel.kernel() } else { None }
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        let p = self.probability(setting).ok().filter(|_| self.fits(setting))?;
        let gaussian = |u: &[f64], v: &[f64]| ln_geometric_variance(u, v, p, setting.omega.m());
        Some(counting::log_variance(setting, self.shift.as_ref(), u, v, pair, gaussian))
    }
}
