//! [`Spectrum`]: the spectral law of a shift-invariant kernel.

use crate::generator::Generator;
use rand_distr::{ChiSquared, Distribution};

use super::{Cauchy, Chi, PoweredExponential, RationalQuadratic, RootDim, Smoothness, SpectralMixture};
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::tagged::tagged;

/// The spectral law of a kernel: the law of ω with E cos(ω·δ) = k(δ). By Bochner's theorem every continuous
/// shift-invariant kernel with k(0) = 1 has one.
#[doc(alias = "Bochner")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Spectrum<'a> {
    /// ω = r·u with a uniform direction u and an independent radius r: k is a function of ‖δ‖.
    Polar(&'a dyn Radii),
    /// The coordinates of ω are independent and identically distributed: k is a product over the coordinates of δ.
    Product(&'a dyn Marginal),
    /// The law of a [`SpectralMixture`]: with probability w_q a frequency belongs to term q, and it is then the sum of
    /// independent frequencies of the term's factors.
    Mixture(&'a SpectralMixture),
}

impl Spectrum<'_> {
    /// The law as data: a name, or [`Other`](Radius::Other) and [`OtherProduct`](Radius::OtherProduct) for your own.
    pub fn law(&self) -> Radius {
        match self {
            Spectrum::Polar(radii) => radii.law(),
            Spectrum::Product(marginal) => marginal.law(),
            Spectrum::Mixture(mixture) => mixture.law(),
        }
    }
}

/// The law of the radii ‖ω‖.
///
/// ```
/// use random_features::Result;
/// use random_features::extend::{Generator, Radii};
/// use random_features::frequency::Orthogonal;
///
/// /// The kernel E cos(r u·(x−y)) with r uniform on [0, 1].
/// #[derive(Debug)]
/// struct Uniform;
///
/// impl Radii for Uniform {
///     fn draw(
///         &self,
///         _d: usize,
///         count: usize,
///         rng: &mut Generator,
///     ) -> Result<Vec<f64>> {
///         Ok((0..count).map(|_| rng.uniform()).collect())
///     }
/// }
/// let omega = Orthogonal.with_radii(Uniform).draw(3, 6, 1)?;
/// assert!(omega.rows().rows().into_iter().all(|row| row.dot(&row) < 1.0));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// With uniform directions the law of the radii determines an isotropic kernel: `Radii` choose the kernel, and a
/// [`Coupling`](crate::frequency::Coupling) chooses the directions. [`Radius::Chi`] belongs to the Gaussian and the
/// softmax kernel, [`Radius::RootDim`] to the regularised softmax kernel, a [`Smoothness`] to a Matérn kernel,
/// [`RationalQuadratic`] and [`PoweredExponential`] to the kernels of these names. A
/// [`RadialKernel`](super::RadialKernel) finds the radii of any other function of the distance. Implement this trait
/// for a law that you draw yourself. The stream of random numbers then depends on the `Debug` text, in which parameters
/// of the law should show.
pub trait Radii: std::fmt::Debug + Send + Sync {
    /// Draws `count` independent, finite radii in dimension `d` ≥ 1.
    ///
    /// With padded couplings d is the padded dimension.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the law does not exist in this dimension, [`Memory`](Error::Memory) if there is no
    /// memory for so many radii.
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>>;

    /// The name of the law, for closed forms; the default is [`Other`](Radius::Other). Radii of a named law are drawn by the
    /// crate's own sampler for that name.
    fn law(&self) -> Radius {
        Radius::Other
    }

    /// The quantile of the radius in dimension d at the probability `p`, strictly between 0 and 1; `None`, the default, if it is not
    /// known.
    ///
    /// [Coupled radii](crate::frequency::CoupledRadii) are drawn by it, and [variances](crate::theory::shift_invariant) of orthogonal
    /// rows are integrated over it.
    fn quantile(&self, _d: usize, _p: f64) -> Option<f64> {
        None
    }
}

/// The law of one coordinate of ω, symmetric about 0, if coordinates are independent.
///
/// [`Radius::Cauchy`] belongs to the [`Laplace`](super::Laplace) kernel. [`Product`](crate::frequency::Product)
/// draws independent frequencies of such a law, [`Sobol::with_marginal`](crate::frequency::Sobol::with_marginal) evenly
/// spread ones.
pub trait Marginal: std::fmt::Debug + Send + Sync {
    /// The quantile at `u` in (0, ½]: at most 0, and finite for u ≥ 2⁻⁶⁵.
    fn lower_quantile(&self, u: f64) -> f64;

    /// The name of the law, for closed forms; the default is [`OtherProduct`](Radius::OtherProduct). Coordinates of a named law
    /// are drawn by the crate's own sampler for that name.
    fn law(&self) -> Radius {
        Radius::OtherProduct
    }
}

macro_rules! pointers {
    ($($Pointer:ty),*) => {$(
        impl<M: Marginal + ?Sized> Marginal for $Pointer {
            fn lower_quantile(&self, u: f64) -> f64 {
                (**self).lower_quantile(u)
            }

            fn law(&self) -> Radius {
                (**self).law()
            }
        }
    )*};
}

pointers!(&M, Box<M>);

/// The spectral law of frequencies, as data: the law of the norm ‖ω‖ with uniform directions, or the law of independent
/// coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Radius {
    /// Norms are χ with d degrees of freedom: with a uniform direction, ω ~ N(0, I).
    Chi,
    /// Norms are √d: spectral law of the regularised softmax kernel.
    RootDim,
    /// Norms of the multivariate t distribution: spectral law of the Matérn kernel of this smoothness.
    Matern(Smoothness),
    /// Norms of a Gaussian vector with a gamma-distributed variance: spectral law of the rational quadratic kernel.
    RationalQuadratic {
        /// The parameter α of the kernel.
        alpha: f64,
    },
    /// Norms of a Gaussian vector with a variance of a positive stable law: spectral law of the powered exponential kernel.
    PoweredExponential {
        /// The exponent α of the kernel.
        alpha: f64,
    },
    /// Independent coordinates with the Cauchy distribution: spectral law of the Laplace kernel.
    Cauchy,
    /// The law of a [`SpectralMixture`], which draws its frequencies itself, by a hash of its parameters.
    Mixture(u64),
    /// Uniform directions, with a law of the norm that has no name here.
    Other,
    /// Independent coordinates, with a law that has no name here.
    OtherProduct,
    /// Unstated: frequencies of unknown origin.
    Unstated,
}

