//! Matérn kernels.

use std::f64::consts::LN_2;

use crate::generator::Generator;

use super::spectrum::chi;
use super::{Lengthscale, Radii, Radius, ShiftInvariant, Spectrum, gamma_mixture};
use crate::SignedLog;
use crate::digest::identified;
use crate::error::{Error, Result};
use crate::names::UnreadWords;
use crate::numeric::special::{BetaOdds, ln_1m_exp, ln_add_exp};
use crate::tagged::tagged;

/// The smoothness ν of a [`Matern`] kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Smoothness {
    /// ν = ½: e^{−δ}, the exponential kernel.
    Half,
    /// ν = 3/2: (1 + √3 δ) e^{−√3 δ}.
    ThreeHalves,
    /// ν = 5/2: (1 + √5 δ + 5δ²/3) e^{−√5 δ}.
    FiveHalves,
    /// Any other ν, made by [`Smoothness::of`]: k = 2^{1−ν} t^ν K_ν(t)/Γ(ν) with t = √(2ν) δ. Each value of the kernel is a sum of
    /// some forty exponentials, and of hundreds if ν is below ½ and points are near.
    #[non_exhaustive]
    Nu(f64),
}

tagged!(Smoothness, "a smoothness" {
    "1/2" => Half,
    "3/2" => ThreeHalves,
    "5/2" => FiveHalves,
    "nu" => Nu[nu: f64],
});

impl Smoothness {
    /// The smoothness ν.
    ///
    /// ```
    /// use random_features::kernel::Smoothness;
    /// assert_eq!(Smoothness::of(1.5)?, Smoothness::ThreeHalves);
    /// assert_eq!(Smoothness::of(0.8)?.to_string(), "ν = 0.8");
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless ν is from 0.05 to 1000.
    pub fn of(nu: f64) -> Result<Self> {
        match nu {
            0.5 => Ok(Smoothness::Half),
            1.5 => Ok(Smoothness::ThreeHalves),
            2.5 => Ok(Smoothness::FiveHalves),
            0.05..=1000.0 => Ok(Smoothness::Nu(nu)),
            _ => Err(Error::Parameter { name: "ν", value: nu, domain: "from 0.05 to 1000" }),
        }
    }

    /// The smoothness in text: a fraction, a decimal of one, or any ν with its name, such as "ν = 0.8"; `None` if there is none.
    ///
    /// # Errors
    /// [`Text`](Error::Text) if no number follows the name; [`Parameter`](Error::Parameter) if it is outside its domain.
    pub(crate) fn read(words: &mut UnreadWords<'_>) -> Result<Option<Self>> {
        if let Some(Number(nu)) = words.behind_any(&["ν", "nu"])? {
            return Smoothness::of(nu).map(Some);
        }
        Ok(words.take_if(|word| word.parse().ok()))
    }

    /// ν.
    pub fn nu(self) -> f64 {
        match self {
            Smoothness::Half => 0.5,
            Smoothness::ThreeHalves => 1.5,
            Smoothness::FiveHalves => 2.5,
            Smoothness::Nu(nu) => nu,
        }
    }
}

impl std::fmt::Display for Smoothness {
    /// ν as a fraction, or with its name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Smoothness::Nu(nu) => write!(f, "ν = {nu}"),
            fraction => f.write_str(fraction.tag()),
        }
    }
}

impl std::str::FromStr for Smoothness {
    type Err = Error;

    /// Reads ν as a fraction or as a decimal, 1/2 or 0.5, 3/2 or 1.5, 5/2 or 2.5, and any ν with its name: ν = 0.8.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with what is known, [`Parameter`](Error::Parameter) if ν is outside its domain.
    fn from_str(text: &str) -> Result<Self> {
        let plain = text.trim().to_lowercase();
        let number = ["ν", "nu"].iter().find_map(|name| plain.strip_prefix(name));
        if let Some(Ok(Number(nu))) = number.map(|rest| rest.trim_start_matches([' ', '=', ':']).parse()) {
            return Smoothness::of(nu);
        }
        match text.trim() {
            "1/2" | "0.5" => Ok(Smoothness::Half),
            "3/2" | "1.5" => Ok(Smoothness::ThreeHalves),
            "5/2" | "2.5" => Ok(Smoothness::FiveHalves),
            _ => {
                let reason = "the values are 1/2, 3/2, 5/2 and any number with its name: ν = 0.8".into();
                Err(Error::Text { what: "a smoothness", text: text.into(), reason })
            }
        }
    }
}

/// A decimal, or a fraction such as 3/2.
struct Number(f64);

impl std::str::FromStr for Number {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        Ok(Number(match text.split_once('/') {
            Some((above, below)) => above.parse::<f64>()? / below.parse::<f64>()?,
            None => text.parse()?,
        }))
    }
}

/// The isotropic Matérn kernel of any smoothness.
///
/// ```
/// use random_features::kernel::{Kernel, Matern, Smoothness};
/// use random_features::ndarray::arr1;
/// let kernel = Matern::new(Smoothness::Half, 2.0)?;
/// assert_eq!(
///     kernel.value(&arr1(&[0.0, 0.0]), &arr1(&[6.0, 8.0]))?,
///     (-5.0f64).exp()
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// A function of δ = ‖(x−y)/ℓ‖, 1 at δ = 0. Each [`Smoothness`] gives its formula.
///
/// # Spectrum
/// ω has a multivariate t distribution; its radii are those of the [`Smoothness`]. P(‖ω‖ > r) falls as r^{−2ν}: with ν below 0.2,
/// or with small ℓ, a frequency may overflow in `f32`, and then the map is refused.
///
/// # References
/// Rasmussen and Williams, *Gaussian Processes for Machine Learning*, section 4.2.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "StoredMatern"))]
pub struct Matern {
    smoothness: Smoothness,
    lengthscale: Lengthscale,
}

