//! [`Factor`]: what the products of a spectral mixture are made of.

use std::f64::consts::{PI, TAU};
use std::fmt::{Display, Formatter};

use ndarray::ArrayViewMut1;

use super::harmonics::harmonics;
use super::powered::Powered;
use crate::SignedLog;
use crate::error::{Error, Result, check_positive};
use crate::generator::Generator;
use crate::kernel::gradient::{self, ScaledSum};
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
    /// exp(−Σₗ |δₗ/ℓₗ|^α).
    Powered(Powered),
}

tagged!(Factor, "a factor of a kernel" {
    "named" => Named(kernel: Named),
    "cosine" => Cosine[frequency: Vec<f64>],
    "periodic" => Periodic(kernel: Periodic),
    "powered exponential by coordinates" => Powered(kernel: Powered),
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

/// What is known of cos(ω·δ) of a frequency ω.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// 1 minus the mean.
    pub deficit: f64,
    pub variance: f64,
}

impl Moments {
    /// The moments for the sum of two independent frequencies. With s = 1 − k² each, it is v + v′ + ss′ − 2sv′ − 2s′v + 2vv′.
    pub fn times(self, other: Self) -> Self {
        let [s, t] = [self, other].map(|Moments { deficit, .. }| deficit * (2.0 - deficit));
        let (v, w) = (self.variance, other.variance);
        Moments {
            deficit: self.deficit + other.deficit - self.deficit * other.deficit,
            variance: v + w + s * t - 2.0 * s * w - 2.0 * t * v + 2.0 * v * w,
        }
    }
}

/// Adds a frequency of a factor to a row.
pub(super) type Sampler<'a> = Box<dyn Fn(&mut Generator, &mut ArrayViewMut1<'_, f64>) -> Result<()> + 'a>;

