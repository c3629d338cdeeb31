//! [`Factor`]: what the products of a spectral mixture are made of.

use std::f64::consts::{PI, TAU};
use std::fmt::{Display, Formatter};

use ndarray::ArrayViewMut1;

use super::harmonics::harmonics;
use crate::SignedLog;
use crate::error::{Error, Result, check_positive};
use crate::generator::Generator;
use crate::kernel::shift_invariant;
use crate::kernel::{
    Gaussian, Laplace, Lengthscale, Matern, PoweredExponential, Radius, RationalQuadratic, ShiftInvariant,
};
use crate::tagged::tagged;

/// A kernel that a product multiplies.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Factor {
    /// A named kernel.
    Named(Named),
    /// cos(μ·δ).
    Cosine(Vec<f64>),
    /// exp(−2 Σₗ sin²(πδₗ/pₗ)/ℓ²).
    Periodic(Periodic),
}

tagged!(Factor, "a factor of a kernel" {
    "named" => Named(kernel: Named),
    "cosine" => Cosine[frequency: Vec<f64>],
    "periodic" => Periodic(kernel: Periodic),
});

/// A kernel by its spectral law.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Named {
    law: Radius,
    lengthscale: Lengthscale,
}

crate::digest::identified! { Named { law, lengthscale } Periodic { periods, lengthscale } }

/// A periodic kernel.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Periodic {
    /// p, one for each coordinate.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    periods: Vec<f64>,
    /// ℓ, by which the chord on the circle of radius 1 is divided.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    lengthscale: f64,
}

/// Adds a frequency of a factor to a row.
pub(super) type Sampler<'a> = Box<dyn Fn(&mut Generator, &mut ArrayViewMut1<'_, f64>) -> Result<()> + 'a>;

impl Factor {
    pub fn of_law(law: Radius, lengthscale: Lengthscale) -> Result<Self> {
        Factor::Named(Named { law, lengthscale }).checked()
    }

    pub fn cosine(frequency: Vec<f64>) -> Result<Self> {
        Factor::Cosine(frequency).checked()
    }

    pub fn periodic(periods: Vec<f64>, lengthscale: f64) -> Result<Self> {
        Factor::Periodic(Periodic { periods, lengthscale }).checked()
    }

    /// Rejects parameters outside their domain.
    pub fn checked(self) -> Result<Self> {
        let first = |values: &[f64], fits: &dyn Fn(f64) -> bool| values.iter().copied().find(|v| !fits(*v));
        match &self {
            Factor::Named(Named { law, lengthscale }) => {
                lengthscale.clone().checked()?;
                if visit(*law, |_| ()).is_none() {
                    return Err(Error::Unsupported { what: "a sum or product with a kernel of your own" });
                }
            }
            Factor::Cosine(frequency) => {
                check_positive("the number of frequencies of a cosine", frequency.len())?;
                if let Some(value) = first(frequency, &f64::is_finite) {
                    return Err(Error::Parameter { name: "a frequency", value, domain: "finite" });
                }
            }
            Factor::Periodic(Periodic { periods, lengthscale }) => {
                check_positive("the number of periods", periods.len())?;
                if let Some(value) = first(periods, &|p| p > 0.0 && p.is_finite() && p.recip().is_finite()) {
                    return Err(Error::Parameter { name: "a period", value, domain: "a positive number" });
                }
                if !(0.01..=1e6).contains(lengthscale) {
                    let (name, domain) = ("the lengthscale of a periodic kernel", "from 0.01 to 1e6");
                    return Err(Error::Parameter { name, value: *lengthscale, domain });
                }
            }
        }
        Ok(self)
    }

    /// The dimension of the points, if the factor is for one only.
    pub fn dim(&self) -> Option<usize> {
        match self {
            Factor::Named(Named { lengthscale: Lengthscale::Isotropic(_), .. }) => None,
            Factor::Named(Named { lengthscale: Lengthscale::PerDimension(scales), .. }) => Some(scales.len()),
            Factor::Cosine(frequency) => Some(frequency.len()),
            Factor::Periodic(Periodic { periods, .. }) => Some(periods.len()),
        }
    }