impl Matern {
    /// The kernel of this smoothness with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if ν or an ℓ is outside its domain.
    pub fn new(smoothness: Smoothness, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(Matern {
            smoothness: Smoothness::of(smoothness.nu())?,
            lengthscale: lengthscale.into().checked()?,
        })
    }

    /// The smoothness ν.
    pub fn smoothness(&self) -> Smoothness {
        self.smoothness
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { Matern { smoothness, lengthscale } }

impl ShiftInvariant for Matern {
    fn name(&self) -> String {
        format!("Matérn {}", self.smoothness)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(&self.smoothness)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        let distance = square.sqrt();
        if distance.is_infinite() {
            return SignedLog::from(0.0);
        }
        SignedLog::positive(match self.smoothness {
            Smoothness::Half => -distance,
            Smoothness::ThreeHalves => {
                let scaled = 3f64.sqrt() * distance;
                scaled.ln_1p() - scaled
            }
            Smoothness::FiveHalves => {
                let scaled = 5f64.sqrt() * distance;
                (scaled + scaled * scaled / 3.0).min(f64::MAX).ln_1p() - scaled
            }
            Smoothness::Nu(nu) => gamma_mixture::ln_mean(nu, square),
        })
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        let t = (2.0 * self.smoothness.nu()).sqrt() * distance;
        Some(match self.smoothness {
            Smoothness::Half => -1.0,
            Smoothness::ThreeHalves => -3.0 * distance / (1.0 + t),
            Smoothness::FiveHalves => -5.0 / 3.0 * distance / (1.0 + t / 3.0 * (t / (1.0 + t))),
            Smoothness::Nu(nu) => -gamma_mixture::steepness(nu, distance),
        })
    }

    /// Nothing cancels: 1 + k(2δ) − 2k(δ)² is the tail P(n, t) = e⁻ᵗ Σ_{j≥n} tʲ/j!, plus e⁻ᵗ t⁴/36 for ν = 5/2.
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        let square = delta.iter().map(|v| v * v).sum::<f64>();
        // Beyond the bound all kernels are 0.
        let t = 2.0 * (2.0 * self.smoothness.nu() * square).sqrt().min(1e300);
        let excess = match self.smoothness {
            Smoothness::Half => ln_tail(1, t),
            Smoothness::ThreeHalves => ln_tail(3, t),
            Smoothness::FiveHalves if t == 0.0 => f64::NEG_INFINITY,
            Smoothness::FiveHalves => ln_add_exp(ln_tail(5, t), 4.0 * t.ln() - 36f64.ln() - t),
            Smoothness::Nu(nu) => return gamma_mixture::ln_variance(nu, square),
        };
        excess - LN_2
    }
}

/// The radii of a Matérn kernel of smoothness ν: χ_d (2ν/s)^½ with s ~ χ² of 2ν degrees of freedom, so that ω has a
/// multivariate t distribution. Rasmussen and Williams, *Gaussian Processes for Machine Learning*, section 4.2.
impl Radii for Smoothness {
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        let degrees = 2.0 * Smoothness::of(self.nu())?.nu();
        let normal = chi(d as f64, count, rng)?;
        let scales = chi(degrees, count, rng)?;
        // The bound keeps radii finite; a scale below 1e-100 has a probability of about 10^(−200ν).
        Ok(normal.iter().zip(scales).map(|(r, s)| r * degrees.sqrt() / s.max(1e-100)).collect())
    }

    fn law(&self) -> Radius {
        Radius::Matern(Smoothness::of(self.nu()).unwrap_or(*self))
    }

    /// r²/d has Fisher's law (d, 2ν): r²/(2ν) are the odds of a beta law (d/2, ν).
    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        let nu = Smoothness::of(self.nu()).ok()?.nu();
        let known = d > 0 && p > 0.0 && p < 1.0;
        known.then(|| (2.0 * nu).sqrt() * (0.5 * BetaOdds::new(0.5 * d as f64, nu).quantile(p)).exp())
    }
}

/// ln of e⁻ᵗ Σ_{j≥n} tʲ/j!, the probability that a Poisson count with mean t is at least n.
fn ln_tail(n: u32, t: f64) -> f64 {
    if t == 0.0 {
        return f64::NEG_INFINITY;
    }
    if t > 800.0 {
        // The probability is 1 up to rounding, and powers of t would overflow.
        return 0.0;
    }
    // The series of terms relative to the n-th, where they decrease; otherwise the complement.
    if t < f64::from(n) {
        let ratios = (1..200).scan(1.0, |term, j| {
            *term *= t / f64::from(n + j);
            Some(*term)
        });
        let sum = 1.0 + ratios.take_while(|term| *term > 1e-18).sum::<f64>();
        let factorial: f64 = (1..=n).map(f64::from).product();
        f64::from(n) * t.ln() - factorial.ln() + sum.ln() - t
    } else {
        let below = (0..n).scan(1.0, |term, j| {
            let this = *term;
            *term *= t / f64::from(j + 1);
            Some(this)
        });
        let below: f64 = below.sum();
        ln_1m_exp(t - below.ln())
    }
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredMatern {
    smoothness: Smoothness,
    lengthscale: Lengthscale,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredMatern> for Matern {
    type Error = Error;

    fn try_from(stored: StoredMatern) -> Result<Self> {
        Matern::new(stored.smoothness, stored.lengthscale)
    }
}