/// The one ℓ of all coordinates, if they are stated one by one.
fn one_for_all(ell: &Lengthscale) -> Option<Lengthscale> {
    match ell {
        Lengthscale::PerDimension(scales) => {
            let first = scales.first()?;
            scales.iter().all(|scale| scale == first).then_some(Lengthscale::Isotropic(*first))
        }
        Lengthscale::Isotropic(_) => None,
    }
}

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

    pub fn powered(alpha: f64, lengthscale: Lengthscale) -> Result<Self> {
        // Its text has one form, so that it is read back as it was.
        let lengthscale = one_for_all(&lengthscale).unwrap_or(lengthscale);
        Factor::Powered(Powered { alpha, lengthscale }).checked()
    }

    /// The factor in its one form; rejects parameters outside their domain.
    pub fn checked(self) -> Result<Self> {
        let first = |values: &[f64], fits: &dyn Fn(f64) -> bool| values.iter().copied().find(|v| !fits(*v));
        Ok(match self {
            Factor::Named(Named { law, lengthscale }) => {
                // A smoothness may have been stored in another form.
                let law = visit(law, |kernel| kernel.spectrum().law())?;
                Factor::Named(Named { law, lengthscale: lengthscale.checked()? })
            }
            Factor::Cosine(frequency) => {
                check_positive("the number of frequencies of a cosine", frequency.len())?;
                if let Some(value) = first(&frequency, &f64::is_finite) {
                    return Err(Error::Parameter { name: "a frequency", value, domain: "finite" });
                }
                // Without −0.
                Factor::Cosine(frequency.into_iter().map(|v| v + 0.0).collect())
            }
            Factor::Periodic(Periodic { periods, lengthscale }) => {
                check_positive("the number of periods", periods.len())?;
                if let Some(value) = first(&periods, &|p| p > 0.0 && p.is_finite() && p.recip().is_finite()) {
                    return Err(Error::Parameter { name: "a period", value, domain: "a positive number" });
                }
                if !(0.01..=1e6).contains(&lengthscale) {
                    let (name, domain) = ("the lengthscale of a periodic kernel", "from 0.01 to 1e6");
                    return Err(Error::Parameter { name, value: lengthscale, domain });
                }
                Factor::Periodic(Periodic { periods, lengthscale })
            }
            Factor::Powered(kernel) => Factor::Powered(kernel.checked()?),
        })
    }

    /// The law and the lengthscale of a named kernel.
    pub fn named(&self) -> Option<(Radius, &Lengthscale)> {
        match self {
            Factor::Named(Named { law, lengthscale }) => Some((*law, lengthscale)),
            _ => None,
        }
    }

    /// The dimension of the points, if the factor is for one only.
    pub fn dim(&self) -> Option<usize> {
        match self {
            Factor::Named(Named { lengthscale, .. }) | Factor::Powered(Powered { lengthscale, .. }) => {
                match lengthscale {
                    Lengthscale::Isotropic(_) => None,
                    Lengthscale::PerDimension(scales) => Some(scales.len()),
                }
            }
            Factor::Cosine(frequency) => Some(frequency.len()),
            Factor::Periodic(Periodic { periods, .. }) => Some(periods.len()),
        }
    }

    /// The factor of points divided by ℓ.
    pub fn stretched(&self, ell: &Lengthscale) -> Result<Self> {
        // One ℓ for all coordinates leaves one, in whichever form it is stated.
        let same = one_for_all(ell);
        let each = |values: &[f64], of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            values.iter().enumerate().map(|(l, v)| of(*v, ell.at(l))).collect()
        };
        self.dim().map_or(Ok(()), |d| ell.check_dim(d))?;
        let stretched = |own: &Lengthscale| -> Lengthscale {
            match (own, same.as_ref().unwrap_or(ell)) {
                (Lengthscale::Isotropic(own), Lengthscale::Isotropic(other)) => (own * other).into(),
                (Lengthscale::Isotropic(own), Lengthscale::PerDimension(scales)) => {
                    scales.iter().map(|scale| own * scale).collect::<Vec<f64>>().into()
                }
                (Lengthscale::PerDimension(scales), _) => each(scales, &|own, other| own * other).into(),
            }
        };
        match self {
            Factor::Named(Named { law, lengthscale }) => Factor::of_law(*law, stretched(lengthscale)),
            Factor::Powered(Powered { alpha, lengthscale }) => {
                Factor::powered(*alpha, stretched(lengthscale))
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
                value.unwrap_or_else(|_| SignedLog::from(f64::NAN))
            }
            Factor::Cosine(frequency) => SignedLog::from(angle(frequency, delta).cos()),
            Factor::Periodic(kernel) => SignedLog::positive(kernel.exponents(delta)[0]),
            Factor::Powered(kernel) => SignedLog::positive(kernel.exponents(d, delta)[0]),
        }
    }

    /// Adds the gradient at a difference, where the factor has this value, times a number.
    pub fn add_gradient(&self, value: SignedLog, delta: &[f64], times: SignedLog, sum: &mut ScaledSum) {
        match self {
            Factor::Named(Named { law, lengthscale }) => {
                let mut vector: Vec<f64> = lengthscale.divide(delta).collect();
                let found = visit(*law, |kernel| gradient::at(kernel, value, &mut vector));
                let ln_scale = found.ok().flatten().unwrap_or(f64::NAN);
                let vector: Vec<f64> = lengthscale.divide(&vector).collect();
                sum.add(&vector, times.times(SignedLog::positive(ln_scale)));
            }
            Factor::Cosine(frequency) => {
                let sin = angle(frequency, &|l| delta[l]).sin();
                sum.add(frequency, times.times(SignedLog::from(-sin)));
            }
            Factor::Periodic(kernel) => {
                let ln_factor = (TAU / (kernel.lengthscale * kernel.lengthscale)).ln();
                sum.add(&kernel.slopes(delta), times.times(value).scaled(ln_factor));
            }
            Factor::Powered(kernel) => sum.add(&kernel.slopes(delta), times.times(value)),
        }
    }

    /// 1 − E cos(ω·δ), without cancellation, and the variance of cos(ω·δ).
    pub fn moments(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> Moments {
        let of_ln =
            |ln: f64, ln_variance: f64| Moments { deficit: -ln.exp_m1(), variance: ln_variance.exp() };
        match self {
            Factor::Named(Named { law, lengthscale }) => {
                let scaled: Vec<f64> = (0..d).map(|l| delta(l) / lengthscale.at(l)).collect();
                let value = self.at(d, delta);
                let ln_variance = visit(*law, |kernel| kernel.ln_variance(&scaled)).unwrap_or(f64::NAN);
                match value.sign > 0.0 {
                    true => of_ln(value.ln_abs, ln_variance),
                    false => Moments { deficit: 1.0 - value.value(), variance: ln_variance.exp() },
                }
            }
            Factor::Cosine(frequency) => {
                Moments { deficit: 2.0 * (0.5 * angle(frequency, delta)).sin().powi(2), variance: 0.0 }
            }
            Factor::Periodic(kernel) => {
                let [ln, gap] = kernel.exponents(delta);
                of_ln(ln, shift_invariant::ln_variance(ln, gap))
            }
            Factor::Powered(kernel) => {
                let [ln, gap] = kernel.exponents(d, delta);
                of_ln(ln, shift_invariant::ln_variance(ln, gap))
            }
        }
    }

    /// Draws frequencies in ℝᵈ.
    pub fn sampler(&self, d: usize) -> Result<Sampler<'_>> {
        Ok(match self {
            Factor::Named(Named { law, lengthscale }) => {
                match law.is_polar() {
                    true => {
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
                    false => {
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
                        let harmonic = chosen(shares.iter().copied(), rng).unwrap_or(0);
                        *v += sign(rng) * TAU * harmonic as f64 / period;
                    }
                    Ok(())
                })
            }
            Factor::Powered(kernel) => Box::new(move |rng, row| {
                kernel.add_frequency(rng, row);
                Ok(())
            }),
        })
    }
}