    /// The factor of points divided by ℓ.
    pub fn stretched(&self, ell: &Lengthscale) -> Result<Self> {
        let each = |values: &[f64], of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            values.iter().enumerate().map(|(l, v)| of(*v, ell.at(l))).collect()
        };
        self.dim().map_or(Ok(()), |d| ell.check_dim(d))?;
        match self {
            Factor::Named(Named { law, lengthscale }) => {
                let lengthscale = match (lengthscale, ell) {
                    (Lengthscale::Isotropic(own), Lengthscale::Isotropic(other)) => (own * other).into(),
                    (Lengthscale::Isotropic(own), Lengthscale::PerDimension(scales)) => {
                        scales.iter().map(|scale| own * scale).collect::<Vec<f64>>().into()
                    }
                    (Lengthscale::PerDimension(scales), _) => each(scales, &|own, other| own * other).into(),
                };
                Factor::of_law(*law, lengthscale)
            }
            Factor::Cosine(frequency) => Factor::cosine(each(frequency, &|own, other| own / other)),
            Factor::Periodic(Periodic { periods, lengthscale }) => {
                Factor::periodic(each(periods, &|own, other| own * other), *lengthscale)
            }
        }
    }

    /// The value at a difference.
    pub fn at(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> SignedLog {
        match self {
            Factor::Named(Named { law, lengthscale }) => {
                let scaled = |l| delta(l) / lengthscale.at(l);
                let value = visit(*law, |kernel| shift_invariant::at(kernel, d, scaled));
                value.unwrap_or(SignedLog::from(f64::NAN))
            }
            Factor::Cosine(frequency) => SignedLog::from(angle(frequency, delta).cos()),
            Factor::Periodic(kernel) => SignedLog::positive(kernel.ln_at(delta)),
        }
    }

    /// 1 minus the value, without cancellation.
    pub fn deficit(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> f64 {
        match self {
            Factor::Cosine(frequency) => 2.0 * (0.5 * angle(frequency, delta)).sin().powi(2),
            _ => {
                let value = self.at(d, delta);
                if value.sign > 0.0 { -value.ln_abs.exp_m1() } else { 1.0 - value.value() }
            }
        }
    }

    /// Draws frequencies in ℝᵈ.
    pub fn sampler(&self, d: usize) -> Result<Sampler<'_>> {
        Ok(match self {
            Factor::Named(Named { law, lengthscale }) => {
                match visit(*law, |kernel| kernel.spectrum().law()) {
                    Some(law) if law.is_polar() => {
                        let radii = law.radii()?;
                        Box::new(move |rng, row| {
                            let direction: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
                            let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
                            let radius = radii.draw(d, 1, rng)?[0];
                            for (l, (v, z)) in row.iter_mut().zip(direction).enumerate() {
                                *v += radius * (z / norm) / lengthscale.at(l);
                            }
                            Ok(())
                        })
                    }
                    _ => {
                        let marginal = law.marginal()?;
                        Box::new(move |rng, row| {
                            for (l, v) in row.iter_mut().enumerate() {
                                // Numbers in the middle of 2⁵³ intervals.
                                let u = 0.5 * (rng.uniform() + f64::EPSILON / 4.0);
                                *v += sign(rng) * marginal.lower_quantile(u) / lengthscale.at(l);
                            }
                            Ok(())
                        })
                    }
                }
            }
            Factor::Cosine(frequency) => Box::new(move |rng, row| {
                let sign = sign(rng);
                row.iter_mut().zip(frequency).for_each(|(v, frequency)| *v += sign * frequency);
                Ok(())
            }),
            Factor::Periodic(Periodic { periods, lengthscale }) => {
                let shares = harmonics(lengthscale.powi(-2));
                Box::new(move |rng, row| {
                    for (v, period) in row.iter_mut().zip(periods) {
                        let mut left = rng.uniform();
                        let chosen = shares.iter().position(|share| {
                            left -= share;
                            left < 0.0
                        });
                        *v += sign(rng) * TAU * chosen.unwrap_or(0) as f64 / period;
                    }
                    Ok(())
                })
            }
        })
    }
}

impl Periodic {
    fn ln_at(&self, delta: &dyn Fn(usize) -> f64) -> f64 {
        // The remainder is exact, however many periods δ has.
        let square = |(l, period): (usize, &f64)| (PI * (delta(l) % period / period)).sin().powi(2);
        let sum: f64 = self.periods.iter().enumerate().map(square).sum();
        -2.0 * sum / (self.lengthscale * self.lengthscale)
    }
}

fn angle(frequency: &[f64], delta: &dyn Fn(usize) -> f64) -> f64 {
    frequency.iter().enumerate().map(|(l, v)| v * delta(l)).sum()
}

fn sign(rng: &mut Generator) -> f64 {
    if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 }
}

/// Applies a function to the kernel of a law with lengthscale 1; `None` if there is none.
fn visit<R>(law: Radius, f: impl FnOnce(&dyn ShiftInvariant) -> R) -> Option<R> {
    Some(match law {
        Radius::Chi => f(&Gaussian::default()),
        Radius::Matern(smoothness) => f(&Matern::new(smoothness, 1.0).ok()?),
        Radius::RationalQuadratic { alpha } => f(&RationalQuadratic::new(alpha, 1.0).ok()?),
        Radius::PoweredExponential { alpha } => f(&PoweredExponential::new(alpha, 1.0).ok()?),
        Radius::Cauchy => f(&Laplace::default()),
        _ => return None,
    })
}

impl Display for Factor {
    /// Writes a text from which the factor is read again.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Factor::Named(Named { law, lengthscale }) => {
                f.write_str(&visit(*law, |kernel| kernel.name()).unwrap_or_default())?;
                match lengthscale {
                    Lengthscale::Isotropic(scale) => write!(f, ", lengthscale {scale}"),
                    Lengthscale::PerDimension(scales) => write!(f, ", lengthscales {scales:?}"),
                }
            }
            Factor::Cosine(frequency) => write!(f, "cosine {frequency:?}"),
            Factor::Periodic(Periodic { periods, lengthscale }) => {
                write!(f, "periodic {periods:?}, lengthscale {lengthscale}")
            }
        }
    }
}