tagged!(Radius, "a law of frequencies" {
    "chi" => Chi,
    "root dim" => RootDim,
    "matern" => Matern(smoothness: Smoothness),
    "rational quadratic" => RationalQuadratic { alpha: f64 },
    "powered exponential" => PoweredExponential { alpha: f64 },
    "cauchy" => Cauchy,
    "mixture" => Mixture(hash: u64),
    "other" => Other,
    "other product" => OtherProduct,
    "unstated" => Unstated,
});

impl Radius {
    /// The sampler of radii of this law.
    ///
    /// # Errors
    /// [`Sampler`](Error::Sampler) unless this is a law of radii with a name.
    pub(crate) fn radii(self) -> Result<Box<dyn Radii>> {
        Ok(match self {
            Radius::Chi => Box::new(Chi),
            Radius::RootDim => Box::new(RootDim),
            Radius::Matern(smoothness) => Box::new(smoothness),
            Radius::RationalQuadratic { alpha } => Box::new(RationalQuadratic::new(alpha, 1.0)?),
            Radius::PoweredExponential { alpha } => Box::new(PoweredExponential::new(alpha, 1.0)?),
            _ => return Err(Error::Sampler { what: "radii", law: self.to_string() }),
        })
    }

    /// The quantiles of coordinates of this law.
    ///
    /// # Errors
    /// [`Sampler`](Error::Sampler) unless this is a law of coordinates with a name.
    pub(crate) fn marginal(self) -> Result<Box<dyn Marginal>> {
        self.named_marginal().ok_or_else(|| Error::Sampler { what: "coordinates", law: self.to_string() })
    }

    fn named_marginal(self) -> Option<Box<dyn Marginal>> {
        match self {
            Radius::Cauchy => Some(Box::new(Cauchy)),
            _ => None,
        }
    }

    /// Whether the law has a name.
    pub(crate) fn is_named(self) -> bool {
        !matches!(self, Radius::Other | Radius::OtherProduct | Radius::Unstated)
    }

    /// Whether this is a law of radii with a name, which [`radii`](Radius::radii) can draw.
    pub(crate) fn names_radii(self) -> bool {
        self.is_named() && self.is_polar()
    }

    /// Whether directions are stated to be uniform.
    pub(crate) fn is_polar(self) -> bool {
        self.named_marginal().is_none()
            && !matches!(self, Radius::Mixture(_) | Radius::OtherProduct | Radius::Unstated)
    }
}

/// Laws with a name draw radii themselves: `Orthogonal.with_radii(Radius::RootDim)`.
impl Radii for Radius {
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        self.radii()?.draw(d, count, rng)
    }

    fn law(&self) -> Radius {
        *self
    }

    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        self.radii().ok()?.quantile(d, p)
    }
}

/// Laws with a name give quantiles themselves: `Product(Radius::Cauchy)`.
impl Marginal for Radius {
    fn lower_quantile(&self, u: f64) -> f64 {
        self.marginal().map_or(f64::NAN, |marginal| marginal.lower_quantile(u))
    }

    fn law(&self) -> Radius {
        *self
    }
}

impl std::fmt::Display for Radius {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Radius::Chi => write!(f, "frequencies of radii χ"),
            Radius::RootDim => write!(f, "frequencies of radii √d"),
            Radius::Matern(smoothness) => write!(f, "frequencies for the kernel Matérn {smoothness}"),
            Radius::RationalQuadratic { alpha } => {
                write!(f, "frequencies for the kernel rational quadratic, α = {alpha}")
            }
            Radius::PoweredExponential { alpha } => {
                write!(f, "frequencies for the kernel powered exponential, α = {alpha}")
            }
            Radius::Cauchy => write!(f, "frequencies for the kernel Laplace"),
            Radius::Mixture(_) => write!(f, "frequencies for a spectral mixture"),
            Radius::Other => write!(f, "frequencies of radii whose law has no name"),
            Radius::OtherProduct => write!(f, "frequencies of coordinates whose law has no name"),
            Radius::Unstated => write!(f, "frequencies of radii whose law is not stated"),
        }
    }
}

/// Draws from χ with any number of degrees of freedom.
pub(super) fn chi(degrees: f64, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
    let squared = ChiSquared::new(degrees).map_err(|_| Error::Parameter {
        name: "the dimension d",
        value: degrees,
        domain: "at least 1",
    })?;
    check_memory("radii", count, size_of::<f64>())?;
    Ok((0..count).map(|_| squared.sample(rng).sqrt()).collect())
}