impl Periodic {
    /// ln k(δ) = −2 Σ sin²/ℓ² and ln k(2δ) − 4 ln k(δ) = 8 Σ sin⁴/ℓ².
    fn exponents(&self, delta: &dyn Fn(usize) -> f64) -> [f64; 2] {
        // The remainder is exact, however many periods δ has.
        let square = |(l, period): (usize, &f64)| (PI * (delta(l) % period / period)).sin().powi(2);
        let squares = || self.periods.iter().enumerate().map(square);
        let scale = self.lengthscale * self.lengthscale;
        [-2.0 * squares().sum::<f64>() / scale, 8.0 * squares().map(|v| v * v).sum::<f64>() / scale]
    }

    /// The gradient of ln k over 2π/ℓ²: −sin(2πδₗ/pₗ)/pₗ for each coordinate.
    fn slopes(&self, delta: &[f64]) -> Vec<f64> {
        let slope = |(v, period): (&f64, &f64)| -(TAU * (v % period / period)).sin() / period;
        delta.iter().zip(&self.periods).map(slope).collect()
    }
}

fn angle(frequency: &[f64], delta: &dyn Fn(usize) -> f64) -> f64 {
    frequency.iter().enumerate().map(|(l, v)| v * delta(l)).sum()
}

/// The place of a random share, each with its own size as probability; `None` for a rest that rounding leaves beyond the last.
pub(super) fn chosen(mut shares: impl Iterator<Item = f64>, rng: &mut Generator) -> Option<usize> {
    let mut left = rng.uniform();
    shares.position(|share| {
        left -= share;
        left < 0.0
    })
}

fn sign(rng: &mut Generator) -> f64 {
    if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 }
}

/// Applies a function to the kernel of a law with lengthscale 1.
fn visit<R>(law: Radius, f: impl FnOnce(&dyn ShiftInvariant) -> R) -> Result<R> {
    Ok(match law {
        Radius::Chi => f(&Gaussian::default()),
        Radius::Matern(smoothness) => f(&Matern::new(smoothness, 1.0)?),
        Radius::RationalQuadratic { alpha } => f(&RationalQuadratic::new(alpha, 1.0)?),
        Radius::PoweredExponential { alpha } => f(&PoweredExponential::new(alpha, 1.0)?),
        Radius::Cauchy => f(&Laplace::default()),
        _ => return Err(Error::Unsupported { what: "a sum or product with a kernel of your own" }),
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
            Factor::Powered(kernel) => kernel.fmt(f),
        }
    }
}
